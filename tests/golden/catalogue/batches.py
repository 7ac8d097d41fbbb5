"""Batch operations: each kind done to a few runs, and requests that are no good."""

from __future__ import annotations

from functools import partial
from typing import Any

from temporalio.api.enums.v1 import BatchOperationState

from catalogue import scenario, scenario_masking
from commands import NEVER, input_of, schedule_activity
from runs import Run
from stage import CLIENT, Stage
from waiting import eventually

IDENTITY = "operator"
# Who did it, in events, and under which id: a server's own affair.
BY_SERVER = ("identity", "request_id")


async def two_runs(stage: Stage) -> list[Run]:
    """In a namespace of their own: one batch at a time is done in each."""
    await stage.settle()
    runs = [await stage.start(f"{stage.id}-{n}") for n in range(2)]
    await eventually(partial(stage.listed, 2, query(stage)))
    return runs


def query(stage: Stage) -> str:
    return f"TaskQueue = '{stage.queue}' AND WorkflowType = 'golden'"


def job(stage: Stage, **fields: Any) -> dict[str, Any]:
    return {"job_id": f"job-{stage.id}", "reason": "because", "visibility_query": query(stage)} | fields


async def done(stage: Stage, **fields: Any) -> None:
    """Does it, and tells what was told of it at the end."""
    asked = job(stage, **fields)
    await stage.call("StartBatchOperation", **asked)

    async def over() -> Any:
        described = await stage.silently("DescribeBatchOperation", job_id=asked["job_id"])
        is_running = described.state == BatchOperationState.BATCH_OPERATION_STATE_RUNNING
        return None if is_running else described

    stage.note("over", await eventually(over))


@scenario_masking(*BY_SERVER)
async def batch_terminates(stage: Stage) -> None:
    """Runs are terminated."""
    await two_runs(stage)
    await done(stage, termination_operation={"identity": IDENTITY})


@scenario
async def batch_twice(stage: Stage) -> None:
    """A job is over, and is asked for again."""
    await stage.settle()
    operation = {"termination_operation": {"identity": IDENTITY}}
    await done(stage, **operation)
    await stage.refused("StartBatchOperation", **job(stage, **operation))


@scenario_masking(*BY_SERVER)
async def batch_cancels(stage: Stage) -> None:
    """Runs are asked to cancel."""
    await two_runs(stage)
    await done(stage, cancellation_operation={"identity": IDENTITY})


@scenario_masking(*BY_SERVER)
async def batch_signals(stage: Stage) -> None:
    """Runs that are named get a signal."""
    runs = await two_runs(stage)
    signal = {"signal": "go", "input": input_of(1), "identity": IDENTITY}
    await done(stage, visibility_query="", executions=[run.execution for run in runs], signal_operation=signal)


@scenario_masking(*BY_SERVER)
async def batch_signals_unknown(stage: Stage) -> None:
    """Of the runs that are named, one is not there."""
    run, _ = await two_runs(stage)
    executions = [run.execution, {"workflow_id": f"{stage.id}-nobody"}]
    await done(stage, visibility_query="", executions=executions, signal_operation={"signal": "go"})


@scenario
async def batch_deletes(stage: Stage) -> None:
    """Runs are deleted."""
    runs = await two_runs(stage)
    await done(stage, deletion_operation={"identity": IDENTITY})
    await eventually(partial(stage.listed, 0, query(stage)))
    for run in runs:
        stage.forget(run)


@scenario
async def batch_resets(stage: Stage) -> None:
    """Runs begin again after their first workflow task."""
    await stage.settle()
    for n in range(2):
        await stage.start(f"{stage.id}-{n}")
        await (await stage.workflow_task()).complete()
    await eventually(partial(stage.listed, 2, query(stage)))
    await done(stage, reset_operation={"identity": IDENTITY, "options": {"first_workflow_task": {}}})


@scenario
async def batch_updates_options(stage: Stage) -> None:
    """Runs get another priority."""
    await two_runs(stage)
    change = {
        "identity": IDENTITY,
        "workflow_execution_options": {"priority": {"priority_key": 3}},
        "update_mask": {"paths": ["priority"]},
    }
    await done(stage, update_workflow_options_operation=change)


async def with_paused_activity(stage: Stage) -> Run:
    await stage.settle()
    run = await stage.start()
    await (await stage.workflow_task()).complete(schedule_activity(f"activity-{stage.queue}"))
    await stage.call("PauseActivity", execution=run.execution, id="activity", identity=CLIENT)
    await eventually(partial(stage.listed, 1, query(stage)))
    return run


async def note_activity(stage: Stage, run: Run) -> None:
    stage.note("activity", list((await stage.describe(run)).pending_activities))


@scenario
async def batch_unpauses_activities(stage: Stage) -> None:
    """Activities that were paused go on."""
    run = await with_paused_activity(stage)
    await done(stage, unpause_activities_operation={"identity": IDENTITY, "type": "act"})
    await note_activity(stage, run)


@scenario
async def batch_resets_activities(stage: Stage) -> None:
    """Activities begin again, and stay paused."""
    run = await with_paused_activity(stage)
    reset = {"identity": IDENTITY, "match_all": True, "keep_paused": True}
    await done(stage, reset_activities_operation=reset)
    await note_activity(stage, run)


@scenario
async def batch_updates_activities(stage: Stage) -> None:
    """Activities get another timeout."""
    run = await with_paused_activity(stage)
    change = {
        "identity": IDENTITY,
        "type": "act",
        "activity_options": {"start_to_close_timeout": 2 * NEVER},
        "update_mask": {"paths": ["start_to_close_timeout"]},
    }
    await done(stage, update_activity_options_operation=change)
    await note_activity(stage, run)


@scenario
async def batch_of_nothing(stage: Stage) -> None:
    """No run is found."""
    await stage.settle()
    await done(stage, termination_operation={"identity": IDENTITY})


@scenario
async def batch_refused(stage: Stage) -> None:
    """Requests that are no good."""
    await stage.settle()
    execution = {"workflow_id": "x"}
    target = {"type": "EXECUTION_TYPE_WORKFLOW", "business_id": "x"}
    cases: dict[str, dict[str, Any]] = {
        "no namespace": {"namespace": ""},
        "no job id": {"job_id": ""},
        "a long job id": {"job_id": "x" * 1001},
        "no reason": {"reason": ""},
        "a long reason": {"reason": "x" * 100_000, "job_id": "", "visibility_query": ""},
        "nothing to do it to": {"visibility_query": ""},
        "query and executions": {"executions": [execution]},
        "query and targets": {"target_executions": [target]},
        "an execution without id": {"visibility_query": "", "executions": [{}], "job_id": ""},
        "too many executions": {"visibility_query": "", "executions": [execution] * 1001},
        "a target of no type": {"visibility_query": "", "target_executions": [{"business_id": "x"}]},
        "a target that is an activity": {
            "visibility_query": "",
            "target_executions": [target | {"type": "EXECUTION_TYPE_ACTIVITY"}],
        },
        "a query that is none": {"visibility_query": "what is this"},
        "an unknown attribute": {"visibility_query": "Nothing = 1"},
        "a query with an order": {"visibility_query": "WorkflowId = 'nobody' ORDER BY"},
    }
    plain = job(stage, termination_operation={})
    await stage.each_refused("StartBatchOperation", plain, cases)
    del plain["termination_operation"]
    operations: dict[str, dict[str, Any]] = {
        "no operation": {},
        "a signal without name": {"signal_operation": {}},
        "a reset without type": {"reset_operation": {}},
        "a reset without target": {"reset_operation": {"options": {}}},
        "a reset of no such type": {"reset_operation": {"reset_type": 77}},
        "options without mask": {"update_workflow_options_operation": {}},
        "unpause of no activity": {"unpause_activities_operation": {}},
        "unpause of an empty type": {"unpause_activities_operation": {"type": ""}},
        "unpause of not all": {"unpause_activities_operation": {"match_all": False}},
        "reset of no activity": {"reset_activities_operation": {}},
        "update of no activity": {"update_activity_options_operation": {}},
        "update without options": {"update_activity_options_operation": {"type": "act"}},
        "update without mask": {"update_activity_options_operation": {"type": "act", "activity_options": {}}},
        "update to and from the original": {
            "update_activity_options_operation": {
                "type": "act",
                "restore_original": True,
                "activity_options": {},
                "update_mask": {"paths": ["start_to_close_timeout"]},
            }
        },
    }
    await stage.each_refused("StartBatchOperation", plain, operations)


@scenario
async def batch_unknown(stage: Stage) -> None:
    """Jobs that are not there, and are not named."""
    for job_id in ("", f"nobody-{stage.id}", "x" * 1001):
        await stage.refused("DescribeBatchOperation", job_id=job_id)
        await stage.refused("StopBatchOperation", job_id=job_id, reason="r", identity=IDENTITY)
    await stage.refused("StopBatchOperation", job_id="nobody", reason="")
    await stage.refused("DescribeBatchOperation", job_id="nobody", namespace="")
    await stage.refused("StopBatchOperation", job_id="nobody", reason="r", namespace="")


@scenario
async def batches_listed(stage: Stage) -> None:
    """Jobs of a namespace, newest first, page by page."""
    await stage.settle()
    for n in range(3):
        await done(stage, job_id=f"job-{n}", termination_operation={"identity": IDENTITY})

    async def all_over() -> bool:
        listed = await stage.silently("ListBatchOperations")
        is_over = [one.state == BatchOperationState.BATCH_OPERATION_STATE_COMPLETED for one in listed.operation_info]
        return is_over == [True] * 3

    await eventually(all_over)
    await stage.call("ListBatchOperations")
    first = await stage.call("ListBatchOperations", page_size=2)
    await stage.call("ListBatchOperations", page_size=2, next_page_token=first.next_page_token)
    await stage.refused("StopBatchOperation", job_id="job-0", reason="late", identity=IDENTITY)
