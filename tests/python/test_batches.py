"""Batch operations on runs of an official worker; namespaces that are deleted with everything in them."""

from __future__ import annotations

import uuid

from google.protobuf.duration_pb2 import Duration
from google.protobuf.empty_pb2 import Empty
from temporalio.api.batch.v1 import (
    BatchOperationCancellation,
    BatchOperationDeletion,
    BatchOperationReset,
    BatchOperationSignal,
    BatchOperationTermination,
)
from temporalio.api.common.v1 import ResetOptions
from temporalio.api.enums.v1 import BatchOperationState
from temporalio.api.operatorservice.v1 import DeleteNamespaceRequest
from temporalio.api.workflowservice.v1 import (
    DescribeBatchOperationRequest,
    DescribeBatchOperationResponse,
    DescribeNamespaceRequest,
    ListBatchOperationsRequest,
    RegisterNamespaceRequest,
    StartBatchOperationRequest,
)
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode

from scenarios import Collector, new_worker
from server_process import NAMESPACE
from waiting import eventually

N_RUNS = 8


async def started(client: Client, task_queue: str) -> list[WorkflowHandle]:
    ids = [f"batched-{n}-{uuid.uuid4()}" for n in range(N_RUNS)]
    handles = [await client.start_workflow(Collector.run, id=workflow_id, task_queue=task_queue) for workflow_id in ids]
    await eventually(lambda: is_counted(client, query(task_queue), N_RUNS))
    return handles


async def is_counted(client: Client, text: str, expected: int) -> bool:
    return (await client.count_workflows(text)).count == expected


def query(task_queue: str) -> str:
    return f"TaskQueue = '{task_queue}' AND StartTime >= '2020-01-01T00:00:00Z'"


async def done(client: Client, task_queue: str, **operation: object) -> DescribeBatchOperationResponse:
    """Does it to all runs of the queue, and tells how that ended."""
    job_id = str(uuid.uuid4())
    await client.workflow_service.start_batch_operation(
        StartBatchOperationRequest(
            namespace=NAMESPACE, job_id=job_id, reason="a test", visibility_query=query(task_queue), **operation
        )
    )

    async def is_over() -> DescribeBatchOperationResponse | None:
        request = DescribeBatchOperationRequest(namespace=NAMESPACE, job_id=job_id)
        described = await client.workflow_service.describe_batch_operation(request)
        return None if described.state == BatchOperationState.BATCH_OPERATION_STATE_RUNNING else described

    over = await eventually(is_over)
    assert over.state == BatchOperationState.BATCH_OPERATION_STATE_COMPLETED
    listed = await client.workflow_service.list_batch_operations(ListBatchOperationsRequest(namespace=NAMESPACE))
    assert listed.operation_info[0].job_id == job_id
    return over


async def test_signals_reach_all_runs_and_a_reset_begins_them_anew(client: Client, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        handles = await started(client, task_queue)
        finish = BatchOperationSignal(signal="finish", identity="operator")
        over = await done(client, task_queue, signal_operation=finish)
        assert (over.total_operation_count, over.complete_operation_count, over.identity) == (N_RUNS, N_RUNS, "operator")
        for handle in handles:
            await handle.result()
        await eventually(lambda: is_counted(client, f"{query(task_queue)} AND ExecutionStatus = 'Completed'", N_RUNS))
        first = BatchOperationReset(options=ResetOptions(first_workflow_task=Empty()))
        over = await done(client, task_queue, reset_operation=first)
        assert (over.complete_operation_count, over.failure_operation_count) == (N_RUNS, 0)
        for handle in handles:
            again = client.get_workflow_handle(handle.id)
            await again.result()
            assert (await again.describe()).run_id != handle.first_execution_run_id


async def test_runs_are_cancelled_terminated_and_deleted(client: Client, task_queue: str) -> None:
    handles = await started(client, task_queue)
    over = await done(client, task_queue, cancellation_operation=BatchOperationCancellation(identity="operator"))
    assert over.complete_operation_count == N_RUNS
    over = await done(client, task_queue, termination_operation=BatchOperationTermination(identity="operator"))
    assert over.complete_operation_count == N_RUNS
    for handle in handles:
        described = await handle.describe()
        assert described.status == WorkflowExecutionStatus.TERMINATED
    over = await done(client, task_queue, deletion_operation=BatchOperationDeletion())
    assert over.failure_operation_count == 0
    await eventually(lambda: is_counted(client, query(task_queue), 0))


async def test_a_deleted_namespace_is_gone_and_its_name_is_free(client: Client, task_queue: str) -> None:
    name = f"doomed-{uuid.uuid4().hex[:8]}"
    register = RegisterNamespaceRequest(namespace=name, workflow_execution_retention_period=Duration(seconds=86400))
    await client.workflow_service.register_namespace(register)
    there = Client(client.service_client, namespace=name)
    for n in range(N_RUNS):
        await there.start_workflow(Collector.run, id=f"run-{n}", task_queue=task_queue)
    deleted = await client.operator_service.delete_namespace(DeleteNamespaceRequest(namespace=name))
    assert deleted.deleted_namespace.startswith(f"{name}-deleted-")

    async def is_gone() -> bool:
        try:
            request = DescribeNamespaceRequest(namespace=deleted.deleted_namespace)
            await client.workflow_service.describe_namespace(request)
        except RPCError as error:
            assert error.status == RPCStatusCode.NOT_FOUND
            return True
        return False

    await eventually(is_gone)
    await client.workflow_service.register_namespace(register)
    assert (await there.count_workflows()).count == 0
