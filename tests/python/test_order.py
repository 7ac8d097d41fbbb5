"""The first promise: the official SDK runs an order, with a sticky cache, and its history is legal."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from temporalio.api.enums.v1 import PendingActivityState, TaskQueueKind
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle
from temporalio.worker import Replayer

import history_law
from history_law import Record
from orders import CHARGE_SUCCEEDS_AT, PACKING_STEPS, Order, OrderWorkflow, Warehouse, new_worker
from waiting import eventually

CONCURRENT_ORDERS = 50


async def test_an_order_runs_with_retries_heartbeats_a_timer_and_a_signal(client: Client, task_queue: str) -> None:
    warehouse = Warehouse()
    async with new_worker(client, task_queue, warehouse):
        order = Order(key="first", pause_ms=300)
        handle = await client.start_workflow(OrderWorkflow.run, order, id=f"order-{uuid.uuid4()}", task_queue=task_queue)
        details = await eventually(lambda: heartbeat_details(handle))
        assert details == {"step": PACKING_STEPS, "key": "first"}
        warehouse.may_ship.set()
        await handle.signal(OrderWorkflow.approve, "approval/first")
        result = await handle.result()

    record = await check_order(handle, result, warehouse)
    assert record.activity("charge_card").attempt == CHARGE_SUCCEEDS_AT
    assert record.activity("pack_parcel").attempt == 1
    assert record.signals == [("approve", "approval/first")]
    check_sticky(record, task_queue)


async def test_fifty_orders_at_once(client: Client, task_queue: str) -> None:
    warehouse = Warehouse()
    warehouse.may_ship.set()
    async with new_worker(client, task_queue, warehouse):

        async def run(key: str) -> tuple[WorkflowHandle[Any, list[str]], list[str]]:
            handle = await client.start_workflow(
                OrderWorkflow.run, Order(key=key), id=f"order-{key}-{uuid.uuid4()}", task_queue=task_queue
            )
            await handle.signal(OrderWorkflow.approve, f"approval/{key}")
            return handle, await handle.result()

        finished = await asyncio.gather(*(run(f"order-{number}") for number in range(CONCURRENT_ORDERS)))

    for handle, result in finished:
        await check_order(handle, result, warehouse)
    tokens = [token for _, result in finished for token in result]
    assert len(set(tokens)) == len(tokens) == 3 * CONCURRENT_ORDERS


async def heartbeat_details(handle: WorkflowHandle[Any, Any]) -> dict[str, Any] | None:
    """What the packing told last, as the server shows it; None before the last step."""
    description = await handle.describe()
    for pending in description.raw_description.pending_activities:
        if pending.activity_type.name != "pack_parcel" or not pending.HasField("heartbeat_details"):
            continue
        assert pending.state == PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
        details: dict[str, Any] = history_law.decode(pending.heartbeat_details)
        return details if details["step"] == PACKING_STEPS else None
    return None


async def check_order(handle: WorkflowHandle[Any, list[str]], result: list[str], warehouse: Warehouse) -> Record:
    """The result is made of what the history says, each part used once; and the SDK replays that history."""
    history = await handle.fetch_history()
    record = history_law.check_closed(history.events)
    assert record.close == "completed"
    assert record.result == result
    charge, parcel, approval = result
    assert record.activity_results() == [charge, parcel]
    assert {charge, parcel} <= warehouse.issued
    assert ("approve", approval) in record.signals
    assert [timer.end for timer in record.timers.values()] == ["fired"]
    assert (await handle.describe()).status == WorkflowExecutionStatus.COMPLETED
    await Replayer(workflows=[OrderWorkflow]).replay_workflow(history)
    return record


def check_sticky(record: Record, task_queue: str) -> None:
    scheduled = record.attributes("workflow_task_scheduled")
    assert scheduled[0].task_queue.kind == TaskQueueKind.TASK_QUEUE_KIND_NORMAL
    assert scheduled[0].task_queue.name == task_queue
    assert record.sticky_event_ids, "no workflow task went to the sticky queue"
    sticky = [attributes.task_queue for attributes in scheduled if attributes.task_queue.normal_name]
    assert {queue.normal_name for queue in sticky} == {task_queue}
    assert all(queue.name != task_queue for queue in sticky)
