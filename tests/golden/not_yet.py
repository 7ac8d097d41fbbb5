"""Scenarios that Everrow does not yet play as the reference does, each with the reason.

Every entry is expected to fail: one that starts to pass fails the suite until it is taken off the list.
"""

from __future__ import annotations

REASONS: dict[str, tuple[str, ...]] = {
    "the workflow task of an update is stored, which counts as two more transitions of the run": ("describe_update",),
    "a reset that is repeated finds the run that it made; the reference makes another": ("reset_same_request",),
    "an update that a run left behind goes on to the next run; the reference tells the caller to try again": (
        "update_unseen_at_continue_as_new",
    ),
}

NOT_YET: dict[str, str] = {name: reason for reason, names in REASONS.items() for name in names}
