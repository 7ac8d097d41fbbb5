"""The server dies ten times by kill -9 in the middle of two hundred orders: none is lost, doubled or stuck.

All orders are started at once. Each waits for an approval, and the approvals are given out in as many groups as there are kills: a group
gets its own only after its kill, so every kill hits open orders, the last one included. The next kill waits until some of those have
finished, so the kills lie all along the load: the first ones among the starts, later ones among timers, activities and approvals. Starts
and approvals carry a request id and are repeated with it while the server is gone: what was done and not answered must not be done again.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from temporalio.api.common.v1 import Payload, Payloads, WorkflowExecution, WorkflowType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import SignalWorkflowExecutionRequest, StartWorkflowExecutionRequest
from temporalio.client import Client, WorkflowHandle
from temporalio.service import RetryConfig
from temporalio.worker import Replayer, Worker

import history_law
from history_law import Record
from orders import CHARGE_SUCCEEDS_AT, Order, OrderWorkflow, Warehouse, new_worker
from server_process import NAMESPACE, ServerProcess
from waiting import insist

ORDERS = 200
KILLS = 10
STARTS_AT_ONCE = 20
GROUP = ORDERS // KILLS
# The first kills do not wait for any order to finish; the others for this many more each, which is less than a group.
KILLS_AMONG_STARTS = 2
FINISHED_BETWEEN_KILLS = 15
# How long after that, at random.
DELAY_MIN_S, DELAY_MAX_S = 0.1, 2.0
# An order's timer runs out around the time when its group's turn comes.
PAUSE_PER_GROUP_MS = 3_000
# A pause of nothing is no timer.
PAUSE_MIN_MS = 10
RETRY_MAX_MS = 1_000
# What a killed server took with it is noticed after these.
ATTEMPT_TIMEOUT_S = 8.0
HEARTBEAT_TIMEOUT_S = 4.0
TASK_TIMEOUT_S = 4
STICKY_TIMEOUT_S = 3
LOAD_TIMEOUT_S = 240.0


@dataclass
class Load:
    """One order as the test sees it, and all of them together."""

    client: Client
    task_queue: str
    progress: asyncio.Condition = field(default_factory=asyncio.Condition)
    n_kills: int = 0
    n_started: int = 0
    n_finished: int = 0
    began_at: float = field(default_factory=time.monotonic)

    @property
    def deadline(self) -> float:
        return self.began_at + LOAD_TIMEOUT_S

    def age_s(self) -> float:
        return time.monotonic() - self.began_at

    async def run(self, number: int, order: Order, starting: asyncio.Semaphore) -> Finished:
        async with starting:
            handle = await self._start(order)
        self.n_started += 1
        approval = f"approval/{order.key}/{uuid.uuid4().hex}"
        async with asyncio.TaskGroup() as tasks:
            # Awaited from the start: the long poll must outlive the kills too.
            result = tasks.create_task(self._insist(handle.result))
            # As many groups as kills; the last one is approved after the last kill.
            await self.reached(lambda: self.n_kills > number // GROUP)
            await self._approve(handle, approval)
        await self.count(finished=1)
        return Finished(handle, approval, result.result())

    async def count(self, kills: int = 0, finished: int = 0) -> None:
        async with self.progress:
            self.n_kills += kills
            self.n_finished += finished
            self.progress.notify_all()

    async def reached(self, goal: Callable[[], bool]) -> None:
        async with self.progress:
            await self.progress.wait_for(goal)

    async def _start(self, order: Order) -> WorkflowHandle[Any, list[str]]:
        request = StartWorkflowExecutionRequest(
            namespace=NAMESPACE,
            workflow_id=f"killed-{order.key}-{uuid.uuid4()}",
            workflow_type=WorkflowType(name="OrderWorkflow"),
            task_queue=TaskQueue(name=self.task_queue),
            input=encode(asdict(order)),
            workflow_task_timeout=Duration(seconds=TASK_TIMEOUT_S),
            identity="test_kill",
            request_id=str(uuid.uuid4()),
        )
        answer = await self._insist(lambda: self.client.workflow_service.start_workflow_execution(request, retry=True))
        return self.client.get_workflow_handle_for(OrderWorkflow.run, request.workflow_id, run_id=answer.run_id)

    async def _approve(self, handle: WorkflowHandle[Any, list[str]], approval: str) -> None:
        request = SignalWorkflowExecutionRequest(
            namespace=NAMESPACE,
            workflow_execution=WorkflowExecution(workflow_id=handle.id, run_id=handle.run_id or ""),
            signal_name="approve",
            input=encode(approval),
            identity="test_kill",
            request_id=str(uuid.uuid4()),
        )
        await self._insist(lambda: self.client.workflow_service.signal_workflow_execution(request, retry=True))

    async def _insist(self, call: Callable[[], Awaitable[Any]]) -> Any:
        return await insist(call, self.deadline)


@dataclass
class Finished:
    handle: WorkflowHandle[Any, list[str]]
    approval: str
    result: list[str]


@pytest.mark.timeout(LOAD_TIMEOUT_S + 180)
async def test_two_hundred_orders_outlive_ten_kills(killable_server: ServerProcess, task_queue: str) -> None:
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    # With the SDK's own pause of up to 5 s between two calls, the test would wait for the client most of the time.
    retry = RetryConfig(max_interval_millis=500)
    client = await Client.connect(killable_server.address, namespace=NAMESPACE, retry_config=retry)
    warehouse = Warehouse()
    warehouse.may_ship.set()
    load = Load(client, task_queue)
    async with eager_worker(client, task_queue, warehouse), asyncio.timeout(LOAD_TIMEOUT_S), asyncio.TaskGroup() as tasks:
        starting = asyncio.Semaphore(STARTS_AT_ONCE)
        running = [tasks.create_task(load.run(number, new_order(number, chance), starting)) for number in range(ORDERS)]
        await kill_repeatedly(killable_server, load, chance)
    print(f"{ORDERS} orders and {KILLS} kills took {load.age_s():.0f} s")

    finished = [task.result() for task in running]
    for order in finished:
        await check(order, warehouse)
    tokens = [token for order in finished for token in order.result]
    assert len(set(tokens)) == len(tokens) == 3 * ORDERS


def eager_worker(client: Client, task_queue: str, warehouse: Warehouse) -> Worker:
    """Polls the normal queue as much as the sticky one: that is where the work of a killed server comes back."""
    return new_worker(
        client,
        task_queue,
        warehouse,
        max_concurrent_workflow_task_polls=8,
        nonsticky_to_sticky_poll_ratio=0.5,
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=STICKY_TIMEOUT_S),
    )


async def kill_repeatedly(server: ServerProcess, load: Load, chance: random.Random) -> None:
    for number in range(KILLS):
        goal = max(0, number - KILLS_AMONG_STARTS) * FINISHED_BETWEEN_KILLS
        await load.reached(lambda: load.n_finished >= goal)
        await asyncio.sleep(chance.uniform(DELAY_MIN_S, DELAY_MAX_S))
        assert load.n_finished < ORDERS, "nothing was left to kill"
        server.kill()
        await load.count(kills=1)
        print(f"kill {load.n_kills} at {load.age_s():.1f} s: {load.n_started} started, {load.n_finished} finished")
        await asyncio.to_thread(server.start)


async def check(order: Finished, warehouse: Warehouse) -> Record:
    """The order used each activity's recorded result and its own approval, once, and the SDK replays its history."""
    history = await order.handle.fetch_history()
    record = history_law.check_closed(history.events)
    assert record.close == "completed"
    assert record.result == order.result
    assert order.result == [*record.activity_results(), order.approval]
    assert {activity.type for activity in record.activities.values()} == {"charge_card", "pack_parcel"}
    assert len(record.activities) == 2
    assert record.activity("charge_card").attempt >= CHARGE_SUCCEEDS_AT
    assert set(record.activity_results()) <= warehouse.issued
    assert record.signals == [("approve", order.approval)]
    assert [timer.end for timer in record.timers.values()] == ["fired"]
    await Replayer(workflows=[OrderWorkflow]).replay_workflow(history)
    return record


def new_order(number: int, chance: random.Random) -> Order:
    return Order(
        key=f"order-{number}",
        pause_ms=chance.randrange(PAUSE_MIN_MS, PAUSE_PER_GROUP_MS * (1 + number // GROUP)),
        retry_ms=chance.randrange(50, RETRY_MAX_MS),
        attempt_timeout_s=ATTEMPT_TIMEOUT_S,
        heartbeat_timeout_s=HEARTBEAT_TIMEOUT_S,
    )


def encode(value: Any) -> Payloads:
    """As the SDK's default converter does."""
    data = json.dumps(value).encode()
    return Payloads(payloads=[Payload(metadata={"encoding": b"json/plain"}, data=data)])
