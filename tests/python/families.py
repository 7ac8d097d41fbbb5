"""Workflows that have to do with one another: parents and children, those that signal and cancel others."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from temporalio import workflow
from temporalio.client import Client
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError, ChildWorkflowError, FailureError
from temporalio.worker import Worker
from temporalio.workflow import ParentClosePolicy

from scenarios import Collector, Sleeper


@workflow.defn
class Doubling:
    """A child with a result."""

    @workflow.run
    async def run(self, number: int) -> int:
        return number * 2


@workflow.defn
class FailingTwice:
    """A child that is retried; the third attempt gives the number of attempts."""

    @workflow.run
    async def run(self) -> int:
        attempt = workflow.info().attempt
        if attempt < 3:
            raise ApplicationError("not yet", type="NotYet")
        return attempt


@workflow.defn
class CountdownChild:
    """A child of several runs; the last one gives back all their ids."""

    @workflow.run
    async def run(self, steps_left: int, trail: list[str] | None = None) -> list[str]:
        trail = [*(trail or []), workflow.info().run_id]
        if steps_left:
            workflow.continue_as_new(args=[steps_left - 1, trail])
        return trail


@workflow.defn
class Obstinate:
    """Canceled, it says what it was told, and completes."""

    @workflow.run
    async def run(self) -> str:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            return "stopped when asked"
        return "never asked"


@workflow.defn
class FanOut:
    @workflow.run
    async def run(self, n_children: int) -> list[int]:
        own_id = workflow.info().workflow_id
        children = [
            workflow.execute_child_workflow(Doubling.run, number, id=f"{own_id}-{number}") for number in range(n_children)
        ]
        return list(await asyncio.gather(*children))


@dataclass
class Asked:
    """A child by the name of its type; how the parent deals with it."""

    child: str
    argument: int | None = None
    cancel: bool = False
    attempts_max: int = 1


@workflow.defn
class Parent:
    """Starts one child and gives back its result, or tells how it ended instead."""

    @workflow.run
    async def run(self, asked: Asked) -> Any:
        child = await workflow.start_child_workflow(
            asked.child,
            args=[] if asked.argument is None else [asked.argument],
            id=f"{workflow.info().workflow_id}-child",
            retry_policy=RetryPolicy(maximum_attempts=asked.attempts_max) if asked.attempts_max > 1 else None,
            cancellation_type=workflow.ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
        )
        if asked.cancel:
            child.cancel()
        try:
            return await child
        except ChildWorkflowError as error:
            cause = error.cause
            return {"end": type(cause).__name__, "message": cause.message if isinstance(cause, FailureError) else ""}


@workflow.defn
class Leaving:
    """Starts a child for each policy, and completes when it is told to."""

    def __init__(self) -> None:
        self._may_leave = False

    @workflow.run
    async def run(self) -> None:
        for policy in (ParentClosePolicy.TERMINATE, ParentClosePolicy.REQUEST_CANCEL, ParentClosePolicy.ABANDON):
            child_id = f"{workflow.info().workflow_id}-{policy.name.lower()}"
            await workflow.start_child_workflow(Collector.run, id=child_id, parent_close_policy=policy)
        await workflow.wait_condition(lambda: self._may_leave)

    @workflow.signal
    def leave(self) -> None:
        self._may_leave = True


@workflow.defn
class Grandparent:
    """A child that has a child: all know the same root."""

    @workflow.run
    async def run(self, depth: int) -> list[str]:
        info = workflow.info()
        root = info.root.workflow_id if info.root else ""
        if depth == 0:
            return [root]
        below = await workflow.execute_child_workflow(Grandparent.run, depth - 1, id=f"{info.workflow_id}-{depth}")
        return [root, *below]


@workflow.defn
class Telling:
    """Sends signals to another workflow in order, tells it to finish; then cancels a third."""

    @workflow.run
    async def run(self, collector_id: str, n_items: int, sleeper_id: str) -> list[str]:
        collector = workflow.get_external_workflow_handle_for(Collector.run, collector_id)
        sent = [collector.signal(Collector.add, f"item-{number}") for number in range(n_items)]
        await asyncio.gather(*sent)
        await collector.signal(Collector.finish)
        await workflow.get_external_workflow_handle(sleeper_id).cancel()
        refused: list[str] = []
        nobody = workflow.get_external_workflow_handle(f"{workflow.info().workflow_id}-nobody")
        for attempt in (nobody.signal("add", "lost"), nobody.cancel()):
            try:
                await attempt
            except ApplicationError as error:
                refused.append(error.message)
        return refused


ALL = [Doubling, FailingTwice, CountdownChild, Obstinate, FanOut, Parent, Leaving, Grandparent, Telling, Collector, Sleeper]


def new_worker(client: Client, task_queue: str) -> Worker:
    return Worker(client, task_queue=task_queue, workflows=ALL)
