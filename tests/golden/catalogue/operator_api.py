"""The operator's API: search attributes, Nexus endpoints, clusters, the removal of namespaces."""

from __future__ import annotations

from typing import Any

from temporalio.service import RPCError

from catalogue import scenario, scenario_masking
from commands import payload
from stage import Stage
from waiting import eventually

KEYWORD = "INDEXED_VALUE_TYPE_KEYWORD"


async def custom(stage: Stage) -> dict[str, int]:
    try:
        found = await stage.silently("ListSearchAttributes", namespace=stage.namespace)
    except RPCError:
        return {}
    return {name: int(kind) for name, kind in sorted(found.custom_attributes.items())}


@scenario
async def search_attributes_added(stage: Stage) -> None:
    """Added, added again, removed."""
    await stage.settle(Color="KEYWORD")
    plain = {"namespace": stage.namespace}
    await stage.call("AddSearchAttributes", **plain, search_attributes={"Color": KEYWORD, "Size": "INDEXED_VALUE_TYPE_INT"})

    async def is_added() -> bool:
        return "Size" in await custom(stage)

    await eventually(is_added)
    stage.note("custom", await custom(stage))
    await stage.refused("AddSearchAttributes", **plain, search_attributes={"Color": "INDEXED_VALUE_TYPE_INT"})
    await stage.call("RemoveSearchAttributes", **plain, search_attributes=["Size"])

    async def is_removed() -> bool:
        return "Size" not in await custom(stage)

    await eventually(is_removed)
    stage.note("custom", await custom(stage))
    await stage.refused("RemoveSearchAttributes", **plain, search_attributes=["Size"])


@scenario
async def search_attributes_refused(stage: Stage) -> None:
    """Requests that are no good."""
    await stage.settle()
    plain = {"namespace": stage.namespace}
    adding: dict[str, dict[str, Any]] = {
        "none": {},
        "no namespace": {"namespace": "", "search_attributes": {"Color": KEYWORD}},
        "an unknown namespace": {"namespace": "nobody", "search_attributes": {"Color": KEYWORD}},
        "no type": {"search_attributes": {"Color": 0}},
        "no such type": {"search_attributes": {"Color": 77}},
        "no name": {"search_attributes": {"": KEYWORD}},
        "a system one": {"search_attributes": {"WorkflowId": KEYWORD}},
        "a predefined one": {"search_attributes": {"TemporalChangeVersion": "INDEXED_VALUE_TYPE_KEYWORD_LIST"}},
        "a reserved name": {"search_attributes": {"TemporalSomething": KEYWORD}},
        "a double underscore": {"search_attributes": {"__x": KEYWORD}},
        "a name with spaces": {"search_attributes": {"two words": "INDEXED_VALUE_TYPE_TEXT"}},
    }
    await stage.each_refused("AddSearchAttributes", plain, adding)
    removing: dict[str, dict[str, Any]] = {
        "none": {},
        "no namespace": {"namespace": "", "search_attributes": ["Color"]},
        "an unknown namespace": {"namespace": "nobody", "search_attributes": ["Color"]},
        "an unknown one": {"search_attributes": ["Nothing"]},
        "a system one": {"search_attributes": ["WorkflowId"]},
        "a predefined one": {"search_attributes": ["TemporalChangeVersion"]},
        "no name": {"search_attributes": [""]},
    }
    await stage.each_refused("RemoveSearchAttributes", plain, removing)
    await stage.refused("ListSearchAttributes", namespace="")
    await stage.refused("ListSearchAttributes", namespace="nobody")


def endpoint(stage: Stage, **fields: Any) -> dict[str, Any]:
    target = {"worker": {"namespace": "default", "task_queue": stage.queue}}
    return {"name": f"endpoint-{stage.id.replace('_', '-')}", "target": target} | fields


@scenario_masking("id", "url_prefix")
async def nexus_endpoint_lives(stage: Stage) -> None:
    """Made, read, listed, changed, deleted."""
    made = (await stage.call("CreateNexusEndpoint", spec=endpoint(stage, description=payload("first")))).endpoint
    await stage.refused("CreateNexusEndpoint", spec=endpoint(stage))

    async def is_known() -> bool:
        return bool((await stage.silently("ListNexusEndpoints", name=made.spec.name)).endpoints)

    await eventually(is_known)
    await stage.call("GetNexusEndpoint", id=made.id)
    await stage.call("ListNexusEndpoints", name=made.spec.name)
    changed = endpoint(stage, target={"external": {"url": "https://example.com/nexus"}})
    await stage.call("UpdateNexusEndpoint", id=made.id, version=1, spec=changed)
    await stage.refused("UpdateNexusEndpoint", id=made.id, version=1, spec=changed)
    await stage.refused("UpdateNexusEndpoint", id=made.id, version=77, spec=changed)

    async def is_changed() -> bool:
        return (await stage.silently("GetNexusEndpoint", id=made.id)).endpoint.version == 2

    await eventually(is_changed)
    await stage.call("GetNexusEndpoint", id=made.id)
    await stage.call("DeleteNexusEndpoint", id=made.id, version=2)

    async def is_gone() -> bool:
        return not (await stage.silently("ListNexusEndpoints", name=made.spec.name)).endpoints

    await eventually(is_gone)
    await stage.refused("GetNexusEndpoint", id=made.id)
    await stage.refused("DeleteNexusEndpoint", id=made.id, version=2)


@scenario
async def nexus_endpoint_refused(stage: Stage) -> None:
    """Requests that are no good."""

    def worker(**fields: Any) -> dict[str, Any]:
        return {"target": {"worker": {"namespace": "default", "task_queue": "q"} | fields}}

    def external(url: str) -> dict[str, Any]:
        return {"target": {"external": {"url": url}}}

    specs = {
        "no name": {"name": ""},
        "a long name": {"name": "x" * 1001},
        "a name with spaces": {"name": "two words"},
        "a name of one letter": {"name": "a"},
        "a name that begins with a digit": {"name": "1ab"},
        "a name that ends with a dash": {"name": "ab-"},
        "no target": {"target": None},
        "a target of no kind": {"target": {}},
        "no target namespace": worker(namespace=""),
        "an unknown target namespace": worker(namespace="nobody"),
        "no target queue": worker(task_queue=""),
        "a long target queue": worker(task_queue="x" * 1001),
        "a reserved target queue": worker(task_queue="/_sys/x"),
        "no url": external(""),
        "a url without scheme": external("example.com"),
        "an ftp url": external("ftp://example.com"),
        "a url that is none": external("http://exa mple.com"),
        "a long url": external("https://example.com/" + "x" * 5000),
        "a long description": {"description": payload("x" * 30_000)},
        "name and target": {"name": "1", "target": {"external": {"url": "x"}}},
    }
    await stage.refused("CreateNexusEndpoint")
    for case, fields in specs.items():
        await stage.each_refused("CreateNexusEndpoint", {}, {case: {"spec": endpoint(stage, **fields)}})
    unknown = "00000000-0000-4000-8000-000000000000"
    ids = {
        "no id": {"id": ""},
        "a bad id": {"id": "x"},
        "a longer bad id": {"id": "z" * 36},
        "an unknown id": {"id": unknown},
    }
    await stage.each_refused("GetNexusEndpoint", {}, ids)
    versions = ids | {"no version": {"id": unknown, "version": 0}, "a negative version": {"id": unknown, "version": -1}}
    await stage.each_refused("DeleteNexusEndpoint", {"version": 1}, versions)
    await stage.each_refused("UpdateNexusEndpoint", {"version": 1, "spec": endpoint(stage)}, versions)
    pages = {
        "negative": {"page_size": -1},
        "huge": {"page_size": 1_000_000},
        "unknown": {"name": "nobody"},
    }
    await stage.each_refused("ListNexusEndpoints", {}, pages)


@scenario_masking("cluster_id", "address", "http_address", "cluster_name", "history_shard_count")
async def clusters_listed(stage: Stage) -> None:
    """The one cluster that there is, and one that there is not."""
    await stage.call("ListClusters")
    await stage.refused("ListClusters", page_size=-1)
    await stage.refused("RemoveRemoteCluster", cluster_name="nobody")
    await stage.refused("RemoveRemoteCluster", cluster_name="")


@scenario
async def remote_cluster_refused(stage: Stage) -> None:
    """Remote clusters that cannot be reached."""
    await stage.refused("AddOrUpdateRemoteCluster")
    await stage.refused("AddOrUpdateRemoteCluster", frontend_address="127.0.0.1:1")


@scenario
async def namespace_removed(stage: Stage) -> None:
    """A namespace goes away under another name."""
    await stage.settle()
    name = stage.namespace
    removed = await stage.silently("DeleteNamespace", namespace=name)
    stage.note("renamed", removed.deleted_namespace.startswith(f"{name}-deleted-"))

    async def is_gone() -> bool:
        try:
            await stage.silently("DescribeNamespace", namespace=name)
        except RPCError:
            return True
        return False

    await eventually(is_gone)
    await stage.refused("DescribeNamespace", namespace=name)


@scenario
async def namespace_removal_refused(stage: Stage) -> None:
    """Namespaces that cannot be deleted."""
    await stage.each_refused(
        "DeleteNamespace",
        {},
        {
            "none": {},
            "both": {"namespace": "nobody", "namespace_id": "00000000-0000-4000-8000-000000000000"},
            "an unknown one": {"namespace": "nobody"},
            "an unknown id": {"namespace_id": "00000000-0000-4000-8000-000000000000"},
            "a bad id": {"namespace_id": "x"},
            "the server's own": {"namespace": "temporal-system"},
            "a negative delay": {"namespace": "nobody", "namespace_delete_delay": {"seconds": -1}},
        },
    )
