"""Calls that meet a chain of runs in between: waiting for its next run, or with another first run than was meant."""

from __future__ import annotations

from catalogue import scenario
from catalogue.queries import ANSWERED, query_fields
from catalogue.updates import accepted, answer, begin_update, completed, rejected
from commands import NEVER, complete, continue_as_new, fail, marker
from runs import Run
from stage import CLIENT, Stage

NO_RUN = "00000000-0000-4000-8000-000000000000"
LATER = {"initial_interval": NEVER, "maximum_interval": NEVER}


async def waiting(stage: Stage, **fields) -> tuple[Run, Run]:
    """A run that failed, and the next one, whose time has not come."""
    run = await stage.start(retry_policy=LATER, **fields)
    await (await stage.workflow_task()).complete(fail("first"))
    return run, await stage.successor(run)


@scenario
async def chain_named_by_first_run(stage: Stage) -> None:
    """Requests that name the first run of a chain reach its last one; those that name another are refused."""
    run = await stage.start()
    await (await stage.workflow_task()).complete(continue_as_new(stage.queue, backoff_start_interval=NEVER))
    await stage.successor(run)
    meant = {"workflow_execution": {"workflow_id": run.workflow_id}, "identity": CLIENT}
    for rpc in ("RequestCancelWorkflowExecution", "TerminateWorkflowExecution"):
        await stage.refused(rpc, **meant, first_execution_run_id=NO_RUN)
    await stage.call("RequestCancelWorkflowExecution", **meant, first_execution_run_id=run.run_id, request_id="c")
    await stage.call("TerminateWorkflowExecution", **meant, first_execution_run_id=run.run_id, reason="enough")


@scenario
async def chain_waiting_is_signaled(stage: Stage) -> None:
    """A signal with start ends the waiting of a run that is tried again later."""
    _, second = await waiting(stage)
    fields = stage.start_fields(signal_name="hello")
    await stage.call("SignalWithStartWorkflowExecution", **fields)
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(second)


@scenario
async def chain_waiting_is_started(stage: Stage) -> None:
    """A start meets a run that is tried again later: it is open, like any other."""
    _, second = await waiting(stage)
    await stage.refused("StartWorkflowExecution", **stage.start_fields())
    existing = "WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING"
    await stage.call("StartWorkflowExecution", **stage.start_fields(workflow_id_conflict_policy=existing))
    await stage.terminate(second)


@scenario
async def chain_waiting_is_updated(stage: Stage) -> None:
    """An update of a run that is tried again later does not wait."""
    _, second = await waiting(stage)
    updating = await begin_update(stage, second)
    task = await stage.workflow_task()
    await answer(task, accepted(task.polled.messages[0]), completed("update"), further=(complete(),))
    await stage.end(updating)
    await stage.ended(second)


@scenario
async def query_of_waiting_chain(stage: Stage) -> None:
    """A query of a run that no worker has taken up yet, because its time has not come."""
    _, second = await waiting(stage)
    await stage.refused("QueryWorkflow", **query_fields(second))
    await stage.terminate(second)


@scenario
async def query_of_sticky_run(stage: Stage) -> None:
    """A query goes to the worker that keeps the run."""
    run = await stage.start()
    await (await stage.workflow_task()).complete_stickily(marker())
    polling = await stage.begin_polling_stickily()
    querying = stage.begin("QueryWorkflow", **query_fields(run))
    await (await stage.taken(polling)).answer_query(**ANSWERED)
    await stage.end(querying)
    await stage.terminate(run)


@scenario
async def update_of_sticky_run(stage: Stage) -> None:
    """An update goes to the worker that keeps the run, which rejects one and accepts another."""
    run = await stage.start()
    await (await stage.workflow_task()).complete_stickily(marker())
    sticky = {"worker_task_queue": {"name": stage.sticky_queue}, "schedule_to_start_timeout": NEVER}
    polling = await stage.begin_polling_stickily()
    updating = await begin_update(stage, run, "one")
    task = await stage.taken(polling)
    await answer(task, rejected(task.polled.messages[0]), sticky_attributes=sticky)
    await stage.end(updating)
    polling = await stage.begin_polling_stickily()
    updating = await begin_update(stage, run, "two")
    task = await stage.taken(polling)
    await answer(task, accepted(task.polled.messages[0]), completed("two"), further=(complete(),))
    await stage.end(updating)
    await stage.ended(run)
