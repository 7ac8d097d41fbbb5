"""How a run begins, and what is made of a workflow id that is taken."""

from __future__ import annotations

from catalogue import scenario
from commands import NEVER, SECOND, complete, fail, input_of, payload, typed
from stage import Stage

REUSE = "WORKFLOW_ID_REUSE_POLICY_"
CONFLICT = "WORKFLOW_ID_CONFLICT_POLICY_"


def link(event_type: str) -> dict:
    event = {"event_id": 3, "event_type": event_type}
    return {"workflow_event": {"namespace": "default", "workflow_id": "w", "run_id": "r", "event_ref": event}}


async def close(stage: Stage, *commands) -> None:
    await (await stage.workflow_task()).complete(*commands)


@scenario
async def start_complete(stage: Stage) -> None:
    """The shortest life: started with an input, completed with a result."""
    run = await stage.start(input=input_of("in", 7))
    await close(stage, complete("out"))
    await stage.ended(run)


@scenario
async def start_with_everything(stage: Stage) -> None:
    """All that a start may carry is found in its event and in the task."""
    run = await stage.start(
        input=input_of("in"),
        memo={"fields": {"note": payload("kept")}},
        header={"fields": {"trace": payload("abc")}},
        search_attributes={"indexed_fields": {"TemporalChangeVersion": typed(["v1"], "KeywordList")}},
        user_metadata={"summary": payload("a summary"), "details": payload("details")},
        priority={"priority_key": 2},
        links=[link("EVENT_TYPE_TIMER_FIRED")],
        retry_policy={"initial_interval": SECOND, "maximum_attempts": 3, "non_retryable_error_types": ["Fatal"]},
        workflow_execution_timeout=3 * NEVER,
        workflow_run_timeout=NEVER,
        workflow_task_timeout=5 * SECOND,
    )
    await close(stage, complete())
    await stage.ended(run)


@scenario
async def start_timeout_defaults(stage: Stage) -> None:
    """What is not said of timeouts is filled in, what is too long is cut."""
    await stage.start(f"{stage.id}-none", workflow_task_timeout=None)
    await stage.start(f"{stage.id}-run-only", workflow_run_timeout=NEVER)
    await stage.start(f"{stage.id}-execution-only", workflow_execution_timeout=NEVER)
    await stage.start(f"{stage.id}-run-longer", workflow_run_timeout=2 * NEVER, workflow_execution_timeout=NEVER)
    await stage.start(f"{stage.id}-task-longer", workflow_task_timeout=NEVER)
    await stage.start(f"{stage.id}-retry", retry_policy={"maximum_attempts": 2})


@scenario
async def start_same_request(stage: Stage) -> None:
    """A start that is repeated with its request id finds the run that it made, open or closed."""
    await stage.start(request_id="the-one")
    await stage.start(request_id="the-one")
    await close(stage, complete())
    await stage.start(request_id="the-one")


@scenario
async def start_while_running(stage: Stage) -> None:
    """An id that is in use: refused, by default and when asked for."""
    run = await stage.start()
    for fields in (
        {},
        {"workflow_id_conflict_policy": f"{CONFLICT}FAIL"},
        {"workflow_id_reuse_policy": f"{REUSE}ALLOW_DUPLICATE"},
        {"workflow_id_reuse_policy": f"{REUSE}ALLOW_DUPLICATE_FAILED_ONLY"},
        {"workflow_id_reuse_policy": f"{REUSE}REJECT_DUPLICATE"},
    ):
        await stage.refused("StartWorkflowExecution", **stage.start_fields(**fields))
    await close(stage, complete())
    await stage.ended(run)


@scenario
async def start_uses_existing(stage: Stage) -> None:
    """The conflict policy that answers with the run that is there."""
    await stage.start()
    await stage.start(workflow_id_conflict_policy=f"{CONFLICT}USE_EXISTING")
    await close(stage, complete())
    second = await stage.start(workflow_id_conflict_policy=f"{CONFLICT}USE_EXISTING")
    await close(stage, complete())
    await stage.ended(second)


@scenario
async def start_attaches_to_existing(stage: Stage) -> None:
    """Request id and link of a start that found a running one are kept in its history."""
    run = await stage.start()
    await stage.start(
        workflow_id_conflict_policy=f"{CONFLICT}USE_EXISTING",
        on_conflict_options={"attach_request_id": True, "attach_links": True, "attach_completion_callbacks": True},
        links=[link("EVENT_TYPE_TIMER_FIRED")],
    )
    await close(stage, complete())
    await stage.ended(run)


@scenario
async def start_terminates_existing(stage: Stage) -> None:
    """The conflict policy that ends the run that is there."""
    first = await stage.start()
    await stage.start(workflow_id_conflict_policy=f"{CONFLICT}TERMINATE_EXISTING")
    await stage.ended(first)


@scenario
async def start_terminates_if_running(stage: Stage) -> None:
    """The reuse policy that ends the run that is there, with a workflow task in flight; then there is none to end."""
    first = await stage.start()
    task = await stage.workflow_task()
    second = await stage.start(workflow_id_reuse_policy=f"{REUSE}TERMINATE_IF_RUNNING")
    await stage.ended(first)
    await task.complete_refused(complete())
    await close(stage, complete())
    await stage.ended(second)
    await stage.start(workflow_id_reuse_policy=f"{REUSE}TERMINATE_IF_RUNNING")


@scenario
async def start_after_completed(stage: Stage) -> None:
    """What each reuse policy makes of a run that completed."""
    await stage.start()
    await close(stage, complete())
    for policy in ("ALLOW_DUPLICATE_FAILED_ONLY", "REJECT_DUPLICATE"):
        await stage.refused("StartWorkflowExecution", **stage.start_fields(workflow_id_reuse_policy=f"{REUSE}{policy}"))
    await stage.start(workflow_id_reuse_policy=f"{REUSE}ALLOW_DUPLICATE")
    await close(stage, complete())
    await stage.start()


@scenario
async def start_after_failed(stage: Stage) -> None:
    """What each reuse policy makes of a run that failed."""
    await stage.start()
    await close(stage, fail())
    await stage.refused("StartWorkflowExecution", **stage.start_fields(workflow_id_reuse_policy=f"{REUSE}REJECT_DUPLICATE"))
    second = await stage.start(workflow_id_reuse_policy=f"{REUSE}ALLOW_DUPLICATE_FAILED_ONLY")
    await stage.terminate(second)
    await stage.start(workflow_id_reuse_policy=f"{REUSE}ALLOW_DUPLICATE_FAILED_ONLY")


@scenario
async def start_refused(stage: Stage) -> None:
    """Requests that are no good, each with its own words."""
    for fields in (
        {"workflow_id": ""},
        {"workflow_id": "x" * 1001},
        {"workflow_type": None},
        {"workflow_type": {"name": "x" * 1001}},
        {"task_queue": None},
        {"task_queue": {"name": "x" * 1001}},
        {"request_id": "x" * 1001},
        {"workflow_execution_timeout": -SECOND},
        {"workflow_run_timeout": -SECOND},
        {"workflow_task_timeout": -SECOND},
        {"workflow_start_delay": -SECOND},
        {"workflow_start_delay": SECOND, "cron_schedule": "@every 1s"},
        {"cron_schedule": "every now and then"},
        {"cron_schedule": "* * * * * *"},
        {"retry_policy": {"maximum_attempts": -1}},
        {"retry_policy": {"initial_interval": -SECOND}},
        {"retry_policy": {"backoff_coefficient": 0.5}},
        {"retry_policy": {"initial_interval": 2 * SECOND, "maximum_interval": SECOND}},
        {"retry_policy": {"maximum_interval": -SECOND}},
        {"retry_policy": {"non_retryable_error_types": ["TemporalTimeout:Wrong"]}},
        {"search_attributes": {"indexed_fields": {"NoSuchAttribute": typed("x", "Keyword")}}},
        {
            "workflow_id_reuse_policy": f"{REUSE}TERMINATE_IF_RUNNING",
            "workflow_id_conflict_policy": f"{CONFLICT}FAIL",
        },
        {
            "workflow_id_reuse_policy": f"{REUSE}REJECT_DUPLICATE",
            "workflow_id_conflict_policy": f"{CONFLICT}TERMINATE_EXISTING",
        },
        {"priority": {"priority_key": -1}},
        {"priority": {"priority_key": 99}},
        {"links": [link("EVENT_TYPE_UNSPECIFIED")]},
        {"request_eager_execution": True, "cron_schedule": "@daily"},
    ):
        await stage.refused("StartWorkflowExecution", **stage.start_fields() | fields)


@scenario
async def start_delayed(stage: Stage) -> None:
    """The first workflow task waits."""
    run = await stage.start(workflow_start_delay=SECOND)
    await close(stage, complete())
    await stage.ended(run)


@scenario
async def start_delayed_disturbed(stage: Stage) -> None:
    """What signals and a cancel request do to a run whose first workflow task waits."""
    run = await stage.start(workflow_start_delay=NEVER)
    await stage.signal(run, "early")
    await stage.cancel(run)
    await stage.terminate(run)
