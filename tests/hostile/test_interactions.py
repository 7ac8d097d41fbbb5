"""Queries and updates that a hostile worker answers: the caller gets an answer of the API, and the run stays readable."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

import mutations
from api import Answer, Api, Attack
from hand_worker import HandWorker
from verdict import judge

ANSWER_TIMEOUT_S = 3.0
# Of each kind and round: each costs a run and a caller who waits.
MUTATIONS = 15
QUERY_RESULTS = (-1, 0, 1, 2, 3, 9_999)
UPDATE = "temporal.api.update.v1"
BODIES: dict[str, dict[str, Any]] = {
    "Acceptance": {"accepted_request_message_id": "id/request", "accepted_request_sequencing_event_id": 2},
    "Rejection": {"rejected_request_message_id": "id/request", "failure": {"message": "no"}},
    "Response": {"meta": {"update_id": "id"}, "outcome": {"success": {}}},
}


@pytest.fixture
def callers() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as callers:
        yield callers


def test_a_query_with_any_kind_of_result_is_answered(api: Api, callers: ThreadPoolExecutor) -> None:
    for kind in QUERY_RESULTS:
        worker = _ready(api)
        asked = _asked(callers, api, worker, "QueryWorkflow", execution=worker.execution, query={"query_type": "q"})
        fields = {"task_token": worker.workflow_task(), "completed_type": kind}
        judge([_sent(api, "RespondQueryTaskCompleted", **fields, error_message="x" * 5_000)])
        judge([(Attack(api.method("QueryWorkflow"), f"result of kind {kind}", b"", may_wait=True), asked.result())])


@pytest.mark.parametrize("body", BODIES)
def test_an_update_with_mutated_answers_leaves_its_run_readable(
    api: Api, callers: ThreadPoolExecutor, chance: random.Random, rounds: int, body: str
) -> None:
    base = api.message(f"{UPDATE}.{body}")(**BODIES[body])
    mutated = list(mutations.of_each_field(base, chance, n_deep=200))
    for what, value in chance.sample(mutated, min(len(mutated), MUTATIONS * rounds)):
        worker = _ready(api)
        request = {"meta": {"update_id": "id"}, "input": {"name": "update"}}
        waited = {"lifecycle_stage": "UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED"}
        fields = {"workflow_execution": worker.execution, "request": request, "wait_policy": waited}
        asked = _asked(callers, api, worker, "UpdateWorkflowExecution", **fields)
        token = worker.workflow_task()
        message = {
            "id": "answer",
            "protocol_instance_id": "id",
            "body": {"type_url": f"type.googleapis.com/{UPDATE}.{body}", "value": value},
        }
        attributes = {"protocol_message_command_attributes": {"message_id": "answer"}}
        command = {"command_type": "COMMAND_TYPE_PROTOCOL_MESSAGE"} | attributes
        judge([_sent(api, "RespondWorkflowTaskCompleted", task_token=token, messages=[message], commands=[command])])
        worker.check_readable()
        worker.attempt("TerminateWorkflowExecution", workflow_execution=worker.execution)
        judge([(Attack(api.method("UpdateWorkflowExecution"), f"{body} with {what}", b"", may_wait=True), asked.result())])


def _ready(api: Api) -> HandWorker:
    """Its first workflow task is done: what comes next is for the query, or the update."""
    worker = HandWorker(api, "asked")
    worker.start()
    worker.complete(worker.workflow_task())
    return worker


def _asked(callers: ThreadPoolExecutor, api: Api, worker: HandWorker, rpc: str, **fields: Any) -> Future[Answer]:
    return callers.submit(api.attempt, rpc, namespace=worker.namespace, timeout_s=ANSWER_TIMEOUT_S, **fields)


def _sent(api: Api, rpc: str, **fields: Any) -> tuple[Attack, Answer]:
    payload = api.request(rpc, namespace="default", **fields).SerializeToString()
    attack = Attack(api.method(rpc), "an answer to others", payload)
    return attack, api.send(attack)
