"""A workflow that a person at the command line can do everything to, and the worker that runs it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

FOREVER_S = 3600.0
BEAT_EVERY_S = 0.05


@workflow.defn
class Ledger:
    """Adds up what it is sent until it is told to close."""

    @workflow.init
    def __init__(self, opening: int) -> None:
        self._total = opening
        self._closed = False

    @workflow.run
    async def run(self, opening: int) -> int:
        workflow.set_current_details("adding up")
        await workflow.wait_condition(lambda: self._closed)
        return self._total

    @workflow.signal
    def add(self, amount: int) -> None:
        self._total += amount

    @workflow.signal
    def close(self) -> None:
        self._closed = True

    @workflow.query
    def total(self) -> int:
        return self._total

    @workflow.update
    async def deposit(self, amount: int) -> int:
        self._total += amount
        return self._total

    @deposit.validator
    def check_deposit(self, amount: int) -> None:
        if amount <= 0:
            raise ApplicationError("a deposit is more than nothing", type="NoDeposit")


@workflow.defn
class Errand:
    """Sends a messenger, and returns with what the messenger brings."""

    @workflow.run
    async def run(self, messenger: str) -> Any:
        return await workflow.execute_activity(
            messenger, activity_id="errand", start_to_close_timeout=timedelta(seconds=FOREVER_S), heartbeat_timeout=timedelta(seconds=10)
        )


@workflow.defn
class Doubling:
    @workflow.run
    async def run(self, number: int) -> int:
        return 2 * number


@dataclass
class Messengers:
    """Those who can be sent, and how often each of them has set out."""

    departures: list[int] = field(default_factory=list)

    @activity.defn(name="waits")
    async def waits(self) -> str:
        """Comes back with nothing, if it is not called off."""
        self.departures.append(activity.info().attempt)
        while True:
            activity.heartbeat()
            await asyncio.sleep(BEAT_EVERY_S)

    @activity.defn(name="leaves_it_to_others")
    async def leaves_it_to_others(self) -> str:
        self.departures.append(activity.info().attempt)
        activity.raise_complete_async()

    @activity.defn(name="fails")
    async def fails(self) -> str:
        self.departures.append(activity.info().attempt)
        raise ApplicationError("lost the way")

    def all(self) -> list[Any]:
        return [self.waits, self.leaves_it_to_others, self.fails]


def new_worker(client: Client, task_queue: str, messengers: Messengers | None = None) -> Worker:
    return Worker(
        client,
        task_queue=task_queue,
        workflows=[Ledger, Errand, Doubling],
        activities=(messengers or Messengers()).all(),
        max_heartbeat_throttle_interval=timedelta(milliseconds=50),
        default_heartbeat_throttle_interval=timedelta(milliseconds=50),
    )
