"""Timeouts of each kind, with what may follow them: another attempt, the next run, a parent that hears of it."""

from __future__ import annotations

from catalogue import scenario, scenario_masking
from catalogue.children import Family
from commands import NEVER, SECOND, SHORTLY, cancel_activity, cancel_workflow, complete, continue_as_new, fail
from commands import schedule_activity, start_timer
from stage import Stage

TWICE = {"initial_interval": SECOND, "maximum_attempts": 2}


@scenario
async def timeout_of_cron_run(stage: Stage) -> None:
    """A cron run that takes too long is followed by the next one, which has the timeout as its failure before."""
    run = await stage.start(cron_schedule="@every 1s", workflow_run_timeout=SECOND)
    await stage.successor(await stage.successor(run))


@scenario
async def timeout_of_cron_execution(stage: Stage) -> None:
    """The time of the execution ends a schedule."""
    run = await stage.start(cron_schedule="@every 1s", workflow_execution_timeout=3 * SHORTLY)
    await (await stage.workflow_task()).complete(complete("first"))
    await stage.successor(run)
    await (await stage.workflow_task()).complete(start_timer(after=NEVER))
    await stage.ended(await stage.successor(run))


@scenario
async def timeout_of_retried_execution(stage: Stage) -> None:
    """No attempt of a run is made that would begin after the time of the execution."""
    policy = {"initial_interval": NEVER, "maximum_interval": NEVER}
    run = await stage.start(retry_policy=policy, workflow_execution_timeout=60 * SECOND)
    await (await stage.workflow_task()).complete(fail("no time for another"))
    await stage.ended(run)


@scenario
async def timeout_of_run_not_retried(stage: Stage) -> None:
    """A timeout may be among the failures that no policy repeats."""
    policy = TWICE | {"non_retryable_error_types": ["TemporalTimeout:StartToClose"]}
    run = await stage.start(retry_policy=policy, workflow_run_timeout=SECOND)
    await stage.ended(run)


@scenario
async def timeout_of_continued_run(stage: Stage) -> None:
    """A run that continued as new has its own time; what it had pending is gone with it."""
    run = await stage.start(workflow_run_timeout=NEVER)
    await (await stage.workflow_task()).complete(continue_as_new(stage.queue, workflow_run_timeout=SHORTLY))
    second = await stage.successor(run)
    await (await stage.workflow_task()).complete(start_timer(after=NEVER), schedule_activity(f"nobody-{stage.queue}"))
    await stage.ended(second)


@scenario
async def timeout_of_retried_child(stage: Stage) -> None:
    """A child that times out is tried again; the parent hears of the last one."""
    family = Family(stage)
    parent, child = await family.begin(retry_policy=TWICE, workflow_run_timeout=SECOND)
    await stage.successor(child)
    await family.finish(parent)


@scenario
async def timeout_of_child_execution(stage: Stage) -> None:
    """The time of a child's execution goes on over its attempts."""
    family = Family(stage)
    policy = {"initial_interval": NEVER, "maximum_interval": NEVER}
    parent, _ = await family.begin(retry_policy=policy, workflow_execution_timeout=60 * SECOND)
    await (await family.child_task()).complete(fail("no time for another"))
    await family.finish(parent)


@scenario
async def timeout_of_parent(stage: Stage) -> None:
    """A parent that times out ends its child."""
    family = Family(stage)
    parent = await stage.start(workflow_run_timeout=SHORTLY)
    await (await stage.workflow_task()).complete(family.start_command())
    child = await family.started(parent)
    await stage.ended(parent)
    await stage.ended(child)


@scenario
async def child_by_cron(stage: Stage) -> None:
    """A child with a schedule: the parent hears when it is ended."""
    family = Family(stage)
    parent, child = await family.begin(cron_schedule="@every 1s")
    await (await family.child_task()).complete(complete("first"))
    second = await stage.successor(child)
    await (await family.child_task()).complete(complete("second"))
    third = await stage.successor(second)
    await stage.terminate(third)
    await family.finish(parent)


@scenario
async def activity_heartbeat_retried(stage: Stage) -> None:
    """A worker that falls silent is followed by another, which gets what was reported last."""
    run = await stage.start()
    quickly = {"initial_interval": SECOND, "maximum_attempts": 2}
    command = schedule_activity(stage.queue, heartbeat_timeout=SECOND, retry_policy=quickly)
    await (await stage.workflow_task()).complete(command)
    await (await stage.activity_task()).heartbeat("halfway")
    await (await stage.activity_task()).complete("done")
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def activity_timeouts_not_retried(stage: Stage) -> None:
    """A timeout may be among the failures that no policy repeats."""
    run = await stage.start()
    policy = {"initial_interval": SECOND, "non_retryable_error_types": ["TemporalTimeout:StartToClose"]}
    command = schedule_activity(stage.queue, start_to_close_timeout=SECOND, retry_policy=policy)
    await (await stage.workflow_task()).complete(command)
    await stage.activity_task()
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def activity_times_out_while_canceled(stage: Stage) -> None:
    """No attempt follows the timeout of an activity that was asked to cancel."""
    run = await stage.start()
    command = schedule_activity(stage.queue, start_to_close_timeout=SHORTLY, retry_policy={"initial_interval": SECOND})
    await (await stage.workflow_task()).complete(command)
    await stage.activity_task()
    await stage.signal(run, "stop")
    await (await stage.workflow_task()).complete(cancel_activity(5))
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def retry_backoff_disturbed(stage: Stage) -> None:
    """A run that waits for its next attempt takes signals and a cancel request, and waits on."""
    policy = {"initial_interval": 4 * SECOND, "maximum_attempts": 2}
    run = await stage.start(retry_policy=policy)
    await (await stage.workflow_task()).complete(fail("first"))
    second = await stage.successor(run)
    await stage.signal(second, "early")
    await stage.cancel(second, reason="enough")
    await (await stage.workflow_task()).complete(cancel_workflow("stopped"))
    await stage.ended(second)


@scenario
async def retry_backoff_terminated(stage: Stage) -> None:
    """A run that waits for its next attempt is ended by force."""
    policy = {"initial_interval": NEVER, "maximum_interval": NEVER}
    run = await stage.start(retry_policy=policy)
    await (await stage.workflow_task()).complete(fail("first"))
    second = await stage.successor(run)
    stage.note("description", (await stage.describe(second)).workflow_execution_info)
    await stage.terminate(second)


@scenario
async def task_timed_out_while_signaled(stage: Stage) -> None:
    """An event that comes during a workflow task that is not answered in time."""
    run = await stage.start(workflow_task_timeout=SHORTLY)
    await stage.workflow_task()
    await stage.signal(run, "meanwhile")
    await stage.recorded(run, "WORKFLOW_TASK_TIMED_OUT")
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario_masking("start_to_close_timeout")
async def task_timed_out_twice(stage: Stage) -> None:
    """The second attempt that is not answered leaves no event; the third completes."""
    run = await stage.start(workflow_task_timeout=SECOND)
    for _ in range(2):
        await stage.workflow_task()
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)
