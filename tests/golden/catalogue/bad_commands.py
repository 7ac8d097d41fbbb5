"""Commands that are no good: the workflow task fails with a cause, and its worker is told."""

from __future__ import annotations

from temporalio.api.command.v1 import Command

from catalogue import scenario
from commands import NEVER, SECOND, cancel_activity, cancel_external, cancel_timer, cancel_workflow, command, complete
from commands import continue_as_new, fail, input_of, marker, protocol_command, schedule_activity, signal_external
from commands import start_child, start_timer, typed
from stage import Stage

LONG = "x" * 1001


async def each_refused(stage: Stage, *attempts: list[Command]) -> None:
    """Every list of commands in a run of its own, on a queue of its own: failed tasks come again."""
    for n, commands in enumerate(attempts):
        queue = f"{n}-{stage.queue}"
        run = await stage.start(f"{stage.id}-{n}", task_queue={"name": queue})
        await (await stage.workflow_task(name=queue)).complete_refused(*commands)
        await stage.refused("TerminateWorkflowExecution", workflow_execution=run.execution, reason="enough")


def without(command: Command, *fields: str) -> Command:
    attributes = getattr(command, command.WhichOneof("attributes"))
    for field in fields:
        attributes.ClearField(field)
    return command


@scenario
async def bad_schedule_activity(stage: Stage) -> None:
    """Activities that cannot be scheduled."""
    queue = stage.queue
    await each_refused(
        stage,
        [schedule_activity(queue, "")],
        [schedule_activity(queue, activity_type=None)],
        [schedule_activity(queue, LONG)],
        [schedule_activity(queue, activity_type={"name": LONG})],
        [schedule_activity("")],
        [schedule_activity(LONG)],
        [schedule_activity("/_sys/reserved")],
        [without(schedule_activity(queue), "start_to_close_timeout")],
        [schedule_activity(queue, start_to_close_timeout=-SECOND)],
        [schedule_activity(queue, schedule_to_close_timeout=-SECOND)],
        [schedule_activity(queue, schedule_to_start_timeout=-SECOND)],
        [schedule_activity(queue, heartbeat_timeout=-SECOND)],
        [schedule_activity(queue, retry_policy={"maximum_attempts": -1})],
        [schedule_activity(queue, retry_policy={"backoff_coefficient": 0.1})],
        [schedule_activity(queue, priority={"priority_key": -1})],
        [schedule_activity(queue), schedule_activity(queue)],
        [Command(command_type="COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK")],
    )


@scenario
async def bad_cancel_activity(stage: Stage) -> None:
    """Cancel requests for activities that are not there."""
    await each_refused(stage, [cancel_activity(0)], [cancel_activity(77)], [cancel_activity(1)])


@scenario
async def bad_timer(stage: Stage) -> None:
    """Timers that cannot be started or canceled."""
    await each_refused(
        stage,
        [start_timer("")],
        [start_timer(LONG)],
        [start_timer(after=-SECOND)],
        [start_timer(after=NEVER), start_timer(after=SECOND)],
        [cancel_timer("")],
        [cancel_timer(LONG)],
        [cancel_timer("nobody")],
        [Command(command_type="COMMAND_TYPE_START_TIMER")],
    )


@scenario
async def bad_marker(stage: Stage) -> None:
    """Markers without a name, or with one that is too long."""
    await each_refused(stage, [marker("")], [marker(LONG)], [Command(command_type="COMMAND_TYPE_RECORD_MARKER")])


@scenario
async def bad_close(stage: Stage) -> None:
    """Ends that say nothing, ends that are not the last command, two ends."""
    await each_refused(
        stage,
        [Command(command_type="COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION")],
        [Command(command_type="COMMAND_TYPE_FAIL_WORKFLOW_EXECUTION")],
        [without(fail(), "failure")],
        [Command(command_type="COMMAND_TYPE_CANCEL_WORKFLOW_EXECUTION")],
        [complete(), marker()],
        [complete(), fail()],
        [cancel_workflow(), cancel_workflow()],
        [Command()],
    )


@scenario
async def bad_continue_as_new(stage: Stage) -> None:
    """Continuations that cannot be."""
    queue = stage.queue
    await each_refused(
        stage,
        [continue_as_new(queue, workflow_type={"name": LONG})],
        [continue_as_new(LONG)],
        [continue_as_new(queue, workflow_run_timeout=-SECOND)],
        [continue_as_new(queue, workflow_task_timeout=-SECOND)],
        [continue_as_new(queue, backoff_start_interval=-SECOND)],
        [continue_as_new(queue, retry_policy={"maximum_attempts": -1})],
        [continue_as_new(queue, search_attributes={"indexed_fields": {"NoSuchAttribute": typed("x", "Keyword")}})],
        [continue_as_new(queue), marker()],
        [Command(command_type="COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION")],
    )


@scenario
async def bad_child(stage: Stage) -> None:
    """Children that cannot be started."""
    queue = stage.queue
    await each_refused(
        stage,
        [start_child("", queue)],
        [start_child(LONG, queue)],
        [start_child("child", queue, workflow_type=None)],
        [start_child("child", queue, workflow_type={"name": LONG})],
        [start_child("child", LONG)],
        [start_child("child", queue, workflow_execution_timeout=-SECOND)],
        [start_child("child", queue, workflow_run_timeout=-SECOND)],
        [start_child("child", queue, workflow_task_timeout=-SECOND)],
        [start_child("child", queue, retry_policy={"maximum_attempts": -1})],
        [start_child("child", queue, cron_schedule="now and then")],
        [start_child("child", queue, namespace="nowhere")],
        [start_child("child", queue, search_attributes={"indexed_fields": {"NoSuchAttribute": typed("x", "Keyword")}})],
    )


@scenario
async def bad_external(stage: Stage) -> None:
    """Signals and cancel requests to others that cannot be sent."""
    await each_refused(
        stage,
        [signal_external("")],
        [signal_external("other", "")],
        [signal_external("other", run_id="no-uuid")],
        [signal_external("other", namespace="nowhere")],
        [command("signal_external_workflow_execution", signal_name="hello")],
        [Command(command_type="COMMAND_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION")],
        [cancel_external("")],
        [cancel_external("other", run_id="no-uuid")],
        [cancel_external("other", namespace="nowhere")],
        [Command(command_type="COMMAND_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION")],
    )


@scenario
async def bad_properties(stage: Stage) -> None:
    """Search attributes and memos that cannot be changed so."""
    upsert = "upsert_workflow_search_attributes"
    await each_refused(
        stage,
        [command(upsert)],
        [command(upsert, search_attributes={"indexed_fields": {"NoSuchAttribute": typed("x", "Keyword")}})],
        [command(upsert, search_attributes={"indexed_fields": {"WorkflowId": typed("x", "Keyword")}})],
        [command(upsert, search_attributes={"indexed_fields": {"TemporalChangeVersion": typed(1, "Int")}})],
        [command("modify_workflow_properties")],
        [Command(command_type="COMMAND_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES")],
        [Command(command_type="COMMAND_TYPE_MODIFY_WORKFLOW_PROPERTIES")],
    )


@scenario
async def bad_protocol_message(stage: Stage) -> None:
    """A command that names a message which is not there."""
    await each_refused(
        stage,
        [protocol_command("no-such-message")],
        [protocol_command("")],
        [Command(command_type="COMMAND_TYPE_PROTOCOL_MESSAGE")],
    )


@scenario
async def bad_after_good(stage: Stage) -> None:
    """Of a workflow task with one bad command, nothing is kept; the run goes on with the next attempt."""
    run = await stage.start()
    good = [marker(), start_timer("one", NEVER), schedule_activity(stage.queue, input=input_of(1))]
    await (await stage.workflow_task()).complete_refused(*good, cancel_timer("nobody"))
    await (await stage.workflow_task()).complete(start_timer("one", NEVER), complete())
    await stage.ended(run)
