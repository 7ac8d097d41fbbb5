"""Runs that come again: by retry policy and by cron schedule."""

from __future__ import annotations

from catalogue import scenario, scenario_masking
from commands import NEVER, SECOND, complete, continue_as_new, fail, input_of, payload
from stage import Stage

TWICE = {"initial_interval": SECOND, "maximum_attempts": 2, "non_retryable_error_types": ["Fatal"]}


@scenario
async def retry_until_attempts_end(stage: Stage) -> None:
    """A failed run is tried again after its interval, with all that it was started with, and then no more."""
    run = await stage.start(
        input=input_of("in"),
        retry_policy=TWICE,
        memo={"fields": {"note": payload("kept")}},
        header={"fields": {"trace": payload("abc")}},
        workflow_execution_timeout=NEVER,
    )
    await (await stage.workflow_task()).complete(fail("first"))
    second = await stage.successor(run)
    await (await stage.workflow_task()).complete(fail("second"))
    await stage.ended(second)


@scenario
async def retry_not_of_fatal(stage: Stage) -> None:
    """Failures that no policy repeats: by the type's name, and by their own word."""
    named = await stage.start(f"{stage.id}-named", retry_policy=TWICE)
    await (await stage.workflow_task()).complete(fail(kind="Fatal"))
    await stage.ended(named)
    flagged = await stage.start(f"{stage.id}-flagged", retry_policy=TWICE)
    await (await stage.workflow_task()).complete(fail(non_retryable=True))
    await stage.ended(flagged)


@scenario
async def retry_with_next_delay(stage: Stage) -> None:
    """A failure may name the delay before the next attempt."""
    run = await stage.start(retry_policy={"initial_interval": NEVER, "maximum_attempts": 2, "maximum_interval": NEVER})
    await (await stage.workflow_task()).complete(fail(next_retry_delay=SECOND))
    second = await stage.successor(run)
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(second)


@scenario
async def retry_of_timed_out_run(stage: Stage) -> None:
    """A run that timed out is tried again."""
    run = await stage.start(retry_policy=TWICE, workflow_run_timeout=SECOND)
    second = await stage.successor(run)
    await stage.ended(second)


@scenario
async def retry_of_terminated_run(stage: Stage) -> None:
    """Neither a terminated nor a canceled run is tried again."""
    run = await stage.start(retry_policy=TWICE)
    await stage.terminate(run)
    await stage.ended(run)


@scenario
async def cron_after_completed(stage: Stage) -> None:
    """A cron run that completes is followed by one that has its result."""
    run = await stage.start(cron_schedule="@every 1s", input=input_of("in"))
    await (await stage.workflow_task()).complete(complete("first"))
    second = await stage.successor(run)
    await stage.recorded(second, "WORKFLOW_TASK_SCHEDULED")
    await stage.terminate(second)


@scenario
async def cron_after_failed(stage: Stage) -> None:
    """A cron run that fails is followed by one that has its failure, and the result before it."""
    run = await stage.start(cron_schedule="@every 1s")
    await (await stage.workflow_task()).complete(complete("first"))
    second = await stage.successor(run)
    await (await stage.workflow_task()).complete(fail("second"))
    third = await stage.successor(second)
    await stage.recorded(third, "WORKFLOW_TASK_SCHEDULED")
    await stage.terminate(third)


@scenario
async def cron_with_retries(stage: Stage) -> None:
    """Within a cron run the retry policy comes first; when it ends, the schedule goes on."""
    run = await stage.start(cron_schedule="@every 1s", retry_policy=TWICE)
    await (await stage.workflow_task()).complete(fail("first"))
    second = await stage.successor(run)
    await (await stage.workflow_task()).complete(fail("second"))
    third = await stage.successor(second)
    await stage.recorded(third, "WORKFLOW_TASK_SCHEDULED")
    await stage.terminate(third)


@scenario
async def cron_continued_as_new(stage: Stage) -> None:
    """A cron run that continues itself does so at once, and keeps its schedule only if it says so."""
    run = await stage.start(cron_schedule="@every 1s")
    await (await stage.workflow_task()).complete(continue_as_new(stage.queue, cron_schedule="@every 1s"))
    second = await stage.successor(run)
    await (await stage.workflow_task()).complete(continue_as_new(stage.queue))
    third = await stage.successor(second)
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(third)


@scenario
async def cron_canceled_while_waiting(stage: Stage) -> None:
    """Signals and a cancel request for a cron run whose time has not come."""
    run = await stage.start(cron_schedule="@every 600s")
    await stage.signal(run, "early")
    await stage.cancel(run)
    await stage.terminate(run)


@scenario_masking("first_workflow_task_backoff")
async def cron_in_time_zone(stage: Stage) -> None:
    """Schedules with names, ranges and time zones are kept as they were given."""
    for n, schedule in enumerate(("CRON_TZ=Europe/Vienna 30 2 * * 1-5", "TZ=Asia/Kolkata @daily", "0 0 1 JAN,JUL ?")):
        run = await stage.start(f"{stage.id}-{n}", cron_schedule=schedule)
        await stage.terminate(run)
