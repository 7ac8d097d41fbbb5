"""Several things at once: what meets in one run, and in which order it is told."""

from __future__ import annotations

from catalogue import scenario
from catalogue.children import Family
from catalogue.operators import named, note_activity, paused, with_activity
from catalogue.resets import reset
from catalogue.updates import accepted, answer, begin_update, completed, rejected
from commands import NEVER, SECOND, SHORTLY, cancel_activity, cancel_external, cancel_timer, cancel_workflow, complete
from commands import continue_as_new, fail, marker, schedule_activity, signal_external, start_timer
from stage import Stage


@scenario
async def buffered_of_all_kinds(stage: Stage) -> None:
    """A signal, a cancel request, an activity's end and a child's end during one workflow task."""
    family = Family(stage)
    parent, _ = await family.begin(schedule_activity(f"activity-{stage.queue}"))
    await stage.signal(parent, "wake")
    task = await stage.workflow_task()
    since = await stage.transitions(parent)
    await (await stage.activity_task(f"activity-{stage.queue}")).complete("done")
    await stage.changed(parent, since + 1)
    await stage.signal(parent, "meanwhile")
    since = await stage.transitions(parent)
    await (await family.child_task()).complete(complete("out"))
    await stage.changed(parent, since)
    await stage.cancel(parent)
    await task.complete(marker())
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(parent)


@scenario
async def commands_of_all_kinds(stage: Stage) -> None:
    """One workflow task with many commands, which are told in their order, and what comes of them."""
    run = await stage.start()
    await (await stage.workflow_task()).complete(
        start_timer("kept", after=NEVER),
        start_timer("gone", after=NEVER),
        schedule_activity(f"nobody-{stage.queue}", "kept"),
        schedule_activity(f"nobody-{stage.queue}", "gone"),
        cancel_timer("gone"),
        cancel_activity(8),
        marker("between"),
        signal_external(f"{stage.id}-nobody"),
        cancel_external(f"{stage.id}-nobody"),
        marker("last"),
    )
    await stage.recorded(run, "SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED")
    await stage.recorded(run, "REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED")
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def activity_reset_at_worker(stage: Stage) -> None:
    """A worker hears that its activity was reset, and its failure does not count."""
    run = await with_activity(stage, retry_policy={"initial_interval": SECOND}, heartbeat_timeout=NEVER)
    first = await stage.activity_task(f"activity-{stage.queue}")
    await first.heartbeat("halfway")
    await stage.call("ResetActivity", **named(run))
    stage.note("heartbeat", await first.heartbeat("again"))
    await first.fail("given up")
    await note_activity(stage, run)
    await (await stage.activity_task(f"activity-{stage.queue}")).complete("done")
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def activity_paused_and_completed(stage: Stage) -> None:
    """A worker may complete what was paused."""
    run = await with_activity(stage)
    activity = await stage.activity_task(f"activity-{stage.queue}")
    await stage.call("PauseActivity", reason="wait", **named(run))
    await activity.complete("done")
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def activity_paused_unseen(stage: Stage) -> None:
    """An activity that no worker has is paused, reset and unpaused with its attempts kept."""
    run = await with_activity(stage, retry_policy={"initial_interval": SECOND})
    await stage.call("PauseActivity", reason="wait", **named(run))
    await stage.call("ResetActivity", keep_paused=True, **named(run))
    await note_activity(stage, run)
    await stage.call("UnpauseActivity", reset_attempts=True, **named(run))
    await (await stage.activity_task(f"activity-{stage.queue}")).complete("done")
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def activity_options_restored(stage: Stage) -> None:
    """Changed options are taken back."""
    run = await with_activity(stage, retry_policy={"initial_interval": NEVER, "maximum_interval": NEVER})
    await (await stage.activity_task(f"activity-{stage.queue}")).fail("first")
    change = {"activity_options": {"heartbeat_timeout": SHORTLY}, "update_mask": {"paths": ["heartbeat_timeout"]}}
    await stage.call("UpdateActivityOptions", **change, **named(run))
    await stage.silently("UpdateActivityOptions", restore_original=True, **named(run))
    await note_activity(stage, run)
    await stage.terminate(run)


@scenario
async def paused_run_updated(stage: Stage) -> None:
    """An update of a paused run, and a query."""
    run = await stage.start()
    await (await stage.workflow_task()).complete()
    await stage.call("PauseWorkflowExecution", request_id=stage.request_id(), **paused(run))
    update = {"meta": {"update_id": "u", "identity": "client"}, "input": {"name": "change"}}
    await stage.refused("UpdateWorkflowExecution", workflow_execution=run.execution, request=update)
    await stage.refused("QueryWorkflow", execution=run.execution, query={"query_type": "state"})
    await stage.call("UnpauseWorkflowExecution", request_id=stage.request_id(), **paused(run))
    await stage.terminate(run)


@scenario
async def paused_run_with_activity(stage: Stage) -> None:
    """An activity of a paused run ends, and is told when the run goes on."""
    run = await stage.start()
    await (await stage.workflow_task()).complete(schedule_activity(f"activity-{stage.queue}"))
    activity = await stage.activity_task(f"activity-{stage.queue}")
    await stage.call("PauseWorkflowExecution", request_id=stage.request_id(), **paused(run))
    await activity.complete("done")
    stage.note("status", (await stage.describe(run)).workflow_execution_info.status)
    await stage.call("UnpauseWorkflowExecution", request_id=stage.request_id(), **paused(run))
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def update_of_delayed_run(stage: Stage) -> None:
    """An update comes before the run's time."""
    run = await stage.start(workflow_start_delay=NEVER)
    updating = await begin_update(stage, run)
    task = await stage.workflow_task()
    await answer(task, accepted(task.polled.messages[0]), completed("update"), further=(complete(),))
    await stage.end(updating)
    await stage.ended(run)


@scenario
async def update_accepted_then_continued(stage: Stage) -> None:
    """A run continues as new over an update that it accepted and did not complete."""
    run = await stage.start()
    await (await stage.workflow_task()).complete()
    updating = await begin_update(stage, run)
    task = await stage.workflow_task()
    await answer(task, accepted(task.polled.messages[0]), further=(continue_as_new(stage.queue),))
    await stage.end_refused(updating)
    second = await stage.successor(run)
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(second)


@scenario
async def updates_rejected_in_turn(stage: Stage) -> None:
    """Two updates, one after the other, that leave no trace; a third that does."""
    run = await stage.start()
    await (await stage.workflow_task()).complete()
    for n in range(2):
        updating = await begin_update(stage, run, f"rejected-{n}")
        task = await stage.workflow_task()
        await answer(task, rejected(task.polled.messages[0]))
        await stage.end(updating)
    updating = await begin_update(stage, run, "accepted")
    task = await stage.workflow_task()
    await answer(task, accepted(task.polled.messages[0]), completed("accepted"), further=(complete(),))
    await stage.end(updating)
    await stage.ended(run)


@scenario
async def reset_of_reset(stage: Stage) -> None:
    """A run that was reset is reset again, and so is the one that it came from."""
    run = await stage.start()
    await (await stage.workflow_task()).complete(marker("first"))
    await stage.signal(run, "one", 1)
    second = await reset(stage, run)
    await (await stage.workflow_task()).complete(marker("second"))
    await stage.signal(second, "two", 2)
    third = await reset(stage, second)
    await (await stage.workflow_task()).complete(marker("third"))
    fourth = await reset(stage, run)
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(third)
    await stage.ended(fourth)


@scenario
async def reset_after_cancel_request(stage: Stage) -> None:
    """A cancel request that came after the place is left behind."""
    run = await stage.start()
    await (await stage.workflow_task()).complete(marker("first"))
    await stage.cancel(run, reason="enough")
    await (await stage.workflow_task()).complete(cancel_workflow())
    again = await reset(stage, run)
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(again)


@scenario
async def reset_of_continued_run(stage: Stage) -> None:
    """The first run of a chain is reset: what the later ones were sent comes along."""
    run = await stage.start()
    await (await stage.workflow_task()).complete(marker("first"), force_create_new_workflow_task=True)
    await (await stage.workflow_task()).complete(continue_as_new(stage.queue, backoff_start_interval=NEVER))
    second = await stage.successor(run)
    await stage.signal(second, "later")
    again = await reset(stage, run)
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(again)
    await stage.ended(second)


@scenario
async def reset_of_child(stage: Stage) -> None:
    """A child is reset: its parent hears of the new run's end."""
    family = Family(stage)
    parent, child = await family.begin()
    await (await family.child_task()).complete(marker("first"))
    again = await reset(stage, child)
    await (await family.child_task()).complete(complete("out"))
    await stage.ended(again)
    await stage.recorded(parent, "CHILD_WORKFLOW_EXECUTION_COMPLETED")
    await family.finish(parent)


@scenario
async def reset_of_retried_run(stage: Stage) -> None:
    """A run with a retry policy is reset, and its failure is repeated like any other."""
    policy = {"initial_interval": SECOND, "maximum_attempts": 2}
    run = await stage.start(retry_policy=policy)
    await (await stage.workflow_task()).complete(marker("first"))
    again = await reset(stage, run)
    await (await stage.workflow_task()).complete(fail("once"))
    last = await stage.successor(again)
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(last)


@scenario
async def child_canceled_unseen(stage: Stage) -> None:
    """A parent asks its child to cancel before any worker took the child up; and one that it starts at the same time."""
    family = Family(stage)
    parent, child = await family.begin()
    await stage.signal(parent, "stop")
    cancel = cancel_external(child.workflow_id, child_workflow_only=True)
    await (await stage.workflow_task()).complete(cancel)
    await stage.recorded(parent, "EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED")
    await (await stage.workflow_task()).complete()
    await (await family.child_task()).complete(cancel_workflow("stopped"))
    await family.finish(parent)


@scenario
async def history_backwards(stage: Stage) -> None:
    """History from the end to the beginning, and its last event alone."""
    run = await stage.start()
    await (await stage.workflow_task()).complete(marker("one"), marker("two"), complete())
    page = await stage.silently("GetWorkflowExecutionHistoryReverse", execution=run.execution)
    stage.note("all", [event.event_id for event in page.history.events])
    last = {"history_event_filter_type": "HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT", "wait_new_event": True}
    page = await stage.silently("GetWorkflowExecutionHistory", execution=run.execution, **last)
    stage.note("last", [event.event_id for event in page.history.events])
