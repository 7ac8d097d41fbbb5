"""Schedules: made, shown, listed, changed, deleted."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from temporalio.service import RPCError

from catalogue import scenario, scenario_masking
from commands import SECOND, complete, input_of, payload
from stage import CLIENT, Stage
from waiting import eventually

HOUR = timedelta(hours=1)
DAY = 24 * HOUR
BEGIN = datetime(2030, 1, 1, tzinfo=timezone.utc)
# What depends on when the scenario is played.
MOMENTS = ("future_action_times", "workflow_id", "conflict_token")


def action(stage: Stage, **fields: Any) -> dict[str, Any]:
    plain = {
        "workflow_id": f"run-{stage.id}",
        "workflow_type": {"name": "golden"},
        "task_queue": {"name": stage.queue},
    }
    return {"start_workflow": plain | fields}


def schedule(stage: Stage, **fields: Any) -> dict[str, Any]:
    """One that does nothing by itself for years."""
    spec = {"interval": [{"interval": DAY}], "start_time": BEGIN}
    return {"spec": spec, "action": action(stage)} | fields


async def create(stage: Stage, schedule_id: str = "", **fields: Any) -> Any:
    plain = {
        "schedule_id": schedule_id or stage.id,
        "schedule": schedule(stage),
        "identity": CLIENT,
        "request_id": stage.request_id(),
    }
    return await stage.call("CreateSchedule", **plain | fields)


async def described(stage: Stage, what: str) -> Any:
    found = await stage.silently("DescribeSchedule", schedule_id=stage.id)
    stage.note(what, found)
    return found


async def until(stage: Stage, is_so: Any) -> None:
    async def ask() -> bool:
        return bool(is_so(await stage.silently("DescribeSchedule", schedule_id=stage.id)))

    await eventually(ask)


async def patch(stage: Stage, **fields: Any) -> None:
    await stage.call(
        "PatchSchedule", schedule_id=stage.id, identity=CLIENT, request_id=stage.request_id(), patch=fields
    )


async def deleted(stage: Stage) -> None:
    await stage.call("DeleteSchedule", schedule_id=stage.id, identity=CLIENT)


@scenario_masking(*MOMENTS)
async def schedule_made(stage: Stage) -> None:
    """A schedule as it is told back, and that it can be made once only."""
    await create(stage, memo={"fields": {"key": payload("value")}})
    await described(stage, "made")
    await stage.refused("CreateSchedule", schedule_id=stage.id, schedule=schedule(stage), request_id="another")
    await deleted(stage)


@scenario
async def schedule_deleted(stage: Stage) -> None:
    """What is said of one that is no more."""
    await create(stage)
    await deleted(stage)

    async def is_gone() -> bool:
        try:
            await stage.silently("DescribeSchedule", schedule_id=stage.id)
        except RPCError:
            return True
        return False

    await eventually(is_gone)
    await stage.refused("DescribeSchedule", schedule_id=stage.id)


@scenario_masking(*MOMENTS)
async def schedule_made_with_all(stage: Stage) -> None:
    """Every kind of spec, as it is told back."""
    spec = {
        "structured_calendar": [{"hour": [{"start": 12}], "comment": "noon"}],
        "calendar": [{"hour": "1-5/2", "day_of_week": "Mon,friday", "month": "jan-mar", "year": "2030-2040"}],
        "cron_string": ["0 12 * * MON-FRI # weekdays", "@daily", "@every 90m/5m"],
        "interval": [{"interval": HOUR, "phase": 5 * SECOND}],
        "exclude_structured_calendar": [{"day_of_month": [{"start": 1}]}],
        "exclude_calendar": [{"month": "12"}],
        "start_time": BEGIN,
        "end_time": BEGIN + 3650 * DAY,
        "jitter": 10 * SECOND,
        "timezone_name": "Europe/Berlin",
    }
    policies = {
        "overlap_policy": "SCHEDULE_OVERLAP_POLICY_BUFFER_ONE",
        "catchup_window": HOUR,
        "pause_on_failure": True,
        "keep_original_workflow_id": True,
    }
    state = {"notes": "a note", "paused": True, "limited_actions": True, "remaining_actions": 3}
    started = action(
        stage,
        input=input_of(1),
        workflow_execution_timeout=3 * HOUR,
        workflow_run_timeout=2 * HOUR,
        workflow_task_timeout=7 * SECOND,
        retry_policy={"maximum_attempts": 3},
        memo={"fields": {"key": payload("value")}},
        user_metadata={"summary": payload("summary")},
        priority={"priority_key": 4},
    )
    await create(stage, schedule={"spec": spec, "action": started, "policies": policies, "state": state})
    await described(stage, "made")
    await deleted(stage)


@scenario_masking(*MOMENTS)
async def schedule_triggered(stage: Stage) -> None:
    """Its run is started at once, and what came of it is told."""
    await create(stage)
    await patch(stage, trigger_immediately={})
    task = await stage.workflow_task()
    execution = task.polled.workflow_execution
    await until(stage, lambda found: found.info.running_workflows)
    found = await stage.silently("DescribeSchedule", schedule_id=stage.id)
    stage.note("running", [found.info.action_count, len(found.info.running_workflows), len(found.info.recent_actions)])
    stage.note("named", execution.workflow_id.startswith(f"run-{stage.id}-20"))
    await task.complete(complete("out"))
    await until(stage, lambda found: not found.info.running_workflows)
    found = await stage.silently("DescribeSchedule", schedule_id=stage.id)
    stage.note("closed", [found.info.action_count, len(found.info.running_workflows), len(found.info.recent_actions)])
    stage.note("recent", found.info.recent_actions[0])
    first = (await stage.silently("GetWorkflowExecutionHistory", execution=execution)).history.events[0]
    attributes = first.workflow_execution_started_event_attributes
    del attributes.search_attributes.indexed_fields["TemporalScheduledStartTime"]
    stage.note("started", attributes)
    info = (await stage.silently("DescribeWorkflowExecution", execution=execution)).workflow_execution_info
    stage.note("attributes", sorted(info.search_attributes.indexed_fields))
    await deleted(stage)


@scenario_masking(*MOMENTS)
async def schedule_paused(stage: Stage) -> None:
    """Paused and unpaused, with notes."""
    await create(stage, initial_patch={"pause": "from the start"})
    await described(stage, "paused at once")
    await patch(stage, unpause="go on")
    await until(stage, lambda found: not found.schedule.state.paused)
    await described(stage, "unpaused")
    await patch(stage, pause="wait")
    await until(stage, lambda found: found.schedule.state.paused)
    await described(stage, "paused")
    await deleted(stage)


@scenario_masking(*MOMENTS)
async def schedule_filled_in(stage: Stage) -> None:
    """Runs are started for a span of the past."""
    await create(stage, schedule=schedule(stage, spec={"interval": [{"interval": DAY}]}, state={"paused": True}))
    day = datetime(2020, 1, 1, 12, tzinfo=timezone.utc)
    span = {"start_time": day, "end_time": day + 2 * DAY, "overlap_policy": "SCHEDULE_OVERLAP_POLICY_ALLOW_ALL"}
    await patch(stage, backfill_request=[span])
    tasks = [await stage.workflow_task() for _ in range(2)]
    stage.note("ids", sorted(task.polled.workflow_execution.workflow_id for task in tasks))
    for task in tasks:
        await task.complete(complete())
    await until(stage, lambda found: found.info.action_count == 2 and not found.info.running_workflows)
    found = await stage.silently("DescribeSchedule", schedule_id=stage.id)
    stage.note("moments", [one.schedule_time.ToJsonString() for one in found.info.recent_actions])
    await deleted(stage)


@scenario_masking(*MOMENTS)
async def schedule_updated(stage: Stage) -> None:
    """Changed, with and without the token of what was seen."""
    await create(stage)
    seen = await described(stage, "made")
    changed = schedule(stage, state={"notes": "changed"})
    plain = {"schedule_id": stage.id, "identity": CLIENT}
    await stage.call("UpdateSchedule", **plain, schedule=changed, request_id="u-1", conflict_token=seen.conflict_token)
    await until(stage, lambda found: found.schedule.state.notes == "changed")
    await described(stage, "changed")
    blind = schedule(stage, state={"notes": "blind"})
    await stage.call("UpdateSchedule", **plain, schedule=blind, request_id="u-4")
    await until(stage, lambda found: found.schedule.state.notes == "blind")
    await described(stage, "blindly")
    await deleted(stage)


@scenario_masking(*MOMENTS)
async def schedule_updated_late(stage: Stage) -> None:
    """Changed with a token of what is no more so."""
    await create(stage)
    seen = (await described(stage, "made")).conflict_token
    plain = {"schedule_id": stage.id, "identity": CLIENT, "conflict_token": seen}
    for n in range(2):
        changed = schedule(stage, state={"notes": f"changed {n}"})
        await stage.refused("UpdateSchedule", **plain, schedule=changed, request_id=f"u-{n}")
        await until(stage, lambda found: found.schedule.state.notes == "changed 0")
    await deleted(stage)


@scenario
async def schedule_matching_times(stage: Stage) -> None:
    """The moments of a span at which it would act."""
    await create(stage)
    for case, span in {
        "three days": {"start_time": BEGIN + HOUR, "end_time": BEGIN + 3 * DAY},
        "before it begins": {"start_time": BEGIN - 3 * DAY, "end_time": BEGIN - DAY},
        "backwards": {"start_time": BEGIN + 3 * DAY, "end_time": BEGIN},
        "no times": {},
        "no end": {"start_time": BEGIN},
        "no start": {"end_time": BEGIN + DAY},
        "too many": {"start_time": BEGIN, "end_time": BEGIN + 2000 * DAY},
    }.items():
        stage.note("case", case)
        matching = await stage.answered("ListScheduleMatchingTimes", schedule_id=stage.id, **span)
        if matching is not None:
            times = [moment.ToJsonString() for moment in matching.start_time]
            stage.note("times", [len(times), *times[:4]])
    await stage.refused("ListScheduleMatchingTimes", schedule_id="", start_time=BEGIN, end_time=BEGIN)
    await stage.refused("ListScheduleMatchingTimes", schedule_id="nobody", start_time=BEGIN, end_time=BEGIN)
    await deleted(stage)


@scenario_masking("workflow_id")
async def schedules_listed(stage: Stage) -> None:
    """All, by queries, page by page; and counted."""
    await stage.settle(Color="KEYWORD")
    for n in range(3):
        fields = schedule(stage, state={"paused": n == 1, "notes": f"note {n}"})
        colored = {"indexed_fields": {"Color": payload("red")}} if n == 2 else {}
        await create(stage, f"s-{n}", schedule=fields, search_attributes=colored)

    async def all_listed() -> bool:
        paused = await stage.silently("CountSchedules", query="TemporalSchedulePaused = true")
        return paused.count == 1 and (await stage.silently("CountSchedules")).count == 3

    await eventually(all_listed)
    for query in (
        "",
        "TemporalSchedulePaused = true",
        "TemporalSchedulePaused = false",
        "Color = 'red'",
        "ScheduleId = 's-1'",
        "ScheduleId STARTS_WITH 's-'",
        "ScheduleId IN ('s-0', 's-2')",
        "ScheduleId != 's-1'",
    ):
        stage.note("query", query)
        found = await stage.answered("ListSchedules", query=query)
        if found is not None:
            found.schedules.sort(key=lambda one: one.schedule_id)
            for one in found.schedules:
                del one.info.future_action_times[:]
            stage.note("found", found)
    await stage.call("CountSchedules", query="TemporalSchedulePaused = false")
    pages = []
    token = b""
    while True:
        page = await stage.silently("ListSchedules", maximum_page_size=2, next_page_token=token)
        pages.append(len(page.schedules))
        token = page.next_page_token
        if not token:
            break
    stage.note("pages", pages)
    for n in range(3):
        await stage.silently("DeleteSchedule", schedule_id=f"s-{n}")


@scenario
async def schedule_queries_refused(stage: Stage) -> None:
    """Queries that schedules cannot be asked."""
    await stage.settle(Color="KEYWORD")
    for query in (
        "what is this",
        "Nothing = 1",
        "Color = 1",
        "WorkflowId = 'x'",
        "WorkflowType = 'x'",
        "ExecutionStatus = 'Running'",
        "StartTime > '2020-01-01T00:00:00Z'",
        "TemporalSchedulePaused = 'x'",
        "TemporalSchedulePaused = true ORDER BY StartTime",
        "TemporalNamespaceDivision = 'x'",
        "ScheduleId = 1",
        "TaskQueue = 'x'",
        "RunId = 'x'",
        "GROUP BY ExecutionStatus",
    ):
        stage.note("query", query)
        await stage.refused("ListSchedules", query=query)
        await stage.refused("CountSchedules", query=query)


@scenario
async def schedule_unknown(stage: Stage) -> None:
    """Calls to schedules that are not there, or are not named."""
    for schedule_id in ("", f"nobody-{stage.id}", "x" * 1001):
        named = {"schedule_id": schedule_id}
        await stage.refused("DescribeSchedule", **named)
        await stage.refused("PatchSchedule", **named, patch={"pause": "x"}, request_id="r")
        await stage.refused("UpdateSchedule", **named, schedule=schedule(stage), request_id="r")
        await stage.refused("DeleteSchedule", **named)
    for namespace in ("", "nobody"):
        named = {"schedule_id": "x", "namespace": namespace}
        await stage.refused("CreateSchedule", **named, schedule=schedule(stage), request_id="r")
        await stage.refused("DescribeSchedule", **named)
        await stage.refused("PatchSchedule", **named, patch={"pause": "x"}, request_id="r")
        await stage.refused("UpdateSchedule", **named, schedule=schedule(stage), request_id="r")
        await stage.refused("DeleteSchedule", **named)
        await stage.refused("ListScheduleMatchingTimes", **named)


def bad_specs() -> dict[str, dict[str, Any]]:
    def structured(**fields: Any) -> dict[str, Any]:
        return {"structured_calendar": [fields]}

    def calendar(**fields: Any) -> dict[str, Any]:
        return {"calendar": [fields]}

    return {
        "hour 24": structured(hour=[{"start": 24}]),
        "a negative minute": structured(minute=[{"start": -1}]),
        "the end before the start": structured(second=[{"start": 5, "end": 3}]),
        "a negative step": structured(second=[{"start": 5, "end": 8, "step": -1}]),
        "month 0": structured(month=[{"start": 0}]),
        "day of week 8": structured(day_of_week=[{"start": 8}]),
        "year 1900": structured(year=[{"start": 1900}]),
        "a long comment": structured(comment="x" * 201),
        "a calendar with a word": calendar(hour="noon"),
        "a calendar with too much": calendar(minute="61"),
        "a calendar with no such day": calendar(day_of_week="someday"),
        "a calendar with half a range": calendar(hour="5-"),
        "a calendar with no step": calendar(hour="5/"),
        "a calendar with step 0": calendar(hour="5/0"),
        "a calendar with commas": calendar(hour=","),
        "a cron string of words": {"cron_string": ["now and then"]},
        "a cron string of two": {"cron_string": ["* *"]},
        "a cron string of eight": {"cron_string": ["* * * * * * * *"]},
        "an empty cron string": {"cron_string": [""]},
        "no such macro": {"cron_string": ["@sometimes"]},
        "every nothing": {"cron_string": ["@every"]},
        "every word": {"cron_string": ["@every often"]},
        "every second with phase": {"cron_string": ["@every 1m/2m"]},
        "a cron string of no zone": {"cron_string": ["CRON_TZ=Nowhere/Land 0 * * * *"]},
        "two zones": {"cron_string": ["CRON_TZ=Europe/Berlin 0 * * * *"], "timezone_name": "Asia/Tokyo"},
        "an interval of nothing": {"interval": [{}]},
        "a short interval": {"interval": [{"interval": timedelta(milliseconds=10)}]},
        "a negative interval": {"interval": [{"interval": -HOUR}]},
        "a phase too large": {"interval": [{"interval": HOUR, "phase": HOUR}]},
        "a negative phase": {"interval": [{"interval": HOUR, "phase": -SECOND}]},
        "no such zone": {"timezone_name": "Nowhere/Land"},
        "zone data that is none": {"timezone_data": b"broken"},
        "a bad excluded calendar": {"exclude_calendar": [{"hour": "x"}]},
        "a negative jitter": {"jitter": -SECOND},
    }


async def refused_creates(stage: Stage, cases: dict[str, dict[str, Any]]) -> None:
    """What is taken after all is deleted again."""
    for n, (case, fields) in enumerate(cases.items()):
        stage.note("case", case)
        schedule_id = f"{stage.id}-{n}"
        request = {"schedule_id": schedule_id, "schedule": schedule(stage), "request_id": "r", "identity": CLIENT} | fields
        if await stage.answered("CreateSchedule", **request) is not None:
            stage.note("made", case)
            await stage.silently("DeleteSchedule", schedule_id=schedule_id)


@scenario
async def schedule_specs_refused(stage: Stage) -> None:
    """Specs that are none."""
    paused = {"state": {"paused": True}}
    specs = {case: {"schedule": schedule(stage, spec=spec, **paused)} for case, spec in bad_specs().items()}
    await refused_creates(stage, specs)


@scenario
async def schedule_bad_exclusion(stage: Stage) -> None:
    """An exclusion that is none."""
    spec = {"exclude_structured_calendar": [{"hour": [{"start": 30}]}]}
    await refused_creates(stage, {"a bad exclusion": {"schedule": schedule(stage, spec=spec, state={"paused": True})}})


@scenario
async def schedule_actions_refused(stage: Stage) -> None:
    """Schedules that are no good for other reasons."""

    def starting(**fields: Any) -> dict[str, Any]:
        return {"schedule": schedule(stage, action=action(stage, **fields))}

    typo = {"indexed_fields": {"Nothing": payload("x")}}
    system = {"indexed_fields": {"WorkflowId": payload("x")}}
    await refused_creates(
        stage,
        {
            "no id": {"schedule_id": ""},
            "a long id": {"schedule_id": "x" * 1001},
            "no request id": {"request_id": ""},
            "a long request id": {"request_id": "x" * 1001},
            "no schedule": {"schedule": None},
            "no action": {"schedule": schedule(stage, action={})},
            "no workflow id": starting(workflow_id=""),
            "a long workflow id": starting(workflow_id="x" * 1001),
            "no workflow type": starting(workflow_type=None),
            "a long workflow type": starting(workflow_type={"name": "x" * 1001}),
            "no task queue": starting(task_queue=None),
            "a long task queue": starting(task_queue={"name": "x" * 1001}),
            "a task queue of the server's": starting(task_queue={"name": "/_sys/x"}),
            "a negative timeout": starting(workflow_run_timeout=-SECOND),
            "cron": starting(cron_schedule="* * * * *"),
            "a reuse policy": starting(workflow_id_reuse_policy="WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE"),
            "a bad retry policy": starting(retry_policy={"backoff_coefficient": 0.5}),
            "an unknown search attribute": starting(search_attributes=typo),
            "a system search attribute": starting(search_attributes=system),
            "an unknown search attribute of its own": {"search_attributes": typo},
            "a large memo": {"memo": {"fields": {"key": payload("x" * 3_000_000)}}},
            "a large input": starting(input=input_of("x" * 3_000_000)),
            "long notes": {"schedule": schedule(stage, state={"notes": "x" * 1001})},
            "no such overlap policy": {"schedule": schedule(stage, policies={"overlap_policy": 77})},
            "a negative catchup window": {"schedule": schedule(stage, policies={"catchup_window": -HOUR})},
        },
    )


@scenario
async def schedule_checked_late(stage: Stage) -> None:
    """What the reference takes, and finds out later."""
    bad = schedule(stage, action=action(stage, priority={"priority_key": -1}))
    cases = {"a bad priority": {"schedule": bad}, "long pause notes": {"initial_patch": {"pause": "x" * 1001}}}
    await refused_creates(stage, cases)


@scenario
async def schedule_changes_refused(stage: Stage) -> None:
    """Changes that are no good."""
    await create(stage)
    plain = {"schedule_id": stage.id, "request_id": "r", "identity": CLIENT}
    day = {"start_time": BEGIN, "end_time": BEGIN - DAY}
    await stage.each_refused(
        "PatchSchedule",
        plain,
        {
            "no patch": {},
            "an empty patch": {"patch": {}},
            "long notes": {"patch": {"pause": "x" * 1001}},
            "pause and unpause": {"patch": {"pause": "a", "unpause": "b"}},
            "a span without times": {"patch": {"backfill_request": [{}]}},
            "a span backwards": {"patch": {"backfill_request": [day]}},
            "a long request id": {"patch": {"pause": "x"}, "request_id": "x" * 1001},
        },
    )
    await stage.each_refused(
        "UpdateSchedule",
        plain,
        {
            "no schedule": {},
            "an empty schedule": {"schedule": {}},
            "no action": {"schedule": schedule(stage, action={})},
            "no workflow type": {"schedule": schedule(stage, action=action(stage, workflow_type=None))},
            "a bad spec": {"schedule": schedule(stage, spec={"calendar": [{"hour": "x"}]})},
            "a long request id": {"schedule": schedule(stage), "request_id": "x" * 1001},
            "an unknown search attribute": {
                "schedule": schedule(stage),
                "search_attributes": {"indexed_fields": {"Nothing": payload("x")}},
            },
        },
    )
    await deleted(stage)
