"""Lists and counts with the official SDK: runs of a worker, as they start, close and are deleted."""

from __future__ import annotations

import uuid

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import Client, WorkflowExecutionStatus

from scenarios import Collector, new_worker
from server_process import NAMESPACE
from waiting import eventually


async def listed(client: Client, query: str) -> list[tuple[str, WorkflowExecutionStatus | None]]:
    return [(run.id, run.status) async for run in client.list_workflows(query, page_size=2)]


async def test_runs_are_listed_counted_and_forgotten(client: Client, task_queue: str) -> None:
    ids = [f"listed-{n}-{uuid.uuid4()}" for n in range(5)]
    query = f"TaskQueue = '{task_queue}' AND StartTime >= '2020-01-01T00:00:00Z'"
    async with new_worker(client, task_queue):
        handles = [await client.start_workflow(Collector.run, id=workflow_id, task_queue=task_queue) for workflow_id in ids]
        running = [(workflow_id, WorkflowExecutionStatus.RUNNING) for workflow_id in reversed(ids)]
        await eventually(lambda: is_listed(client, query, running))
        for handle in handles[:2]:
            await handle.signal(Collector.finish)
            await handle.result()
        completed = [(workflow_id, WorkflowExecutionStatus.COMPLETED) for workflow_id in (ids[1], ids[0])]
        await eventually(lambda: is_listed(client, query, running[:3] + completed))
        assert await listed(client, f"{query} AND ExecutionStatus = 'Completed'") == completed
        assert await listed(client, f"WorkflowId = '{ids[3]}'") == [(ids[3], WorkflowExecutionStatus.RUNNING)]
        counted = await client.count_workflows(f"{query} GROUP BY ExecutionStatus")
        groups = {group.group_values[0]: group.count for group in counted.groups}
        assert (counted.count, groups) == (5, {"Running": 3, "Completed": 2})
        await client.workflow_service.delete_workflow_execution(
            DeleteWorkflowExecutionRequest(namespace=NAMESPACE, workflow_execution=WorkflowExecution(workflow_id=ids[0]))
        )
        await eventually(lambda: is_listed(client, query, running[:3] + completed[:1]))
        for handle in handles[2:]:
            await handle.signal(Collector.finish)


async def is_listed(client: Client, query: str, expected: list[tuple[str, WorkflowExecutionStatus]]) -> bool:
    return await listed(client, query) == expected
