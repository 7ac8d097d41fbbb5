"""Calls that name no namespace, an unknown one, or a run that is not there."""

from __future__ import annotations

from typing import Any

from catalogue import scenario
from stage import Stage

UNKNOWN_RUN = "00000000-0000-4000-8000-000000000000"


def calls(stage: Stage, run_id: str = "") -> list[tuple[str, dict[str, Any]]]:
    """Each call that means one run, with the run that it means."""
    workflow_id = f"{stage.id}-unknown"
    execution = {"workflow_id": workflow_id, "run_id": run_id}
    by_name = {"workflow_id": workflow_id, "run_id": run_id, "activity_id": "activity"}
    update = {"meta": {"update_id": "u"}, "input": {"name": "n"}}
    options = {"workflow_execution_options": {}, "update_mask": {"paths": ["priority"]}}
    return [
        ("SignalWorkflowExecution", {"workflow_execution": execution, "signal_name": "s"}),
        ("DescribeWorkflowExecution", {"execution": execution}),
        ("TerminateWorkflowExecution", {"workflow_execution": execution}),
        ("RequestCancelWorkflowExecution", {"workflow_execution": execution}),
        ("GetWorkflowExecutionHistory", {"execution": execution}),
        ("GetWorkflowExecutionHistoryReverse", {"execution": execution}),
        ("QueryWorkflow", {"execution": execution, "query": {"query_type": "state"}}),
        ("UpdateWorkflowExecution", {"workflow_execution": execution, "request": update}),
        ("PollWorkflowExecutionUpdate", {"update_ref": {"workflow_execution": execution, "update_id": "u"}}),
        (
            "ResetWorkflowExecution",
            {"workflow_execution": execution, "request_id": "r", "workflow_task_finish_event_id": 4},
        ),
        ("DeleteWorkflowExecution", {"workflow_execution": execution}),
        ("ResetStickyTaskQueue", {"execution": execution}),
        ("PauseActivity", {"execution": execution, "id": "activity"}),
        ("UnpauseActivity", {"execution": execution, "id": "activity"}),
        ("ResetActivity", {"execution": execution, "id": "activity"}),
        ("UpdateActivityOptions", {"execution": execution, "id": "activity"}),
        ("UpdateWorkflowExecutionOptions", {"workflow_execution": execution} | options),
        ("PauseWorkflowExecution", {"workflow_id": workflow_id, "run_id": run_id, "request_id": "r"}),
        ("UnpauseWorkflowExecution", {"workflow_id": workflow_id, "run_id": run_id, "request_id": "r"}),
        ("RespondActivityTaskCompletedById", by_name),
        ("RespondActivityTaskFailedById", by_name),
        ("RespondActivityTaskCanceledById", by_name),
        ("RecordActivityTaskHeartbeatById", by_name),
    ]


def others(stage: Stage) -> list[tuple[str, dict[str, Any]]]:
    queue = {"task_queue": {"name": stage.queue}}
    start = stage.start_fields()
    return [
        ("StartWorkflowExecution", start),
        ("SignalWithStartWorkflowExecution", start | {"signal_name": "s"}),
        ("ExecuteMultiOperation", {}),
        ("PollWorkflowTaskQueue", queue),
        ("PollActivityTaskQueue", queue),
        ("DescribeTaskQueue", queue),
        ("DescribeNamespace", {}),
        ("RespondWorkflowTaskCompleted", {}),
        ("RespondWorkflowTaskFailed", {}),
        ("RespondActivityTaskCompleted", {"task_token": b"none"}),
    ]


@scenario
async def refused_without_namespace(stage: Stage) -> None:
    """No namespace is named."""
    for rpc, fields in calls(stage) + others(stage):
        await stage.refused(rpc, **fields, namespace="")


@scenario
async def refused_in_unknown_namespace(stage: Stage) -> None:
    """A namespace is named that is not there."""
    for rpc, fields in calls(stage) + others(stage):
        await stage.refused(rpc, **fields, namespace="nobody")


@scenario
async def refused_in_long_namespace(stage: Stage) -> None:
    """A namespace is named that cannot be."""
    for rpc, fields in calls(stage) + others(stage):
        await stage.refused(rpc, **fields, namespace="x" * 1001)


@scenario
async def refused_unknown_workflow(stage: Stage) -> None:
    """No run has the id."""
    for rpc, fields in calls(stage):
        await stage.refused(rpc, **fields)


@scenario
async def refused_unknown_run(stage: Stage) -> None:
    """No run has the run id."""
    for rpc, fields in calls(stage, UNKNOWN_RUN):
        await stage.refused(rpc, **fields)


@scenario
async def refused_bad_run_id(stage: Stage) -> None:
    """The run id is none."""
    for rpc, fields in calls(stage, "no-uuid"):
        await stage.refused(rpc, **fields)
