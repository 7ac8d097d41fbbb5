"""Activities: how they are scheduled, tried, reported and given up."""

from __future__ import annotations

from catalogue import scenario
from commands import NEVER, SECOND, SHORTLY, cancel_activity, complete, failure, input_of, payload, schedule_activity
from runs import Run
from stage import Stage
from worker import WORKER

ONCE = {"maximum_attempts": 1}
QUICKLY = {"initial_interval": {"nanos": 10_000_000}, "backoff_coefficient": 1.0}


async def with_activity(stage: Stage, **fields) -> Run:
    run = await stage.start()
    await (await stage.workflow_task()).complete(schedule_activity(stage.queue, **fields))
    return run


async def finish(stage: Stage, run: Run) -> None:
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def activity_completes(stage: Stage) -> None:
    """All that a schedule command may carry reaches the event and the worker."""
    run = await with_activity(
        stage,
        input=input_of("in"),
        header={"fields": {"trace": payload("abc")}},
        schedule_to_close_timeout=NEVER,
        schedule_to_start_timeout=NEVER,
        heartbeat_timeout=NEVER,
        retry_policy={"initial_interval": SECOND, "maximum_attempts": 3, "non_retryable_error_types": ["Fatal"]},
        priority={"priority_key": 4},
    )
    await (await stage.activity_task()).complete("out")
    await finish(stage, run)


@scenario
async def activity_timeout_defaults(stage: Stage) -> None:
    """What a schedule command leaves out is filled in, within the run's own time."""
    run = await stage.start(workflow_run_timeout=NEVER)
    own = schedule_activity(stage.queue, "start-to-close")
    close = schedule_activity(stage.queue, "schedule-to-close", schedule_to_close_timeout=10 * SECOND)
    close.schedule_activity_task_command_attributes.ClearField("start_to_close_timeout")
    long = schedule_activity(stage.queue, "long", schedule_to_close_timeout=3 * NEVER, heartbeat_timeout=3 * NEVER)
    await (await stage.workflow_task()).complete(own, close, long)
    await stage.terminate(run)


@scenario
async def activity_fails(stage: Stage) -> None:
    """A failure that is not retryable, by its own word or by its type, ends the activity."""
    run = await stage.start()
    await (await stage.workflow_task()).complete(
        schedule_activity(stage.queue, "flagged"),
    )
    await (await stage.activity_task()).fail(non_retryable=True, details=input_of("detail"))
    named = schedule_activity(stage.queue, "named", retry_policy={"non_retryable_error_types": ["Fatal"]})
    await (await stage.workflow_task()).complete(named)
    await (await stage.activity_task()).fail(kind="Fatal")
    await finish(stage, run)


@scenario
async def activity_retried(stage: Stage) -> None:
    """Attempts leave no events but the last one's, which has the failure before it and what was reported."""
    run = await with_activity(stage, heartbeat_timeout=NEVER, retry_policy=QUICKLY)
    first = await stage.activity_task()
    await first.heartbeat("halfway", 50)
    await first.fail("first")
    await (await stage.activity_task()).fail("second")
    await (await stage.activity_task()).complete("third")
    await finish(stage, run)


@scenario
async def activity_attempts_end(stage: Stage) -> None:
    """The last attempt's failure is the activity's."""
    run = await with_activity(stage, retry_policy=QUICKLY | {"maximum_attempts": 2})
    await (await stage.activity_task()).fail("first")
    await (await stage.activity_task()).fail("second")
    await finish(stage, run)


@scenario
async def activity_next_retry_delay(stage: Stage) -> None:
    """A failure may name the delay before the next attempt."""
    run = await with_activity(stage, retry_policy={"initial_interval": NEVER, "maximum_interval": NEVER})
    await (await stage.activity_task()).fail("soon", next_retry_delay={"nanos": 1_000_000})
    await (await stage.activity_task()).complete()
    await finish(stage, run)


@scenario
async def activity_retry_beyond_deadline(stage: Stage) -> None:
    """No attempt is made that would begin after the schedule-to-close timeout."""
    policy = {"initial_interval": NEVER, "maximum_interval": NEVER}
    run = await with_activity(stage, retry_policy=policy, schedule_to_close_timeout=60 * SECOND)
    await (await stage.activity_task()).fail("too late for another")
    await finish(stage, run)


@scenario
async def activity_start_to_close_timeout(stage: Stage) -> None:
    """An attempt that takes too long; its worker is told that the activity is gone."""
    run = await with_activity(stage, start_to_close_timeout=SECOND, retry_policy=ONCE)
    activity = await stage.activity_task()
    await stage.recorded(run, "ACTIVITY_TASK_TIMED_OUT")
    await activity.refused("RespondActivityTaskCompleted")
    await finish(stage, run)


@scenario
async def activity_start_to_close_retried(stage: Stage) -> None:
    """A timed-out attempt is followed by another, which has the timeout as last failure."""
    run = await with_activity(stage, start_to_close_timeout=SECOND, retry_policy=QUICKLY | {"maximum_attempts": 2})
    await stage.activity_task()
    await stage.activity_task()
    await stage.recorded(run, "ACTIVITY_TASK_TIMED_OUT")
    await finish(stage, run)


@scenario
async def activity_schedule_to_start_timeout(stage: Stage) -> None:
    """No worker took it; there is no retry of that."""
    run = await with_activity(stage, schedule_to_start_timeout=SECOND, task_queue={"name": f"nobody-{stage.queue}"})
    await stage.recorded(run, "ACTIVITY_TASK_TIMED_OUT")
    await finish(stage, run)


@scenario
async def activity_schedule_to_close_timeout(stage: Stage) -> None:
    """The time for all attempts is over while one runs."""
    run = await with_activity(stage, schedule_to_close_timeout=SHORTLY)
    await stage.activity_task()
    await stage.recorded(run, "ACTIVITY_TASK_TIMED_OUT")
    await finish(stage, run)


@scenario
async def activity_schedule_to_close_unseen(stage: Stage) -> None:
    """The time for all attempts is over before a worker took the first."""
    run = await with_activity(stage, schedule_to_close_timeout=SECOND, task_queue={"name": f"nobody-{stage.queue}"})
    await stage.recorded(run, "ACTIVITY_TASK_TIMED_OUT")
    await finish(stage, run)


@scenario
async def activity_heartbeat_timeout(stage: Stage) -> None:
    """A worker that falls silent; what it reported last is kept in the timeout."""
    run = await with_activity(stage, heartbeat_timeout=SHORTLY, retry_policy=ONCE)
    await (await stage.activity_task()).heartbeat("last words")
    await stage.recorded(run, "ACTIVITY_TASK_TIMED_OUT")
    await finish(stage, run)


@scenario
async def activity_canceled_before_start(stage: Stage) -> None:
    """An activity that no worker has is canceled at once."""
    run = await with_activity(stage, task_queue={"name": f"nobody-{stage.queue}"})
    await stage.signal(run, "wake")
    await (await stage.workflow_task()).complete(cancel_activity(5))
    await finish(stage, run)


@scenario
async def activity_canceled_at_once(stage: Stage) -> None:
    """Scheduled and canceled by one workflow task."""
    run = await stage.start()
    await (await stage.workflow_task()).complete(schedule_activity(stage.queue), cancel_activity(5))
    await finish(stage, run)


@scenario
async def activity_canceled_while_running(stage: Stage) -> None:
    """The worker learns of the request by its heartbeat, and confirms it."""
    run = await with_activity(stage, heartbeat_timeout=NEVER)
    activity = await stage.activity_task()
    await activity.refused("RespondActivityTaskCanceled")
    await stage.signal(run, "wake")
    await (await stage.workflow_task()).complete(cancel_activity(5))
    await activity.heartbeat("still here")
    await activity.cancel("cleaned up")
    await finish(stage, run)


@scenario
async def activity_cancel_ignored(stage: Stage) -> None:
    """A worker may complete what it was asked to cancel. Asking twice is a bad command."""
    run = await with_activity(stage)
    activity = await stage.activity_task()
    await stage.signal(run, "wake")
    await (await stage.workflow_task()).complete(cancel_activity(5))
    await stage.signal(run, "wake again")
    await (await stage.workflow_task()).complete_refused(cancel_activity(5))
    await (await stage.workflow_task()).complete()
    await activity.complete("done all the same")
    await finish(stage, run)


@scenario
async def activity_canceled_between_attempts(stage: Stage) -> None:
    """An activity that waits for its next attempt is canceled at once."""
    run = await with_activity(stage, retry_policy={"initial_interval": NEVER, "maximum_interval": NEVER})
    await (await stage.activity_task()).fail("first")
    await stage.signal(run, "wake")
    await (await stage.workflow_task()).complete(cancel_activity(5))
    await finish(stage, run)


@scenario
async def activity_failure_after_cancel(stage: Stage) -> None:
    """No attempt follows the failure of an activity that was asked to cancel."""
    run = await with_activity(stage, retry_policy=QUICKLY)
    activity = await stage.activity_task()
    await stage.signal(run, "wake")
    await (await stage.workflow_task()).complete(cancel_activity(5))
    await activity.fail("while canceling")
    await finish(stage, run)


@scenario
async def activity_by_id(stage: Stage) -> None:
    """Activities that are completed by somebody who knows their names only."""
    run = await stage.start()
    ids = ("completed", "failed", "canceled")
    await (await stage.workflow_task()).complete(
        *(schedule_activity(f"{name}-{stage.queue}", name, retry_policy=ONCE, heartbeat_timeout=NEVER) for name in ids)
    )
    for name in ids:
        await stage.activity_task(f"{name}-{stage.queue}")
    named = {"workflow_id": stage.id, "identity": WORKER}
    await stage.call("RecordActivityTaskHeartbeatById", activity_id="failed", details=input_of("alive"), **named)
    await stage.call("RespondActivityTaskCompletedById", activity_id="completed", result=input_of("out"), **named)
    task = await stage.workflow_task()
    await stage.call("RespondActivityTaskFailedById", activity_id="failed", failure=failure("by id"), **named)
    await task.complete(cancel_activity(7))
    task = await stage.workflow_task()
    await stage.call(
        "RespondActivityTaskCanceledById", activity_id="canceled", run_id=run.run_id, details=input_of("ok"), **named
    )
    await stage.refused("RespondActivityTaskCompletedById", activity_id="completed", **named)
    await stage.refused("RespondActivityTaskFailedById", activity_id="nobody", **named)
    await stage.refused("RespondActivityTaskCompletedById", activity_id="", **named)
    await stage.refused("RecordActivityTaskHeartbeatById", activity_id="nobody", **named)
    await task.complete()
    await finish(stage, run)


@scenario
async def activity_completed_by_id_unstarted(stage: Stage) -> None:
    """An activity that no worker has taken may be completed by its name."""
    run = await with_activity(stage, task_queue={"name": f"nobody-{stage.queue}"})
    named = {"workflow_id": stage.id, "run_id": run.run_id, "activity_id": "activity", "identity": WORKER}
    await stage.refused("RespondActivityTaskCompletedById", result=input_of("early"), **named)
    await stage.terminate(run)


@scenario
async def activity_completed_twice(stage: Stage) -> None:
    """The second answer, of whatever kind, is refused."""
    run = await with_activity(stage)
    activity = await stage.activity_task()
    await activity.complete("first")
    for rpc in (
        "RespondActivityTaskCompleted",
        "RespondActivityTaskFailed",
        "RespondActivityTaskCanceled",
        "RecordActivityTaskHeartbeat",
    ):
        await activity.refused(rpc)
    await finish(stage, run)


@scenario
async def activity_token_refused(stage: Stage) -> None:
    """Tokens that are none."""
    for rpc in ("RespondActivityTaskCompleted", "RecordActivityTaskHeartbeat", "RespondWorkflowTaskCompleted"):
        await stage.refused(rpc)


@scenario
async def activity_eager(stage: Stage) -> None:
    """Activities asked for eagerly come back in the answer to the workflow task, and are started."""
    run = await stage.start()
    answer = await (await stage.workflow_task()).complete(
        schedule_activity(stage.queue, "eager", request_eager_execution=True), schedule_activity(stage.queue, "plain")
    )
    for polled in answer.activity_tasks:
        await stage.call("RespondActivityTaskCompleted", task_token=polled.task_token, identity=WORKER)
    await finish(stage, run)
