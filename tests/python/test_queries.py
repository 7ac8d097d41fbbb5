"""Queries: asked of running, closed and failed workflows, of workers with and without a cache, and of none."""

from __future__ import annotations

import asyncio
import uuid
from datetime import timedelta
from typing import Any

import pytest
from temporalio import workflow
from temporalio.client import (
    Client,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowQueryRejectedError,
)
from temporalio.common import QueryRejectCondition
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Worker

from history_law import kind_of

SIGNALS = 200
# More than one page of history.
MANY_SIGNALS = 1100
SHORT = timedelta(seconds=3)


@workflow.defn
class Counter:
    """Counts signals until it is told how to end."""

    def __init__(self) -> None:
        self._count = 0
        self._ending: str | None = None

    @workflow.run
    async def run(self) -> int:
        await workflow.wait_condition(lambda: self._ending is not None)
        if self._ending == "fail":
            raise ApplicationError("told to", type="Told")
        return self._count

    @workflow.signal
    def increment(self) -> None:
        self._count += 1

    @workflow.signal
    def end(self, how: str) -> None:
        self._ending = how

    @workflow.query
    def count(self) -> int:
        return self._count

    @workflow.query
    def plus(self, number: int) -> int:
        return self._count + number

    @workflow.query
    def refuse(self) -> int:
        raise ApplicationError("not to you", type="Secret")


def new_worker(client: Client, task_queue: str, **options: Any) -> Worker:
    return Worker(
        client,
        task_queue=task_queue,
        workflows=[Counter],
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=1),
        **options,
    )


async def start(client: Client, task_queue: str, **options: Any) -> WorkflowHandle[Counter, int]:
    return await client.start_workflow(Counter.run, id=f"query-{uuid.uuid4()}", task_queue=task_queue, **options)


async def end(handle: WorkflowHandle[Counter, int], how: str) -> None:
    await handle.signal(Counter.end, how)
    if how == "fail":
        with pytest.raises(WorkflowFailureError):
            await handle.result()
    else:
        await handle.result()


@pytest.mark.parametrize("cache", [1000, 0], ids=["cached", "uncached"])
async def test_a_query_sees_every_signal_that_was_acknowledged_before_it(
    client: Client, task_queue: str, cache: int
) -> None:
    async with new_worker(client, task_queue, max_cached_workflows=cache, max_concurrent_workflow_task_polls=2 if cache else 1):
        handle = await start(client, task_queue)
        signals = SIGNALS if cache else SIGNALS // 10
        for expected in range(1, signals + 1):
            await handle.signal(Counter.increment)
            assert await handle.query(Counter.count) == expected
        assert await handle.query(Counter.plus, 1000) == signals + 1000


async def test_a_query_leaves_no_trace_in_history(client: Client, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        handle = await start(client, task_queue)
        assert await handle.query(Counter.count) == 0
        before = list((await handle.fetch_history()).events)
        for _ in range(3):
            assert await handle.query(Counter.count) == 0
        assert list((await handle.fetch_history()).events) == before
        assert [kind_of(event) for event in before][-1] == "workflow_task_completed"


async def test_a_query_waits_for_the_first_worker(client: Client, task_queue: str) -> None:
    handle = await start(client, task_queue)
    query = asyncio.create_task(handle.query(Counter.count))
    await handle.signal(Counter.increment)
    async with new_worker(client, task_queue):
        assert await query in (0, 1)
        assert await handle.query(Counter.count) == 1


@pytest.mark.parametrize("how", ["complete", "fail"])
async def test_a_closed_run_is_rebuilt_for_a_query(client: Client, task_queue: str, how: str) -> None:
    async with new_worker(client, task_queue):
        handle = await start(client, task_queue)
        await handle.signal(Counter.increment)
        await end(handle, how)
        assert await handle.query(Counter.count) == 1
    # Another worker, which has nothing in its cache.
    async with new_worker(client, task_queue):
        assert await handle.query(Counter.plus, 5) == 6


async def test_a_terminated_run_is_queried(client: Client, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        handle = await start(client, task_queue)
        await handle.signal(Counter.increment)
        assert await handle.query(Counter.count) == 1
        await handle.terminate()
        assert await handle.query(Counter.count) == 1


async def test_a_long_history_reaches_a_worker_without_a_cache_in_pages(client: Client, task_queue: str) -> None:
    handle = await start(client, task_queue)
    for _ in range(MANY_SIGNALS // 100):
        await asyncio.gather(*(handle.signal(Counter.increment) for _ in range(100)))
    # Debug mode: so many signals in one task take longer than the SDK allows on a busy machine.
    options = {"max_cached_workflows": 0, "max_concurrent_workflow_task_polls": 1, "debug_mode": True}
    async with new_worker(client, task_queue, **options):
        assert await handle.query(Counter.count) == MANY_SIGNALS
        assert await handle.query(Counter.count) == MANY_SIGNALS


async def test_a_query_is_rejected_for_runs_in_a_state_that_its_caller_does_not_want(client: Client, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        completed, failed, running = [await start(client, task_queue) for _ in range(3)]
        await end(completed, "complete")
        await end(failed, "fail")
        conditions = QueryRejectCondition
        for condition in (conditions.NONE, conditions.NOT_OPEN, conditions.NOT_COMPLETED_CLEANLY):
            assert await running.query(Counter.count, reject_condition=condition) == 0
        for handle, condition in (
            (completed, conditions.NOT_OPEN),
            (failed, conditions.NOT_OPEN),
            (failed, conditions.NOT_COMPLETED_CLEANLY),
        ):
            with pytest.raises(WorkflowQueryRejectedError) as raised:
                await handle.query(Counter.count, reject_condition=condition)
            assert raised.value.status == (await handle.describe()).status
        assert await completed.query(Counter.count, reject_condition=conditions.NOT_COMPLETED_CLEANLY) == 0


async def test_a_workflow_answers_a_query_with_an_error(client: Client, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        handle = await start(client, task_queue)
        with pytest.raises(WorkflowQueryFailedError, match="not to you"):
            await handle.query(Counter.refuse)
        with pytest.raises(WorkflowQueryFailedError, match="nobody knows"):
            await handle.query("nobody knows")
        assert await handle.query(Counter.count) == 0, "the run goes on"


async def test_a_stack_trace_is_asked_for_like_anything_else(client: Client, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        handle = await start(client, task_queue)
        trace = await handle.query("__stack_trace")
        assert f"run (workflow: Counter, id: {handle.id}" in trace


async def test_a_query_without_a_worker_times_out(client: Client, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        handle = await start(client, task_queue)
        assert await handle.query(Counter.count) == 0
    with pytest.raises(RPCError) as raised:
        await handle.query(Counter.count, rpc_timeout=SHORT)
    assert raised.value.status == RPCStatusCode.DEADLINE_EXCEEDED
    async with new_worker(client, task_queue):
        assert await handle.query(Counter.count) == 0


async def test_a_run_that_has_not_begun_cannot_be_queried(client: Client, task_queue: str) -> None:
    handle = await start(client, task_queue, start_delay=timedelta(hours=1))
    with pytest.raises(RPCError, match="Workflow task is not scheduled yet") as raised:
        await handle.query(Counter.count, rpc_timeout=SHORT)
    assert raised.value.status == RPCStatusCode.FAILED_PRECONDITION
    await handle.terminate()
    with pytest.raises(RPCError, match="closed before WorkflowTaskStarted event") as raised:
        await handle.query(Counter.count, rpc_timeout=SHORT)
    assert raised.value.status == RPCStatusCode.FAILED_PRECONDITION


async def test_an_unknown_run_cannot_be_queried(client: Client) -> None:
    with pytest.raises(RPCError) as raised:
        await client.get_workflow_handle(f"unknown-{uuid.uuid4()}").query("count")
    assert raised.value.status == RPCStatusCode.NOT_FOUND
