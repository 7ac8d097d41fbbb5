"""Work bombs: a request costs work in proportion to its size, or is refused; meanwhile others are served."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

import bombs
from api import Api, Attack
from bystander import Bystander
from hand_worker import HandWorker
from verdict import judge
from world import NAMESPACE, QUEUE, SCHEDULE, TYPE, WORKFLOW, World

# What others may notice of it while it goes on, on two cores that the attacker's own program uses too.
LONGEST_MEANWHILE_S = 5.0
BOMB_TIMEOUT_S = 10.0
AT_ONCE = 4
QUERYING = ("ListWorkflowExecutions", "CountWorkflowExecutions", "ScanWorkflowExecutions", "ListSchedules", "CountSchedules")
MASK_PATHS = 100_000


def test_schedules_are_computed_in_bounded_time(api: Api, world: World, bystander: Bystander) -> None:
    with bystander.not_held_up(LONGEST_MEANWHILE_S):
        judge(api.send_all(_schedules(api), AT_ONCE))


def test_backfills_are_bounded(api: Api, world: World, bystander: Bystander) -> None:
    def patches() -> Iterator[Attack]:
        for what, patch in bombs.schedule_patches():
            yield _attack(api, what, "PatchSchedule", schedule_id=SCHEDULE, patch=patch, request_id=uuid.uuid4().hex)
            yield _attack(api, what, "DescribeSchedule", schedule_id=SCHEDULE)

    with bystander.not_held_up(LONGEST_MEANWHILE_S):
        judge(api.send_all(patches(), AT_ONCE))


@pytest.mark.parametrize("rpc", QUERYING)
def test_queries_are_parsed_and_planned_in_bounded_time(api: Api, world: World, bystander: Bystander, rpc: str) -> None:
    with bystander.not_held_up(LONGEST_MEANWHILE_S):
        judge(api.send_all((_attack(api, what, rpc, query=query) for what, query in bombs.queries()), AT_ONCE))


def test_batches_with_work_bombs_for_queries_are_bounded(api: Api, world: World, bystander: Bystander) -> None:
    def batches() -> Iterator[Attack]:
        plain = {"reason": "attack", "termination_operation": {"identity": "attacker"}}
        for what, query in bombs.queries():
            yield _attack(api, what, "StartBatchOperation", visibility_query=query, job_id=uuid.uuid4().hex, **plain)
        executions = [{"workflow_id": f"nobody-{n}"} for n in range(30_000)]
        yield _attack(api, "30 000 runs", "StartBatchOperation", executions=executions, job_id=uuid.uuid4().hex, **plain)
        for _ in range(100):
            yield _attack(
                api, "100 jobs", "StartBatchOperation", visibility_query="WorkflowId = 'x'", job_id=uuid.uuid4().hex, **plain
            )

    with bystander.not_held_up(LONGEST_MEANWHILE_S):
        judge(api.send_all(batches(), AT_ONCE))


def test_completions_with_tens_of_thousands_of_commands_hold_nobody_up(api: Api, bystander: Bystander) -> None:
    def completions() -> Iterator[Attack]:
        for what, commands in bombs.commands():
            # As many at once as the machine has processors, and more.
            for worker in [HandWorker(api, "bomb") for _ in range(AT_ONCE)]:
                worker.start(workflow_run_timeout={"seconds": 60})
                fields = {"task_token": worker.workflow_task(), "commands": commands}
                yield _attack(api, what, "RespondWorkflowTaskCompleted", namespace="default", **fields)

    with bystander.not_held_up(LONGEST_MEANWHILE_S):
        judge(api.send_all(completions(), AT_ONCE))


def test_masks_tokens_and_lists_of_any_length_are_bounded(api: Api, world: World, bystander: Bystander) -> None:
    with bystander.not_held_up(LONGEST_MEANWHILE_S):
        judge(api.send_all(_long_lists(api), AT_ONCE))


def test_payloads_of_search_attributes_and_memos_are_bounded(api: Api, world: World, bystander: Bystander) -> None:
    with bystander.not_held_up(LONGEST_MEANWHILE_S):
        judge(api.send_all(_payloads(api), AT_ONCE))


def _schedules(api: Api) -> Iterator[Attack]:
    action = {"workflow_id": "bomb", "workflow_type": {"name": TYPE}, "task_queue": {"name": QUEUE}}
    for n, (what, spec) in enumerate(bombs.schedule_specs()):
        schedule = {"spec": spec, "action": {"start_workflow": action | {"workflow_id": f"bomb-{n}"}}}
        named = {"schedule_id": f"bomb-{n}"}
        changed = named | {"schedule": schedule, "request_id": uuid.uuid4().hex}
        yield _attack(api, what, "CreateSchedule", **changed)
        yield _attack(api, what, "UpdateSchedule", **changed | {"schedule_id": SCHEDULE})
        yield _attack(api, what, "DescribeSchedule", **named)
        span = {"start_time": {"seconds": bombs.FIRST_SECOND}, "end_time": {"seconds": bombs.LAST_SECOND}}
        yield _attack(api, what, "ListScheduleMatchingTimes", **named, **span)
        yield _attack(api, what, "DeleteSchedule", **named)


def _long_lists(api: Api) -> Iterator[Attack]:
    execution = {"workflow_id": WORKFLOW}
    mask = {"paths": ["versioning_override.pinned.version"] * MASK_PATHS}
    yield _attack(api, "a long mask", "UpdateWorkflowExecutionOptions", workflow_execution=execution, update_mask=mask)
    masked = {"execution": execution, "id": "none", "update_mask": {"paths": ["task_queue.name"] * MASK_PATHS}}
    yield _attack(api, "a long mask", "UpdateActivityOptions", **masked)
    excluded = {"reset_reapply_exclude_types": [1] * 1_000_000, "workflow_task_finish_event_id": 3}
    fields = {"workflow_execution": execution, "reason": "attack", "request_id": uuid.uuid4().hex}
    yield _attack(api, "many excluded types", "ResetWorkflowExecution", **fields, **excluded)
    for rpc in ("ListWorkflowExecutions", "ListSchedules", "ListBatchOperations", "ListNamespaces"):
        named = {} if rpc == "ListNamespaces" else {"namespace": NAMESPACE}
        for token in (b"\xff" * 3_000_000, b"\x0a" * 3_000_000, b"{" * 1_000_000, b"[" * 1_000_000):
            yield _attack(api, "a token of megabytes", rpc, next_page_token=token, **named)
        field = "page_size" if rpc == "ListNamespaces" else "maximum_page_size"
        if field in api.request(rpc).DESCRIPTOR.fields_by_name:
            for size in (bombs.INT32_MIN, -1, bombs.INT32_MAX):
                yield _attack(api, f"{size} on a page", rpc, **named, **{field: size})
    operations = [{"start_workflow": {"namespace": NAMESPACE, "workflow_id": "x"}}] * 50_000
    yield _attack(api, "50 000 operations", "ExecuteMultiOperation", operations=operations)
    binaries = {f"{n:040}": {"reason": "bad"} for n in range(20_000)}
    config = {"bad_binaries": {"binaries": binaries}}
    yield _attack(api, "20 000 bad binaries", "UpdateNamespace", namespace="doomed", config=config)
    data = {f"{n:040}": "value" for n in range(20_000)}
    yield _attack(api, "20 000 data", "UpdateNamespace", namespace="doomed", update_info={"data": data})
    attributes = {f"Attribute{n}": 2 for n in range(50_000)}
    yield _attack(api, "50 000 search attributes", "AddSearchAttributes", search_attributes=attributes)
    yield _attack(api, "50 000 search attributes", "RemoveSearchAttributes", search_attributes=list(attributes))


def _payloads(api: Api) -> Iterator[Attack]:
    contents = {
        "deep JSON": b"[" * 1_000_000,
        "deep JSON that closes": b"[" * 100_000 + b"]" * 100_000,
        "deep JSON objects": b'{"a":' * 200_000,
        "a long number": b"9" * 1_000_000,
        "100 000 keywords": b"[" + b",".join(b'"k%d"' % n for n in range(100_000)) + b"]",
        "1 MB of words": b'"' + b"word " * 200_000 + b'"',
        "not JSON": b"\xff\x00" * 500_000,
    }
    for name in ("CustomKeyword", "CustomText", "CustomKeywordList", "CustomDouble", "BuildIds", "TemporalChangeVersion"):
        for what, data in contents.items():
            payload = {"metadata": {"encoding": b"json/plain", "type": b"KeywordList"}, "data": data}
            yield _start(api, f"{name}: {what}", search_attributes={"indexed_fields": {name: payload}})
    yield _start(api, "50 000 memos", memo={"fields": {f"key-{n}": {"data": b"x"} for n in range(50_000)}})
    yield _start(api, "50 000 headers", header={"fields": {f"key-{n}": {"data": b"x"} for n in range(50_000)}})
    yield _start(api, "300 000 payloads", input={"payloads": [{}] * 300_000})
    for coefficient in (1e308, float("inf"), float("nan"), -1.0, 0.0):
        policy = {"backoff_coefficient": coefficient, "initial_interval": {"seconds": 2**62}, "maximum_attempts": 2**31 - 1}
        yield _start(api, f"a coefficient of {coefficient}", retry_policy=policy)
    for cron in ("0 0 30 2 *", "@every 1ns", "* * * * * * *", "," * 500, "1-" * 300, "@every 9999999999h", "*/0 * * * *"):
        yield _start(api, f"cron {cron[:12]}", cron_schedule=cron)


def _start(api: Api, what: str, **fields: Any) -> Attack:
    plain = {"workflow_type": {"name": TYPE}, "task_queue": {"name": QUEUE}, "request_id": uuid.uuid4().hex}
    return _attack(api, what, "StartWorkflowExecution", workflow_id=uuid.uuid4().hex, **plain, **fields)


def _attack(api: Api, what: str, rpc: str, **fields: Any) -> Attack:
    has_namespace = "namespace" in api.request(rpc).DESCRIPTOR.fields_by_name
    named = {"namespace": NAMESPACE} | fields if has_namespace else fields
    return Attack(api.method(rpc), what, api.request(rpc, **named).SerializeToString(), BOMB_TIMEOUT_S)
