"""Why workflow tasks fail, as workers tell it, and what is too large."""

from __future__ import annotations

from temporalio.api.command.v1 import Command

from catalogue import scenario
from commands import cancel_workflow, command, complete, continue_as_new, fail, input_of, marker, payload
from commands import schedule_activity, signal_external, start_child
from stage import Stage

# Those that only the server can know are told by a worker all the same.
CAUSES = (
    "UNSPECIFIED",
    "UNHANDLED_COMMAND",
    "BAD_SCHEDULE_ACTIVITY_ATTRIBUTES",
    "RESET_STICKY_TASK_QUEUE",
    "WORKFLOW_WORKER_UNHANDLED_FAILURE",
    "BAD_BINARY",
    "FORCE_CLOSE_COMMAND",
    "RESET_WORKFLOW",
    "FAILOVER_CLOSE_COMMAND",
    "NON_DETERMINISTIC_ERROR",
    "PAYLOADS_TOO_LARGE",
    "GRPC_MESSAGE_TOO_LARGE",
)

# More than a payload may have.
LARGE = "x" * (2 * 1024 * 1024 + 1)


@scenario
async def task_failed_by_each_cause(stage: Stage) -> None:
    """A worker's word for the cause is kept; one of them ends the run, for it would come again and again."""
    for n, cause in enumerate(CAUSES):
        queue = f"{n}-{stage.queue}"
        run = await stage.start(f"{stage.id}-{n}", task_queue={"name": queue})
        await (await stage.workflow_task(name=queue)).fail(cause)
        described = await stage.describe(run)
        stage.note(cause, described.workflow_execution_info.status)
        stage.note(cause, described.pending_workflow_task.attempt)
        await stage.refused("TerminateWorkflowExecution", workflow_execution=run.execution, reason="enough")


@scenario
async def task_failed_with_signal_in_between(stage: Stage) -> None:
    """A signal during the second attempt: the third is a task like any other, and counts from one."""
    run = await stage.start()
    await (await stage.workflow_task()).fail()
    task = await stage.workflow_task()
    await stage.signal(run, "during")
    await task.fail("NON_DETERMINISTIC_ERROR")
    task = await stage.workflow_task()
    stage.note("attempt", task.polled.attempt)
    await task.fail()
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


async def each_too_large(stage: Stage, *attempts: Command) -> None:
    for n, attempt in enumerate(attempts):
        queue = f"{n}-{stage.queue}"
        run = await stage.start(f"{stage.id}-{n}", task_queue={"name": queue})
        await (await stage.workflow_task(name=queue)).complete_refused(attempt)
        await stage.ended(run)


@scenario
async def too_large_commands(stage: Stage) -> None:
    """Commands that carry too much end the run, each in its own words."""
    queue = stage.queue
    large = input_of(LARGE)
    await each_too_large(
        stage,
        schedule_activity(queue, input=large),
        marker(details={"data": large}),
        complete(LARGE),
        cancel_workflow(LARGE),
        continue_as_new(queue, input=large),
        start_child(f"{stage.id}-child", queue, input=large),
        signal_external(f"{stage.id}-other", input=large),
        command("modify_workflow_properties", upserted_memo={"fields": {"note": payload(LARGE)}}),
    )


@scenario
async def too_large_failure(stage: Stage) -> None:
    """A failure that carries too much is told by a smaller one."""
    run = await stage.start()
    await (await stage.workflow_task()).complete_refused(fail(LARGE))
    await stage.ended(run)


@scenario
async def too_large_requests(stage: Stage) -> None:
    """Requests that carry too much."""
    large = input_of(LARGE)
    await stage.refused("StartWorkflowExecution", **stage.start_fields(input=large))
    await stage.refused("StartWorkflowExecution", **stage.start_fields(memo={"fields": {"note": payload(LARGE)}}))
    fields = stage.start_fields(signal_name="hello", signal_input=large)
    await stage.refused("SignalWithStartWorkflowExecution", **fields)
    run = await stage.start()
    signal = {"workflow_execution": run.execution, "signal_name": "hello", "input": large}
    await stage.refused("SignalWorkflowExecution", **signal)
    query = {"execution": run.execution, "query": {"query_type": "state", "query_args": large}}
    await stage.refused("QueryWorkflow", **query)
    update = {"meta": {"update_id": "u"}, "input": {"name": "n", "args": large}}
    await stage.refused("UpdateWorkflowExecution", workflow_execution=run.execution, request=update)
    await stage.refused("TerminateWorkflowExecution", workflow_execution=run.execution, details=large)
    await stage.ended(run)


@scenario
async def too_large_answers(stage: Stage) -> None:
    """What a worker says of an activity may be too large: the activity fails, and the worker need not know."""
    run = await stage.start()
    once = {"maximum_attempts": 1}
    names = ("completed", "failed", "canceled", "heartbeat")
    commands = (schedule_activity(f"{name}-{stage.queue}", name, retry_policy=once) for name in names)
    await (await stage.workflow_task()).complete(*commands)
    tasks = [await stage.activity_task(f"{name}-{stage.queue}") for name in names]
    await tasks[0].complete(LARGE)
    await tasks[1].fail(LARGE)
    await tasks[2].refused("RespondActivityTaskCanceled", details=input_of(LARGE))
    await tasks[3].heartbeat(LARGE)
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)
