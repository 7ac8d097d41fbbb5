"""What operators do to activities while an official worker runs them, and workflows that come again by a schedule."""

from __future__ import annotations

import uuid
from typing import Any

from google.protobuf.field_mask_pb2 import FieldMask
from temporalio.api.activity.v1 import ActivityOptions
from temporalio.api.common.v1 import RetryPolicy, WorkflowExecution
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.api.workflowservice.v1 import (
    PauseActivityRequest,
    ResetActivityRequest,
    UnpauseActivityRequest,
    UpdateActivityOptionsRequest,
)
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle

import history_law
from scenarios import Collector, OneActivity, Step, Workshop, new_worker
from server_process import NAMESPACE
from waiting import eventually

LONG_MS = 60_000


async def start(client: Client, task_queue: str, step: Step) -> WorkflowHandle[Any, Any]:
    return await client.start_workflow(OneActivity.run, step, id=f"operated-{uuid.uuid4()}", task_queue=task_queue)


async def pending(handle: WorkflowHandle[Any, Any]) -> PendingActivityInfo | None:
    description = await handle.describe()
    activities = description.raw_description.pending_activities
    return activities[0] if activities else None


async def test_a_paused_activity_is_not_tried_until_it_is_unpaused(client: Client, task_queue: str) -> None:
    workshop = Workshop()
    service = client.workflow_service
    async with new_worker(client, task_queue, workshop):
        handle = await start(client, task_queue, Step("beat_once_then_hang", "page", start_to_close_ms=LONG_MS, heartbeat_ms=3000))
        execution = WorkflowExecution(workflow_id=handle.id)
        await eventually(lambda: is_at_work(handle))
        await service.pause_activity(
            PauseActivityRequest(namespace=NAMESPACE, execution=execution, identity="operator", type="beat_once_then_hang")
        )
        paused = await pending(handle)
        assert paused is not None and paused.paused
        assert paused.state in (
            PendingActivityState.PENDING_ACTIVITY_STATE_PAUSED,
            PendingActivityState.PENDING_ACTIVITY_STATE_PAUSE_REQUESTED,
        )
        await service.unpause_activity(
            UnpauseActivityRequest(namespace=NAMESPACE, execution=execution, type="beat_once_then_hang")
        )
        assert await handle.result() == ["page", 7]
    history_law.check_closed((await handle.fetch_history()).events)


async def is_at_work(handle: WorkflowHandle[Any, Any]) -> bool:
    activity = await pending(handle)
    return activity is not None and activity.state == PendingActivityState.PENDING_ACTIVITY_STATE_STARTED


async def test_an_activity_gives_up_once_its_options_say_so(client: Client, task_queue: str) -> None:
    workshop = Workshop()
    async with new_worker(client, task_queue, workshop):
        handle = await start(client, task_queue, Step("hang", start_to_close_ms=LONG_MS))
        await eventually(lambda: is_at_work(handle))
        options = ActivityOptions(retry_policy=RetryPolicy(maximum_attempts=1))
        options.start_to_close_timeout.FromMilliseconds(500)
        await client.workflow_service.update_activity_options(
            UpdateActivityOptionsRequest(
                namespace=NAMESPACE,
                execution=WorkflowExecution(workflow_id=handle.id),
                activity_options=options,
                update_mask=FieldMask(paths=["start_to_close_timeout", "retry_policy.maximum_attempts"]),
                type="hang",
            )
        )
        await eventually(lambda: is_closed(handle))
    record = history_law.check_closed((await handle.fetch_history()).events)
    assert record.activity("hang").end == "timed_out"


async def is_closed(handle: WorkflowHandle[Any, Any]) -> bool:
    return (await handle.describe()).status != WorkflowExecutionStatus.RUNNING


async def test_a_reset_activity_begins_with_its_first_attempt(client: Client, task_queue: str) -> None:
    # No worker: the activity waits in its queue, and is put there anew.
    async with new_worker(client, task_queue, None):
        handle = await start(client, task_queue, Step("no_such_activity", start_to_close_ms=LONG_MS))
        await eventually(lambda: has_failed_once(handle))
    await client.workflow_service.reset_activity(
        ResetActivityRequest(namespace=NAMESPACE, execution=WorkflowExecution(workflow_id=handle.id), type="no_such_activity")
    )
    activity = await pending(handle)
    assert activity is not None and activity.attempt == 1
    await handle.terminate()


async def has_failed_once(handle: WorkflowHandle[Any, Any]) -> bool:
    activity = await pending(handle)
    return activity is not None and activity.attempt > 1


async def test_a_cron_workflow_comes_again_and_again(client: Client, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        handle = await client.start_workflow(
            Collector.run, id=f"cron-{uuid.uuid4()}", task_queue=task_queue, cron_schedule="@every 1s"
        )
        first = handle.first_execution_run_id
        assert first is not None
        await handle.signal(Collector.finish)
        await eventually(lambda: is_followed(client, handle.id, first))
    current = client.get_workflow_handle(handle.id)
    events = [event async for event in current.fetch_history_events()]
    started = events[0].workflow_execution_started_event_attributes
    assert (started.cron_schedule, started.first_execution_run_id) == ("@every 1s", first)
    assert started.continued_execution_run_id
    await current.terminate()


async def is_followed(client: Client, workflow_id: str, first: str) -> bool:
    return (await client.get_workflow_handle(workflow_id).describe()).run_id != first
