"""Signals and cancel requests from one workflow to another."""

from __future__ import annotations

from catalogue import scenario
from commands import cancel_external, complete, input_of, payload, signal_external
from runs import Run
from stage import Stage

ELSEWHERE = "00000000-0000-4000-8000-000000000000"


async def with_target(stage: Stage) -> tuple[Run, Run]:
    target = await stage.start(f"{stage.id}-target", task_queue={"name": f"target-{stage.queue}"})
    return await stage.start(), target


async def finish(stage: Stage, run: Run) -> None:
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def external_signaled(stage: Stage) -> None:
    """The signal reaches the other, and the sender is told."""
    run, target = await with_target(stage)
    header = {"fields": {"trace": payload("abc")}}
    command = signal_external(target.workflow_id, input=input_of("hi"), control="mine", header=header)
    await (await stage.workflow_task()).complete(command)
    await stage.recorded(run, "EXTERNAL_WORKFLOW_EXECUTION_SIGNALED")
    await finish(stage, run)


@scenario
async def external_signal_not_found(stage: Stage) -> None:
    """Nobody there: no such workflow, no such run, a run that is over."""
    run, target = await with_target(stage)
    await stage.terminate(target)
    commands = [
        signal_external(f"{stage.id}-unknown"),
        signal_external(target.workflow_id, run_id=ELSEWHERE),
        signal_external(target.workflow_id, run_id=target.run_id),
    ]
    for n, command in enumerate(commands, 1):
        await (await stage.workflow_task()).complete(command)
        await stage.recorded(run, "SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED", n)
    await finish(stage, run)


@scenario
async def external_signal_to_self(stage: Stage) -> None:
    """A run that signals itself."""
    run = await stage.start()
    await (await stage.workflow_task()).complete(signal_external(stage.id))
    await stage.recorded(run, "SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED")
    await finish(stage, run)


@scenario
async def external_signal_to_no_child(stage: Stage) -> None:
    """A signal for a child to somebody who is none."""
    run, target = await with_target(stage)
    await (await stage.workflow_task()).complete(signal_external(target.workflow_id, child_workflow_only=True))
    await stage.recorded(run, "SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED")
    await finish(stage, run)


@scenario
async def external_canceled(stage: Stage) -> None:
    """The cancel request reaches the other, and the sender is told."""
    run, target = await with_target(stage)
    command = cancel_external(target.workflow_id, run_id=target.run_id, control="mine", reason="over")
    await (await stage.workflow_task()).complete(command)
    await stage.recorded(run, "EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED")
    await finish(stage, run)


@scenario
async def external_cancel_not_found(stage: Stage) -> None:
    """Nobody there: no such workflow, no such run, a run that is over."""
    run, target = await with_target(stage)
    await stage.terminate(target)
    await (await stage.workflow_task()).complete(cancel_external(f"{stage.id}-unknown"))
    await stage.recorded(run, "REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED")
    await (await stage.workflow_task()).complete(cancel_external(target.workflow_id, run_id=ELSEWHERE))
    await stage.recorded(run, "REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED", 2)
    await finish(stage, run)


@scenario
async def external_cancel_of_closed(stage: Stage) -> None:
    """A cancel request for a run that is over."""
    run, target = await with_target(stage)
    await stage.terminate(target)
    await (await stage.workflow_task()).complete(cancel_external(target.workflow_id, run_id=target.run_id))
    await finish(stage, run)


@scenario
async def external_cancel_of_self(stage: Stage) -> None:
    """A run that asks itself to cancel."""
    run = await stage.start()
    await (await stage.workflow_task()).complete(cancel_external(stage.id))
    await stage.recorded(run, "REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED")
    await finish(stage, run)


@scenario
async def external_cancel_twice(stage: Stage) -> None:
    """The second request to one run."""
    run, target = await with_target(stage)
    await (await stage.workflow_task()).complete(cancel_external(target.workflow_id))
    await stage.recorded(run, "EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED")
    await (await stage.workflow_task()).complete(cancel_external(target.workflow_id))
    await finish(stage, run)
