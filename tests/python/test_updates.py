"""Updates with the official SDK: executed, started and asked for later, validated, repeated, with start, and cut short."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest
from temporalio.client import (
    Client,
    WithStartWorkflowOperation,
    WorkflowHandle,
    WorkflowUpdateFailedError,
    WorkflowUpdateStage,
)
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

import history_law
from updates import Counter, new_worker
from waiting import eventually

CACHES = pytest.mark.parametrize("cache_size", [1000, 0], ids=["sticky", "no-cache"])


def fresh_id(what: str) -> str:
    return f"{what}-{uuid.uuid4()}"


async def a_counter(client: Client, task_queue: str) -> WorkflowHandle[Any, int]:
    return await client.start_workflow(Counter.run, id=fresh_id("counter"), task_queue=task_queue)


async def is_idle(handle: WorkflowHandle[Any, Any]) -> bool:
    return (await kinds(handle))[-1] == "workflow_task_completed"


async def kinds(handle: WorkflowHandle[Any, Any]) -> list[str]:
    return history_law.check_open((await handle.fetch_history()).events).kinds()


@CACHES
async def test_an_update_returns_what_its_handler_returns(client: Client, task_queue: str, cache_size: int) -> None:
    async with new_worker(client, task_queue, max_cached_workflows=cache_size):
        handle = await a_counter(client, task_queue)
        for n in range(1, 6):
            assert await handle.execute_update(Counter.add, 2) == 2 * n
        await handle.signal(Counter.finish)
        assert await handle.result() == 10
    record = history_law.check_closed((await handle.fetch_history()).events)
    assert record.kinds().count("workflow_execution_update_accepted") == 5
    assert record.kinds().count("workflow_execution_update_completed") == 5


@CACHES
async def test_a_rejected_update_leaves_no_trace(client: Client, task_queue: str, cache_size: int) -> None:
    async with new_worker(client, task_queue, max_cached_workflows=cache_size):
        handle = await a_counter(client, task_queue)
        await eventually(lambda: is_idle(handle))
        before = await kinds(handle)
        for _ in range(3):
            with pytest.raises(WorkflowUpdateFailedError) as raised:
                await handle.execute_update(Counter.add, -1)
            assert isinstance(raised.value.cause, ApplicationError)
            assert "amounts are not negative" in raised.value.cause.message
        assert await kinds(handle) == before
        # The worker's cache and the server's history still agree.
        assert await handle.execute_update(Counter.add, 1) == 1
        with pytest.raises(WorkflowUpdateFailedError):
            await handle.execute_update(Counter.add, -1)
        await handle.signal(Counter.finish)
        assert await handle.result() == 1


async def test_a_handler_that_fails_fails_the_update(client: Client, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        handle = await a_counter(client, task_queue)
        with pytest.raises(WorkflowUpdateFailedError) as raised:
            await handle.execute_update(Counter.fail)
        assert isinstance(raised.value.cause, ApplicationError)
        assert raised.value.cause.type == "Unaddable"
        await handle.terminate()


async def test_a_started_update_is_asked_for_its_result_later(client: Client, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        handle = await a_counter(client, task_queue)
        update = await handle.start_update(Counter.add_slowly, 3, wait_for_stage=WorkflowUpdateStage.ACCEPTED)
        waiting = asyncio.create_task(update.result())
        assert await handle.execute_update(Counter.add, 1) == 1
        assert not waiting.done()
        await handle.signal(Counter.finish_slow_ones)
        assert await waiting == 4
        # By its id, from anywhere, also when the workflow is over.
        again = handle.get_update_handle_for(Counter.add_slowly, update.id)
        assert await again.result() == 4
        await handle.signal(Counter.finish)
        await handle.result()
        assert await handle.get_update_handle_for(Counter.add_slowly, update.id).result() == 4


async def test_one_id_is_one_update(client: Client, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        handle = await a_counter(client, task_queue)
        results = await asyncio.gather(*(handle.execute_update(Counter.add, 5, id="the same") for _ in range(5)))
        assert results == [5] * 5
        assert await handle.execute_update(Counter.add, 5, id="the same") == 5
        assert await handle.execute_update(Counter.add, 5) == 10
        await handle.terminate()


async def test_many_updates_at_once(client: Client, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        handle = await a_counter(client, task_queue)
        results = await asyncio.gather(*(handle.execute_update(Counter.add, 1) for _ in range(8)))
        assert sorted(results) == list(range(1, 9))
        await handle.signal(Counter.finish)
        assert await handle.result() == 8


async def test_an_update_waits_for_a_worker(client: Client, task_queue: str) -> None:
    handle = await a_counter(client, task_queue)
    waiting = asyncio.create_task(handle.execute_update(Counter.add, 1))
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(asyncio.shield(waiting), timeout=0.5)
    async with new_worker(client, task_queue):
        assert await waiting == 1
    await handle.terminate()


async def test_an_accepted_update_fails_with_its_workflow(client: Client, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        handle = await a_counter(client, task_queue)
        update = await handle.start_update(Counter.add_slowly, 3, wait_for_stage=WorkflowUpdateStage.ACCEPTED)
        await handle.terminate()
        with pytest.raises(WorkflowUpdateFailedError) as raised:
            await update.result()
        assert isinstance(raised.value.cause, ApplicationError)
        assert raised.value.cause.type == "AcceptedUpdateCompletedWorkflow"
        with pytest.raises(RPCError) as refused:
            await handle.execute_update(Counter.add, 1)
        assert refused.value.status == RPCStatusCode.NOT_FOUND


async def test_an_update_goes_on_to_the_next_run(client: Client, task_queue: str) -> None:
    handle = await a_counter(client, task_queue)
    current = client.get_workflow_handle_for(Counter.run, handle.id)
    await handle.signal(Counter.go_on)
    waiting = asyncio.create_task(current.execute_update(Counter.add, 1))
    async with new_worker(client, task_queue):
        assert await waiting == 1
        await current.signal(Counter.finish)
        assert await current.result() == 1


def with_start(task_queue: str, workflow_id: str, policy: WorkflowIDConflictPolicy) -> WithStartWorkflowOperation[Any, int]:
    return WithStartWorkflowOperation(
        Counter.run, id=workflow_id, id_conflict_policy=policy, task_queue=task_queue
    )


async def test_update_with_start(client: Client, task_queue: str) -> None:
    workflow_id = fresh_id("with-start")
    async with new_worker(client, task_queue):
        first = with_start(task_queue, workflow_id, WorkflowIDConflictPolicy.FAIL)
        assert await client.execute_update_with_start_workflow(Counter.add, 1, start_workflow_operation=first) == 1
        second = with_start(task_queue, workflow_id, WorkflowIDConflictPolicy.USE_EXISTING)
        assert await client.execute_update_with_start_workflow(Counter.add, 1, start_workflow_operation=second) == 2
        handle = await second.workflow_handle()
        assert (await first.workflow_handle()).result_run_id == handle.result_run_id
        third = with_start(task_queue, workflow_id, WorkflowIDConflictPolicy.FAIL)
        with pytest.raises(WorkflowAlreadyStartedError):
            await client.execute_update_with_start_workflow(Counter.add, 1, start_workflow_operation=third)
        with pytest.raises(WorkflowAlreadyStartedError):
            await third.workflow_handle()
        await handle.signal(Counter.finish)
        assert await handle.result() == 2
        fourth = with_start(task_queue, workflow_id, WorkflowIDConflictPolicy.FAIL)
        assert await client.execute_update_with_start_workflow(Counter.add, 7, start_workflow_operation=fourth) == 7
        await (await fourth.workflow_handle()).terminate()


async def test_a_rejected_update_with_start_leaves_the_workflow_running(client: Client, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        operation = with_start(task_queue, fresh_id("with-start"), WorkflowIDConflictPolicy.FAIL)
        with pytest.raises(WorkflowUpdateFailedError):
            await client.execute_update_with_start_workflow(Counter.add, -1, start_workflow_operation=operation)
        handle = await operation.workflow_handle()
        assert await handle.execute_update(Counter.add, 1) == 1
        await handle.terminate()
