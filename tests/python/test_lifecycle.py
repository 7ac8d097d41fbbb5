"""How workflows begin and end: cancel, terminate, continue as new, fail, time out, signal with start, start twice."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError, WorkflowHandle
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import (
    ApplicationError,
    CancelledError,
    TerminatedError,
    TimeoutError,
    WorkflowAlreadyStartedError,
)
from temporalio.service import RPCError, RPCStatusCode

import history_law
from scenarios import Collector, Countdown, Refusing, Sleeper, new_worker
from waiting import eventually

RUNS = 3


def fresh_id(what: str) -> str:
    return f"{what}-{uuid.uuid4()}"


async def test_a_canceled_workflow_cancels_its_timer(client: Client, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        handle = await client.start_workflow(Sleeper.run, id=fresh_id("cancel"), task_queue=task_queue)
        await eventually(lambda: has_event(handle, "timer_started"))
        await handle.cancel()
        with pytest.raises(WorkflowFailureError) as raised:
            await handle.result()
    assert isinstance(raised.value.cause, CancelledError)
    record = history_law.check_closed((await handle.fetch_history()).events)
    assert record.close == "canceled"
    assert [timer.end for timer in record.timers.values()] in (["canceled"], [None])
    assert (await handle.describe()).status == WorkflowExecutionStatus.CANCELED


async def test_a_terminated_workflow_is_over_at_once(client: Client, task_queue: str) -> None:
    # No worker: termination asks nobody.
    handle = await client.start_workflow(Sleeper.run, id=fresh_id("terminate"), task_queue=task_queue)
    await handle.terminate("a detail", reason="no longer wanted")
    with pytest.raises(WorkflowFailureError) as raised:
        await handle.result()
    assert isinstance(raised.value.cause, TerminatedError)
    record = history_law.check_closed((await handle.fetch_history()).events)
    assert record.kinds() == [
        "workflow_execution_started",
        "workflow_task_scheduled",
        "workflow_execution_terminated",
    ]
    (terminated,) = record.attributes("workflow_execution_terminated")
    assert terminated.reason == "no longer wanted"
    assert history_law.decode(terminated.details) == "a detail"
    assert (await handle.describe()).status == WorkflowExecutionStatus.TERMINATED


async def test_a_closed_workflow_takes_no_signal(client: Client, task_queue: str) -> None:
    handle = await client.start_workflow(Collector.run, id=fresh_id("closed"), task_queue=task_queue)
    await handle.terminate()
    for refused in (handle.signal(Collector.finish), handle.terminate(), unknown(client).signal(Collector.finish)):
        with pytest.raises(RPCError) as raised:
            await refused
        assert raised.value.status == RPCStatusCode.NOT_FOUND


async def test_a_workflow_continues_as_new(client: Client, task_queue: str) -> None:
    workflow_id = fresh_id("countdown")
    async with new_worker(client, task_queue):
        trail = await client.execute_workflow(Countdown.run, args=[RUNS - 1, []], id=workflow_id, task_queue=task_queue)
    assert len(set(trail)) == RUNS
    for place, run_id in enumerate(trail):
        handle = client.get_workflow_handle(workflow_id, run_id=run_id)
        record = history_law.check_closed((await handle.fetch_history()).events)
        (started,) = record.attributes("workflow_execution_started")
        assert started.first_execution_run_id == trail[0]
        assert started.continued_execution_run_id == (trail[place - 1] if place else "")
        if run_id == trail[-1]:
            assert record.close == "completed"
            continue
        assert record.close == "continued_as_new"
        (continued,) = record.attributes("workflow_execution_continued_as_new")
        assert continued.new_execution_run_id == trail[place + 1]
        assert (await handle.describe()).status == WorkflowExecutionStatus.CONTINUED_AS_NEW


async def test_a_failed_workflow_tells_why(client: Client, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        handle = await client.start_workflow(Refusing.run, id=fresh_id("fail"), task_queue=task_queue)
        with pytest.raises(WorkflowFailureError) as raised:
            await handle.result()
    cause = raised.value.cause
    assert isinstance(cause, ApplicationError)
    assert (cause.message, cause.type, cause.details) == ("no such address", "AddressUnknown", ({"code": 7},))
    assert history_law.check_closed((await handle.fetch_history()).events).close == "failed"
    assert (await handle.describe()).status == WorkflowExecutionStatus.FAILED


async def test_a_workflow_times_out(client: Client, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        handle = await client.start_workflow(
            Sleeper.run, id=fresh_id("timeout"), task_queue=task_queue, run_timeout=timedelta(seconds=1)
        )
        with pytest.raises(WorkflowFailureError) as raised:
            await handle.result()
    assert isinstance(raised.value.cause, TimeoutError)
    assert history_law.check_closed((await handle.fetch_history()).events).close == "timed_out"
    assert (await handle.describe()).status == WorkflowExecutionStatus.TIMED_OUT


async def test_signal_with_start_starts_once_and_signals_every_time(client: Client, task_queue: str) -> None:
    workflow_id = fresh_id("signal-with-start")
    async with new_worker(client, task_queue):
        handles = [
            await client.start_workflow(
                Collector.run, id=workflow_id, task_queue=task_queue, start_signal="add", start_signal_args=[item]
            )
            for item in ("one", "two")
        ]
        assert handles[0].result_run_id == handles[1].result_run_id
        await handles[0].signal(Collector.finish)
        assert await handles[0].result() == ["one", "two"]
    record = history_law.check_closed((await handles[0].fetch_history()).events)
    assert record.signals == [("add", "one"), ("add", "two"), ("finish", None)]
    # The signal is there before the first workflow task: the worker never sees the workflow without it.
    assert record.kinds()[:3] == ["workflow_execution_started", "workflow_execution_signaled", "workflow_task_scheduled"]


async def test_a_workflow_id_runs_once_at_a_time(client: Client, task_queue: str) -> None:
    workflow_id = fresh_id("once")

    async def start(**options: Any) -> WorkflowHandle[Any, Any]:
        return await client.start_workflow(Collector.run, id=workflow_id, task_queue=task_queue, **options)

    first = await start()
    with pytest.raises(WorkflowAlreadyStartedError) as raised:
        await start()
    assert raised.value.run_id == first.result_run_id
    same = await start(id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING)
    assert same.result_run_id == first.result_run_id
    await first.terminate()
    with pytest.raises(WorkflowAlreadyStartedError):
        await start(id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE)
    second = await start()
    assert second.result_run_id != first.result_run_id
    await second.terminate()


def unknown(client: Client) -> WorkflowHandle[Any, Any]:
    return client.get_workflow_handle(fresh_id("unknown"))


async def has_event(handle: WorkflowHandle[Any, Any], kind: str) -> bool:
    return kind in history_law.check_open((await handle.fetch_history()).events).kinds()
