"""`temporal workflow … --query` and `temporal batch`: the same to many runs, and how far it is."""

from __future__ import annotations

import uuid
from typing import Any

from temporalio.client import Client

from cli import Cli, words
from ledger import new_worker

RUNS = 3


async def open_ledgers(cli: Cli, task_queue: str) -> list[str]:
    ids = [f"ledger-{uuid.uuid4()}" for _ in range(RUNS)]
    for workflow_id in ids:
        await cli.text("workflow", "start", "--type", "Ledger", "-t", task_queue, "-w", workflow_id, "-i", "1")
    await counted(cli, task_queue, "Running", RUNS)
    return ids


async def counted(cli: Cli, task_queue: str, status: str, count: int) -> None:
    query = f"TaskQueue = '{task_queue}' AND ExecutionStatus = '{status}'"
    await cli.until("workflow", "count", "--query", query, of=lambda answer: int(answer.get("count", "0")) == count)


async def batch(cli: Cli, task_queue: str, *command: str) -> Any:
    """Starts a batch on all runs of the queue, and waits for its end."""
    query = ["--query", f"TaskQueue = '{task_queue}'", "--yes", "--reason", "all of them"]
    started = await cli.json("workflow", *command, *query)
    job = ["--job-id", started["batchJobId"]]
    described = await cli.until("batch", "describe", *job, of=lambda described: described["state"] != "BATCH_OPERATION_STATE_RUNNING")
    assert described["state"] == "BATCH_OPERATION_STATE_COMPLETED"
    assert (described["totalOperationCount"], described["completeOperationCount"]) == (str(RUNS), str(RUNS))
    assert described["reason"] == "all of them" and "failureOperationCount" not in described
    return described


async def test_many_runs_are_signalled_and_reset(client: Client, cli: Cli, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        ids = await open_ledgers(cli, task_queue)
        signalled = await batch(cli, task_queue, "signal", "--name", "add", "-i", "3")
        for workflow_id in ids:
            assert await cli.query(workflow_id, "total") == 4
        for_people = words(await cli.text("batch", "describe", "--job-id", signalled["jobId"]))
        assert (for_people["State"], for_people["CompletedCount"]) == ("Completed", f"{RUNS}/{RUNS}")
        query = ["--query", f"TaskQueue = '{task_queue}'", "--yes"]
        started = await cli.text("workflow", "reset", *query, "--type", "FirstWorkflowTask", "--reason", "again")
        assert "Started batch for job ID" in started
        await counted(cli, task_queue, "Terminated", RUNS)
        await counted(cli, task_queue, "Running", RUNS)


async def test_many_runs_are_cancelled(client: Client, cli: Cli, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        await open_ledgers(cli, task_queue)
        await batch(cli, task_queue, "cancel")
        await counted(cli, task_queue, "Canceled", RUNS)


async def test_many_runs_are_terminated_and_deleted(cli: Cli, task_queue: str) -> None:
    ids = await open_ledgers(cli, task_queue)
    terminated = await batch(cli, task_queue, "terminate")
    history = await cli.json("workflow", "show", "-w", ids[0])
    assert history["events"][-1]["workflowExecutionTerminatedEventAttributes"]["reason"] == "all of them"
    await counted(cli, task_queue, "Terminated", RUNS)
    deleted = await batch(cli, task_queue, "delete")
    await counted(cli, task_queue, "Terminated", 0)
    listed = await cli.until("batch", "list", of=lambda jobs: jobs is not None and {terminated["jobId"], deleted["jobId"]} <= ids_of(jobs))
    assert all(job["state"] == "BATCH_OPERATION_STATE_COMPLETED" for job in listed if job["jobId"] == deleted["jobId"])


def ids_of(jobs: list[Any]) -> set[str]:
    return {job["jobId"] for job in jobs}


async def test_a_batch_is_stopped(cli: Cli, task_queue: str) -> None:
    await open_ledgers(cli, task_queue)
    # So slow that it does not end by itself while it is looked at.
    query = ["--query", f"TaskQueue = '{task_queue}'", "--yes", "--rps", "0.01"]
    started = await cli.json("workflow", "signal", *query, "--name", "add", "-i", "1")
    job = ["--job-id", started["batchJobId"]]
    await cli.text("batch", "terminate", *job, "--reason", "enough")
    await cli.until("batch", "describe", *job, of=lambda described: described["state"] == "BATCH_OPERATION_STATE_FAILED")


async def test_what_is_no_batch_is_told_so(cli: Cli) -> None:
    assert "could not find Batch Job" in await cli.refused("batch", "describe", "--job-id", str(uuid.uuid4()))
    assert "could not find Batch Job" in await cli.refused("batch", "terminate", "--job-id", str(uuid.uuid4()), "--reason", "r")
