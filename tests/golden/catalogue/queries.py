"""Queries: who answers, what is refused. They leave nothing in history."""

from __future__ import annotations

from typing import Any

from catalogue import scenario, scenario_masking
from commands import complete, failure, fail, input_of, marker
from runs import Run
from stage import Stage

ANSWERED = {"completed_type": "QUERY_RESULT_TYPE_ANSWERED", "query_result": input_of("state")}


def query_fields(run: Run, **fields: Any) -> dict[str, Any]:
    return {"execution": run.execution, "query": {"query_type": "state", "query_args": input_of("arg")}} | fields


@scenario
async def query_waiting_run(stage: Stage) -> None:
    """A run that waits: the query comes as a task of its own."""
    run = await stage.start()
    await (await stage.workflow_task()).complete(marker())
    querying = stage.begin("QueryWorkflow", **query_fields(run))
    await (await stage.workflow_task()).answer_query(**ANSWERED)
    await stage.end(querying)


@scenario
async def query_closed_run(stage: Stage) -> None:
    """A run that is over answers too, unless the caller does not want that."""
    run = await stage.start()
    await (await stage.workflow_task()).complete(fail())
    querying = stage.begin("QueryWorkflow", **query_fields(run))
    await (await stage.workflow_task()).answer_query(**ANSWERED)
    await stage.end(querying)
    for condition in ("NOT_OPEN", "NOT_COMPLETED_CLEANLY"):
        rejecting = {"query_reject_condition": f"QUERY_REJECT_CONDITION_{condition}"}
        await stage.call("QueryWorkflow", **query_fields(run, **rejecting))


@scenario
async def query_failed_by_worker(stage: Stage) -> None:
    """A worker that does not know the query says so."""
    run = await stage.start()
    await (await stage.workflow_task()).complete()
    querying = stage.begin("QueryWorkflow", **query_fields(run))
    told = {"completed_type": "QUERY_RESULT_TYPE_FAILED", "error_message": "unknown query", "failure": failure("unknown")}
    await (await stage.workflow_task()).answer_query(**told)
    await stage.end_refused(querying)


@scenario_masking("start_to_close_timeout")
async def query_when_task_fails(stage: Stage) -> None:
    """A run whose workflow task keeps failing cannot answer."""
    run = await stage.start()
    for _ in range(3):
        await (await stage.workflow_task()).fail()
    await stage.refused("QueryWorkflow", **query_fields(run))


@scenario
async def query_refused(stage: Stage) -> None:
    """Queries that are no good, or reach nobody."""
    run = await stage.start()
    await stage.refused("QueryWorkflow", execution=run.execution)
    await stage.refused("QueryWorkflow", execution=run.execution, query={"query_type": ""})
    await stage.refused("QueryWorkflow", **query_fields(Run(f"{stage.id}-unknown", "")))
    await stage.refused("QueryWorkflow", **query_fields(Run("", "")))
    await stage.refused("QueryWorkflow", **query_fields(Run(stage.id, "no-uuid")))
    await stage.refused("RespondQueryTaskCompleted", **ANSWERED)


@scenario
async def query_with_task(stage: Stage) -> None:
    """A query that finds a workflow task due rides with it."""
    run = await stage.start()
    await (await stage.workflow_task()).complete()
    querying = stage.begin("QueryWorkflow", **query_fields(run))
    # Whether the query came before the signal or not, the answer is given by a worker that has seen it.
    direct = await stage.workflow_task()
    await stage.signal(run, "news")
    await direct.answer_query(**ANSWERED)
    await stage.end(querying)
    await (await stage.workflow_task()).complete(complete())
    await stage.ended(run)
