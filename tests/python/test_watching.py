"""What a client sees of a run while it goes on: the long poll on its history, and its description."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode

import history_law
from history_law import kind_of
from scenarios import Collector, OneActivity, Step, Workshop, new_worker
from waiting import eventually


async def test_a_history_is_followed_while_it_grows(client: Client, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        handle = await client.start_workflow(Collector.run, id=f"follow-{uuid.uuid4()}", task_queue=task_queue)
        seen = []
        async for event in handle.fetch_history_events(wait_new_event=True):
            seen.append(event)
            # Each of these is sent only after the one before it was seen: the poll delivers without the run's end.
            kind = kind_of(event)
            n_signals = [kind_of(other) for other in seen].count("workflow_execution_signaled")
            if kind == "workflow_task_completed" and n_signals == 0:
                await handle.signal(Collector.add, "one")
            if kind == "workflow_execution_signaled" and n_signals == 1:
                await handle.signal(Collector.finish)
    record = history_law.check_closed(seen)
    assert record.result == ["one"]
    assert seen == list((await handle.fetch_history()).events)


async def test_a_result_is_awaited_before_it_exists(client: Client, task_queue: str) -> None:
    handle = await client.start_workflow(Collector.run, id=f"await-{uuid.uuid4()}", task_queue=task_queue)
    waiting = asyncio.create_task(handle.result())
    async with new_worker(client, task_queue):
        await handle.signal(Collector.add, "one")
        assert not waiting.done()
        await handle.signal(Collector.finish)
        assert await waiting == ["one"]


async def test_a_description_tells_what_a_run_waits_for(client: Client, task_queue: str) -> None:
    workflow_id = f"describe-{uuid.uuid4()}"
    workshop = Workshop()
    async with new_worker(client, task_queue, workshop):
        handle = await client.start_workflow(
            OneActivity.run,
            Step("refuse", "Again", start_to_close_ms=60_000),
            id=workflow_id,
            task_queue=task_queue,
            memo={"customer": "Ada"},
        )
        await eventually(lambda: is_refused_twice(handle))
        running = await handle.describe()
        assert running.status == WorkflowExecutionStatus.RUNNING
        assert (running.id, running.run_id) == (workflow_id, handle.result_run_id)
        assert (running.workflow_type, running.task_queue) == ("OneActivity", task_queue)
        assert await running.memo() == {"customer": "Ada"}
        assert running.close_time is None
        (pending,) = running.raw_description.pending_activities
        assert pending.last_failure.application_failure_info.type == "Again"
        assert pending.state != PendingActivityState.PENDING_ACTIVITY_STATE_UNSPECIFIED
        await handle.terminate()

    closed = await handle.describe()
    assert closed.status == WorkflowExecutionStatus.TERMINATED
    assert closed.close_time is not None and closed.close_time >= closed.start_time
    assert closed.history_length == len((await handle.fetch_history()).events)


async def test_an_unknown_workflow_is_not_found(client: Client) -> None:
    handle = client.get_workflow_handle(f"unknown-{uuid.uuid4()}")
    for asked in (handle.describe(), handle.fetch_history(), handle.cancel()):
        with pytest.raises(RPCError) as raised:
            await asked
        assert raised.value.status == RPCStatusCode.NOT_FOUND


async def is_refused_twice(handle: WorkflowHandle[Any, Any]) -> bool:
    pending = (await handle.describe()).raw_description.pending_activities
    return any(activity.attempt >= 3 for activity in pending)
