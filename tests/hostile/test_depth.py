"""Messages that hold themselves: as deep as a decoder goes, one more, and thousands."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import grpc
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor

import wire
from api import Answer, Api, Attack
from hand_worker import HandWorker
from verdict import judge
from victim import Victim
from world import World

# Around the 100 levels that most decoders go down to; the stored event has a few more around it.
LEVELS = (90, 95, 97, 98, 99, 100, 101, 102, 10_000, 100_000)
# Numbers of the API: `Failure.cause`, and the command that carries a failure.
CAUSE = 4
FAIL_WORKFLOW_EXECUTION = 4
WAITING_TIMEOUT_S = 0.2

# Fields on the way to a message that holds itself.
PATH_MAX = 5

FieldPath = tuple[FieldDescriptor, ...]


def test_recursive_fields_of_every_rpc_are_refused_or_kept_readable(api: Api, world: World) -> None:
    judge(api.send_all(_recursive_requests(api, world)))


def test_failures_of_activities_leave_their_runs_readable(api: Api, victim: Victim) -> None:
    """Accepted while a workflow task runs, a failure waits in the run's buffer, two levels deeper than on the wire."""
    workers = [HandWorker(api, f"deep-{levels}") for levels in LEVELS]
    for worker, levels in zip(workers, LEVELS, strict=True):
        worker.start()
        worker.schedule_activities()
        activity = worker.activity_task()
        worker.signal()
        workflow_task = worker.workflow_task()
        request = wire.field(1, activity) + wire.field(2, _failure(levels)) + wire.field(4, "default")
        judge([_sent(api, "RespondActivityTaskFailed", request, f"a failure of {levels} levels")])
        worker.check_readable()
        worker.complete(workflow_task)
        worker.check_readable()
    _check_after_restart(api, victim, workers)


def test_failures_in_commands_leave_their_runs_readable(api: Api, victim: Victim) -> None:
    workers = [HandWorker(api, f"deep-command-{levels}") for levels in LEVELS]
    for worker, levels in zip(workers, LEVELS, strict=True):
        worker.start()
        command = wire.number(1, FAIL_WORKFLOW_EXECUTION) + wire.field(5, wire.field(1, _failure(levels)))
        request = wire.field(1, worker.workflow_task()) + wire.field(2, command) + wire.field(7, "default")
        judge([_sent(api, "RespondWorkflowTaskCompleted", request, f"a failure of {levels} levels")])
        worker.check_readable()
    _check_after_restart(api, victim, workers)


def _failure(levels: int) -> bytes:
    return wire.nested(CAUSE, levels, wire.field(1, "deep"))


def _check_after_restart(api: Api, victim: Victim, workers: list[HandWorker]) -> None:
    """Read from the store, not from memory; then each can still be ended and removed."""
    victim.kill()
    victim.start()
    for worker in workers:
        worker.check_readable()
        answer = worker.attempt("TerminateWorkflowExecution", workflow_execution=worker.execution)
        assert answer.code in (grpc.StatusCode.OK, grpc.StatusCode.NOT_FOUND), answer
        worker.check_readable()
        worker.delete()


def _sent(api: Api, rpc: str, payload: bytes, what: str) -> tuple[Attack, Answer]:
    attack = Attack(api.method(rpc), what, payload)
    return attack, api.send(attack)


def _recursive_requests(api: Api, world: World) -> Iterator[Attack]:
    for method in api.methods:
        right = world.request(method).SerializeToString()
        for path in _recursive_paths(method):
            *outer, last = path
            for levels in LEVELS:
                payload = wire.nested(last.number, levels)
                for field in reversed(outer):
                    payload = wire.field(field.number, payload)
                name = ".".join(field.name for field in path)
                yield Attack(method, f"{levels} levels of {name}", right + payload, WAITING_TIMEOUT_S, may_wait=True)


def _recursive_paths(method: MethodDescriptor) -> Iterator[FieldPath]:
    """Each way into a message that can hold itself, down to the field that does."""
    pending: list[tuple[Descriptor, FieldPath]] = [(method.input_type, ())]
    while pending:
        message, path = pending.pop()
        for field in message.fields:
            inner = field.message_type
            if inner is message:
                yield (*path, field)
                continue
            is_new = all(inner is not above.message_type for above in path)
            if inner and is_new and len(path) < PATH_MAX and _leads_to_itself(inner):
                pending.append((inner, (*path, field)))


@cache
def _leads_to_itself(message: Descriptor) -> bool:
    """Whether the message, or one below it, can hold itself."""
    seen, pending = {message.full_name}, [message]
    while pending:
        holder = pending.pop()
        for inner in (field.message_type for field in holder.fields if field.message_type):
            if inner is holder:
                return True
            if inner.full_name not in seen:
                seen.add(inner.full_name)
                pending.append(inner)
    return False
