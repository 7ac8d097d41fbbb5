"""Namespaces: registered, described, changed, deprecated; and what is refused."""

from __future__ import annotations

from typing import Any

from catalogue import scenario_masking
from commands import SECOND
from stage import Stage

DAY = 24 * 3600 * SECOND


def name_of(stage: Stage) -> str:
    return stage.id.replace("_", "-")


async def described(stage: Stage, what: str, **fields: Any) -> None:
    found = await stage.silently("DescribeNamespace", **fields)
    found.namespace_info.ClearField("capabilities")
    found.namespace_info.ClearField("limits")
    # Which parts of a server are built is no matter of its namespaces.
    found.namespace_info.ClearField("supports_schedules")
    stage.note(what, found)


@scenario_masking("id", "active_cluster_name", "clusters", "cluster_name")
async def namespace_lives(stage: Stage) -> None:
    """From its registration to its deprecation."""
    name = name_of(stage)
    plain = {
        "namespace": name,
        "description": "first",
        "owner_email": "a@b.c",
        "workflow_execution_retention_period": 3 * DAY,
        "data": {"key": "value"},
    }
    await stage.call("RegisterNamespace", **plain)
    await stage.refused("RegisterNamespace", **plain)
    await described(stage, "registered", namespace=name)
    change = {"description": "second", "data": {"other": "value"}}
    await stage.silently("UpdateNamespace", namespace=name, update_info=change)
    retention = {"workflow_execution_retention_ttl": 5 * DAY}
    await stage.silently("UpdateNamespace", namespace=name, config=retention)
    await described(stage, "changed", namespace=name)
    await stage.call("DeprecateNamespace", namespace=name)
    await described(stage, "deprecated", namespace=name)


@scenario_masking("id")
async def namespace_refused(stage: Stage) -> None:
    """Requests that are no good."""
    name = name_of(stage)
    plain = {"namespace": name, "workflow_execution_retention_period": DAY}
    for fields in (
        {"namespace": ""},
        {"namespace": "x" * 1001},
        {"workflow_execution_retention_period": None},
        {"workflow_execution_retention_period": SECOND},
        {"workflow_execution_retention_period": -SECOND},
    ):
        await stage.refused("RegisterNamespace", **plain | fields)
    unknown = f"{name}-unknown"
    await stage.refused("DescribeNamespace", namespace=unknown)
    await stage.refused("DescribeNamespace", namespace="", id="00000000-0000-4000-8000-000000000000")
    await stage.refused("DescribeNamespace", namespace=unknown, id="00000000-0000-4000-8000-000000000000")
    await stage.refused("UpdateNamespace", namespace=unknown, update_info={"description": "x"})
    await stage.refused("DeprecateNamespace", namespace=unknown)
    await stage.call("RegisterNamespace", **plain)
    await stage.refused("UpdateNamespace", namespace=name, config={"workflow_execution_retention_ttl": SECOND})
    await stage.refused("UpdateNamespace", namespace=name, delete_bad_binary="unknown")
    await stage.refused("UpdateNamespace", namespace=name, replication_config={"active_cluster_name": "elsewhere"})
    await stage.refused("UpdateNamespace", namespace=name, security_token="x", promote_namespace=True)


@scenario_masking("id", "active_cluster_name", "clusters", "cluster_name")
async def namespace_changed(stage: Stage) -> None:
    """Every field that can be, one after the other; what is told back."""
    name = name_of(stage)
    await stage.call("RegisterNamespace", namespace=name, workflow_execution_retention_period=DAY)
    changes: dict[str, dict[str, Any]] = {
        "nothing": {},
        "owner": {"update_info": {"owner_email": "b@c.d"}},
        "description and data": {"update_info": {"description": "text", "data": {"a": "1", "b": "2"}}},
        "data merged": {"update_info": {"data": {"b": "3"}}},
        "an empty description": {"update_info": {"description": ""}},
        "retention": {"config": {"workflow_execution_retention_ttl": 7 * DAY}},
        "aliases": {"config": {"custom_search_attribute_aliases": {"Keyword01": "Color"}}},
        "history archival": {"config": {"history_archival_state": "ARCHIVAL_STATE_DISABLED"}},
        "promotion": {"promote_namespace": True},
    }
    for case, fields in changes.items():
        stage.note("case", case)
        changed = await stage.answered("UpdateNamespace", namespace=name, **fields)
        if changed is None:
            continue
        changed.namespace_info.ClearField("capabilities")
        changed.namespace_info.ClearField("limits")
        changed.namespace_info.ClearField("supports_schedules")
        stage.note("changed", changed)


@scenario_masking("id")
async def namespace_changes_refused(stage: Stage) -> None:
    """Changes and registrations that are no good."""
    name = name_of(stage)
    plain = {"namespace": name, "workflow_execution_retention_period": DAY}
    registering: dict[str, dict[str, Any]] = {
        "the server's own": {"namespace": "temporal-system"},
        "one cluster that is unknown": {"clusters": [{"cluster_name": "nobody"}]},
        "an unknown active cluster": {"active_cluster_name": "nobody"},
        "a global one": {"is_global_namespace": True},
        "archival without a URI": {"history_archival_state": "ARCHIVAL_STATE_ENABLED"},
        "archival to a bad URI": {
            "history_archival_state": "ARCHIVAL_STATE_ENABLED",
            "history_archival_uri": "no uri",
        },
    }
    for n, (case, fields) in enumerate(registering.items()):
        await stage.each_refused("RegisterNamespace", plain | {"namespace": f"{name}-{n}"}, {case: fields})
    await stage.call("RegisterNamespace", **plain)
    changing: dict[str, dict[str, Any]] = {
        "no namespace": {"namespace": ""},
        "a negative retention": {"config": {"workflow_execution_retention_ttl": -DAY}},
        "no retention": {"config": {"workflow_execution_retention_ttl": 0 * DAY}},
        "a cluster that is unknown": {"replication_config": {"clusters": [{"cluster_name": "nobody"}]}},
        "an active cluster that is unknown": {"replication_config": {"active_cluster_name": "nobody"}},
        "an alias of no field": {"config": {"custom_search_attribute_aliases": {"Nothing01": "Color"}}},
        "archival without a URI": {"config": {"history_archival_state": "ARCHIVAL_STATE_ENABLED"}},
        "an archival URI": {"config": {"history_archival_uri": "file:///x"}},
        "an unknown bad binary": {"delete_bad_binary": "nothing"},
        "a handover": {"replication_config": {"state": "REPLICATION_STATE_HANDOVER"}},
        "a state": {"update_info": {"state": "NAMESPACE_STATE_DELETED"}},
    }
    for case, fields in changing.items():
        stage.note("case", case)
        if await stage.answered("UpdateNamespace", **{"namespace": name} | fields) is not None:
            stage.note("changed", case)
    await stage.each_refused(
        "DescribeNamespace",
        {},
        {"no name": {"namespace": ""}, "a long name": {"namespace": "x" * 1001}},
    )
    await stage.each_refused("DeprecateNamespace", {}, {"no name": {"namespace": ""}})
