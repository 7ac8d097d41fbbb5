"""Updates: admitted, accepted, rejected, completed, and what they leave in history."""

from __future__ import annotations

import asyncio
from typing import Any

from temporalio.api.common.v1 import Payloads
from temporalio.api.protocol.v1 import Message
from temporalio.api.update.v1 import Acceptance, Outcome, Rejection, Request, Response
from temporalio.service import RPCError, RPCStatusCode

from catalogue import scenario
from commands import SECOND, SHORTLY, complete, continue_as_new, failure, input_of, marker, payload, protocol_command
from commands import protocol_message
from runs import Run
from stage import CLIENT, Stage
from waiting import eventually
from worker import WorkflowTask

STAGE = "UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_"


def update_fields(run: Run, update_id: str = "update", until: str = "COMPLETED", **fields: Any) -> dict[str, Any]:
    plain = {
        "workflow_execution": {"workflow_id": run.workflow_id},
        "wait_policy": {"lifecycle_stage": f"{STAGE}{until}"},
        "request": {
            "meta": {"update_id": update_id, "identity": CLIENT},
            "input": {"name": "change", "args": input_of(update_id), "header": {"fields": {"trace": payload("abc")}}},
        },
    }
    return plain | fields


def ref_of(run: Run, update_id: str = "update") -> dict[str, Any]:
    return {"workflow_execution": run.execution, "update_id": update_id}


async def begin_update(stage: Stage, run: Run, update_id: str = "update", **fields: Any) -> asyncio.Task[Any]:
    """Returns once the server has it; it goes on until `stage.end`."""
    updating = stage.begin("UpdateWorkflowExecution", **update_fields(run, update_id, **fields))

    async def is_admitted() -> bool:
        try:
            return bool(await stage.silently("PollWorkflowExecutionUpdate", update_ref=ref_of(run, update_id)))
        except RPCError as error:
            if error.status != RPCStatusCode.NOT_FOUND:
                raise
            return updating.done()

    await eventually(is_admitted)
    return updating


def accepted(message: Message) -> Message:
    request = Request()
    message.body.Unpack(request)
    body = Acceptance(
        accepted_request_message_id=message.id,
        accepted_request_sequencing_event_id=message.event_id,
        accepted_request=request,
    )
    return protocol_message(f"{message.protocol_instance_id}/accepted", message.protocol_instance_id, body)


def rejected(message: Message) -> Message:
    request = Request()
    message.body.Unpack(request)
    body = Rejection(
        rejected_request_message_id=message.id,
        rejected_request_sequencing_event_id=message.event_id,
        rejected_request=request,
        failure=failure("not like this"),
    )
    return protocol_message(f"{message.protocol_instance_id}/rejected", message.protocol_instance_id, body)


def completed(update_id: str, outcome: Outcome | None = None) -> Message:
    outcome = outcome or Outcome(success=Payloads(payloads=[payload("changed")]))
    body = Response(meta={"update_id": update_id, "identity": CLIENT}, outcome=outcome)
    return protocol_message(f"{update_id}/completed", update_id, body)


async def answer(task: WorkflowTask, *messages: Message, further: tuple = (), **fields: Any) -> Any:
    """Completes a workflow task with messages, each with the command that gives it its place."""
    commands = [protocol_command(message.id) for message in messages if not message.id.endswith("/rejected")]
    return await task.complete(*commands, *further, messages=messages, **fields)


async def started(stage: Stage, **fields: Any) -> Run:
    """A run that has had its first workflow task."""
    run = await stage.start(**fields)
    await (await stage.workflow_task()).complete()
    return run


async def finish(stage: Stage, run: Run) -> None:
    await stage.signal(run, "finish")
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def update_completed_at_once(stage: Stage) -> None:
    """Accepted and completed by one workflow task, which the update brought."""
    run = await started(stage)
    updating = await begin_update(stage, run)
    task = await stage.workflow_task()
    message = task.polled.messages[0]
    await answer(task, accepted(message), completed("update"))
    await stage.end(updating)
    await finish(stage, run)


@scenario
async def update_fails(stage: Stage) -> None:
    """An update's outcome may be a failure."""
    run = await started(stage)
    updating = await begin_update(stage, run)
    task = await stage.workflow_task()
    outcome = Outcome(failure=failure("could not"))
    await answer(task, accepted(task.polled.messages[0]), completed("update", outcome))
    await stage.end(updating)
    await finish(stage, run)


@scenario
async def update_completed_later(stage: Stage) -> None:
    """Accepted by one workflow task, completed by another."""
    run = await started(stage)
    updating = await begin_update(stage, run, until="ACCEPTED")
    task = await stage.workflow_task()
    await answer(task, accepted(task.polled.messages[0]))
    await stage.end(updating)
    waited = {"update_ref": ref_of(run), "wait_policy": {"lifecycle_stage": f"{STAGE}COMPLETED"}}
    polling = stage.begin("PollWorkflowExecutionUpdate", **waited)
    await stage.signal(run, "go on")
    await answer(await stage.workflow_task(), completed("update"))
    await stage.end(polling)
    await finish(stage, run)
    await stage.call("PollWorkflowExecutionUpdate", **waited)


@scenario
async def update_rejected(stage: Stage) -> None:
    """A rejected update leaves no trace in history, not even of the workflow task that it brought."""
    run = await started(stage)
    updating = await begin_update(stage, run)
    task = await stage.workflow_task()
    await answer(task, rejected(task.polled.messages[0]))
    await stage.end(updating)
    await finish(stage, run)


@scenario
async def update_rejected_with_command(stage: Stage) -> None:
    """A workflow task that rejects, and does something else, is kept."""
    run = await started(stage)
    updating = await begin_update(stage, run)
    task = await stage.workflow_task()
    await answer(task, rejected(task.polled.messages[0]), further=(marker(),))
    await stage.end(updating)
    await finish(stage, run)


@scenario
async def update_on_first_task(stage: Stage) -> None:
    """An update to a run whose first workflow task has not been taken."""
    run = await stage.start()
    updating = await begin_update(stage, run)
    task = await stage.workflow_task()
    await answer(task, accepted(task.polled.messages[0]), completed("update"))
    await stage.end(updating)
    await finish(stage, run)


@scenario
async def update_during_task(stage: Stage) -> None:
    """An update that comes during a workflow task is with the next one."""
    run = await stage.start()
    task = await stage.workflow_task()
    updating = await begin_update(stage, run)
    await task.complete(marker())
    task = await stage.workflow_task()
    await answer(task, accepted(task.polled.messages[0]), completed("update"))
    await stage.end(updating)
    await finish(stage, run)


@scenario
async def update_returned(stage: Stage) -> None:
    """An update that comes during a workflow task comes with the answer to it, if that is asked for."""
    run = await stage.start()
    task = await stage.workflow_task()
    updating = await begin_update(stage, run)
    task = await task.complete_and_take_next(force_create_new_workflow_task=False)
    await answer(task, accepted(task.polled.messages[0]), completed("update"))
    await stage.end(updating)
    await finish(stage, run)


@scenario
async def updates_together(stage: Stage) -> None:
    """Two updates in one workflow task: one completed, one rejected."""
    run = await stage.start()
    task = await stage.workflow_task()
    first = await begin_update(stage, run, "first")
    second = await begin_update(stage, run, "second")
    await task.complete()
    task = await stage.workflow_task()
    one, two = task.polled.messages
    await answer(task, accepted(one), rejected(two), completed("first"))
    await stage.end(first)
    await stage.end(second)
    await finish(stage, run)


@scenario
async def update_same_id(stage: Stage) -> None:
    """A second request with the id of an update finds it: in flight, and when it is over, and when the run is."""
    run = await started(stage)
    first = await begin_update(stage, run)
    again = stage.begin("UpdateWorkflowExecution", **update_fields(run))
    task = await stage.workflow_task()
    await answer(task, accepted(task.polled.messages[0]), completed("update"))
    await stage.end(first)
    await stage.end(again)
    await stage.call("UpdateWorkflowExecution", **update_fields(run))
    await finish(stage, run)
    await stage.call("UpdateWorkflowExecution", **update_fields(run))


@scenario
async def update_with_signal(stage: Stage) -> None:
    """A signal that comes before the update's workflow task is taken makes that a recorded one."""
    run = await started(stage)
    updating = await begin_update(stage, run)
    await stage.signal(run, "too")
    task = await stage.workflow_task()
    await answer(task, rejected(task.polled.messages[0]))
    await stage.end(updating)
    await finish(stage, run)


@scenario
async def update_with_signal_in_flight(stage: Stage) -> None:
    """A signal that comes during the update's workflow task."""
    run = await started(stage)
    updating = await begin_update(stage, run)
    task = await stage.workflow_task()
    await stage.signal(run, "too")
    await answer(task, rejected(task.polled.messages[0]))
    await stage.end(updating)
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def update_task_failed(stage: Stage) -> None:
    """The worker fails the update's workflow task; the update is with the next one."""
    run = await started(stage)
    updating = await begin_update(stage, run)
    await (await stage.workflow_task()).fail()
    task = await stage.workflow_task()
    await answer(task, accepted(task.polled.messages[0]), completed("update"))
    await stage.end(updating)
    await finish(stage, run)


@scenario
async def update_task_timed_out(stage: Stage) -> None:
    """The worker does not answer the update's workflow task in time; the update is with the next one."""
    run = await started(stage, workflow_task_timeout=SHORTLY)
    updating = await begin_update(stage, run)
    await stage.workflow_task()
    task = await stage.workflow_task()
    await answer(task, accepted(task.polled.messages[0]), completed("update"))
    await stage.end(updating)
    await finish(stage, run)


@scenario
async def update_not_processed(stage: Stage) -> None:
    """A worker that says nothing of an update rejects it."""
    run = await started(stage)
    updating = await begin_update(stage, run)
    await (await stage.workflow_task()).complete()
    await stage.end(updating)
    await finish(stage, run)


@scenario
async def update_outlived(stage: Stage) -> None:
    """An accepted update whose run completes before it does."""
    run = await started(stage)
    updating = await begin_update(stage, run)
    task = await stage.workflow_task()
    await answer(task, accepted(task.polled.messages[0]), further=(complete(),))
    await stage.end(updating)
    await stage.ended(run)


@scenario
async def update_and_close(stage: Stage) -> None:
    """An update that is completed by the workflow task that closes the run."""
    run = await started(stage)
    updating = await begin_update(stage, run)
    task = await stage.workflow_task()
    await answer(task, accepted(task.polled.messages[0]), completed("update"), further=(complete("out"),))
    await stage.end(updating)
    await stage.ended(run)


@scenario
async def update_unseen_at_close(stage: Stage) -> None:
    """An update that came during the workflow task that closed the run."""
    run = await stage.start()
    task = await stage.workflow_task()
    updating = await begin_update(stage, run)
    await task.complete(complete())
    await stage.end_refused(updating)
    await stage.ended(run)


@scenario
async def update_unseen_at_continue_as_new(stage: Stage) -> None:
    """The caller of an update that came during the workflow task that continued the run is told to try again."""
    run = await stage.start()
    task = await stage.workflow_task()
    updating = await begin_update(stage, run)
    await task.complete(continue_as_new(stage.queue))
    await stage.end_refused(updating)
    second = await stage.successor(run)
    updating = await begin_update(stage, second)
    task = await stage.workflow_task()
    await answer(task, accepted(task.polled.messages[0]), completed("update"))
    await stage.end(updating)
    await finish(stage, second)


@scenario
async def update_of_terminated(stage: Stage) -> None:
    """An update in flight whose run is ended by force: one that was accepted, one that was not."""
    run = await started(stage)
    one = await begin_update(stage, run, "one", until="ACCEPTED")
    task = await stage.workflow_task()
    await answer(task, accepted(task.polled.messages[0]))
    await stage.end(one)
    two = await begin_update(stage, run, "two")
    await stage.workflow_task()
    await stage.terminate(run)
    await stage.end_refused(two)
    await stage.refused("PollWorkflowExecutionUpdate", update_ref=ref_of(run, "one"))


@scenario
async def update_bad_messages(stage: Stage) -> None:
    """Messages that do not fit: a completion of what was not accepted, an unknown update, a command without its message."""
    for n, make in enumerate(
        (
            lambda message: [completed("update")],
            lambda message: [accepted(message), accepted(message)],
            lambda message: [completed("unknown")],
            lambda message: [protocol_message("no-instance", "", Acceptance())],
        )
    ):
        queue = f"{n}-{stage.queue}"
        run = await stage.start(f"{stage.id}-{n}", task_queue={"name": queue})
        await (await stage.workflow_task(name=queue)).complete()
        updating = await begin_update(stage, run)
        task = await stage.workflow_task(name=queue)
        messages = make(task.polled.messages[0])
        commands = [protocol_command(message.id) for message in messages]
        await task.complete_refused(*commands, messages=messages)
        await stage.terminate(run)
        await stage.end_refused(updating)


@scenario
async def update_refused(stage: Stage) -> None:
    """Requests that are no good, and runs that are not there."""
    run = await started(stage)
    plain = update_fields(run)
    unnamed = {"request": {"meta": {"update_id": "u"}, "input": {"name": ""}}}
    for fields in (
        {"workflow_execution": {"workflow_id": f"{stage.id}-unknown"}},
        {"workflow_execution": {"workflow_id": ""}},
        {"workflow_execution": {"workflow_id": stage.id, "run_id": "no-uuid"}},
        {"first_execution_run_id": "00000000-0000-4000-8000-000000000000"},
        {"request": None},
        unnamed,
        {"request": {"meta": {"update_id": "x" * 1001}, "input": {"name": "change"}}},
        {"wait_policy": {"lifecycle_stage": f"{STAGE}ADMITTED"}},
    ):
        await stage.refused("UpdateWorkflowExecution", **plain | fields)
    await stage.refused("PollWorkflowExecutionUpdate", update_ref=ref_of(run, "unknown"))
    await stage.refused("PollWorkflowExecutionUpdate")
    await finish(stage, run)
    await stage.refused("UpdateWorkflowExecution", **update_fields(run, "late"))


def both(stage: Stage, run_of: str, **start: Any) -> dict[str, Any]:
    fields = update_fields(Run(run_of, ""))
    starting = {"workflow_id_conflict_policy": "WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING", "namespace": "default"} | start
    return {
        "operations": [
            {"start_workflow": stage.start_fields(**starting)},
            {"update_workflow": {"namespace": "default"} | fields},
        ]
    }


@scenario
async def update_with_start(stage: Stage) -> None:
    """One call that starts and updates; the same for a run that is there; the same again finds the outcome."""
    calling = stage.begin("ExecuteMultiOperation", **both(stage, stage.id))
    task = await stage.workflow_task()
    run = stage.watch(stage.id, task.polled.workflow_execution.run_id)
    await answer(task, accepted(task.polled.messages[0]), completed("update"))
    await stage.end(calling)
    await stage.call("ExecuteMultiOperation", **both(stage, stage.id))
    await finish(stage, run)


@scenario
async def update_with_start_running(stage: Stage) -> None:
    """A run that is there gets the update, and nothing of the start."""
    run = await started(stage)
    calling = stage.begin("ExecuteMultiOperation", **both(stage, stage.id))
    task = await stage.workflow_task()
    await answer(task, accepted(task.polled.messages[0]), completed("update"))
    await stage.end(calling)
    await finish(stage, run)


@scenario
async def update_with_start_refused(stage: Stage) -> None:
    """All or nothing: what is refused starts nothing, and says which part was at fault."""
    run = await started(stage)
    fail = "WORKFLOW_ID_CONFLICT_POLICY_FAIL"
    await stage.refused("ExecuteMultiOperation", **both(stage, stage.id, workflow_id_conflict_policy=fail))
    await stage.refused("ExecuteMultiOperation", **both(stage, f"{stage.id}-another"))
    await stage.refused("ExecuteMultiOperation", **both(stage, stage.id, workflow_type=None))
    await stage.refused("ExecuteMultiOperation", **both(stage, stage.id, cron_schedule="@daily"))
    await stage.refused("ExecuteMultiOperation", **both(stage, stage.id, workflow_start_delay=SECOND))
    await stage.refused("ExecuteMultiOperation", operations=[])
    await stage.refused("ExecuteMultiOperation", operations=both(stage, stage.id)["operations"][:1])
    await finish(stage, run)
