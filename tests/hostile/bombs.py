"""Small requests that ask for much work: schedules, queries, commands, masks. Each is legal on the wire."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
# The first and the last second of protobuf's calendar.
FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799
EVERY_VALUE = [{"start": INT32_MIN, "end": INT32_MAX, "step": 1}]
FEBRUARY_30 = {"month": [{"start": 2, "end": 2}], "day_of_month": [{"start": 30, "end": 30}]}
EVERY_SECOND = {"interval": [{"interval": {"seconds": 1}}]}
ALWAYS = {
    "second": [{"start": 0, "end": 59}],
    "minute": [{"start": 0, "end": 59}],
    "hour": [{"start": 0, "end": 23}],
    "day_of_month": [{"start": 1, "end": 31}],
    "month": [{"start": 1, "end": 12}],
    "day_of_week": [{"start": 0, "end": 6}],
}
CALENDAR_PARTS = ("second", "minute", "hour", "day_of_month", "month", "year", "day_of_week")


def schedule_specs() -> Iterator[tuple[str, dict[str, Any]]]:
    yield "every value is excluded", EVERY_SECOND | {"exclude_structured_calendar": [dict.fromkeys(CALENDAR_PARTS, EVERY_VALUE)]}
    for part in CALENDAR_PARTS:
        excluded = ALWAYS | {part: EVERY_VALUE}
        yield f"the widest range of {part} is excluded", EVERY_SECOND | {"exclude_structured_calendar": [excluded]}
        yield f"the widest range of {part}", {"structured_calendar": [ALWAYS | {part: EVERY_VALUE}]}
    yield "a step beyond the end", {"structured_calendar": [ALWAYS | {"second": [{"start": 0, "end": 59, "step": INT32_MAX}]}]}
    yield "20 calendars of 30 February", {
        "structured_calendar": [FEBRUARY_30] * 20,
        "exclude_structured_calendar": [ALWAYS] * 20,
    }
    yield "always, and always excluded", {"structured_calendar": [ALWAYS], "exclude_structured_calendar": [ALWAYS]}
    yield "every second, and always excluded", EVERY_SECOND | {"exclude_structured_calendar": [ALWAYS]}
    yield "a range 20 000 times", {"structured_calendar": [ALWAYS | {"second": [{"start": 0, "end": 59}] * 20_000}]}
    yield "10 000 calendars", {"structured_calendar": [FEBRUARY_30] * 10_000}
    yield "10 000 excluded calendars", EVERY_SECOND | {"exclude_structured_calendar": [ALWAYS] * 10_000}
    yield "10 000 intervals", {"interval": [{"interval": {"seconds": 86_400 * 365 * 100 + n}} for n in range(10_000)]}
    yield "an interval of 1 ns", {"interval": [{"interval": {"nanos": 1}}]}
    yield "an interval of 292 years", {"interval": [{"interval": {"seconds": 9_223_372_036}, "phase": {"seconds": 1}}]}
    yield "an interval of all seconds", {"interval": [{"interval": {"seconds": 2**63 - 1}, "phase": {"seconds": 2**63 - 2}}]}
    yield "30 February by cron", {"cron_string": ["0 0 30 2 *"] * 20}
    yield "10 000 cron strings", {"cron_string": ["0 0 30 2 *"] * 10_000}
    yield "a cron string of 1 MB", {"cron_string": [",".join(["1-59/2"] * 150_000) + " * * * *"]}
    yield "a cron interval of 1 ns", {"cron_string": ["@every 1ns"]}
    yield "a cron range that wraps", {"cron_string": ["0-4294967295 0-18446744073709551615 * * *"]}
    yield "comments of 1 MB", {"calendar": [{"comment": "x" * 1_000_000, "hour": "*"}]}
    yield "calendar text of 1 MB", {"calendar": [{"second": ",".join(["0-59"] * 200_000)}]}
    yield "a time zone of 3 MB", EVERY_SECOND | {"timezone_data": b"TZif2" + b"\xff" * 3_000_000}
    yield "a time zone outside", EVERY_SECOND | {"timezone_name": "../../../../etc/passwd"}
    yield "from the first second to the last", EVERY_SECOND | {
        "start_time": {"seconds": FIRST_SECOND},
        "end_time": {"seconds": LAST_SECOND},
    }
    yield "beyond every calendar", EVERY_SECOND | {"start_time": {"seconds": 2**63 - 1}, "end_time": {"seconds": -(2**63)}}
    yield "jitter of all time", EVERY_SECOND | {"jitter": {"seconds": 2**63 - 1, "nanos": 999_999_999}}


def schedule_patches() -> Iterator[tuple[str, dict[str, Any]]]:
    centuries = {"start_time": {"seconds": FIRST_SECOND}, "end_time": {"seconds": LAST_SECOND}}
    for policy in ("ALLOW_ALL", "BUFFER_ALL", "SKIP"):
        request = centuries | {"overlap_policy": f"SCHEDULE_OVERLAP_POLICY_{policy}"}
        yield f"centuries, {policy}", {"backfill_request": [request]}
    yield "centuries, 10 000 times", {"backfill_request": [centuries] * 10_000}
    beyond = {"start_time": {"seconds": -(2**63)}, "end_time": {"seconds": 2**63 - 1}}
    yield "beyond every calendar", {"backfill_request": [beyond]}
    yield "pause with 1 MB", {"pause": "x" * 1_000_000}


def queries() -> Iterator[tuple[str, str]]:
    yield "ORDER BY 23 000 columns", "ORDER BY " + ", ".join(["StartTime"] * 23_000)
    yield "ORDER BY 23 000 columns and directions", "ORDER BY " + ", ".join(["StartTime ASC", "WorkflowId DESC"] * 11_500)
    for depth in (100, 1_000, 100_000):
        yield f"{depth} parentheses", "(" * depth + "WorkflowId = 'x'" + ")" * depth
        yield f"{depth} parentheses that stay open", "(" * depth + "WorkflowId = 'x'"
        yield f"{depth} × NOT", "NOT " * depth + "WorkflowId = 'x'"
        yield f"{depth} × NOT (", "NOT (" * depth + "WorkflowId = 'x'" + ")" * depth
    for word in ("AND", "OR"):
        yield f"20 000 × {word}", f" {word} ".join(["WorkflowId = 'x'"] * 20_000)
    pairs = " AND ".join(f"(WorkflowId = 'a{n}' OR WorkflowId = 'b{n}')" for n in range(5_000))
    yield "5 000 pairs, which multiply", pairs
    yield "NOT of 5 000 pairs", f"NOT ({pairs})"
    for attribute in ("WorkflowId", "RunId", "WorkflowType", "ExecutionStatus", "TaskQueue", "StartTime"):
        values = ", ".join(f"'{n:07}'" for n in range(100_000))
        yield f"{attribute} IN 100 000 values", f"{attribute} IN ({values})"
        yield f"{attribute} NOT IN 100 000 values", f"{attribute} NOT IN ({values})"
    yield "a text of 3 MB", f"WorkflowId = '{'x' * 3_000_000}'"
    yield "a prefix of 3 MB", f"WorkflowId STARTS_WITH '{'x' * 3_000_000}'"
    yield "a name of 3 MB", f"{'x' * 3_000_000} = 1"
    yield "a number of 3 MB", f"HistoryLength = {'9' * 3_000_000}"
    yield "a time of 1 MB", f"StartTime > '{'9' * 1_000_000}'"
    yield "a quote that stays open", "WorkflowId = '" + "x" * 1_000_000
    yield "1 MB of quotes", "'" * 1_000_000
    yield "1 MB of backslashes", "WorkflowId = '" + "\\" * 1_000_000
    yield "1 MB of noise", "§$%&/()=?`" * 100_000
    yield "GROUP BY 10 000", "GROUP BY " + ", ".join(["ExecutionStatus"] * 10_000)
    yield "1 000 × BETWEEN", " AND ".join(["StartTime BETWEEN '2020-01-01T00:00:00Z' AND '2030-01-01T00:00:00Z'"] * 1_000)


def commands() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Tens of thousands in one completion."""
    n = 40_000
    timers = [
        {
            "command_type": "COMMAND_TYPE_START_TIMER",
            "start_timer_command_attributes": {"timer_id": str(i), "start_to_fire_timeout": {"seconds": 3_600}},
        }
        for i in range(n)
    ]
    yield "StartTimer", timers
    yield "StartTimer with one id", [timers[0]] * n
    cancel = {"command_type": "COMMAND_TYPE_CANCEL_TIMER", "cancel_timer_command_attributes": {"timer_id": "1"}}
    yield "CancelTimer", [cancel] * n
    marker = {"command_type": "COMMAND_TYPE_RECORD_MARKER", "record_marker_command_attributes": {"marker_name": "m"}}
    yield "RecordMarker", [marker] * n
    yield "StartTimer and RecordMarker in turns", [both for timer in timers[:15_000] for both in (timer, marker)]
    for i, (command, attributes) in enumerate(_many_kinds()):
        yield f"{command} ({i})", [
            {"command_type": f"COMMAND_TYPE_{command}", f"{command.lower()}_command_attributes": attributes | {key: str(number)}}
            for number in range(15_000)
            for key in [next(iter(attributes))]
        ]


def _many_kinds() -> Iterator[tuple[str, dict[str, Any]]]:
    queue, kind = {"name": "bombs"}, {"name": "bomb"}
    span = {"seconds": 60}
    yield (
        "SCHEDULE_ACTIVITY_TASK",
        {"activity_id": "", "activity_type": kind, "task_queue": queue, "start_to_close_timeout": span},
    )
    yield "START_CHILD_WORKFLOW_EXECUTION", {"workflow_id": "", "workflow_type": kind, "task_queue": queue}
    yield "SIGNAL_EXTERNAL_WORKFLOW_EXECUTION", {"signal_name": "", "execution": {"workflow_id": "nobody"}}
    yield "REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION", {"workflow_id": ""}
