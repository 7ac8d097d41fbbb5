"""Resets: a new run from a place in an old one, and what came after that place."""

from __future__ import annotations

from typing import Any

from catalogue import scenario
from catalogue.children import Family
from catalogue.updates import accepted, answer, begin_update, completed
from commands import NEVER, complete, marker, payload, protocol_message, schedule_activity, start_timer
from runs import Run, attributes_of
from stage import CLIENT, Stage

REAPPLY = "RESET_REAPPLY_TYPE_"
EXCLUDE = "RESET_REAPPLY_EXCLUDE_TYPE_"
FIRST_TASK = 4


async def reset(stage: Stage, run: Run, event_id: int = FIRST_TASK, **fields: Any) -> Run:
    plain = {"request_id": stage.request_id(), "reason": "again", "identity": CLIENT}
    made = await stage.call(
        "ResetWorkflowExecution",
        workflow_execution=run.execution,
        workflow_task_finish_event_id=event_id,
        **plain | fields,
    )
    return stage.watch(run.workflow_id, made.run_id)


async def finish(stage: Stage, run: Run) -> None:
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def reset_closed_run(stage: Stage) -> None:
    """A run that is over begins again behind its first workflow task."""
    run = await stage.start()
    await (await stage.workflow_task()).complete(marker("first"), force_create_new_workflow_task=True)
    await (await stage.workflow_task()).complete(complete("wrong"))
    await finish(stage, await reset(stage, run))


@scenario
async def reset_open_run(stage: Stage) -> None:
    """A run that is open is ended; what it waits for is given up, and the signals come along."""
    run = await stage.start()
    await (await stage.workflow_task()).complete(start_timer(after=NEVER))
    await stage.signal(run, "one", 1)
    await (await stage.workflow_task()).complete(marker("second"))
    await stage.signal(run, "two", 2)
    await finish(stage, await reset(stage, run))


@scenario
async def reset_to_last_task(stage: Stage) -> None:
    """What stands before the place is kept, timers too."""
    run = await stage.start()
    await (await stage.workflow_task()).complete(start_timer(after=NEVER))
    await stage.signal(run, "one", 1)
    await (await stage.workflow_task()).complete(marker("second"))
    await stage.signal(run, "two", 2)
    await finish(stage, await reset(stage, run, 9))


@scenario
async def reset_with_task_in_flight(stage: Stage) -> None:
    """The workflow task in flight is failed; its worker is told that there is none."""
    run = await stage.start()
    await (await stage.workflow_task()).complete(marker("first"), force_create_new_workflow_task=True)
    task = await stage.workflow_task()
    await stage.signal(run, "during")
    again = await reset(stage, run)
    await task.complete_refused(complete())
    await finish(stage, again)


@scenario
async def reset_without_signals(stage: Stage) -> None:
    """Signals are left out on request, in both ways of saying so."""
    run = await stage.start()
    await (await stage.workflow_task()).complete(marker("first"))
    await stage.signal(run, "left out")
    second = await reset(stage, run, reset_reapply_type=f"{REAPPLY}NONE")
    await (await stage.workflow_task()).complete(marker("second"))
    await stage.signal(second, "left out")
    await finish(stage, await reset(stage, second, reset_reapply_exclude_types=[f"{EXCLUDE}SIGNAL"]))


@scenario
async def reset_with_activity(stage: Stage) -> None:
    """An activity that stands before the place is tried again in the new run."""
    run = await stage.start()
    await (await stage.workflow_task()).complete(schedule_activity(f"activity-{stage.queue}"))
    activity = await stage.activity_task(f"activity-{stage.queue}")
    await stage.signal(run, "one")
    await (await stage.workflow_task()).complete(marker("second"))
    again = await reset(stage, run, 8)
    await activity.refused("RespondActivityTaskCompleted")
    stage.note("pending", list((await stage.describe(again)).pending_activities))
    await finish(stage, again)


@scenario
async def reset_with_child(stage: Stage) -> None:
    """A child that began after the place is left to itself."""
    family = Family(stage)
    parent, _ = await family.begin()
    await finish(stage, await reset(stage, parent))


@scenario
async def reset_with_child_kept(stage: Stage) -> None:
    """A child that began before the place belongs to the new run, which hears of its end."""
    family = Family(stage)
    parent, _ = await family.begin()
    again = await reset(stage, parent, 9)
    await (await stage.workflow_task()).complete()
    await (await family.child_task()).complete(complete("out"))
    await stage.recorded(again, "CHILD_WORKFLOW_EXECUTION_COMPLETED")
    await finish(stage, again)


@scenario
async def reset_with_update(stage: Stage) -> None:
    """An update that was accepted after the place is admitted again in the new run."""
    run = await stage.start()
    await (await stage.workflow_task()).complete(marker("first"))
    updating = await begin_update(stage, run)
    task = await stage.workflow_task()
    await answer(task, accepted(task.polled.messages[0]), completed("update"))
    await stage.end(updating)
    again = await reset(stage, run)
    admitted = await stage.recorded(again, "WORKFLOW_EXECUTION_UPDATE_ADMITTED")
    request = attributes_of(admitted).request
    message = protocol_message("update/request", "update", request, event_id=admitted.event_id)
    await answer(await stage.workflow_task(), accepted(message), completed("update"), further=(complete(),))
    await stage.ended(again)


@scenario
async def reset_after_failed_task(stage: Stage) -> None:
    """A workflow task that failed is a place to begin again from."""
    run = await stage.start()
    await (await stage.workflow_task()).fail()
    await (await stage.workflow_task()).complete(complete())
    await finish(stage, await reset(stage, run))


@scenario
async def reset_same_request(stage: Stage) -> None:
    """A reset that is repeated with its request id finds the run that it made."""
    run = await stage.start()
    await (await stage.workflow_task()).complete(complete())
    await reset(stage, run, request_id="the-one")
    await reset(stage, run, request_id="the-one")


@scenario
async def reset_refused(stage: Stage) -> None:
    """Places that are none, and runs that are not there."""
    run = await stage.start()
    await (await stage.workflow_task()).complete(marker())
    for execution, event_id in (
        (run.execution, 0),
        (run.execution, 1),
        (run.execution, 2),
        (run.execution, 5),
        (run.execution, 77),
        ({"workflow_id": f"{stage.id}-unknown"}, FIRST_TASK),
        ({"workflow_id": stage.id, "run_id": "00000000-0000-4000-8000-000000000000"}, FIRST_TASK),
        ({"workflow_id": ""}, FIRST_TASK),
    ):
        asked = {"workflow_execution": execution, "workflow_task_finish_event_id": event_id}
        await stage.refused("ResetWorkflowExecution", request_id=stage.request_id(), reason="again", **asked)


def changed_options(path: str, **options: Any) -> dict[str, Any]:
    change = {"workflow_execution_options": options, "update_mask": {"paths": [path]}}
    return {"post_reset_operations": [{"update_workflow_options": change}]}


@scenario
async def reset_with_options(stage: Stage) -> None:
    """A reset changes the options of the new run; what cannot be changed is refused, and so is a signal."""
    run = await stage.start(memo={"fields": {"note": payload("kept")}})
    await (await stage.workflow_task()).complete(start_timer(after=NEVER))
    await stage.signal(run, "one", 1)
    plain = {
        "workflow_execution": run.execution,
        "workflow_task_finish_event_id": FIRST_TASK,
        "request_id": stage.request_id(),
    }
    for operation in ({"signal_workflow": {"signal_name": "s"}}, {}):
        await stage.refused("ResetWorkflowExecution", post_reset_operations=[operation], **plain)
    await stage.refused("ResetWorkflowExecution", **plain | changed_options("nothing", priority={"priority_key": 2}))
    again = await reset(stage, run, **changed_options("priority", priority={"priority_key": 2}))
    info = (await stage.describe(again)).workflow_execution_info
    stage.note("memo", info.memo)
    stage.note("priority", info.priority)
    await finish(stage, again)
