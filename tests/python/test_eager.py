"""Eager dispatch: what a worker starts or schedules for itself comes back with the answer, without a poll in between.

It shows in the history: both events are of the very same moment, because they are of one commit.
"""

from __future__ import annotations

import uuid
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import Worker

import history_law
from history_law import kind_of

ACTIVITIES = 3


@activity.defn
async def double(number: int) -> int:
    return 2 * number


@workflow.defn
class Doubling:
    @workflow.run
    async def run(self, number: int) -> int:
        for _ in range(ACTIVITIES):
            number = await workflow.execute_activity(double, number, start_to_close_timeout=timedelta(seconds=10))
        return number


def new_worker(client: Client, task_queue: str, **options: bool) -> Worker:
    return Worker(client, task_queue=task_queue, workflows=[Doubling], activities=[double], **options)


async def test_a_workflow_is_started_with_its_first_task_in_hand(client: Client, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        handle = await client.start_workflow(
            Doubling.run, 1, id=f"eager-{uuid.uuid4()}", task_queue=task_queue, request_eager_start=True
        )
        assert await handle.result() == 2**ACTIVITIES
    events = (await handle.fetch_history()).events
    history_law.check_closed(events)
    assert events[0].workflow_execution_started_event_attributes.eager_execution_accepted
    assert [kind_of(event) for event in events[1:3]] == ["workflow_task_scheduled", "workflow_task_started"]
    assert events[1].event_time == events[2].event_time


async def test_a_start_without_a_worker_falls_back(client: Client, task_queue: str) -> None:
    handle = await client.start_workflow(
        Doubling.run, 1, id=f"eager-{uuid.uuid4()}", task_queue=task_queue, request_eager_start=True
    )
    async with new_worker(client, task_queue):
        assert await handle.result() == 2**ACTIVITIES
    assert not (await handle.fetch_history()).events[0].workflow_execution_started_event_attributes.eager_execution_accepted


async def test_activities_are_started_with_the_task_that_scheduled_them(client: Client, task_queue: str) -> None:
    for disabled in (False, True):
        async with new_worker(client, task_queue, disable_eager_activity_execution=disabled):
            handle = await client.start_workflow(Doubling.run, 1, id=f"eager-{uuid.uuid4()}", task_queue=task_queue)
            assert await handle.result() == 2**ACTIVITIES
        events = (await handle.fetch_history()).events
        history_law.check_closed(events)
        started = [event for event in events if kind_of(event) == "activity_task_started"]
        assert len(started) == ACTIVITIES
        for event in started:
            scheduled = events[event.activity_task_started_event_attributes.scheduled_event_id - 1]
            assert (scheduled.event_time == event.event_time) != disabled
