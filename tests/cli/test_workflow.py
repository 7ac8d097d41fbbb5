"""`temporal workflow`: everything that can be done to a run."""

from __future__ import annotations

import uuid
from typing import Any

from temporalio.client import Client

from cli import Cli, words
from ledger import new_worker

RUNNING = "WORKFLOW_EXECUTION_STATUS_RUNNING"


async def start(cli: Cli, task_queue: str, opening: int = 5) -> str:
    workflow_id = f"ledger-{uuid.uuid4()}"
    started = await cli.json("workflow", "start", "--type", "Ledger", "-t", task_queue, "-w", workflow_id, "-i", str(opening))
    assert (started["workflowId"], started["type"], started["taskQueue"]) == (workflow_id, "Ledger", task_queue)
    assert uuid.UUID(started["runId"])
    return workflow_id


async def status(cli: Cli, workflow_id: str) -> str:
    described = await cli.json("workflow", "describe", "-w", workflow_id)
    return described["workflowExecutionInfo"]["status"].removeprefix("WORKFLOW_EXECUTION_STATUS_")


def groups(counted: dict[str, Any]) -> dict[str, str]:
    return {group["groupValues"][0]: group["count"] for group in counted.get("groups", [])}


def types(history: dict[str, Any]) -> list[str]:
    return [event["eventType"].removeprefix("EVENT_TYPE_") for event in history["events"]]


async def test_a_run_is_started_signalled_queried_and_its_result_shown(client: Client, cli: Cli, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        workflow_id = await start(cli, task_queue)
        assert await cli.text("workflow", "signal", "-w", workflow_id, "--name", "add", "-i", "3") == "Signal workflow succeeded\n"
        assert await cli.query(workflow_id, "total") == 8
        assert await status(cli, workflow_id) == "RUNNING"
        await cli.text("workflow", "signal", "-w", workflow_id, "--name", "close")
        result = await cli.json("workflow", "result", "-w", workflow_id)
        assert (result["status"], result["result"]) == ("COMPLETED", 8)
    shown = types(await cli.json("workflow", "show", "-w", workflow_id))
    assert shown[0] == "WORKFLOW_EXECUTION_STARTED" and shown[-1] == "WORKFLOW_EXECUTION_COMPLETED"
    for_people = await cli.text("workflow", "show", "-w", workflow_id)
    assert "WorkflowExecutionSignaled" in for_people and words(for_people)["Status"] == "COMPLETED"
    described = words(await cli.text("workflow", "describe", "-w", workflow_id))
    assert (described["WorkflowId"], described["Type"], described["Status"]) == (workflow_id, "Ledger", "COMPLETED")


async def test_a_run_is_executed_and_traced(client: Client, cli: Cli, task_queue: str) -> None:
    workflow_id = f"doubling-{uuid.uuid4()}"
    arguments = ["--type", "Doubling", "-t", task_queue, "-w", workflow_id, "-i", "21"]
    async with new_worker(client, task_queue):
        executed = await cli.json("workflow", "execute", *arguments)
        assert (executed["status"], executed["result"]) == ("COMPLETED", 42)
        assert executed["closeEvent"]["workflowExecutionCompletedEventAttributes"]["result"] == [42]
        again = await cli.text("workflow", "execute", *arguments)
        assert "Result          42" in again and "WorkflowExecutionCompleted" in again
    traced = await cli.text("workflow", "trace", "-w", workflow_id, "--no-fold")
    assert "✓ Doubling" in traced and f"wfId: {workflow_id}" in traced


async def test_runs_are_listed_and_counted(client: Client, cli: Cli, task_queue: str) -> None:
    ids = sorted([await start(cli, task_queue, number) for number in range(3)])
    await cli.text("workflow", "terminate", "-w", ids[0], "--reason", "enough")
    everything = f"TaskQueue = '{task_queue}'"
    open_only = f"{everything} AND ExecutionStatus = 'Running'"
    # Each shard tells lists of its own runs in its own time: all three must have arrived as they are now.
    by_status = ["workflow", "count", "--query", f"{everything} GROUP BY ExecutionStatus"]
    grouped = await cli.until(*by_status, of=lambda counted: groups(counted) == {"Running": "2", "Terminated": "1"})
    assert grouped["count"] == "3"
    assert await cli.text("workflow", "count", "--query", everything) == "Total: 3\n"

    listed = await cli.json("workflow", "list", "--query", open_only)
    assert sorted(run["execution"]["workflowId"] for run in listed) == ids[1:]
    assert all(run["status"] == RUNNING and run["type"] == {"name": "Ledger"} for run in listed)
    one = await cli.json("workflow", "list", "--query", everything, "--limit", "1")
    assert len(one) == 1
    for_people = await cli.text("workflow", "list", "--query", f"WorkflowId = '{ids[0]}'")
    assert for_people.split()[:6] == ["Status", "WorkflowId", "Type", "StartTime", "Terminated", ids[0]]
    assert "invalid query" in await cli.refused("workflow", "list", "--query", "WorkflowId =")


async def test_a_run_is_updated(client: Client, cli: Cli, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        workflow_id = await start(cli, task_queue)
        deposit = ["-w", workflow_id, "--name", "deposit"]
        executed = await cli.json("workflow", "update", "execute", *deposit, "-i", "4")
        assert (executed["name"], executed["result"]) == ("deposit", 9)
        update = ["-w", workflow_id, "--update-id", "second"]
        started = await cli.json("workflow", "update", "start", *deposit, "-i", "1", "--wait-for-stage", "accepted", "--update-id", "second")
        assert started == {"name": "deposit", "updateId": "second"}
        assert (await cli.json("workflow", "update", "result", *update))["result"] == 10
        assert await cli.json("workflow", "update", "describe", *update) == {"updateId": "second", "result": 10, "stage": "Completed"}
        refusal = await cli.refused("workflow", "update", "execute", *deposit, "-i", "0")
        assert "a deposit is more than nothing (type: NoDeposit" in refusal


async def test_a_run_is_started_with_what_it_is_sent(client: Client, cli: Cli, task_queue: str) -> None:
    run = ["--type", "Ledger", "-t", task_queue, "-i", "5"]
    signalled, updated = f"ledger-{uuid.uuid4()}", f"ledger-{uuid.uuid4()}"
    async with new_worker(client, task_queue):
        started = await cli.json("workflow", "signal-with-start", *run, "-w", signalled, "--signal-name", "add", "--signal-input", "1")
        assert started["workflowId"] == signalled
        assert await cli.query(signalled, "total") == 6
        deposit = ["-w", updated, "--update-name", "deposit", "--update-input", "2", "--id-conflict-policy", "UseExisting"]
        executed = await cli.json("workflow", "execute-update-with-start", *run, *deposit)
        assert (executed["workflowId"], executed["updateResult"]) == (updated, 7)
        stage = ["--update-wait-for-stage", "accepted"]
        again = await cli.json("workflow", "start-update-with-start", *run, *deposit, *stage)
        assert (again["runId"], again["updateName"]) == (executed["runId"], "deposit")


async def test_a_run_is_cancelled(client: Client, cli: Cli, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        workflow_id = await start(cli, task_queue)
        assert await cli.text("workflow", "cancel", "-w", workflow_id) == "Canceled workflow\n"
        await cli.refused("workflow", "result", "-w", workflow_id)
    assert await status(cli, workflow_id) == "CANCELED"


async def test_a_run_is_terminated_and_deleted(cli: Cli, task_queue: str) -> None:
    workflow_id = await start(cli, task_queue)
    assert await cli.text("workflow", "terminate", "-w", workflow_id, "--reason", "enough") == "Workflow terminated\n"
    history = await cli.json("workflow", "show", "-w", workflow_id)
    assert history["events"][-1]["workflowExecutionTerminatedEventAttributes"]["reason"] == "enough"
    assert (await cli.text("workflow", "delete", "-w", workflow_id)).endswith("Delete workflow succeeded\n")
    query = f"WorkflowId = '{workflow_id}'"
    await cli.until("workflow", "count", "--query", query, of=lambda counted: counted.get("count", "0") == "0")
    await cli.until_refused("workflow", "describe", "-w", workflow_id, says="not found")


async def test_a_run_is_reset(client: Client, cli: Cli, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        workflow_id = await start(cli, task_queue)
        assert await cli.query(workflow_id, "total") == 5
        await cli.text("workflow", "signal", "-w", workflow_id, "--name", "add", "-i", "3")
        first = await cli.json("workflow", "reset", "-w", workflow_id, "--event-id", "4", "--reason", "again")
        described = await cli.json("workflow", "describe", "-w", workflow_id)
        assert described["workflowExecutionInfo"]["execution"]["runId"] == first["runId"]
        # The signal was sent again to the run that begins anew.
        assert await cli.query(workflow_id, "total") == 8
        second = await cli.json("workflow", "reset", "-w", workflow_id, "--type", "LastWorkflowTask", "--reason", "once more")
        assert second["runId"] != first["runId"]


async def test_a_run_tells_of_itself(client: Client, cli: Cli, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        workflow_id = await start(cli, task_queue)
        assert "_run_top_level_workflow_function" in await cli.text("workflow", "stack", "-w", workflow_id)
        metadata = await cli.json("workflow", "metadata", "-w", workflow_id)
    [told] = metadata["queryResult"]
    assert told["currentDetails"] == "adding up"
    assert [signal["name"] for signal in told["definition"]["signalDefinitions"]] == ["add", "close"]


async def test_what_is_not_there_is_told_so(cli: Cli) -> None:
    for command in (["describe"], ["show"], ["signal", "--name", "s"], ["cancel"], ["terminate"]):
        assert "not found" in await cli.refused("workflow", *command, "-w", "no-such-workflow")
    assert "Namespace nowhere is not found" in await cli.into("nowhere").refused("workflow", "list")
