"""Reset, deletion and pause, with a worker of the official SDK: what the new run has is replayed by it as its own."""

from __future__ import annotations

import uuid

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import (
    DeleteWorkflowExecutionRequest,
    PauseWorkflowExecutionRequest,
    ResetWorkflowExecutionRequest,
    UnpauseWorkflowExecutionRequest,
)
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Replayer

from history_law import kind_of
from scenarios import Collector, new_worker
from server_process import NAMESPACE
from waiting import eventually


async def completed_tasks(handle: WorkflowHandle) -> list[int]:
    events = (await handle.fetch_history()).events
    return [event.event_id for event in events if kind_of(event) == "workflow_task_completed"]


async def reset(client: Client, handle: WorkflowHandle, event_id: int) -> WorkflowHandle:
    request = ResetWorkflowExecutionRequest(
        namespace=NAMESPACE,
        workflow_execution=WorkflowExecution(workflow_id=handle.id),
        workflow_task_finish_event_id=event_id,
        reason="bad deploy",
        request_id=str(uuid.uuid4()),
    )
    answer = await client.workflow_service.reset_workflow_execution(request)
    return client.get_workflow_handle(handle.id, run_id=answer.run_id)


async def test_a_reset_run_hears_again_what_came_after_its_point(client: Client, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        base = await client.start_workflow(Collector.run, id=f"reset-{uuid.uuid4()}", task_queue=task_queue)
        await base.signal(Collector.add, "one")
        await base.signal(Collector.add, "two")
        await eventually(lambda: has_completed(base, 1))
        first = (await completed_tasks(base))[0]
        again = await reset(client, base, first)
        assert again.run_id != base.result_run_id
        await again.signal(Collector.finish)
        assert await again.result() == ["one", "two"]
        old = await client.get_workflow_handle(base.id, run_id=base.result_run_id).describe()
        assert old.status == WorkflowExecutionStatus.TERMINATED

        # A closed run, too, and one that was reset before.
        last = (await completed_tasks(again))[-1]
        third = await reset(client, again, last)
        assert await third.result() == ["one", "two"]
    for handle in (again, third):
        await Replayer(workflows=[Collector]).replay_workflow(await handle.fetch_history())


async def has_completed(handle: WorkflowHandle, at_least: int) -> bool:
    return len(await completed_tasks(handle)) >= at_least


async def test_a_deleted_run_is_gone_and_the_one_that_was_reset_from_it_stays(client: Client, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        base = await client.start_workflow(Collector.run, id=f"delete-{uuid.uuid4()}", task_queue=task_queue)
        await eventually(lambda: has_completed(base, 1))
        again = await reset(client, base, (await completed_tasks(base))[0])
        gone = WorkflowExecution(workflow_id=base.id, run_id=base.result_run_id)
        request = DeleteWorkflowExecutionRequest(namespace=NAMESPACE, workflow_execution=gone)
        await client.workflow_service.delete_workflow_execution(request)
        await eventually(lambda: is_gone(client.get_workflow_handle(base.id, run_id=base.result_run_id)))
        await again.signal(Collector.add, "still here")
        await again.signal(Collector.finish)
        assert await again.result() == ["still here"]
    await Replayer(workflows=[Collector]).replay_workflow(await again.fetch_history())


async def is_gone(handle: WorkflowHandle) -> bool:
    try:
        await handle.describe()
    except RPCError as error:
        return error.status == RPCStatusCode.NOT_FOUND
    return False


async def test_a_paused_run_goes_on_when_it_is_unpaused(client: Client, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        handle = await client.start_workflow(Collector.run, id=f"pause-{uuid.uuid4()}", task_queue=task_queue)
        await eventually(lambda: has_completed(handle, 1))
        pause = PauseWorkflowExecutionRequest(namespace=NAMESPACE, workflow_id=handle.id, request_id=str(uuid.uuid4()))
        await client.workflow_service.pause_workflow_execution(pause)
        n_tasks = len(await completed_tasks(handle))
        await handle.signal(Collector.add, "one")
        await handle.signal(Collector.finish)
        assert len(await completed_tasks(handle)) == n_tasks
        unpause = UnpauseWorkflowExecutionRequest(namespace=NAMESPACE, workflow_id=handle.id)
        await client.workflow_service.unpause_workflow_execution(unpause)
        assert await handle.result() == ["one"]
    await Replayer(workflows=[Collector]).replay_workflow(await handle.fetch_history())
