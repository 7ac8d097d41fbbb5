"""What workers send: every command, message and result mutated, each with a task of its own, and the run read back after it."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from google.protobuf.message import Message

import mutations
import wire
from api import Api, Attack
from hand_worker import HandWorker
from mutations import Mutation
from verdict import judge
from world import World

# Of each command, or RPC, and round: each costs a run of its own.
OF_A_COMMAND = 20
OF_AN_RPC = 60
DEEP_MUTATIONS = 200
BY_ACTIVITY = (
    "RespondActivityTaskCompleted",
    "RespondActivityTaskFailed",
    "RespondActivityTaskCanceled",
    "RecordActivityTaskHeartbeat",
)
BY_WORKFLOW_TASK = ("RespondWorkflowTaskCompleted", "RespondWorkflowTaskFailed", "RespondQueryTaskCompleted")
# Of the API's messages.
TASK_TOKEN, COMMANDS, NAMESPACE = 1, 2, 7


def test_mutated_commands_leave_their_runs_readable(api: Api, world: World, chance: random.Random, rounds: int) -> None:
    judge(api.send_all(_commands(api, world, chance, rounds)))


@pytest.mark.parametrize("rpc", BY_WORKFLOW_TASK)
def test_mutated_answers_to_workflow_tasks_leave_their_runs_readable(
    api: Api, world: World, chance: random.Random, rounds: int, rpc: str
) -> None:
    def answers() -> Iterator[Attack]:
        method = api.method(rpc)
        base = world.request(method)
        base.namespace = "default"
        for what, payload in _chosen(base, chance, OF_AN_RPC * rounds):
            worker = _started(api)
            # The last one counts: the mutated request has a token of its own, or none.
            yield Attack(method, what, payload + wire.field(TASK_TOKEN, worker.workflow_task()))
            yield from _read_back(api, worker)

    judge(api.send_all(answers()))


@pytest.mark.parametrize("rpc", BY_ACTIVITY)
def test_mutated_answers_of_activities_leave_their_run_readable(
    api: Api, world: World, chance: random.Random, rpc: str
) -> None:
    worker = _started(api)
    worker.schedule_activities(OF_AN_RPC)

    def answers() -> Iterator[Attack]:
        method = api.method(rpc)
        base = world.request(method)
        base.namespace = "default"
        for what, payload in _chosen(base, chance, OF_AN_RPC):
            yield Attack(method, what, payload + wire.field(TASK_TOKEN, worker.activity_task()))
        yield from _read_back(api, worker)

    judge(api.send_all(answers()))


def _commands(api: Api, world: World, chance: random.Random, rounds: int) -> Iterator[Attack]:
    method = api.method("RespondWorkflowTaskCompleted")
    command = api.message("temporal.api.command.v1.Command").DESCRIPTOR
    kinds = command.enum_types_by_name.get("CommandType") or command.fields_by_name["command_type"].enum_type
    for field in command.oneofs_by_name["attributes"].fields:
        name = field.name.removesuffix("_command_attributes").upper()
        kind = kinds.values_by_name[f"COMMAND_TYPE_{name}"].number
        base = world.filled(field.message_type)
        for what, attributes in _chosen(base, chance, OF_A_COMMAND * rounds):
            worker = _started(api)
            commands = wire.number(1, kind) + wire.field(field.number, attributes)
            token = wire.field(TASK_TOKEN, worker.workflow_task())
            payload = token + wire.field(COMMANDS, commands) + wire.field(NAMESPACE, "default")
            yield Attack(method, f"{name} {what}", payload)
            yield from _read_back(api, worker)


def _chosen(base: Message, chance: random.Random, n: int) -> list[Mutation]:
    mutated = list(mutations.of_each_field(base, chance, DEEP_MUTATIONS))
    return chance.sample(mutated, min(n, len(mutated)))


def _started(api: Api) -> HandWorker:
    worker = HandWorker(api, "mutated")
    # Whatever it is made to do, it does not go on for long.
    worker.start(workflow_execution_timeout={"seconds": 30})
    return worker


def _read_back(api: Api, worker: HandWorker) -> Iterator[Attack]:
    for rpc in ("DescribeWorkflowExecution", "GetWorkflowExecutionHistory"):
        yield Attack(api.method(rpc), "reading the run", worker.request(rpc, execution=worker.execution))


