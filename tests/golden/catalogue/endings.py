"""How a run ends: by its own command, by request, by force, by time."""

from __future__ import annotations

from catalogue import scenario, scenario_masking
from commands import NEVER, SECOND, SHORTLY, cancel_workflow, complete, continue_as_new, fail, failure, input_of, payload
from commands import schedule_activity, start_timer, typed
from stage import CLIENT, Stage

ELSEWHERE = "00000000-0000-4000-8000-000000000000"


@scenario
async def fail_with_cause(stage: Stage) -> None:
    """A failure is kept with its cause, details and stack."""
    run = await stage.start()
    command = fail(details=input_of("detail"), category="APPLICATION_ERROR_CATEGORY_BENIGN")
    told = command.fail_workflow_execution_command_attributes.failure
    told.stack_trace = "line 1"
    told.cause.CopyFrom(failure("the cause", kind="Cause"))
    await (await stage.workflow_task()).complete(command)
    await stage.ended(run)


@scenario
async def cancel_obeyed(stage: Stage) -> None:
    """A cancel request brings a workflow task, whose worker cancels the run."""
    run = await stage.start()
    await (await stage.workflow_task()).complete()
    await stage.cancel(run, reason="no longer needed")
    await (await stage.workflow_task()).complete(cancel_workflow("cleaned up"))
    await stage.ended(run)


@scenario
async def cancel_ignored(stage: Stage) -> None:
    """A run that was asked to cancel may complete."""
    run = await stage.start()
    await stage.cancel(run)
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def cancel_twice(stage: Stage) -> None:
    """A second request, with the same or another id."""
    run = await stage.start()
    await stage.cancel(run, request_id="the-one")
    await stage.cancel(run, request_id="the-one")
    await stage.refused("RequestCancelWorkflowExecution", workflow_execution=run.execution, request_id="another")
    await (await stage.workflow_task()).complete(cancel_workflow())
    await stage.ended(run)


@scenario
async def cancel_unasked(stage: Stage) -> None:
    """A worker may cancel a run that nobody asked to cancel."""
    run = await stage.start()
    await (await stage.workflow_task()).complete(cancel_workflow())
    await stage.ended(run)


@scenario
async def cancel_refused(stage: Stage) -> None:
    """Cancel requests that reach nobody."""
    run = await stage.start()
    for execution in (
        {"workflow_id": ""},
        {"workflow_id": f"{stage.id}-unknown"},
        {"workflow_id": stage.id, "run_id": "no-uuid"},
        {"workflow_id": stage.id, "run_id": ELSEWHERE},
    ):
        await stage.refused("RequestCancelWorkflowExecution", workflow_execution=execution, identity=CLIENT)
    wrong_chain = {"workflow_execution": {"workflow_id": stage.id}, "first_execution_run_id": ELSEWHERE}
    await stage.refused("RequestCancelWorkflowExecution", **wrong_chain)
    await (await stage.workflow_task()).complete(complete())
    await stage.refused("RequestCancelWorkflowExecution", workflow_execution=run.execution)
    await stage.refused("RequestCancelWorkflowExecution", workflow_execution={"workflow_id": stage.id})


@scenario
async def terminate_waiting(stage: Stage) -> None:
    """A run that waits for an activity and a timer is ended."""
    run = await stage.start()
    await (await stage.workflow_task()).complete(schedule_activity(stage.queue), start_timer(after=NEVER))
    activity = await stage.activity_task()
    await stage.terminate(run, details=input_of("detail"))
    await activity.refused("RespondActivityTaskCompleted")
    await activity.refused("RecordActivityTaskHeartbeat")


@scenario
async def terminate_with_task_in_flight(stage: Stage) -> None:
    """The workflow task in flight is failed first; its worker is told that there is none."""
    run = await stage.start()
    task = await stage.workflow_task()
    await stage.terminate(run, first_execution_run_id=run.run_id)
    await task.complete_refused(complete())


@scenario
async def terminate_refused(stage: Stage) -> None:
    """Terminations that reach nobody."""
    run = await stage.start()
    for execution in (
        {"workflow_id": ""},
        {"workflow_id": f"{stage.id}-unknown"},
        {"workflow_id": stage.id, "run_id": ELSEWHERE},
    ):
        await stage.refused("TerminateWorkflowExecution", workflow_execution=execution)
    wrong_chain = {"workflow_execution": {"workflow_id": stage.id}, "first_execution_run_id": ELSEWHERE}
    await stage.refused("TerminateWorkflowExecution", **wrong_chain)
    await stage.terminate(run)
    await stage.refused("TerminateWorkflowExecution", workflow_execution=run.execution)


@scenario
async def run_timeout(stage: Stage) -> None:
    """A run that takes too long ends, with its workflow task in flight."""
    run = await stage.start(workflow_run_timeout=SHORTLY)
    task = await stage.workflow_task()
    await stage.ended(run)
    await task.complete_refused(complete())


@scenario
async def run_timeout_unseen(stage: Stage) -> None:
    """A run that no worker ever took up ends all the same."""
    run = await stage.start(workflow_run_timeout=SECOND)
    await stage.ended(run)


@scenario_masking("workflow_run_timeout")
async def execution_timeout(stage: Stage) -> None:
    """The execution's time goes on through continue-as-new."""
    run = await stage.start(workflow_execution_timeout=2 * SHORTLY)
    await (await stage.workflow_task()).complete(continue_as_new(stage.queue))
    await stage.ended(await stage.successor(run))


@scenario
async def continue_as_new_with_all(stage: Stage) -> None:
    """A run continues itself with other inputs, and what it does not say is taken over, or not."""
    run = await stage.start(
        input=input_of("first"),
        memo={"fields": {"note": payload("first")}},
        search_attributes={"indexed_fields": {"TemporalChangeVersion": typed(["v1"], "KeywordList")}},
        header={"fields": {"trace": payload("first")}},
        retry_policy={"maximum_attempts": 2},
        user_metadata={"summary": payload("a summary")},
        priority={"priority_key": 2},
        workflow_task_timeout=5 * SECOND,
    )
    await (await stage.workflow_task()).complete(continue_as_new(stage.queue))
    second = await stage.successor(run)
    command = continue_as_new(
        stage.queue,
        workflow_type={"name": "another"},
        input=input_of("third"),
        workflow_run_timeout=NEVER,
        workflow_task_timeout=7 * SECOND,
        memo={"fields": {"note": payload("third")}},
        search_attributes={"indexed_fields": {"TemporalChangeVersion": typed(["v3"], "KeywordList")}},
        header={"fields": {"trace": payload("third")}},
        retry_policy={"maximum_attempts": 3},
        initiator="CONTINUE_AS_NEW_INITIATOR_WORKFLOW",
        last_completion_result=input_of("so far"),
    )
    await (await stage.workflow_task()).complete(command)
    third = await stage.successor(second)
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(third)


@scenario
async def continue_as_new_later(stage: Stage) -> None:
    """The next run may wait before its first workflow task."""
    run = await stage.start()
    await (await stage.workflow_task()).complete(continue_as_new(stage.queue, backoff_start_interval=SECOND))
    second = await stage.successor(run)
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(second)


@scenario
async def continue_as_new_elsewhere(stage: Stage) -> None:
    """What waits in the old run is left behind; the next one is on another task queue."""
    run = await stage.start()
    commands = [schedule_activity(stage.queue), start_timer(after=NEVER), continue_as_new(f"other-{stage.queue}")]
    await (await stage.workflow_task()).complete(*commands)
    second = await stage.successor(run)
    await (await stage.workflow_task(name=f"other-{stage.queue}")).complete(complete())
    await stage.ended(second)


@scenario
async def signal_at_close(stage: Stage) -> None:
    """A run cannot close over a signal that it has not seen: the workflow task fails and comes again with it."""
    run = await stage.start()
    task = await stage.workflow_task()
    await stage.signal(run, "late")
    await task.complete_refused(complete())
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def cancel_at_continue_as_new(stage: Stage) -> None:
    """Nor can it continue as new over a cancel request."""
    run = await stage.start()
    task = await stage.workflow_task()
    await stage.cancel(run)
    await task.complete_refused(continue_as_new(stage.queue))
    await (await stage.workflow_task()).complete(cancel_workflow())
    await stage.ended(run)
