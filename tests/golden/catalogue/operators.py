"""What an operator may do to a run and its activities: pause, change, begin again, delete."""

from __future__ import annotations

from temporalio.service import RPCError, RPCStatusCode

from catalogue import scenario
from commands import NEVER, SECOND, complete, schedule_activity, start_timer
from runs import Run
from stage import CLIENT, Stage
from waiting import eventually

LONG_PAUSE = {"initial_interval": NEVER, "maximum_interval": NEVER}


async def with_activity(stage: Stage, **fields) -> Run:
    run = await stage.start()
    await (await stage.workflow_task()).complete(schedule_activity(f"activity-{stage.queue}", **fields))
    return run


def named(run: Run) -> dict:
    return {"execution": run.execution, "identity": CLIENT, "id": "activity"}


async def note_activity(stage: Stage, run: Run) -> None:
    stage.note("activity", list((await stage.describe(run)).pending_activities))


async def finish(stage: Stage, run: Run) -> None:
    await (await stage.activity_task(f"activity-{stage.queue}")).complete("out")
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def activity_paused(stage: Stage) -> None:
    """An activity that waits for its next attempt is paused, and does not get it before it is unpaused."""
    run = await with_activity(stage, retry_policy={"initial_interval": SECOND})
    first = await stage.activity_task(f"activity-{stage.queue}")
    await stage.call("PauseActivity", reason="wait", **named(run))
    await note_activity(stage, run)
    await first.heartbeat("still here")
    await first.fail("first")
    await note_activity(stage, run)
    await stage.call("UnpauseActivity", **named(run))
    await finish(stage, run)


@scenario
async def activity_reset(stage: Stage) -> None:
    """An activity that waits for its next attempt begins again with the first, at once."""
    run = await with_activity(stage, retry_policy=LONG_PAUSE, heartbeat_timeout=NEVER)
    first = await stage.activity_task(f"activity-{stage.queue}")
    await first.heartbeat("halfway")
    await first.fail("first")
    await stage.call("ResetActivity", reset_heartbeat=True, **named(run))
    await finish(stage, run)


@scenario
async def activity_options_changed(stage: Stage) -> None:
    """Timeouts and retry policy of an activity are changed while it waits for its next attempt."""
    run = await with_activity(stage, retry_policy=LONG_PAUSE)
    await (await stage.activity_task(f"activity-{stage.queue}")).fail("first")
    await stage.call(
        "UpdateActivityOptions",
        activity_options={"start_to_close_timeout": 2 * NEVER, "retry_policy": {"initial_interval": SECOND}},
        update_mask={"paths": ["start_to_close_timeout", "retry_policy.initial_interval"]},
        **named(run),
    )
    await note_activity(stage, run)
    await finish(stage, run)


@scenario
async def activity_operations_refused(stage: Stage) -> None:
    """Activities that are not there, requests that name none."""
    run = await with_activity(stage)
    unknown = named(run) | {"id": "unknown"}
    unnamed = {"execution": run.execution, "identity": CLIENT}
    for rpc in ("PauseActivity", "UnpauseActivity", "ResetActivity", "UpdateActivityOptions"):
        await stage.refused(rpc, **unknown)
        await stage.refused(rpc, **unnamed)
    await stage.call("UnpauseActivity", **named(run))
    await stage.refused("UpdateActivityOptions", update_mask={"paths": ["no_such_field"]}, **named(run))
    await stage.terminate(run)
    await stage.refused("PauseActivity", **named(run))


def paused(run: Run) -> dict:
    return {"workflow_id": run.workflow_id, "run_id": run.run_id, "identity": CLIENT, "reason": "wait"}


@scenario
async def workflow_paused(stage: Stage) -> None:
    """A paused run takes signals, and gives out no workflow task before it is unpaused."""
    run = await stage.start()
    await (await stage.workflow_task()).complete(start_timer(after=NEVER))
    await stage.call("PauseWorkflowExecution", request_id=stage.request_id(), **paused(run))
    await stage.signal(run, "while paused")
    stage.note("status", (await stage.describe(run)).workflow_extended_info)
    await stage.refused("PauseWorkflowExecution", request_id=stage.request_id(), **paused(run))
    await stage.call("UnpauseWorkflowExecution", request_id=stage.request_id(), **paused(run))
    await stage.refused("UnpauseWorkflowExecution", request_id=stage.request_id(), **paused(run))
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)
    await stage.refused("PauseWorkflowExecution", request_id=stage.request_id(), **paused(run))


@scenario
async def workflow_paused_with_task_in_flight(stage: Stage) -> None:
    """A workflow task that a worker has may be completed; the next one waits."""
    run = await stage.start()
    task = await stage.workflow_task()
    await stage.call("PauseWorkflowExecution", request_id=stage.request_id(), **paused(run))
    await task.complete(schedule_activity(f"activity-{stage.queue}"))
    await stage.call("UnpauseWorkflowExecution", request_id=stage.request_id(), **paused(run))
    await finish(stage, run)


@scenario
async def workflow_paused_then_ended(stage: Stage) -> None:
    """A paused run may be canceled, and ended by force."""
    run = await stage.start()
    await stage.call("PauseWorkflowExecution", request_id=stage.request_id(), **paused(run))
    await stage.cancel(run)
    await stage.terminate(run)


@scenario
async def workflow_deleted(stage: Stage) -> None:
    """A run that is deleted is gone: closed, or open (then it is ended first)."""
    for n, commands in enumerate(([complete()], [])):
        run = await stage.start(f"{stage.id}-{n}")
        await (await stage.workflow_task()).complete(*commands)
        await stage.call("DeleteWorkflowExecution", workflow_execution=run.execution)
        stage.forget(run)

        async def is_gone() -> bool:
            try:
                await stage.describe(run)
            except RPCError as error:
                return error.status == RPCStatusCode.NOT_FOUND
            return False

        await eventually(is_gone)
        await stage.refused("DescribeWorkflowExecution", execution=run.execution)
        await stage.refused("GetWorkflowExecutionHistory", execution=run.execution)
        await stage.refused("SignalWorkflowExecution", workflow_execution=run.execution, signal_name="hello")
    await stage.refused("DeleteWorkflowExecution", workflow_execution={"workflow_id": f"{stage.id}-unknown"})
    await stage.refused("DeleteWorkflowExecution", workflow_execution={"workflow_id": ""})
    again = await stage.start(f"{stage.id}-0")
    await stage.terminate(again)
