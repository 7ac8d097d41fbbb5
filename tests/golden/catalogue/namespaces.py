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
