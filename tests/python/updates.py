"""A counter that is updated: with a validator, with a handler that waits, and with an end."""

from __future__ import annotations

from typing import Any

from temporalio import workflow
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker


@workflow.defn
class Counter:
    def __init__(self) -> None:
        self._total = 0
        self._may_finish_slow_ones = False
        self._is_done = False
        self._goes_on = False

    @workflow.run
    async def run(self, total: int = 0) -> int:
        self._total += total
        await workflow.wait_condition(lambda: self._is_done or self._goes_on)
        if self._goes_on:
            workflow.continue_as_new(self._total)
        return self._total

    @workflow.update
    def add(self, amount: int) -> int:
        self._total += amount
        return self._total

    @add.validator
    def _check_amount(self, amount: int) -> None:
        if amount < 0:
            raise ValueError("amounts are not negative")

    @workflow.update
    async def add_slowly(self, amount: int) -> int:
        await workflow.wait_condition(lambda: self._may_finish_slow_ones)
        self._total += amount
        return self._total

    @workflow.update
    async def fail(self) -> None:
        raise ApplicationError("cannot be added", type="Unaddable")

    @workflow.signal
    def finish_slow_ones(self) -> None:
        self._may_finish_slow_ones = True

    @workflow.signal
    def finish(self) -> None:
        self._is_done = True

    @workflow.signal
    def go_on(self) -> None:
        self._goes_on = True


def new_worker(client: Client, task_queue: str, **options: Any) -> Worker:
    return Worker(client, task_queue=task_queue, workflows=[Counter], **options)
