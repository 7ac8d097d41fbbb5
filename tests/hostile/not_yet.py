"""Attacks that Everrow does not withstand yet, by the name of their test, each with the reason.

Every entry is expected to fail: one that starts to pass fails the suite until it is taken off the list.
"""

from __future__ import annotations

REASONS: dict[str, tuple[str, ...]] = {
    "schedules are computed without a bound": ("test_schedules_are_computed_in_bounded_time",),
    "timers of one run are quadratic": ("test_completions_with_tens_of_thousands_of_commands_hold_nobody_up",),
    "answers that nobody reads take more than the ledger of connections counts": (
        "test_a_client_that_never_reads_makes_the_server_keep_little[0]",
        "test_a_client_that_never_reads_makes_the_server_keep_little[1000]",
        "test_all_at_once_stay_below_the_ceiling",
    ),
    "what gzip unpacks to is refused in other words than SDKs know": ("test_a_bomb_of_gzip_is_not_unpacked",),
}

NOT_YET: dict[str, str] = {name: reason for reason, names in REASONS.items() for name in names}
