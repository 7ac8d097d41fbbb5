"""Scenarios that Everrow does not yet play as the reference does, each with the reason.

Every entry is expected to fail: one that starts to pass fails the suite until it is taken off the list.
"""

from __future__ import annotations

REASONS: dict[str, tuple[str, ...]] = {
    "automatic reset points are handed on without the time at which they expire": (
        "child_continues_as_new",
        "child_retried",
        "children_of_continued",
        "continue_as_new_elsewhere",
        "continue_as_new_later",
        "continue_as_new_with_all",
        "cron_after_completed",
        "cron_after_failed",
        "cron_continued_as_new",
        "cron_with_retries",
        "execution_timeout",
        "retry_of_timed_out_run",
        "retry_until_attempts_end",
        "retry_with_next_delay",
    ),
    "search attributes are not checked against what is registered, and BuildIds is not kept": (
        "bad_child",
        "bad_continue_as_new",
        "bad_properties",
        "child_described",
        "describe_closed_run",
        "describe_open_run",
        "search_attributes_upserted",
        "start_refused",
    ),
    "the worker is told the changed timeout of an activity, not the one that it was scheduled with": (
        "activity_options_changed",
    ),
    "history is read without the workflow task that was tried again and is not yet written": ("query_when_task_fails",),
    "an activity that is started eagerly has no request id of its own": ("activity_eager",),
    "a signal with start does not end the start delay of the run that it finds": ("signal_with_start_delayed",),
    "a run without a timeout is described without the moment at which it expires; the reference tells the year one": (
        "workflow_paused",
    ),
    "a reset that is repeated finds the run that it made; the reference makes another": ("reset_same_request",),
    "a workflow task that was written after it had started names its worker; the reference does not": (
        "update_of_terminated",
        "update_task_timed_out",
        "update_with_signal_in_flight",
    ),
    "an update that a run left behind goes on to the next run; the reference tells the caller to try again": (
        "update_unseen_at_continue_as_new",
    ),
    "of two messages with one id the reference knows the last, and misses the other": ("update_bad_messages",),
    "the answer to an update with start of a run that is there tells more than the reference's": (
        "update_with_start",
        "update_with_start_running",
    ),
}

NOT_YET: dict[str, str] = {name: reason for reason, names in REASONS.items() for name in names}
