"""The pages of the web UI show what is there. Pages of what is not built must still come up."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

from temporalio.api.batch.v1 import BatchOperationTermination
from temporalio.api.workflowservice.v1 import StartBatchOperationRequest
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleIntervalSpec,
    ScheduleSpec,
    WorkflowHandle,
)

from ledger import Doubling, Ledger, new_worker
from server_process import NAMESPACE
from ui import Ui
from waiting import eventually

WORKFLOWS = "/namespaces/default/workflows"


async def open_ledger(client: Client, task_queue: str) -> WorkflowHandle[Any, Any]:
    return await client.start_workflow(Ledger.run, 5, id=f"ledger-{uuid.uuid4()}", task_queue=task_queue, memo={"branch": "north"})


async def doubled(client: Client, task_queue: str) -> str:
    workflow_id = f"doubling-{uuid.uuid4()}"
    await client.execute_workflow(Doubling.run, 21, id=workflow_id, task_queue=task_queue)
    return workflow_id


async def listed(client: Client, task_queue: str, count: int) -> None:
    async def all_are() -> bool:
        return (await client.count_workflows(f"TaskQueue = '{task_queue}'")).count == count

    await eventually(all_are)


def nothing_refused(ui: Ui) -> None:
    assert not ui.refused


async def test_the_list_shows_runs(ui: Ui, client: Client, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        closed = await doubled(client, task_queue)
        running = await open_ledger(client, task_queue)
        await listed(client, task_queue, 2)
        await ui.open(WORKFLOWS, running.id, closed)
    text = await ui.text()
    assert "Doubling" in text and "Ledger" in text
    assert "COMPLETED" in text and "RUNNING" in text
    nothing_refused(ui)


async def test_the_list_is_filtered(ui: Ui, client: Client, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        closed = await doubled(client, task_queue)
        running = await open_ledger(client, task_queue)
        await listed(client, task_queue, 2)
        await ui.open(f"{WORKFLOWS}?query=TaskQueue%3D%22{task_queue}%22+AND+ExecutionStatus%3D%22Completed%22", closed, "1 COMPLETED")
    assert running.id not in await ui.text()
    nothing_refused(ui)


async def test_a_run_shows_its_history(ui: Ui, client: Client, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        workflow_id = await doubled(client, task_queue)
    run_id = (await client.get_workflow_handle(workflow_id).describe()).run_id
    await ui.open(f"{WORKFLOWS}/{workflow_id}/{run_id}/history", "Workflow Execution Completed", "Workflow Execution Started", workflow_id)
    text = await ui.text()
    assert "42" in text and "21" in text and task_queue in text
    nothing_refused(ui)


async def test_a_running_workflow_shows_its_relations_and_memo(ui: Ui, client: Client, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        handle = await open_ledger(client, task_queue)
        assert await handle.query(Ledger.total) == 5
        await ui.open(f"{WORKFLOWS}/{handle.id}/{handle.result_run_id}/timeline", handle.id, "RUNNING", "Ledger")
        await ui.open(f"{WORKFLOWS}/{handle.id}/{handle.result_run_id}/memo", "branch", "north")
        await ui.open(f"{WORKFLOWS}/{handle.id}/{handle.result_run_id}/workers", client.identity)
    nothing_refused(ui)


async def test_a_task_queue_shows_its_worker(ui: Ui, client: Client, task_queue: str) -> None:
    worker = new_worker(client, task_queue)
    async with worker:
        await doubled(client, task_queue)
        await ui.open(f"/namespaces/default/task-queues/{task_queue}", task_queue, client.identity)
    nothing_refused(ui)


async def test_namespaces_are_listed_and_described(ui: Ui) -> None:
    await ui.open("/namespaces", "default")
    await ui.open("/namespaces/default", "Namespace: default", "1 day", "WorkflowId")
    nothing_refused(ui)


async def test_a_schedule_is_listed_and_shown(ui: Ui, client: Client, task_queue: str) -> None:
    schedule_id = f"schedule-{uuid.uuid4()}"
    action = ScheduleActionStartWorkflow(Doubling.run, 21, id=f"doubling-{uuid.uuid4()}", task_queue=task_queue)
    spec = ScheduleSpec(intervals=[ScheduleIntervalSpec(every=timedelta(hours=7))])
    schedule = await client.create_schedule(schedule_id, Schedule(action=action, spec=spec))
    async with new_worker(client, task_queue):
        await schedule.trigger()

        async def has_acted() -> bool:
            return bool((await schedule.describe()).info.recent_actions)

        await eventually(has_acted)

        async def is_listed() -> bool:
            return schedule_id in [one.id async for one in await client.list_schedules()]

        await eventually(is_listed)
    await ui.open("/namespaces/default/schedules", schedule_id, "Doubling")
    await ui.open(f"/namespaces/default/schedules/{schedule_id}", schedule_id, "Doubling")
    nothing_refused(ui)


async def test_a_batch_is_listed(ui: Ui, client: Client, task_queue: str) -> None:
    await open_ledger(client, task_queue)
    await listed(client, task_queue, 1)
    job_id = str(uuid.uuid4())
    await client.workflow_service.start_batch_operation(
        StartBatchOperationRequest(
            namespace=NAMESPACE,
            visibility_query=f"TaskQueue = '{task_queue}'",
            job_id=job_id,
            reason="spring cleaning",
            termination_operation=BatchOperationTermination(),
        )
    )
    await ui.open("/namespaces/default/batch-operations", job_id)
    await ui.open(f"/namespaces/default/batch-operations/{job_id}", job_id, "spring cleaning")
    nothing_refused(ui)


async def test_pages_of_what_is_not_built_come_up(ui: Ui) -> None:
    for path, title in (
        ("/namespaces/default/workers", "Workers"),
        ("/namespaces/default/archival", "Archive"),
    ):
        await ui.open(path, title)
        assert "There's an error" not in await ui.text()
