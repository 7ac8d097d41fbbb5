"""Small workflows and activities, one for each behaviour that the tests look at."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

FOREVER_S = 3600.0
HEARTBEAT_EVERY_S = 0.05


@dataclass
class Step:
    """One activity with its timeouts in milliseconds; 0 means that it is not set."""

    activity: str
    argument: str = ""
    start_to_close_ms: int = 0
    schedule_to_start_ms: int = 0
    schedule_to_close_ms: int = 0
    heartbeat_ms: int = 0
    attempts_max: int = 0
    retry_ms: int = 50
    task_queue: str | None = None


def span(milliseconds: int) -> timedelta | None:
    return timedelta(milliseconds=milliseconds) if milliseconds else None


@workflow.defn
class OneActivity:
    @workflow.run
    async def run(self, step: Step) -> Any:
        return await workflow.execute_activity(
            step.activity,
            step.argument,
            task_queue=step.task_queue,
            start_to_close_timeout=span(step.start_to_close_ms),
            schedule_to_start_timeout=span(step.schedule_to_start_ms),
            schedule_to_close_timeout=span(step.schedule_to_close_ms),
            heartbeat_timeout=span(step.heartbeat_ms),
            retry_policy=RetryPolicy(
                initial_interval=timedelta(milliseconds=step.retry_ms),
                backoff_coefficient=1.0,
                maximum_attempts=step.attempts_max,
                non_retryable_error_types=["NeverAgain"],
            ),
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )


@workflow.defn
class Sleeper:
    @workflow.run
    async def run(self) -> None:
        await asyncio.sleep(FOREVER_S)


@workflow.defn
class Countdown:
    """Each run is one step; what it carries on is the trail of the run ids before it."""

    @workflow.run
    async def run(self, steps_left: int, trail: list[str]) -> list[str]:
        trail = [*trail, workflow.info().run_id]
        if steps_left:
            workflow.continue_as_new(args=[steps_left - 1, trail])
        return trail


@workflow.defn
class Refusing:
    @workflow.run
    async def run(self) -> None:
        raise ApplicationError("no such address", {"code": 7}, type="AddressUnknown", non_retryable=True)


@workflow.defn
class Collector:
    """Keeps what it is sent, in order, until it is told to finish."""

    def __init__(self) -> None:
        self._items: list[str] = []
        self._finished = False

    @workflow.run
    async def run(self) -> list[str]:
        await workflow.wait_condition(lambda: self._finished)
        return self._items

    @workflow.signal
    def add(self, item: str) -> None:
        self._items.append(item)

    @workflow.signal
    def finish(self) -> None:
        self._finished = True


@dataclass
class Workshop:
    """The activities, and what the tests want to know of them."""

    attempts: list[int] = field(default_factory=list)
    task_tokens: list[bytes] = field(default_factory=list)

    @activity.defn(name="hang")
    async def hang(self, _: str) -> None:
        self.attempts.append(activity.info().attempt)
        await asyncio.sleep(FOREVER_S)

    @activity.defn(name="beat_until_canceled")
    async def beat_until_canceled(self, _: str) -> None:
        while True:
            activity.heartbeat()
            await asyncio.sleep(HEARTBEAT_EVERY_S)

    @activity.defn(name="beat_once_then_hang")
    async def beat_once_then_hang(self, argument: str) -> list[Any]:
        """The second attempt returns what the first one left behind."""
        self.attempts.append(activity.info().attempt)
        if activity.info().attempt > 1:
            return list(activity.info().heartbeat_details)
        activity.heartbeat(argument, 7)
        await asyncio.sleep(FOREVER_S)
        return []

    @activity.defn(name="refuse")
    async def refuse(self, error_type: str) -> None:
        self.attempts.append(activity.info().attempt)
        raise ApplicationError("refused", "a detail", type=error_type, non_retryable=error_type == "NonRetryable")

    @activity.defn(name="complete_elsewhere")
    async def complete_elsewhere(self, _: str) -> str:
        self.attempts.append(activity.info().attempt)
        self.task_tokens.append(activity.info().task_token)
        activity.raise_complete_async()

    def all(self) -> list[Any]:
        return [self.hang, self.beat_until_canceled, self.beat_once_then_hang, self.refuse, self.complete_elsewhere]


def new_worker(client: Client, task_queue: str, workshop: Workshop | None = None) -> Worker:
    return Worker(
        client,
        task_queue=task_queue,
        workflows=[OneActivity, Sleeper, Countdown, Refusing, Collector],
        activities=(workshop or Workshop()).all(),
        max_heartbeat_throttle_interval=timedelta(milliseconds=50),
        default_heartbeat_throttle_interval=timedelta(milliseconds=50),
    )
