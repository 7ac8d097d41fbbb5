"""What a client chooses never decides how much memory is kept: each of these once held a gigabyte."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator

import grpc
from google.protobuf.descriptor import FieldDescriptor

from api import Api, Attack
from mutations import HUGE_TEXT
from verdict import MEMORY_MIB_MAX, MEMORY_SETTLES_WITHIN_S, judge
from victim import Victim
from world import World

AT_ONCE = 4
# This many texts of 3.9 MB exceed what the server may hold in all.
MANY = 100
# A client takes no more in one answer unless it says so.
ANSWER_BYTES_MAX = 4 << 20
POLL_TIMEOUT_S = 4.0
# By these words SDKs know that trying again is of no use.
TOO_LARGE = (
    "grpc: received message larger than max",
    "grpc: message after decompression larger than max",
    "grpc: received message after decompression larger than max",
)


def test_absent_ids_of_almost_4_mb_are_not_kept(api: Api) -> None:
    def asked() -> Iterator[Attack]:
        for n in range(MANY):
            execution = {"workflow_id": f"{n}".ljust(HUGE_TEXT, "x")}
            yield _attack(api, "DescribeWorkflowExecution", namespace="default", execution=execution)

    judge(api.send_all(asked(), AT_ONCE))


def test_keys_of_workers_that_shut_down_are_not_kept(api: Api) -> None:
    def shut_down() -> Iterator[Attack]:
        for n in range(MANY):
            long = f"{n}".ljust(HUGE_TEXT // 2, "x")
            yield _attack(api, "ShutdownWorker", namespace="default", worker_instance_key=long, sticky_task_queue=long)

    judge(api.send_all(shut_down(), AT_ONCE))


def test_deployments_of_pollers_are_not_kept(api: Api) -> None:
    def polls() -> Iterator[Attack]:
        for n in range(MANY):
            long = {"deployment_name": f"{n}".ljust(HUGE_TEXT, "x"), "build_id": "b"}
            fields = {"namespace": "default", "task_queue": {"name": "attacked"}, "deployment_options": long}
            yield _attack(api, "PollWorkflowTaskQueue", POLL_TIMEOUT_S, identity=f"{n}", **fields)

    # As many wait at once as come in before the first gives up.
    judge(api.send_all(polls(), MANY // 4))
    described = api.call("DescribeTaskQueue", namespace="default", task_queue={"name": "attacked"}, report_pollers=True)
    assert described.ByteSize() < ANSWER_BYTES_MAX, f"{described.ByteSize()} bytes about one task queue"


def test_descriptions_of_namespaces_leave_lists_readable(api: Api) -> None:
    def registered() -> Iterator[Attack]:
        for n in range(30):
            fields = {"namespace": f"long-{n}", "description": "x" * HUGE_TEXT, "owner_email": "x" * 1_000}
            yield _attack(api, "RegisterNamespace", workflow_execution_retention_period={"seconds": 86_400}, **fields)

    judge(api.send_all(registered(), AT_ONCE))
    token = b""
    while True:
        page = api.call("ListNamespaces", page_size=1_000, next_page_token=token)
        assert page.ByteSize() < ANSWER_BYTES_MAX, f"{page.ByteSize()} bytes on a page"
        token = page.next_page_token
        if not token:
            break


def test_every_text_of_every_rpc_is_let_go(api: Api, world: World, chance: random.Random, rounds: int) -> None:
    """The same RPC again and again with another text of 3.9 MB, whichever field it is in."""
    judge(api.send_all(_long_texts(api, world, chance, rounds), AT_ONCE))


def test_names_by_the_ten_thousand_are_let_go(api: Api) -> None:
    """Short ones, but each makes something: a queue, an absent run, a poller."""

    def names() -> Iterator[Attack]:
        for _ in range(3_000):
            name = uuid.uuid4().hex * 20
            queue = {"name": name}
            yield _attack(api, "PollWorkflowTaskQueue", 0.05, namespace="default", task_queue=queue, identity=name)
            yield _attack(api, "DescribeTaskQueue", namespace="default", task_queue=queue)
            yield _attack(api, "DescribeWorkflowExecution", namespace="default", execution={"workflow_id": name})

    judge(api.send_all(names(), at_once=100))


def test_messages_around_the_limit_are_answered(api: Api) -> None:
    """At four megabytes, one byte less and one more; and what unpacks to a gigabyte."""
    limit = 4 << 20
    attacks = []
    for size in (limit - 1, limit, limit + 1, 2 * limit):
        plain = api.request("SignalWorkflowExecution", namespace="default").ByteSize()
        request = api.request("SignalWorkflowExecution", namespace="default", identity="x" * (size - plain - 5))
        attacks.append(Attack(api.method("SignalWorkflowExecution"), f"{request.ByteSize()} bytes", request.SerializeToString()))
    answers = list(api.send_all(attacks, AT_ONCE))
    judge(answers)
    for attack, answer in answers:
        assert answer.details.startswith(TOO_LARGE) == (len(attack.payload) > limit), (attack.what, answer)


def test_a_bomb_of_gzip_is_not_unpacked(victim: Victim) -> None:
    zipped = Api(victim.address, compression=grpc.Compression.Gzip)
    method = zipped.method("StartWorkflowExecution")
    attacks = [Attack(method, f"{size} bytes of nothing", bytes(size)) for size in (5 << 20, 64 << 20, 256 << 20)]
    victim.forget_memory_peak()
    before = victim.memory_mib()
    answers = list(zipped.send_all(attacks, at_once=1))
    zipped.close()
    judge(answers)
    assert victim.memory_peak_mib() < before + 64, f"{victim.memory_peak_mib():.0f} MiB at the peak"
    for _, answer in answers:
        assert answer.details.startswith(TOO_LARGE), answer


def test_lists_of_runs_with_large_memos_are_read_piece_by_piece(api: Api, victim: Victim) -> None:
    """One page of all of them would be 114 MB, and 24 clients ask for one."""
    memo = {"fields": {"m": {"data": b"x" * 1_900_000}}}
    for n in range(60):
        run = {"workflow_id": f"memo-{n}", "workflow_type": {"name": "memo"}, "task_queue": {"name": "nobody"}}
        api.call("StartWorkflowExecution", namespace="default", request_id=uuid.uuid4().hex, memo=memo, **run)
    queries = ("", "ORDER BY WorkflowId", "WorkflowType = 'memo'", "WorkflowType = 'memo' ORDER BY WorkflowId DESC")
    asked = [_attack(api, "ListWorkflowExecutions", namespace="default", page_size=1_000, query=query) for query in queries]
    # Writing them filled caches and write buffers.
    before = victim.memory_settled_mib(MEMORY_MIB_MAX, MEMORY_SETTLES_WITHIN_S)
    victim.forget_memory_peak()
    answers = list(api.send_all(asked * 24, at_once=24))
    judge(answers)
    assert all(answer.code == grpc.StatusCode.OK for _, answer in answers), answers[0]
    # 16 lists that read, and the responses that wait for their clients: at most 96 MiB of them, encoded, beside the records.
    assert victim.memory_peak_mib() < before + 256, f"{before:.0f} MiB, then {victim.memory_peak_mib():.0f} at the peak"
    for n in range(60):
        api.call("DeleteWorkflowExecution", namespace="default", workflow_execution={"workflow_id": f"memo-{n}"})


def _long_texts(api: Api, world: World, chance: random.Random, n: int) -> Iterator[Attack]:
    for method in api.methods:
        texts = [field for field in method.input_type.fields if field.type == FieldDescriptor.TYPE_STRING]
        for number in range(n if texts else 0):
            field = chance.choice(texts)
            request = world.request(method)
            text = f"{number}-{chance.random()}".ljust(HUGE_TEXT, "x")
            request.MergeFrom(type(request)(**{field.name: [text] if field.is_repeated else text}))
            yield Attack(method, f"{field.name} of 3.9 MB", request.SerializeToString(), POLL_TIMEOUT_S, may_wait=True)


def _attack(api: Api, rpc: str, timeout_s: float = 20.0, **fields: object) -> Attack:
    payload = api.request(rpc, **fields).SerializeToString()
    return Attack(api.method(rpc), "a long text", payload, timeout_s, may_wait=rpc.startswith("Poll"))
