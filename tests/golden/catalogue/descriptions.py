"""What is told of a run, and when: descriptions along its way."""

from __future__ import annotations

from catalogue import scenario, scenario_masking
from catalogue.children import Family
from commands import NEVER, SECOND, cancel_activity, cancel_workflow, complete, fail, schedule_activity, start_child
from stage import Stage


@scenario
async def describe_fresh_run(stage: Stage) -> None:
    """Before a worker took it up, while it has its first task, and when that has failed."""
    run = await stage.start()
    stage.note("scheduled", await stage.describe(run))
    task = await stage.workflow_task()
    stage.note("started", await stage.describe(run))
    await task.fail()
    stage.note("failed", await stage.describe(run))
    await stage.terminate(run)
    stage.note("terminated", (await stage.describe(run)).workflow_execution_info)


@scenario
async def describe_delayed_run(stage: Stage) -> None:
    """Before its time has come."""
    run = await stage.start(workflow_start_delay=NEVER, workflow_execution_timeout=2 * NEVER)
    stage.note("delayed", await stage.describe(run))
    await stage.terminate(run)


@scenario
async def describe_ends(stage: Stage) -> None:
    """Runs that ended, each in its own way, with what they had pending."""
    for n, end in enumerate((complete("result"), fail("failure"), cancel_workflow("details"))):
        run = await stage.start(f"{stage.id}-{n}")
        await (await stage.workflow_task()).complete(schedule_activity(f"nobody-{stage.queue}"), end)
        stage.note("ended", await stage.describe(run))
    run = await stage.start(f"{stage.id}-terminated")
    await (await stage.workflow_task()).complete(schedule_activity(f"nobody-{stage.queue}"))
    await stage.terminate(run)
    stage.note("terminated", await stage.describe(run))


@scenario
async def describe_canceled_activity(stage: Stage) -> None:
    """An activity that was asked to cancel, and one that is paused with its worker."""
    run = await stage.start()
    queues = [f"{name}-{stage.queue}" for name in ("canceled", "paused")]
    await (await stage.workflow_task()).complete(*(schedule_activity(queue, queue[:8]) for queue in queues))
    for queue in queues:
        await stage.activity_task(queue)
    await stage.signal(run, "stop")
    await (await stage.workflow_task()).complete(cancel_activity(5))
    await stage.call("PauseActivity", execution=run.execution, id="paused-q", identity="client", reason="hot")
    described = await stage.describe(run)
    described.pending_activities.sort(key=lambda activity: activity.activity_id)
    stage.note("description", described)
    await stage.terminate(run)


@scenario_masking("current_retry_interval")
async def describe_timed_out_activity(stage: Stage) -> None:
    """An activity between two attempts, of which the first was not answered in time."""
    run = await stage.start()
    policy = {"initial_interval": NEVER, "maximum_interval": NEVER}
    command = schedule_activity(stage.queue, start_to_close_timeout=SECOND, retry_policy=policy)
    await (await stage.workflow_task()).complete(command)
    await stage.activity_task()
    await stage.until(run, lambda found: found.pending_activities[0].attempt == 2)
    described = await stage.describe(run)
    # The reference tells when an attempt failed, but not when one timed out; there is no reason to do the same.
    described.pending_activities[0].ClearField("last_attempt_complete_time")
    stage.note("description", described)
    await stage.terminate(run)


@scenario
async def describe_update(stage: Stage) -> None:
    """A run with an update in flight."""
    run = await stage.start()
    await (await stage.workflow_task()).complete()
    update = {"meta": {"update_id": "u", "identity": "client"}, "input": {"name": "change"}}
    updating = stage.begin("UpdateWorkflowExecution", workflow_execution=run.execution, request=update)
    await stage.workflow_task()
    stage.note("description", await stage.describe(run))
    await stage.terminate(run)
    await stage.end_refused(updating)


@scenario
async def describe_child_run(stage: Stage) -> None:
    """A child as it describes itself, and its grandchild with the root of all."""
    family = Family(stage)
    parent, child = await family.begin()
    # A child's first task is made after its parent heard of it.
    await stage.recorded(child, "WORKFLOW_TASK_SCHEDULED")
    stage.note("child", await stage.describe(child))
    grandchild = start_child(f"{stage.id}-grandchild", f"grand-{stage.queue}")
    await (await family.child_task()).complete(grandchild)
    event = await stage.recorded(child, "CHILD_WORKFLOW_EXECUTION_STARTED")
    youngest = child.leads(event)[0]
    await stage.recorded(youngest, "WORKFLOW_TASK_SCHEDULED")
    stage.note("grandchild", await stage.describe(youngest))
    await stage.terminate(parent)
    for descendant in (child, youngest):
        await stage.ended(descendant)
