"""Attacks that Everrow does not withstand yet, by the name of their test, each with the reason.

Every entry is expected to fail: one that starts to pass fails the suite until it is taken off the list.
"""

from __future__ import annotations

REASONS: dict[str, tuple[str, ...]] = {
    "answers that nobody reads keep 0.7 to 1.1 GB resident for 10 s, more than the ledger of connections counts; the cause is not found": (
        "test_clients_that_never_read_make_the_server_keep_little",
        "test_all_at_once_stay_below_the_ceiling",
    ),
}

NOT_YET: dict[str, str] = {name: reason for reason, names in REASONS.items() for name in names}
