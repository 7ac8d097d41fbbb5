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
    [listed] = await cli.json("operator", "cluster", "list")
    assert (listed["clusterName"], listed["clusterId"]) == (described["clusterName"], described["clusterId"])
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


async def test_a_namespace_is_deleted_with_what_is_in_it(cli: Cli, task_queue: str) -> None:
    name = new_name("namespace")
    namespace = cli.into(name)
    await namespace.text("operator", "namespace", "create")
    await namespace.until("operator", "namespace", "describe", of=lambda described: described["namespaceInfo"]["name"] == name)
    await namespace.text("workflow", "start", "--type", "Ledger", "-t", task_queue, "-w", new_name("ledger"), "-i", "1")
    deleted = await namespace.text("operator", "namespace", "delete", "--yes")
    assert deleted.endswith(f"Namespace {name} has been deleted.\n")
    assert f"Namespace {name} is not found" in await namespace.refused("operator", "namespace", "describe")
    await namespace.text("operator", "namespace", "create")


async def test_an_endpoint_is_created_changed_and_deleted(cli: Cli, task_queue: str) -> None:
    name = new_name("endpoint")
    endpoint = ["operator", "nexus", "endpoint"]
    target = ["--target-namespace", "default", "--target-task-queue", task_queue]
    created = await cli.text(*endpoint, "create", "--name", name, *target, "--description", "first")
    assert created == f"Endpoint {name} successfully created.\n"
    assert "already" in await cli.refused(*endpoint, "create", "--name", name, *target)
    got = await cli.json(*endpoint, "get", "--name", name)
    assert got["spec"]["target"] == {"worker": {"namespace": "default", "taskQueue": task_queue}}
    assert got["urlPrefix"] == f"/nexus/endpoints/{got['id']}/services"
    updated = await cli.text(*endpoint, "update", "--name", name, "--target-url", "http://localhost:1234/")
    assert updated == f"Endpoint {name} successfully updated.\n"
    listed = await cli.json(*endpoint, "list")
    [listed] = [one for one in listed if one["spec"]["name"] == name]
    assert (listed["version"], listed["spec"]["target"]) == ("2", {"external": {"url": "http://localhost:1234/"}})
    deleted = await cli.text(*endpoint, "delete", "--name", name)
    assert deleted == f"Endpoint {name} successfully deleted (ID {got['id']}).\n"
    assert "endpoint not found" in await cli.refused(*endpoint, "get", "--name", name)


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


async def test_a_task_queue_has_one_partition_of_each_type(cli: Cli, task_queue: str) -> None:
    listed = await cli.json("task-queue", "list-partition", "-t", task_queue)
    assert set(listed) == {"workflowTaskQueuePartitions", "activityTaskQueuePartitions"}
    for [partition] in listed.values():
        assert partition["key"] == task_queue and partition["ownerHostName"]
    assert task_queue in await cli.text("task-queue", "list-partition", "-t", task_queue)


async def test_a_task_queue_shows_what_waits_in_it(cli: Cli, task_queue: str) -> None:
    await cli.text("workflow", "start", "--type", "Ledger", "-t", task_queue, "-w", new_name("ledger"))
    describe = ["task-queue", "describe", "-t", task_queue, "--task-queue-type", "workflow"]
    await cli.until(*describe, of=lambda described: [one["approximateBacklogCount"] for one in described["stats"]] == [1])
