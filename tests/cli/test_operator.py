"""`temporal operator` and `temporal task-queue`: the cluster, its namespaces, their attributes, endpoints and queues."""

from __future__ import annotations

import uuid

from temporalio.client import Client

from cli import Cli, words
from ledger import new_worker


def new_name(kind: str) -> str:
    return f"{kind}-{uuid.uuid4().hex[:8]}"


async def test_the_cluster_is_healthy_and_described(cli: Cli) -> None:
    assert await cli.text("operator", "cluster", "health") == "SERVING\n"
    described = await cli.json("operator", "cluster", "describe")
    assert described["clusterName"] and described["historyShardCount"] and described["persistenceStore"]
    system = await cli.json("operator", "cluster", "system")
    assert system["serverVersion"] == described["serverVersion"]
    assert system["capabilities"]["upsertMemo"] and system["capabilities"]["eagerWorkflowStart"]


async def test_a_namespace_is_created_described_and_updated(cli: Cli) -> None:
    name = new_name("namespace")
    namespace = cli.into(name)
    created = await namespace.text("operator", "namespace", "create", "--retention", "48h", "--description", "first", "--data", "k=v")
    assert created == f"Namespace {name} successfully registered.\n"
    assert "already exists" in await namespace.refused("operator", "namespace", "create")
    described = words(await namespace.text("operator", "namespace", "describe"))
    assert described["NamespaceInfo.Description"] == "first"
    assert described["Config.WorkflowExecutionRetentionTtl"] == "48h0m0s"
    updated = await namespace.text("operator", "namespace", "update", "--description", "second", "--retention", "72h")
    assert updated == f"Namespace {name} update succeeded.\n"
    described = await namespace.json("operator", "namespace", "describe")
    assert described["namespaceInfo"]["description"] == "second"
    assert described["namespaceInfo"]["data"] == {"k": "v"}
    assert described["config"]["workflowExecutionRetentionTtl"] == "259200s"
    listed = await cli.json("operator", "namespace", "list")
    assert name in [one["namespaceInfo"]["name"] for one in listed]
    assert "not found" in await cli.into("nowhere").refused("operator", "namespace", "describe")


async def test_search_attributes_are_created_listed_and_removed(cli: Cli) -> None:
    name = f"Customer{uuid.uuid4().hex[:8]}"
    create = ["operator", "search-attribute", "create", "--name", name, "--type", "Keyword"]
    assert await cli.text(*create) == "Search attributes have been added\n"
    # Once more changes nothing.
    await cli.text(*create)
    listed = await cli.json("operator", "search-attribute", "list")
    assert listed["customAttributes"][name] == "INDEXED_VALUE_TYPE_KEYWORD"
    assert listed["systemAttributes"]["StartTime"] == "INDEXED_VALUE_TYPE_DATETIME"
    assert words(await cli.text("operator", "search-attribute", "list"))[name] == "Keyword"
    removed = await cli.text("operator", "search-attribute", "remove", "--name", name, "--yes")
    assert removed.endswith("Search attributes have been removed\n")
    listed = await cli.json("operator", "search-attribute", "list")
    assert name not in listed.get("customAttributes", {})


async def test_a_task_queue_shows_who_polls_it(client: Client, cli: Cli, task_queue: str) -> None:
    async with new_worker(client, task_queue):
        describe = ["task-queue", "describe", "-t", task_queue]
        described = await cli.until(*describe, of=lambda described: len(described["pollers"] or []) == 2)
        assert {poller["taskQueueType"] for poller in described["pollers"]} == {"workflow", "activity"}
        assert all(poller["buildId"] == "UNVERSIONED" for poller in described["pollers"])
        assert [one["approximateBacklogCount"] for one in described["stats"]] == [0, 0]
        assert "UNVERSIONED  workflow" in await cli.text(*describe)


async def test_a_task_queue_shows_what_waits_in_it(cli: Cli, task_queue: str) -> None:
    await cli.text("workflow", "start", "--type", "Ledger", "-t", task_queue, "-w", new_name("ledger"))
    describe = ["task-queue", "describe", "-t", task_queue, "--task-queue-type", "workflow"]
    await cli.until(*describe, of=lambda described: [one["approximateBacklogCount"] for one in described["stats"]] == [1])
