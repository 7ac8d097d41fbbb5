"""Workflow tasks: how they are tried, passed on, kept by a worker, and failed."""

from __future__ import annotations

from catalogue import scenario
from commands import SHORTLY, complete, input_of, marker, schedule_activity, start_timer
from stage import Stage
from worker import WORKER


@scenario
async def task_failed(stage: Stage) -> None:
    """The first failure is recorded; the attempts that follow are not, until one completes."""
    run = await stage.start()
    await (await stage.workflow_task()).fail()
    await (await stage.workflow_task()).fail("NON_DETERMINISTIC_ERROR")
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def task_failed_then_signaled(stage: Stage) -> None:
    """An event that comes between attempts makes the next one a recorded task again."""
    run = await stage.start()
    await (await stage.workflow_task()).fail()
    await stage.signal(run, "news")
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def task_failed_while_signaled(stage: Stage) -> None:
    """An event that comes during an unrecorded attempt."""
    run = await stage.start()
    await (await stage.workflow_task()).fail()
    task = await stage.workflow_task()
    await stage.signal(run, "news")
    await task.fail()
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def task_completed_while_signaled(stage: Stage) -> None:
    """An event that comes during an unrecorded attempt that completes."""
    run = await stage.start()
    await (await stage.workflow_task()).fail()
    task = await stage.workflow_task()
    await stage.signal(run, "news")
    await task.complete()
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def task_timed_out(stage: Stage) -> None:
    """A worker that does not answer in time; its answer comes too late."""
    run = await stage.start(workflow_task_timeout=SHORTLY)
    late = await stage.workflow_task()
    await stage.recorded(run, "WORKFLOW_TASK_TIMED_OUT")
    await late.complete_refused(complete())
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def task_completed_twice(stage: Stage) -> None:
    """The second answer is refused, be it of the same kind or not."""
    run = await stage.start()
    task = await stage.workflow_task()
    await task.complete(marker())
    await task.complete_refused(marker())
    failed = {"task_token": task.polled.task_token, "cause": "WORKFLOW_TASK_FAILED_CAUSE_UNSPECIFIED"}
    await stage.refused("RespondWorkflowTaskFailed", **failed)
    await stage.terminate(run)


@scenario
async def task_told_of_itself(stage: Stage) -> None:
    """What an SDK tells with a completed task is kept in its event."""
    run = await stage.start()
    await (await stage.workflow_task()).complete(
        complete(),
        sdk_metadata={"core_used_flags": [1, 2], "lang_used_flags": [3], "sdk_name": "golden", "sdk_version": "1.0"},
        metering_metadata={"nonfirst_local_activity_execution_attempts": 4},
    )
    await stage.ended(run)


@scenario
async def task_force_created(stage: Stage) -> None:
    """A worker may ask for the next workflow task although nothing has happened."""
    run = await stage.start()
    await (await stage.workflow_task()).complete(force_create_new_workflow_task=True)
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def task_heartbeat(stage: Stage) -> None:
    """A worker that is busy with local activities keeps its run by asking for one task after the other."""
    run = await stage.start()
    task = await stage.workflow_task()
    task = await task.complete_and_take_next()
    task = await task.complete_and_take_next(marker())
    await task.complete(complete())
    await stage.ended(run)


@scenario
async def task_returned(stage: Stage) -> None:
    """The next task comes with the answer if something has happened in the meantime, and not otherwise."""
    run = await stage.start()
    task = await stage.workflow_task()
    await stage.signal(run, "meanwhile")
    task = await task.complete_and_take_next(force_create_new_workflow_task=False)
    answer = await task.complete(return_new_workflow_task=True)
    assert not answer.HasField("workflow_task")
    await stage.terminate(run)


@scenario
async def task_sticky(stage: Stage) -> None:
    """A worker that keeps the run gets the news only, on its own queue."""
    run = await stage.start()
    polling = await stage.begin_polling_stickily()
    await (await stage.workflow_task()).complete_stickily(start_timer())
    await (await stage.taken(polling)).complete_stickily()
    polling = await stage.begin_polling_stickily()
    await stage.signal(run, "hello")
    await (await stage.taken(polling)).complete(complete())
    await stage.ended(run)


@scenario
async def task_sticky_timed_out(stage: Stage) -> None:
    """A worker that was there and is gone: after a while the task goes to everybody."""
    run = await stage.start()
    polling = await stage.begin_polling_stickily()
    await (await stage.workflow_task()).complete_stickily()
    await stage.signal(run, "hello")
    await (await stage.taken(polling)).complete_stickily()
    await stage.signal(run, "are you there?")
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def task_sticky_unknown(stage: Stage) -> None:
    """A worker that never polled its own queue: the task goes to everybody at once."""
    run = await stage.start()
    await (await stage.workflow_task()).complete_stickily()
    await stage.signal(run, "hello")
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def task_sticky_reset(stage: Stage) -> None:
    """A worker may give back what it kept."""
    run = await stage.start()
    await (await stage.workflow_task()).complete_stickily()
    await stage.call("ResetStickyTaskQueue", execution=run.execution)
    await stage.signal(run, "hello")
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def task_sticky_failed(stage: Stage) -> None:
    """A worker that fails a task does not keep the run."""
    run = await stage.start()
    polling = await stage.begin_polling_stickily()
    await (await stage.workflow_task()).complete_stickily(force_create_new_workflow_task=True)
    await (await stage.taken(polling)).fail()
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def buffered_in_order(stage: Stage) -> None:
    """What happens during a workflow task is written behind it: signals first, then the ends of activities."""
    run = await stage.start()
    await (await stage.workflow_task()).complete(
        schedule_activity(f"one-{stage.queue}", "one"), schedule_activity(f"two-{stage.queue}", "two")
    )
    one = await stage.activity_task(f"one-{stage.queue}")
    await stage.signal(run, "before")
    task = await stage.workflow_task()
    await one.complete("one")
    await stage.signal(run, "during", 1)
    await (await stage.activity_task(f"two-{stage.queue}")).fail("two", non_retryable=True)
    await stage.cancel(run)
    await stage.signal(run, "during", 2)
    await task.complete(marker())
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def buffered_timer(stage: Stage) -> None:
    """A timer that fires during a workflow task."""
    run = await stage.start()
    task = await (await stage.workflow_task()).complete_and_take_next(start_timer(after=SHORTLY))
    await stage.changed(run, since=await stage.transitions(run))
    await stage.signal(run, "during")
    await task.complete()
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def buffered_when_failed(stage: Stage) -> None:
    """What happened during a workflow task that failed is with the next one."""
    run = await stage.start()
    task = await stage.workflow_task()
    await stage.signal(run, "during", 1)
    await task.fail()
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def buffered_when_timed_out(stage: Stage) -> None:
    """What happened during a workflow task that timed out is with the next one."""
    run = await stage.start(workflow_task_timeout=SHORTLY)
    await stage.workflow_task()
    await stage.signal(run, "during", 1)
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def buffered_when_terminated(stage: Stage) -> None:
    """What happened during a workflow task is not lost when the run is ended by force."""
    run = await stage.start()
    await stage.workflow_task()
    await stage.signal(run, "during", 1)
    await stage.terminate(run)


@scenario
async def describe_open_run(stage: Stage) -> None:
    """A description of a run with a task in flight, an activity that waits for its next attempt, one with a worker."""
    run = await stage.start(memo={"fields": {}}, workflow_run_timeout={"seconds": 600})
    policy = {"initial_interval": {"seconds": 60}, "maximum_attempts": 5}
    await (await stage.workflow_task()).complete(
        schedule_activity(f"waits-{stage.queue}", "waits", retry_policy=policy, heartbeat_timeout={"seconds": 60}),
        schedule_activity(f"runs-{stage.queue}", "runs", input=input_of(1)),
        schedule_activity(f"nobody-{stage.queue}", "unseen"),
    )
    waits = await stage.activity_task(f"waits-{stage.queue}")
    await waits.heartbeat("halfway")
    await waits.fail("first")
    await stage.activity_task(f"runs-{stage.queue}")
    await stage.signal(run, "wake")
    await stage.workflow_task()
    described = await stage.describe(run)
    described.pending_activities.sort(key=lambda activity: activity.activity_id)
    stage.note("description", described)
    await stage.terminate(run)


@scenario
async def describe_closed_run(stage: Stage) -> None:
    """A description of a run that is over."""
    run = await stage.start()
    await (await stage.workflow_task()).complete(complete())
    stage.note("description", await stage.describe(run))
    await stage.refused("DescribeWorkflowExecution", execution={"workflow_id": f"{stage.id}-unknown"})
    await stage.refused("DescribeWorkflowExecution", execution={"workflow_id": ""})


@scenario
async def task_told_version(stage: Stage) -> None:
    """The version that a worker tells with its poll and with its answer; the run is found by it."""
    run = await stage.start()
    for build_id in ("one", "two"):
        told = {"worker_version_capabilities": {"build_id": build_id}}
        polling = stage.begin("PollWorkflowTaskQueue", task_queue={"name": stage.queue}, identity=WORKER, **told)
        task = await stage.taken(polling)
        task = await task.complete_and_take_next(worker_version_stamp={"build_id": build_id})
        await task.complete(worker_version_stamp={"build_id": build_id}, force_create_new_workflow_task=True)
        info = (await stage.describe(run)).workflow_execution_info
        stage.note("search attributes", info.search_attributes)
        stage.note("reset points", info.auto_reset_points)
    await stage.terminate(run)


@scenario
async def task_told_version_late(stage: Stage) -> None:
    """A version told by a worker whose task is written late, after a failed attempt; then a checksum instead."""
    run = await stage.start()
    await (await stage.workflow_task()).fail()
    await (await stage.workflow_task()).complete(worker_version_stamp={"build_id": "one"})
    await stage.signal(run, "wake")
    await (await stage.workflow_task()).complete(binary_checksum="sum")
    info = (await stage.describe(run)).workflow_execution_info
    stage.note("search attributes", info.search_attributes)
    stage.note("reset points", info.auto_reset_points)
    await stage.terminate(run)
