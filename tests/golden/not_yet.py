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
    "a token that is none is told to be the caller's mistake; the reference says that something went wrong": (
        "list_tokens_refused",
    ),
    "lists are kept in wide rows, not in SQL: there are no numbered columns, and every moment is exact": ("list_as_in_sql",),
    "lists can be ordered, which the reference can in Elasticsearch only": ("list_ordered",),
    "SQL that no list can answer is a syntax error where it begins": ("list_by_foreign_sql",),
    "a job is no workflow, and has no runs to tell of": ("batch_twice",),
    "an endpoint keeps the time of its creation": ("nexus_endpoint_lives",),
    "several clusters are not built": ("remote_cluster_refused",),
    "a schedule that is deleted is forgotten at once": ("schedule_deleted",),
    "an update of a schedule with an old token is refused, not dropped": ("schedule_updated_late",),
    "what a schedule could never start is refused when it is made": ("schedule_checked_late",),
    "an excluded calendar is checked as an included one is": ("schedule_bad_exclusion",),
    "a part of a path is taken apart before it is unescaped, and not mended": ("http_unclean_paths",),
    "versions of clients are not looked at": ("http_client_versions",),
}

NOT_YET: dict[str, str] = {name: reason for reason, names in REASONS.items() for name in names}
