"""How an activity ends otherwise than well: timeouts, refusals, cancellation, completion from elsewhere."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from temporalio.client import AsyncActivityCancelledError, AsyncActivityHandle, Client, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ActivityError, ApplicationError, RetryState, TimeoutError, TimeoutType

import history_law
from history_law import Record
from scenarios import OneActivity, Step, Workshop, new_worker
from waiting import eventually

LONG_MS = 60_000


async def start(client: Client, task_queue: str, step: Step) -> WorkflowHandle[Any, Any]:
    return await client.start_workflow(OneActivity.run, step, id=f"activity-{uuid.uuid4()}", task_queue=task_queue)


async def fail(handle: WorkflowHandle[Any, Any]) -> tuple[ActivityError, Record]:
    """The activity's error, as the workflow's caller sees it, and the workflow's history."""
    with pytest.raises(WorkflowFailureError) as raised:
        await handle.result()
    assert isinstance(raised.value.cause, ActivityError)
    record = history_law.check_closed((await handle.fetch_history()).events)
    assert record.close == "failed"
    return raised.value.cause, record


async def test_an_attempt_that_takes_too_long_times_out(client: Client, task_queue: str) -> None:
    workshop = Workshop()
    async with new_worker(client, task_queue, workshop):
        handle = await start(client, task_queue, Step("hang", start_to_close_ms=500, attempts_max=2))
        error, record = await fail(handle)
    assert isinstance(error.cause, TimeoutError)
    assert error.cause.type == TimeoutType.START_TO_CLOSE
    assert error.retry_state == RetryState.MAXIMUM_ATTEMPTS_REACHED
    assert workshop.attempts == [1, 2]
    assert (record.activity("hang").end, record.activity("hang").attempt) == ("timed_out", 2)


async def test_an_activity_that_stops_beating_is_retried_with_its_last_details(client: Client, task_queue: str) -> None:
    workshop = Workshop()
    async with new_worker(client, task_queue, workshop):
        step = Step("beat_once_then_hang", "page", start_to_close_ms=LONG_MS, heartbeat_ms=3000)
        handle = await start(client, task_queue, step)
        assert await handle.result() == ["page", 7]
    record = history_law.check_closed((await handle.fetch_history()).events)
    assert workshop.attempts == [1, 2]
    assert record.activity("beat_once_then_hang").attempt == 2
    (started,) = record.attributes("activity_task_started")
    assert started.last_failure.HasField("timeout_failure_info")


async def test_an_activity_without_a_worker_times_out_in_the_queue(client: Client, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        step = Step("hang", schedule_to_start_ms=500, start_to_close_ms=LONG_MS, task_queue=f"{task_queue}-deserted")
        error, record = await fail(await start(client, task_queue, step))
    assert isinstance(error.cause, TimeoutError)
    assert error.cause.type == TimeoutType.SCHEDULE_TO_START
    assert record.activity("hang").started_event_id == 0


async def test_no_attempt_is_made_that_would_begin_too_late(client: Client, task_queue: str) -> None:
    workshop = Workshop()
    async with new_worker(client, task_queue, workshop):
        step = Step("refuse", "Again", schedule_to_close_ms=LONG_MS, start_to_close_ms=LONG_MS, retry_ms=2 * LONG_MS)
        error, record = await fail(await start(client, task_queue, step))
    # The failure is told at once; nobody waits for the end of the whole time.
    assert isinstance(error.cause, ApplicationError)
    assert error.retry_state == RetryState.TIMEOUT
    assert workshop.attempts == [1]
    assert record.activity("refuse").end == "failed"


@pytest.mark.parametrize("error_type", ["NonRetryable", "NeverAgain"])
async def test_a_non_retryable_failure_is_not_retried(client: Client, task_queue: str, error_type: str) -> None:
    workshop = Workshop()
    async with new_worker(client, task_queue, workshop):
        error, record = await fail(await start(client, task_queue, Step("refuse", error_type, start_to_close_ms=LONG_MS)))
    assert isinstance(error.cause, ApplicationError)
    assert (error.cause.type, error.cause.message, error.cause.details) == (error_type, "refused", ("a detail",))
    assert error.retry_state == RetryState.NON_RETRYABLE_FAILURE
    assert workshop.attempts == [1]
    assert (record.activity("refuse").end, record.activity("refuse").attempt) == ("failed", 1)


async def test_attempts_are_limited(client: Client, task_queue: str) -> None:
    workshop = Workshop()
    async with new_worker(client, task_queue, workshop):
        step = Step("refuse", "Again", start_to_close_ms=LONG_MS, attempts_max=3)
        error, record = await fail(await start(client, task_queue, step))
    assert error.retry_state == RetryState.MAXIMUM_ATTEMPTS_REACHED
    assert workshop.attempts == [1, 2, 3]
    assert record.activity("refuse").attempt == 3


async def test_a_canceled_activity_learns_it_from_its_heartbeat(client: Client, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        step = Step("beat_until_canceled", start_to_close_ms=LONG_MS, heartbeat_ms=10_000)
        handle = await start(client, task_queue, step)
        await eventually(lambda: is_started(handle))
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await handle.result()
    record = history_law.check_closed((await handle.fetch_history()).events)
    assert record.close == "canceled"
    assert record.activity("beat_until_canceled").end == "canceled"
    assert record.activity("beat_until_canceled").cancel_requested


@pytest.mark.parametrize("by", ["id", "token"])
async def test_an_activity_is_completed_by_another_process(client: Client, task_queue: str, by: str) -> None:
    workshop = Workshop()
    async with new_worker(client, task_queue, workshop):
        step = Step("complete_elsewhere", start_to_close_ms=LONG_MS, heartbeat_ms=LONG_MS)
        handle = await start(client, task_queue, step)
        activity = await eventually(lambda: find_elsewhere(client, handle, workshop, by))
        await activity.heartbeat("half way")
        details = (await handle.describe()).raw_description.pending_activities[0].heartbeat_details
        assert history_law.decode(details) == "half way"
        await activity.complete("done elsewhere")
        assert await handle.result() == "done elsewhere"
    record = history_law.check_closed((await handle.fetch_history()).events)
    assert record.activity_results() == ["done elsewhere"]
    assert workshop.attempts == [1]


@pytest.mark.parametrize("by", ["id", "token"])
async def test_an_activity_fails_for_another_process(client: Client, task_queue: str, by: str) -> None:
    workshop = Workshop()
    async with new_worker(client, task_queue, workshop):
        handle = await start(client, task_queue, Step("complete_elsewhere", start_to_close_ms=LONG_MS))
        activity = await eventually(lambda: find_elsewhere(client, handle, workshop, by))
        await activity.fail(ApplicationError("broken elsewhere", non_retryable=True))
        error, record = await fail(handle)
    assert isinstance(error.cause, ApplicationError)
    assert (error.cause.message, error.retry_state) == ("broken elsewhere", RetryState.NON_RETRYABLE_FAILURE)
    assert record.activity("complete_elsewhere").end == "failed"


@pytest.mark.parametrize("by", ["id", "token"])
async def test_an_activity_is_canceled_by_another_process(client: Client, task_queue: str, by: str) -> None:
    workshop = Workshop()
    async with new_worker(client, task_queue, workshop):
        handle = await start(client, task_queue, Step("complete_elsewhere", start_to_close_ms=LONG_MS))
        activity = await eventually(lambda: find_elsewhere(client, handle, workshop, by))
        await handle.cancel()
        await eventually(lambda: is_told_to_stop(activity))
        await activity.report_cancellation("stopped")
        with pytest.raises(WorkflowFailureError):
            await handle.result()
    record = history_law.check_closed((await handle.fetch_history()).events)
    assert record.close == "canceled"
    assert record.activity("complete_elsewhere").end == "canceled"


async def is_told_to_stop(activity: AsyncActivityHandle) -> bool:
    try:
        await activity.heartbeat()
    except AsyncActivityCancelledError:
        return True
    return False


async def find_elsewhere(
    client: Client, handle: WorkflowHandle[Any, Any], workshop: Workshop, by: str
) -> AsyncActivityHandle | None:
    if not workshop.task_tokens:
        return None
    if by == "token":
        return client.get_async_activity_handle(task_token=workshop.task_tokens[0])
    (pending,) = (await handle.describe()).raw_description.pending_activities
    return client.get_async_activity_handle(
        workflow_id=handle.id, run_id=handle.first_execution_run_id, activity_id=pending.activity_id
    )


async def is_started(handle: WorkflowHandle[Any, Any]) -> bool:
    pending = (await handle.describe()).raw_description.pending_activities
    return any(activity.HasField("last_started_time") for activity in pending)
