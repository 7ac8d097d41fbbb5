"""Schedules with the official SDK: made, triggered, paused, updated, filled in, listed, and still there after a kill."""

from __future__ import annotations

import asyncio
import time
import uuid
from datetime import datetime, timedelta, timezone

import pytest
from temporalio import workflow
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleBackfill,
    ScheduleDescription,
    ScheduleHandle,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    ScheduleState,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from server_process import NAMESPACE, ServerProcess
from waiting import eventually, insist

NEVER = ScheduleIntervalSpec(every=timedelta(days=3650))


@workflow.defn
class Count:
    """Counts on from where the run before it ended."""

    @workflow.run
    async def run(self, step: int) -> int:
        last = workflow.get_last_completion_result(int) if workflow.has_last_completion_result() else 0
        return last + step


@workflow.defn
class Refuse:
    @workflow.run
    async def run(self) -> None:
        raise ApplicationError("no", non_retryable=True)


def new_worker(client: Client, task_queue: str) -> Worker:
    return Worker(client, task_queue=task_queue, workflows=[Count, Refuse], workflow_runner=UnsandboxedWorkflowRunner())


def counting(task_queue: str, **fields: object) -> Schedule:
    action = ScheduleActionStartWorkflow(Count.run, 1, id=f"count-{uuid.uuid4()}", task_queue=task_queue)
    return Schedule(action=action, **{"spec": ScheduleSpec(intervals=[NEVER]), **fields})  # type: ignore[arg-type]


async def acted(handle: ScheduleHandle, actions: int) -> ScheduleDescription:
    """The schedule once it has done so much, and nothing of it runs any more."""

    async def is_done() -> ScheduleDescription | None:
        description = await handle.describe()
        is_idle = not description.info.running_actions
        return description if description.info.num_actions >= actions and is_idle else None

    return await eventually(is_done)


async def result(client: Client, description: ScheduleDescription) -> int:
    execution = description.info.recent_actions[-1].action
    return await client.get_workflow_handle(execution.workflow_id).result()  # type: ignore[union-attr]


async def test_a_schedule_acts_when_it_is_triggered_and_hands_results_on(client: Client, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        handle = await client.create_schedule(f"s-{uuid.uuid4()}", counting(task_queue), trigger_immediately=True)
        assert await result(client, await acted(handle, 1)) == 1
        with pytest.raises(ScheduleAlreadyRunningError):
            await client.create_schedule(handle.id, counting(task_queue))
        days = [datetime(2030, 1, day, tzinfo=timezone.utc) for day in (1, 3)]

        def daily(update: ScheduleUpdateInput) -> ScheduleUpdate:
            schedule = update.description.schedule
            schedule.spec = ScheduleSpec(intervals=[ScheduleIntervalSpec(every=timedelta(days=1))])
            return ScheduleUpdate(schedule=schedule)

        await handle.update(daily)
        await handle.backfill(ScheduleBackfill(days[0], days[1], overlap=ScheduleOverlapPolicy.BUFFER_ALL))
        assert await result(client, await acted(handle, 4)) == 4
        await handle.delete()
        with pytest.raises(RPCError) as gone:
            await handle.describe()
        assert gone.value.status == RPCStatusCode.NOT_FOUND


async def test_a_failure_pauses_a_schedule(client: Client, task_queue: str) -> None:
    action = ScheduleActionStartWorkflow("Refuse", id=f"refuse-{uuid.uuid4()}", task_queue=task_queue)
    schedule = Schedule(action=action, spec=ScheduleSpec(intervals=[NEVER]), policy=SchedulePolicy(pause_on_failure=True))
    async with new_worker(client, task_queue):
        handle = await client.create_schedule(f"s-{uuid.uuid4()}", schedule, trigger_immediately=True)
        description = await acted(handle, 1)
        assert description.schedule.state.paused
        assert (description.schedule.state.note or "").startswith("paused due to workflow failure: refuse-")
        await handle.unpause(note="again")
        state = (await handle.describe()).schedule.state
        assert (state.paused, state.note) == (False, "again")
        await handle.delete()


async def test_schedules_are_listed_with_what_they_do(client: Client, task_queue: str) -> None:
    ids = [f"listed-{n}-{uuid.uuid4()}" for n in range(3)]
    paused = ScheduleState(paused=True, note="not yet")
    for schedule_id in ids:
        await client.create_schedule(schedule_id, counting(task_queue, state=paused), memo={"owner": "me"})

    async def listed(query: str) -> list[str]:
        return sorted([entry.id async for entry in await client.list_schedules(query, page_size=2)])

    query = " OR ".join(f"ScheduleId = '{schedule_id}'" for schedule_id in ids)
    paused_query = f"TemporalSchedulePaused = true AND ({query})"
    await eventually(lambda: _equal(listed(paused_query), sorted(ids)))
    async for entry in await client.list_schedules(f"ScheduleId = '{ids[0]}'"):
        assert entry.schedule is not None and entry.info is not None
        assert (entry.schedule.state.paused, entry.schedule.state.note) == (True, "not yet")
        assert len(entry.info.next_action_times) == 5
        assert await entry.memo() == {"owner": "me"}
    await client.get_schedule_handle(ids[0]).unpause()
    await eventually(lambda: _equal(listed(paused_query), sorted(ids[1:])))
    for schedule_id in ids:
        await client.get_schedule_handle(schedule_id).delete()
    await eventually(lambda: _equal(listed(query), []))


async def _equal(answer: object, expected: object) -> bool:
    return await answer == expected  # type: ignore[misc]


async def test_a_schedule_goes_on_after_a_kill(killable_server: ServerProcess, task_queue: str) -> None:
    client = await Client.connect(killable_server.address, namespace=NAMESPACE)
    spec = ScheduleSpec(intervals=[ScheduleIntervalSpec(every=timedelta(seconds=1))])
    handle = await client.create_schedule(f"s-{uuid.uuid4()}", counting(task_queue, spec=spec))
    async with new_worker(client, task_queue):
        before = await acted(handle, 2)
        killable_server.kill()
        await asyncio.to_thread(killable_server.start)
        deadline = time.monotonic() + 60.0

        async def goes_on() -> bool:
            description = await insist(handle.describe, deadline)
            return description.info.num_actions >= before.info.num_actions + 3

        await eventually(goes_on)
        actions = (await handle.describe()).info.recent_actions
        ids = [action.action.workflow_id for action in actions]  # type: ignore[union-attr]
        assert len(set(ids)) == len(ids)
        await handle.delete()
