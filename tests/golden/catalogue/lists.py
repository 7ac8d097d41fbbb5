"""Lists and counts of runs: what is told of each, in which order, page by page."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from catalogue import scenario, scenario_masking
from commands import cancel_workflow, complete, continue_as_new, fail, payload, typed
from stage import Stage
from waiting import eventually

ATTRIBUTES = {
    "Flag": "BOOL",
    "Moment": "DATETIME",
    "Ratio": "DOUBLE",
    "Amount": "INT",
    "Color": "KEYWORD",
    "Tags": "KEYWORD_LIST",
    "Words": "TEXT",
}

VALUES: list[dict[str, Any]] = [
    {"Color": "red", "Amount": 1, "Ratio": 0.5, "Flag": True, "Tags": ["a", "b"], "Words": "the quick fox"},
    {"Color": "green", "Amount": 2, "Ratio": 1.5, "Flag": False, "Tags": ["b"], "Moment": "2020-01-02T03:04:05Z"},
    {"Color": "red", "Amount": 3, "Ratio": 2.0, "Moment": "2021-01-01T00:00:00.5+02:00", "Words": "slow fox"},
    {},
]


def attributes_of(values: dict[str, Any]) -> dict[str, Any]:
    kinds = {name: kind.title().replace("_L", "L") for name, kind in ATTRIBUTES.items()}
    return {"indexed_fields": {name: typed(value, kinds[name]) for name, value in values.items()}}


async def with_values(stage: Stage) -> None:
    """Four runs in a namespace of their own, `a` to `d`, with the values above."""
    await stage.settle(**ATTRIBUTES)
    for name, values in zip("abcd", VALUES):
        await stage.start(f"{stage.id}-{name}", search_attributes=attributes_of(values))
    await eventually(partial(stage.listed, len(VALUES)))


async def in_all_states(stage: Stage) -> None:
    """Runs that ended each in its own way, and two that go on, in a namespace of their own; begun one after the other."""
    await stage.settle(Color="KEYWORD")
    again = continue_as_new(stage.queue)
    for n, end in enumerate((complete("out"), fail(), cancel_workflow(), again)):
        run = await stage.start(f"{stage.id}-{n}", workflow_type={"name": f"type-{n % 2}"})
        await (await stage.workflow_task()).complete(end)
        await asyncio.sleep(0.01)
    await (await stage.workflow_task()).complete(complete())
    run = await stage.start(f"{stage.id}-4", memo={"fields": {"key": payload("value")}})
    await stage.terminate(run)
    values = attributes_of({"Color": "red"})
    await stage.start(f"{stage.id}-5", search_attributes=values, priority={"priority_key": 2})
    await stage.start(f"{stage.id}-6", workflow_start_delay={"seconds": 3600})
    # Closed is final: once all six are told as such, the two that run can only be the two.
    for query, n in (("ExecutionStatus != 'Running'", 6), ("ExecutionStatus = 'Running'", 2)):
        await eventually(partial(stage.listed, n, query))


@scenario_masking("state_transition_count")
async def list_shows(stage: Stage) -> None:
    """What lists tell of runs in all states, newest first."""
    await in_all_states(stage)
    await stage.call("ListWorkflowExecutions")
    await stage.call("ScanWorkflowExecutions", query="ExecutionStatus = 'Running'")


@scenario_masking("state_transition_count")
async def list_open_and_closed(stage: Stage) -> None:
    """The older lists, with each of their filters."""
    await in_all_states(stage)
    ever = {"start_time_filter": {"earliest_time": {"seconds": 0}, "latest_time": {"seconds": 4_000_000_000}}}
    execution = {"execution_filter": {"workflow_id": f"{stage.id}-5"}}
    for fields in ({}, ever, execution, {"type_filter": {"name": "golden"}}):
        await stage.call("ListOpenWorkflowExecutions", **fields)
    execution = {"execution_filter": {"workflow_id": f"{stage.id}-1"}}
    failed = {"status_filter": {"status": "WORKFLOW_EXECUTION_STATUS_FAILED"}}
    for fields in ({}, ever, execution, {"type_filter": {"name": "type-1"}}, failed):
        await stage.call("ListClosedWorkflowExecutions", **fields)


@scenario
async def list_open_and_closed_refused(stage: Stage) -> None:
    """The older lists, asked in wrong ways."""
    backwards = {"start_time_filter": {"earliest_time": {"seconds": 2}, "latest_time": {"seconds": 1}}}
    cases = {
        "times the wrong way round": backwards,
        "no times": {"start_time_filter": {}},
        "an execution without id": {"execution_filter": {}, "maximum_page_size": 1},
        "a run id only": {"execution_filter": {"run_id": "x"}},
        "a type without name": {"type_filter": {}},
        "a negative page": {"maximum_page_size": -1, "execution_filter": {"workflow_id": "nobody"}},
        "a huge page": {"maximum_page_size": 1_000_000, "execution_filter": {"workflow_id": "nobody"}},
    }
    await stage.settle()
    await stage.each_refused("ListOpenWorkflowExecutions", {}, cases)
    cases |= {
        "status unspecified": {"status_filter": {}},
        "status running": {"status_filter": {"status": "WORKFLOW_EXECUTION_STATUS_RUNNING"}},
        "no such status": {"status_filter": {"status": 77}},
    }
    await stage.each_refused("ListClosedWorkflowExecutions", {}, cases)


@scenario
async def list_pages(stage: Stage) -> None:
    """Lists read page by page."""
    await with_values(stage)
    for rpc in ("ListWorkflowExecutions", "ScanWorkflowExecutions"):
        for size in (1, 3, 4, 5):
            token = b""
            pages = []
            while True:
                page = await stage.silently(rpc, page_size=size, next_page_token=token)
                pages.append([found.execution.workflow_id for found in page.executions])
                token = page.next_page_token
                if not token:
                    break
            stage.note(f"{rpc} by {size}", pages)


@scenario
async def list_pages_refused(stage: Stage) -> None:
    """Sizes of pages that are none."""
    await stage.settle()
    cases = {"negative": {"page_size": -1}, "huge": {"page_size": 1_000_000}}
    for rpc in ("ListWorkflowExecutions", "ScanWorkflowExecutions", "ListArchivedWorkflowExecutions"):
        await stage.each_refused(rpc, {}, cases)
    await stage.each_refused("ListBatchOperations", {}, cases)
    await stage.each_refused("ListSchedules", {}, {"negative": {"maximum_page_size": -1}})


@scenario
async def list_tokens_refused(stage: Stage) -> None:
    """Tokens of pages that are none."""
    await stage.settle()
    for rpc in (
        "ListWorkflowExecutions",
        "ScanWorkflowExecutions",
        "ListOpenWorkflowExecutions",
        "ListClosedWorkflowExecutions",
        "ListSchedules",
        "ListBatchOperations",
        "ListNexusEndpoints",
    ):
        await stage.refused(rpc, next_page_token=b"broken")


@scenario
async def list_in_no_namespace(stage: Stage) -> None:
    """Lists of a namespace that is not named, not there, or cannot be."""
    for namespace in ("", "nobody", "x" * 1001):
        for rpc in (
            "ListWorkflowExecutions",
            "ScanWorkflowExecutions",
            "CountWorkflowExecutions",
            "ListOpenWorkflowExecutions",
            "ListClosedWorkflowExecutions",
            "ListArchivedWorkflowExecutions",
            "ListSchedules",
            "CountSchedules",
            "ListBatchOperations",
        ):
            await stage.refused(rpc, namespace=namespace)


@scenario
async def count_by_status(stage: Stage) -> None:
    """Counts, of all and in groups."""
    await in_all_states(stage)
    for query in (
        "",
        "WorkflowType = 'type-1'",
        "WorkflowType = 'nobody'",
        "group by ExecutionStatus",
        "WorkflowType = 'type-0' GROUP BY ExecutionStatus",
        "WorkflowType = 'nobody' GROUP BY ExecutionStatus",
    ):
        counted = await stage.silently("CountWorkflowExecutions", query=query)
        # The groups come in any order.
        counted.groups.sort(key=lambda group: group.group_values[0].data)
        stage.note(query, counted)


@scenario
async def search_attributes_known(stage: Stage) -> None:
    """The search attributes of a namespace that has one of each type."""
    await stage.settle(**ATTRIBUTES)
    found = await stage.silently("ListSearchAttributes", namespace=stage.namespace)
    stage.note("custom", {name: int(kind) for name, kind in sorted(found.custom_attributes.items())})
    stage.note("system", {name: int(kind) for name, kind in sorted(found.system_attributes.items())})
