"""Workers come and go: what one began, another ends."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from temporalio.api.enums.v1 import TimeoutType
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Replayer

import history_law
from orders import Order, OrderWorkflow, Warehouse, new_worker
from waiting import eventually

SCHEDULE_TO_START = TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_START
RESTARTED_RUNS = 10
RESTARTS = 4


async def test_another_worker_continues_what_a_killed_one_began(client: Client, task_queue: str) -> None:
    with worker_process(client, task_queue, "first"):
        handle = await start(client, task_queue)
        await eventually(lambda: is_packed(handle))
    # The first worker's cache is gone with its process; the run was bound to it by its sticky queue.
    with worker_process(client, task_queue, "second"):
        await handle.signal(OrderWorkflow.approve, "approval")
        result = await handle.result()
    history = await handle.fetch_history()
    record = history_law.check_closed(history.events)
    assert result == [*record.activity_results(), "approval"]
    assert record.sticky_event_ids
    assert (record.worker_identities[0], record.worker_identities[-1]) == ("first", "second")
    await Replayer(workflows=[OrderWorkflow]).replay_workflow(history)


async def test_cached_workflows_go_on_at_once_after_a_graceful_restart(client: Client, task_queue: str) -> None:
    """Without the timeout of the sticky queue, which would leave a WorkflowTaskTimedOut in their histories."""
    warehouse = Warehouse()
    warehouse.may_ship.set()
    cached: list[WorkflowHandle[Any, list[str]]] = []
    for _ in range(RESTARTS):
        async with new_worker(client, task_queue, warehouse):
            started = [await start(client, task_queue) for _ in range(RESTARTED_RUNS)]
            for handle in started:
                await eventually(lambda handle=handle: is_packed(handle))
            # Half of them while it works, half while no worker is there: the one that left may not attract their tasks.
            await approve(started[::2])
        await approve(started[1::2])
        cached += started
    async with new_worker(client, task_queue, warehouse):
        for handle in cached:
            await handle.result()
    for handle in cached:
        events = (await handle.fetch_history()).events
        assert history_law.check_closed(events).sticky_event_ids, "a worker had it in its cache"
        assert not any(event.workflow_task_timed_out_event_attributes.timeout_type == SCHEDULE_TO_START for event in events)


async def test_a_workflow_waits_for_its_first_worker(client: Client, task_queue: str) -> None:
    handle = await start(client, task_queue)
    await handle.signal(OrderWorkflow.approve, "approval")
    warehouse = Warehouse()
    warehouse.may_ship.set()
    async with new_worker(client, task_queue, warehouse):
        result = await handle.result()
    record = history_law.check_closed((await handle.fetch_history()).events)
    assert result == [*record.activity_results(), "approval"]


async def test_a_worker_without_a_cache_gets_whole_histories(client: Client, task_queue: str) -> None:
    warehouse = Warehouse()
    warehouse.may_ship.set()
    async with new_worker(client, task_queue, warehouse, max_cached_workflows=0, max_concurrent_workflow_task_polls=1):
        handle = await start(client, task_queue)
        await handle.signal(OrderWorkflow.approve, "approval")
        result = await handle.result()
    record = history_law.check_closed((await handle.fetch_history()).events)
    assert result == [*record.activity_results(), "approval"]
    assert not record.sticky_event_ids


async def start(client: Client, task_queue: str) -> WorkflowHandle[Any, list[str]]:
    order = Order(key="order", pause_ms=50)
    return await client.start_workflow(OrderWorkflow.run, order, id=f"worker-{uuid.uuid4()}", task_queue=task_queue)


async def approve(handles: list[WorkflowHandle[Any, list[str]]]) -> None:
    for handle in handles:
        await handle.signal(OrderWorkflow.approve, "approval")


async def is_packed(handle: WorkflowHandle[Any, Any]) -> bool:
    """Nothing is left but the signal: the last workflow task is done and none is pending."""
    record = history_law.check_open((await handle.fetch_history()).events)
    return len(record.activity_results()) == 2 and record.kinds()[-1] == "workflow_task_completed"


@contextmanager
def worker_process(client: Client, task_queue: str, identity: str) -> Iterator[None]:
    """Leaving it is kill -9."""
    program = Path(__file__).with_name("worker_program.py")
    address = client.service_client.config.target_host
    process = subprocess.Popen([sys.executable, str(program), address, task_queue, identity])
    try:
        yield
        assert process.poll() is None, "the worker ended by itself"
    finally:
        process.kill()
        process.wait()
