"""The HTTP API: paths, verbs, bodies in all forms, and what is answered to wrong ones."""

from __future__ import annotations

from functools import partial
from typing import Any

from catalogue import scenario
from commands import complete
from stage import Stage
from waiting import eventually

API = "/api/v1"


def workflow_path(stage: Stage, suffix: str = "") -> str:
    return f"{API}/namespaces/default/workflows/{stage.id}{suffix}"


def start_body(stage: Stage, **fields: Any) -> dict[str, Any]:
    plain = {
        "workflowType": {"name": "golden"},
        "taskQueue": {"name": stage.queue},
        "workflowTaskTimeout": "60s",
        "identity": "client",
        "requestId": "request-1",
    }
    return plain | fields


async def started(stage: Stage, **fields: Any) -> str:
    answer = await stage.http("POST", workflow_path(stage), start_body(stage, **fields))
    stage.watch(stage.id, answer["runId"])
    return answer["runId"]


@scenario
async def http_run_lives(stage: Stage) -> None:
    """A run is started, signaled, described, queried, its history read, and it is terminated."""
    run_id = await started(stage, input=[{"a": 1}, "text", None, True, 1.5])
    await stage.http("POST", workflow_path(stage), start_body(stage, requestId="request-2"))
    signal = {"input": ["one"], "identity": "client", "requestId": "signal-1"}
    await stage.http("POST", workflow_path(stage, "/signal/go"), signal)
    await stage.http("GET", workflow_path(stage))
    await stage.http("GET", workflow_path(stage, f"?execution.runId={run_id}"))
    await stage.http("GET", workflow_path(stage, "/history"))
    await stage.http("GET", workflow_path(stage, "/history?maximumPageSize=1"))
    await stage.http("GET", workflow_path(stage, "/history-reverse?maximum_page_size=1"))
    await stage.http("POST", workflow_path(stage, "/cancel"), {"identity": "client", "requestId": "cancel-1"})
    await stage.http("POST", workflow_path(stage, "/terminate"), {"reason": "enough", "identity": "client"})
    await stage.http("POST", workflow_path(stage, "/terminate"), {})


@scenario
async def http_payloads(stage: Stage) -> None:
    """Payloads in short and in full, both ways."""
    full = {"payloads": [{"metadata": {"encoding": "anNvbi9wbGFpbg=="}, "data": "ImFiYyI="}]}
    binary = {"payloads": [{"metadata": {"encoding": "YmluYXJ5L3BsYWlu"}, "data": "AAEC"}]}
    typed = {"metadata": {"encoding": "anNvbi9wbGFpbg==", "type": "S2V5d29yZA=="}, "data": "ImFiYyI="}
    await started(stage, input=full, memo={"fields": {"short": "text", "full": typed}})

    def signal(given: Any, name: str) -> tuple[str, str, dict[str, Any]]:
        body = {"input": given, "identity": "client", "requestId": name}
        return "POST", workflow_path(stage, f"/signal/{name}"), body

    for n, given in enumerate((["abc"], [], None, binary, {"payloads": []}, [typed], [None])):
        await stage.http(*signal(given, f"s{n}"))
    for n, given in enumerate(({"a": 1}, "text", 1)):
        await stage.http_wordless(*signal(given, f"w{n}"))
    for query in ("", "?noPayloadShorthand", "?pretty", "?pretty&noPayloadShorthand=true"):
        await stage.http("GET", workflow_path(stage, f"/history{query}"))
    for accept in ("json", "json+no-payload-shorthand", "json+pretty", "html"):
        headers = {"Accept": f"application/{accept}"}
        await stage.http("GET", workflow_path(stage, "/history?maximumPageSize=1"), headers=headers)
    in_full = {"Content-Type": "application/json+no-payload-shorthand"}
    await stage.http(*signal(full, "full"), in_full)


@scenario
async def http_names(stage: Stage) -> None:
    """Fields by either name, enums by name or number, durations, unknown fields."""
    body = {
        "workflow_type": {"name": "golden"},
        "task_queue": {"name": stage.queue, "kind": 1},
        "workflow_task_timeout": "60s",
        "workflow_run_timeout": "3600.500s",
        "workflow_id_reuse_policy": "WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE",
        "identity": "client",
        "request_id": "request-1",
    }
    answer = await stage.http("POST", workflow_path(stage), body)
    stage.watch(stage.id, answer["runId"])
    plain = start_body(stage, requestId="other")
    for fields in (
        {"workflowIdReusePolicy": 77},
        {"workflowIdReusePolicy": "RejectDuplicate"},
        {"workflowType": None},
        {"requestId": None},
        {"workflowStartDelay": "-1s"},
        {"cronSchedule": "never"},
        {"workflowId": "another"},
        {"namespace": "another"},
    ):
        await stage.http("POST", workflow_path(stage), plain | fields)
    for fields in (
        {"nothing": 1},
        {"workflowIdReusePolicy": "NoSuchPolicy"},
        {"workflowRunTimeout": "soon"},
        {"workflowRunTimeout": 5},
        {"workflowType": "golden"},
        {"taskQueue": []},
        {"identity": 1},
    ):
        await stage.http_wordless("POST", workflow_path(stage), plain | fields)


@scenario
async def http_bodies_refused(stage: Stage) -> None:
    """Bodies that are no JSON, or none of a message."""
    twice = '{"identity": "a", "identity": "b"}'
    for body in ("", " ", "{", "}", "[]", '"text"', "1", "null", "{}", '{"a"', "{} {}", twice, "no json"):
        stage.note("body", body)
        await stage.http_wordless("POST", workflow_path(stage), body)
    await stage.http_wordless("POST", workflow_path(stage))
    await stage.http_wordless("GET", workflow_path(stage), "no json")


@scenario
async def http_not_found(stage: Stage) -> None:
    """Paths that lead nowhere, verbs that are not for them."""
    for verb, path in (
        ("GET", "/"),
        ("GET", "/nothing"),
        ("GET", "/api"),
        ("GET", f"{API}/nothing"),
        ("GET", f"{API}/namespaces/default/workflows/"),
        ("GET", f"{API}/namespaces/default/"),
        ("GET", f"{API}/namespaces/nobody"),
        ("GET", f"{API}/namespaces/nobody/workflows"),
        ("GET", workflow_path(stage)),
        ("GET", workflow_path(stage, "/history")),
        ("GET", workflow_path(stage, "/nothing")),
        ("PUT", workflow_path(stage)),
        ("DELETE", workflow_path(stage)),
        ("PATCH", workflow_path(stage)),
        ("OPTIONS", workflow_path(stage)),
        ("POST", workflow_path(stage, "/history")),
        ("GET", workflow_path(stage, "/terminate")),
        ("POST", workflow_path(stage, "/terminate")),
        ("POST", f"{API}/system-info"),
        ("GET", "/API/V1/system-info"),
        ("GET", f"{API}/system-info/"),
        ("GET", f"{API}/namespaces/%ZZ"),
    ):
        await stage.http(verb, path)


@scenario
async def http_parameters(stage: Stage) -> None:
    """Parameters of a query, in all forms, good and bad."""
    run_id = await started(stage)
    running = "TaskQueue%20%3D%20%27" + stage.queue + "%27"
    by_queue = partial(stage.listed, 1, f"TaskQueue = '{stage.queue}'")
    await eventually(by_queue)
    workflows = f"{API}/namespaces/default/workflows"
    for query in (
        f"?query={running}",
        f"?query={running.replace('%20', '+')}",
        f"?query={running}&pageSize=1",
        f"?query={running}&page_size=1",
        f"?query={running}&pageSize=x",
        f"?query={running}&pageSize=1&pageSize=2",
        f"?query={running}&pageSize=",
        f"?query={running}&pageSize=99999999999",
        f"?query={running}&pageSize=1.5",
        f"?query={running}&nothing=1",
        f"?query={running}&nothing.else=1",
        f"?query={running}&query.else=1",
        f"?query={running}&nextPageToken=!!!",
        f"?query={running}&namespace=another",
        "?query=what%20is%20this",
        "?query=%ZZ",
    ):
        await stage.http("GET", workflows + query)
    await stage.http("GET", f"{API}/namespaces/default/workflow-count?query={running}")
    await stage.http("GET", f"{API}/namespaces/default/workflow-count?query=GROUP+BY+Nothing")
    history = workflow_path(stage, "/history")
    for query in (
        f"?execution.runId={run_id}",
        f"?execution.run_id={run_id}",
        f"?execution.workflowId=another&execution.runId={run_id}",
        "?execution.runId=x",
        "?waitNewEvent=maybe",
        "?waitNewEvent=false",
        "?historyEventFilterType=HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT&maximumPageSize=1",
        "?historyEventFilterType=77",
        "?historyEventFilterType=nothing",
        "?execution=x",
    ):
        await stage.http("GET", history + query)
    await (await stage.workflow_task()).complete(complete())


async def with_headers(stage: Stage, headers: dict[str, str]) -> None:
    stage.note("headers", [f"{name}: {value}" for name, value in headers.items()])
    await stage.http("GET", f"{API}/namespaces/default/batch-operations/nobody", headers=headers)


@scenario
async def http_headers(stage: Stage) -> None:
    """Headers that mean something."""
    for headers in (
        {"Grpc-Timeout": "5S"},
        {"Grpc-Timeout": "soon"},
        {"Client-Name": "temporal-go", "Client-Version": "1.0.0"},
    ):
        await with_headers(stage, headers)


@scenario
async def http_client_versions(stage: Stage) -> None:
    """Clients that are too new, or say nonsense; told in either way."""
    for headers in (
        {"Client-Name": "temporal-go", "Client-Version": "99.0.0"},
        {"Client-Name": "temporal-go", "Client-Version": "nonsense"},
        {"Grpc-Metadata-Client-Name": "temporal-go", "Grpc-Metadata-Client-Version": "99.0.0"},
    ):
        await with_headers(stage, headers)


@scenario
async def http_other_services(stage: Stage) -> None:
    """Calls of other kinds: schedules, batches, search attributes, Nexus endpoints, wrong ones."""
    for verb, path, body in (
        ("GET", f"{API}/namespaces/default/schedules/{stage.id}", None),
        ("POST", f"{API}/namespaces/default/schedules/{stage.id}", {}),
        ("PATCH", f"{API}/namespaces/default/schedules/{stage.id}", {}),
        ("DELETE", f"{API}/namespaces/default/schedules/{stage.id}", None),
        ("GET", f"{API}/namespaces/default/batch-operations/{stage.id}", None),
        ("POST", f"{API}/namespaces/default/batch-operations/{stage.id}", {}),
        ("GET", f"{API}/namespaces/nobody/search-attributes", None),
        ("GET", f"{API}/nexus/endpoints/{stage.id}", None),
        ("POST", f"{API}/nexus/endpoints", {"spec": {"name": "1"}}),
        ("GET", f"{API}/namespaces/default/activities/{stage.id}/complete", None),
    ):
        await stage.http(verb, path, body)


@scenario
async def http_unclean_paths(stage: Stage) -> None:
    """Paths with empty and with escaped parts."""
    for path in ("namespaces//workflows", "/system-info", "namespaces/a%2Fb"):
        await stage.http("GET", f"{API}/{path}")
