"""Signals, alone and with a start."""

from __future__ import annotations

from typing import Any

from catalogue import scenario
from commands import NEVER, SECOND, complete, input_of, payload
from stage import CLIENT, Run, Stage

REUSE = "WORKFLOW_ID_REUSE_POLICY_"
CONFLICT = "WORKFLOW_ID_CONFLICT_POLICY_"


async def signal_with_start(stage: Stage, **fields: Any) -> Run:
    plain = {"signal_name": "hello", "signal_input": input_of("signal")}
    answer = await stage.call("SignalWithStartWorkflowExecution", **stage.start_fields() | plain | fields)
    return stage.watch(stage.id, answer.run_id)


@scenario
async def signal_before_first_task(stage: Stage) -> None:
    """Signals that come before a worker are with the first workflow task."""
    run = await stage.start()
    await stage.signal(run, "first", 1)
    await stage.signal(run, "second", header={"fields": {"trace": payload("abc")}})
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def signal_wakes(stage: Stage) -> None:
    """A signal to a run that waits brings a workflow task."""
    run = await stage.start()
    await (await stage.workflow_task()).complete()
    await stage.signal(run, "wake")
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def signal_same_request(stage: Stage) -> None:
    """A signal that is repeated with its request id is recorded once."""
    run = await stage.start()
    await stage.signal(run, "once", request_id="the-one")
    await stage.signal(run, "once", request_id="the-one")
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def signal_refused(stage: Stage) -> None:
    """Signals that reach nobody, or are no good."""
    run = await stage.start()
    for fields in (
        {"workflow_execution": {"workflow_id": stage.id}, "signal_name": ""},
        {"workflow_execution": {"workflow_id": stage.id}, "signal_name": "x" * 1001},
        {"workflow_execution": {"workflow_id": ""}, "signal_name": "hello"},
        {"workflow_execution": {"workflow_id": f"{stage.id}-unknown"}, "signal_name": "hello"},
        {"workflow_execution": {"workflow_id": stage.id, "run_id": "no-uuid"}, "signal_name": "hello"},
        {
            "workflow_execution": {"workflow_id": stage.id, "run_id": "00000000-0000-4000-8000-000000000000"},
            "signal_name": "hello",
        },
    ):
        await stage.refused("SignalWorkflowExecution", identity=CLIENT, **fields)
    await (await stage.workflow_task()).complete(complete())
    await stage.refused("SignalWorkflowExecution", workflow_execution=run.execution, signal_name="late")
    await stage.refused("SignalWorkflowExecution", workflow_execution={"workflow_id": stage.id}, signal_name="late")


@scenario
async def signal_with_start_new(stage: Stage) -> None:
    """The signal stands behind the start, before the first workflow task."""
    run = await signal_with_start(stage, input=input_of("start"), header={"fields": {"trace": payload("abc")}})
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def signal_with_start_running(stage: Stage) -> None:
    """A run that is there gets the signal, and nothing of the start."""
    await stage.start()
    await (await stage.workflow_task()).complete()
    run = await signal_with_start(stage)
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)


@scenario
async def signal_with_start_after_close(stage: Stage) -> None:
    """Reuse policies count for it as for a start."""
    await stage.start()
    await (await stage.workflow_task()).complete(complete())
    fields = stage.start_fields(workflow_id_reuse_policy=f"{REUSE}REJECT_DUPLICATE", signal_name="hello")
    await stage.refused("SignalWithStartWorkflowExecution", **fields)
    await signal_with_start(stage, workflow_id_reuse_policy=f"{REUSE}ALLOW_DUPLICATE")


@scenario
async def signal_with_start_terminating(stage: Stage) -> None:
    """A conflict policy may end the run that is there first."""
    await stage.start()
    await signal_with_start(stage, workflow_id_conflict_policy=f"{CONFLICT}TERMINATE_EXISTING")


@scenario
async def signal_with_start_delayed(stage: Stage) -> None:
    """The delay counts for the first workflow task; a second signal does not end it."""
    run = await signal_with_start(stage, workflow_start_delay=NEVER)
    await signal_with_start(stage)
    await stage.terminate(run)


@scenario
async def signal_with_start_refused(stage: Stage) -> None:
    """Requests that are no good, each with its own words."""
    for fields in (
        {"signal_name": ""},
        {"workflow_id": ""},
        {"workflow_type": None},
        {"task_queue": None},
        {"workflow_start_delay": SECOND, "cron_schedule": "@every 1s"},
        {"workflow_id_conflict_policy": f"{CONFLICT}FAIL"},
    ):
        await stage.refused("SignalWithStartWorkflowExecution", **stage.start_fields(signal_name="hello") | fields)
