"""Parents and children, and workflows that signal and cancel one another: what each history says, and that all of it replays."""

from __future__ import annotations

import asyncio
import time
import uuid
from functools import partial
from typing import Any

import pytest
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError
from temporalio.worker import Replayer

import history_law
from families import ALL, Asked, Collector, FanOut, Grandparent, Leaving, Parent, Sleeper, Telling, new_worker
from history_law import Record
from server_process import NAMESPACE, ServerProcess
from waiting import eventually, insist

FAN_OUT = 50
ITEMS = 30
KILLS = 4
FAMILIES_PER_KILL = 7


def fresh_id(what: str) -> str:
    return f"{what}-{uuid.uuid4()}"


async def lawful(handle: WorkflowHandle[Any, Any]) -> Record:
    """The history of a closed run, which keeps the law and replays."""
    history = await handle.fetch_history()
    record = history_law.check_closed(history.events)
    await Replayer(workflows=ALL).replay_workflow(history)
    return record


async def parent_of(client: Client, task_queue: str, asked: Asked) -> tuple[Any, Record]:
    handle = await client.start_workflow(Parent.run, asked, id=fresh_id("parent"), task_queue=task_queue)
    result = await handle.result()
    return result, await lawful(handle)


async def test_a_parent_gets_the_result_of_its_child(client: Client, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        result, record = await parent_of(client, task_queue, Asked("Doubling", 21))
    assert result == 42
    (child,) = record.children.values()
    assert (child.end, child.result, child.type) == ("completed", 42, "Doubling")


@pytest.mark.parametrize(
    ("asked", "expected", "end"),
    [
        (Asked("FailingTwice"), {"end": "ApplicationError", "message": "not yet"}, "failed"),
        (Asked("FailingTwice", attempts_max=5), 3, "completed"),
        (Asked("Obstinate", cancel=True), "stopped when asked", "completed"),
        (Asked("Sleeper", cancel=True), {"end": "CancelledError", "message": "Cancelled"}, "canceled"),
    ],
    ids=["fails", "is retried", "completes though canceled", "is canceled"],
)
async def test_a_parent_hears_how_its_child_ended(
    client: Client, task_queue: str, asked: Asked, expected: Any, end: str
) -> None:
    async with new_worker(client, task_queue):
        result, record = await parent_of(client, task_queue, asked)
    if isinstance(expected, dict) and end == "canceled":
        assert result["end"] == expected["end"]
    else:
        assert result == expected
    assert [child.end for child in record.children.values()] == [end]


async def test_a_parent_hears_that_its_child_was_terminated(client: Client, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        handle = await client.start_workflow(Parent.run, Asked("Sleeper"), id=fresh_id("parent"), task_queue=task_queue)
        child = client.get_workflow_handle(f"{handle.id}-child")
        await eventually(lambda: exists(child))
        await child.terminate()
        assert (await handle.result())["end"] == "TerminatedError"
        record = await lawful(handle)
    assert [child.end for child in record.children.values()] == ["terminated"]


async def test_a_child_that_continues_as_new_is_one_child(client: Client, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        handle = await client.start_workflow(
            Parent.run, Asked("CountdownChild", 2), id=fresh_id("parent"), task_queue=task_queue
        )
        trail = await handle.result()
        record = await lawful(handle)
    (child,) = record.children.values()
    assert len(set(trail)) == 3
    assert (child.end, child.first_run_id) == ("completed", trail[0])
    (end,) = record.attributes("child_workflow_execution_completed")
    assert end.workflow_execution.run_id == trail[-1]


async def test_each_policy_is_applied_when_the_parent_leaves(client: Client, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        handle = await client.start_workflow(Leaving.run, id=fresh_id("leaving"), task_queue=task_queue)
        children = {
            name: client.get_workflow_handle_for(Collector.run, f"{handle.id}-{name}")
            for name in ("terminate", "request_cancel", "abandon")
        }
        for child in children.values():
            await eventually(lambda child=child: exists(child))
        await handle.signal(Leaving.leave)
        await handle.result()
        await eventually(lambda: has_status(children["terminate"], WorkflowExecutionStatus.TERMINATED))
        await eventually(lambda: has_status(children["request_cancel"], WorkflowExecutionStatus.CANCELED))
        await children["abandon"].signal(Collector.finish)
        assert await children["abandon"].result() == []
        record = await lawful(children["terminate"])
    (terminated,) = record.attributes("workflow_execution_terminated")
    assert terminated.reason == "by parent close policy"


async def test_all_generations_know_the_same_root(client: Client, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        handle = await client.start_workflow(Grandparent.run, 2, id=fresh_id("grandparent"), task_queue=task_queue)
        roots = await handle.result()
    # The root itself has none above it.
    assert roots == ["", handle.id, handle.id]
    grandchild = await client.get_workflow_handle(f"{handle.id}-2-1").describe()
    assert (grandchild.root_id, grandchild.parent_id) == (handle.id, f"{handle.id}-2")


async def test_many_children_run_at_once(client: Client, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        handle = await client.start_workflow(FanOut.run, FAN_OUT, id=fresh_id("fan-out"), task_queue=task_queue)
        assert await handle.result() == [number * 2 for number in range(FAN_OUT)]
        record = await lawful(handle)
    assert [child.end for child in record.children.values()] == ["completed"] * FAN_OUT


async def test_signals_of_a_workflow_arrive_in_order_and_a_cancel_request_too(client: Client, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        collector = await client.start_workflow(Collector.run, id=fresh_id("collector"), task_queue=task_queue)
        sleeper = await client.start_workflow(Sleeper.run, id=fresh_id("sleeper"), task_queue=task_queue)
        telling = await client.start_workflow(
            Telling.run, args=[collector.id, ITEMS, sleeper.id], id=fresh_id("telling"), task_queue=task_queue
        )
        refused = await telling.result()
        assert await collector.result() == [f"item-{number}" for number in range(ITEMS)]
        await eventually(lambda: has_status(sleeper, WorkflowExecutionStatus.CANCELED))
        record = await lawful(telling)
        await lawful(collector)
    assert len(refused) == 2
    assert [request.end for request in record.requests.values()] == ["arrived"] * (ITEMS + 2) + ["failed"] * 2


@pytest.mark.timeout(300)
async def test_no_child_is_lost_or_doubled_when_the_server_is_killed(killable_server: ServerProcess, task_queue: str) -> None:
    client = await Client.connect(killable_server.address, namespace=NAMESPACE)
    deadline = time.monotonic() + 240
    async with new_worker(client, task_queue):
        families = []
        for _ in range(KILLS):
            workflow_ids = [fresh_id("among-kills") for _ in range(FAMILIES_PER_KILL)]
            families += [asyncio.create_task(family(client, task_queue, each, deadline)) for each in workflow_ids]
            await eventually(partial(has_children, client.get_workflow_handle(workflow_ids[0])))
            killable_server.kill()
            await asyncio.to_thread(killable_server.start)
        for records in await asyncio.gather(*families):
            assert [child.end for child in records.children.values()] == ["completed"] * 3


async def family(client: Client, task_queue: str, workflow_id: str, deadline: float) -> Record:
    async def begin() -> WorkflowHandle[Any, Any]:
        try:
            return await client.start_workflow(FanOut.run, 3, id=workflow_id, task_queue=task_queue)
        except WorkflowAlreadyStartedError:
            # It was started before a kill, and not answered.
            return client.get_workflow_handle(workflow_id)

    handle = await insist(begin, deadline)
    assert await insist(handle.result, deadline) == [0, 2, 4]
    return history_law.check_closed((await insist(handle.fetch_history, deadline)).events)


async def has_children(parent: WorkflowHandle[Any, Any]) -> bool:
    """Its first workflow task is done, which asks for them."""
    return await exists(parent) and (await parent.describe()).history_length > 4


async def exists(handle: WorkflowHandle[Any, Any]) -> bool:
    try:
        await handle.describe()
    except RPCError:
        return False
    return True


async def has_status(handle: WorkflowHandle[Any, Any], status: WorkflowExecutionStatus) -> bool:
    return (await handle.describe()).status == status
