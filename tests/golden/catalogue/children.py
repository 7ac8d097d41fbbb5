"""Child workflows: how they begin and end, seen from both sides."""

from __future__ import annotations

from typing import Any

from catalogue import scenario
from commands import NEVER, SECOND, cancel_external, cancel_workflow, complete, continue_as_new, fail, input_of, marker
from commands import payload, signal_external, start_child, typed
from runs import Run
from stage import Stage

POLICY = "PARENT_CLOSE_POLICY_"
REUSE = "WORKFLOW_ID_REUSE_POLICY_"


class Family:
    """A parent with one child, each on a queue of its own."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.child_id = f"{stage.id}-child"
        self.child_queue = f"child-{stage.queue}"

    def start_command(self, **fields: Any):
        return start_child(self.child_id, self.child_queue, **fields)

    async def begin(self, *further, **fields: Any) -> tuple[Run, Run]:
        """Parent and child, once the parent knows of the child and has seen that it started."""
        parent = await self.stage.start()
        await (await self.stage.workflow_task()).complete(self.start_command(**fields), *further)
        return parent, await self.started(parent)

    async def started(self, parent: Run) -> Run:
        event = await self.stage.recorded(parent, "CHILD_WORKFLOW_EXECUTION_STARTED")
        await (await self.stage.workflow_task()).complete()
        return parent.leads(event)[0]

    async def child_task(self):
        return await self.stage.workflow_task(name=self.child_queue)

    async def finish(self, parent: Run) -> None:
        await (await self.stage.workflow_task()).complete(complete())
        await self.stage.ended(parent)


@scenario
async def child_completes(stage: Stage) -> None:
    """All that a command may carry reaches the child; its result reaches the parent."""
    family = Family(stage)
    parent, _ = await family.begin(
        input=input_of("in"),
        memo={"fields": {"note": payload("kept")}},
        header={"fields": {"trace": payload("abc")}},
        search_attributes={"indexed_fields": {"TemporalChangeVersion": typed(["v1"], "KeywordList")}},
        retry_policy={"initial_interval": SECOND, "maximum_attempts": 3},
        workflow_execution_timeout=3 * NEVER,
        workflow_run_timeout=2 * NEVER,
        workflow_task_timeout=5 * SECOND,
        priority={"priority_key": 2},
        user_metadata={"summary": payload("a summary")},
    )
    await (await family.child_task()).complete(complete("out"))
    await family.finish(parent)


@scenario
async def child_fails(stage: Stage) -> None:
    """The child's failure reaches the parent."""
    family = Family(stage)
    parent, _ = await family.begin()
    await (await family.child_task()).complete(fail("child"))
    await family.finish(parent)


@scenario
async def child_canceled(stage: Stage) -> None:
    """A parent asks its child to cancel; the child obeys."""
    family = Family(stage)
    parent, child = await family.begin()
    await stage.signal(parent, "wake")
    ask = cancel_external(family.child_id, run_id=child.run_id, child_workflow_only=True, control="mine", reason="over")
    await (await stage.workflow_task()).complete(ask)
    await stage.recorded(parent, "EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED")
    await (await stage.workflow_task()).complete()
    await (await family.child_task()).complete(cancel_workflow("cleaned up"))
    await family.finish(parent)


@scenario
async def child_times_out(stage: Stage) -> None:
    """A child that takes too long."""
    family = Family(stage)
    parent = await stage.start()
    await (await stage.workflow_task()).complete(family.start_command(workflow_run_timeout=SECOND))
    await stage.recorded(parent, "CHILD_WORKFLOW_EXECUTION_TIMED_OUT")
    await family.finish(parent)


@scenario
async def child_terminated(stage: Stage) -> None:
    """A child that somebody ends by force."""
    family = Family(stage)
    parent, child = await family.begin()
    await stage.terminate(child)
    await family.finish(parent)


@scenario
async def child_id_in_use(stage: Stage) -> None:
    """A child whose id another run has does not start."""
    family = Family(stage)
    await stage.start(family.child_id, task_queue={"name": family.child_queue})
    parent = await stage.start()
    await (await stage.workflow_task()).complete(family.start_command())
    await stage.recorded(parent, "START_CHILD_WORKFLOW_EXECUTION_FAILED")
    await family.finish(parent)


@scenario
async def child_id_used_up(stage: Stage) -> None:
    """A child that must not have the id of a run that is over."""
    family = Family(stage)
    await stage.start(family.child_id, task_queue={"name": family.child_queue})
    await (await family.child_task()).complete(complete())
    parent = await stage.start()
    await (await stage.workflow_task()).complete(
        family.start_command(workflow_id_reuse_policy=f"{REUSE}REJECT_DUPLICATE")
    )
    await stage.recorded(parent, "START_CHILD_WORKFLOW_EXECUTION_FAILED")
    await family.finish(parent)


@scenario
async def child_started_twice(stage: Stage) -> None:
    """A second child of the id that the first one has."""
    family = Family(stage)
    parent, child = await family.begin()
    await stage.signal(parent, "wake")
    await (await stage.workflow_task()).complete(family.start_command())
    await stage.recorded(parent, "START_CHILD_WORKFLOW_EXECUTION_FAILED")
    await family.finish(parent)
    await stage.ended(child)


@scenario
async def child_continues_as_new(stage: Stage) -> None:
    """The parent hears of the last run's end only."""
    family = Family(stage)
    parent, child = await family.begin()
    await (await family.child_task()).complete(continue_as_new(family.child_queue))
    await stage.successor(child)
    await (await family.child_task()).complete(complete("second run"))
    await family.finish(parent)


@scenario
async def child_retried(stage: Stage) -> None:
    """A child with a retry policy fails once; the parent hears of the second run's end."""
    family = Family(stage)
    parent, child = await family.begin(retry_policy={"initial_interval": SECOND, "maximum_attempts": 2})
    await (await family.child_task()).complete(fail("first"))
    await stage.successor(child)
    await (await family.child_task()).complete(complete("second"))
    await family.finish(parent)


@scenario
async def child_signaled_by_parent(stage: Stage) -> None:
    """A signal for a child only, from its parent."""
    family = Family(stage)
    parent, child = await family.begin()
    await stage.signal(parent, "wake")
    hello = signal_external(family.child_id, child_workflow_only=True, input=input_of("hi"), control="mine")
    await (await stage.workflow_task()).complete(hello)
    await stage.recorded(parent, "EXTERNAL_WORKFLOW_EXECUTION_SIGNALED")
    await family.finish(parent)
    await stage.ended(child)


@scenario
async def children_left_behind(stage: Stage) -> None:
    """What each parent close policy does to a child that is open."""
    parent = await stage.start()
    policies = ("TERMINATE", "REQUEST_CANCEL", "ABANDON")
    children = []
    for policy in policies:
        command = start_child(f"{stage.id}-{policy}", f"{policy}-{stage.queue}", parent_close_policy=f"{POLICY}{policy}")
        await (await stage.workflow_task()).complete(command)
        event = await stage.recorded(parent, "CHILD_WORKFLOW_EXECUTION_STARTED", len(children) + 1)
        children.append(parent.leads(event)[0])
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(children[0])
    await stage.recorded(children[1], "WORKFLOW_EXECUTION_CANCEL_REQUESTED")
    abandoned = await stage.workflow_task(name=f"ABANDON-{stage.queue}")
    await abandoned.complete(complete())


@scenario
async def children_of_terminated(stage: Stage) -> None:
    """The default policy ends the child of a parent that is ended by force."""
    family = Family(stage)
    parent, child = await family.begin()
    await stage.terminate(parent)
    await stage.ended(child)


@scenario
async def children_of_continued(stage: Stage) -> None:
    """A parent that continues as new leaves its child behind like one that closes."""
    family = Family(stage)
    parent, child = await family.begin()
    await stage.signal(parent, "wake")
    await (await stage.workflow_task()).complete(continue_as_new(stage.queue))
    await stage.ended(child)
    await stage.recorded(await stage.successor(parent), "WORKFLOW_TASK_SCHEDULED")


@scenario
async def child_completes_unseen(stage: Stage) -> None:
    """A child that completes during a workflow task of its parent: written behind it, after the signals."""
    family = Family(stage)
    parent, child = await family.begin()
    await stage.signal(parent, "before")
    task = await stage.workflow_task()
    await (await family.child_task()).complete(complete("out"))
    await stage.ended(child)
    await stage.until(parent, lambda found: not found.pending_children)
    await stage.signal(parent, "during")
    await task.complete(marker())
    await family.finish(parent)


@scenario
async def child_described(stage: Stage) -> None:
    """Child and parent in each other's descriptions."""
    family = Family(stage)
    parent, child = await family.begin(parent_close_policy=f"{POLICY}ABANDON")
    stage.note("parent", await stage.describe(parent))
    await stage.recorded(child, "WORKFLOW_TASK_SCHEDULED")
    found = await stage.describe(child)
    stage.note("child's parent", found.workflow_execution_info.parent_execution)
    stage.note("child's root", found.workflow_execution_info.root_execution)
    await stage.terminate(parent)
