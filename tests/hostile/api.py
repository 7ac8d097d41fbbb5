"""The gRPC API as an attacker sees it: every RPC known by reflection, requests sent as bytes, answers kept as they are."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

# An answer that takes longer is work without a bound; generous, because the machine may be compiling.
CALL_TIMEOUT_S = 20.0
AT_ONCE = 16
WORKFLOW_SERVICE = "temporal.api.workflowservice.v1.WorkflowService"
OPERATOR_SERVICE = "temporal.api.operatorservice.v1.OperatorService"
CHANNEL_OPTIONS = [
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    # A connection of its own for each channel: attackers and bystanders must not share one.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
]


@dataclass(frozen=True)
class Answer:
    code: grpc.StatusCode
    details: str
    message: bytes = b""

    @property
    def is_ok(self) -> bool:
        return self.code == grpc.StatusCode.OK


@dataclass(frozen=True)
class Attack:
    """One request, and in a few words what is wrong with it."""

    method: MethodDescriptor
    what: str
    payload: bytes
    timeout_s: float = CALL_TIMEOUT_S
    # A call that waits for others to do something may well not be answered.
    may_wait: bool = False


class Refused(Exception):
    def __init__(self, rpc: str, answer: Answer) -> None:
        super().__init__(f"{rpc}: {answer.code.name}: {answer.details[:500]}")
        self.answer = answer


class Api:
    """One connection to the server."""

    def __init__(self, address: str, compression: grpc.Compression | None = None) -> None:
        self._channel = grpc.insecure_channel(address, options=CHANNEL_OPTIONS, compression=compression)

    def close(self) -> None:
        self._channel.close()

    @cached_property
    def _reflected(self) -> ProtoReflectionDescriptorDatabase:
        return ProtoReflectionDescriptorDatabase(self._channel)

    @cached_property
    def _pool(self) -> DescriptorPool:
        return DescriptorPool(self._reflected)

    @cached_property
    def methods(self) -> list[MethodDescriptor]:
        """Of all services that the server shows."""
        services = sorted(self._reflected.get_services())
        return [method for service in services for method in self._pool.FindServiceByName(service).methods]

    def method(self, rpc: str) -> MethodDescriptor:
        """By the name of the RPC alone, which is a workflow service's or else the operator service's."""
        for service in (WORKFLOW_SERVICE, OPERATOR_SERVICE):
            found = self._pool.FindServiceByName(service).methods_by_name.get(rpc)
            if found:
                return found
        raise KeyError(rpc)

    def message(self, full_name: str) -> type[Message]:
        return GetMessageClass(self._pool.FindMessageTypeByName(full_name))

    def request(self, rpc: str, **fields: Any) -> Message:
        return GetMessageClass(self.method(rpc).input_type)(**fields)

    def call(self, rpc: str, *, timeout_s: float = CALL_TIMEOUT_S, **fields: Any) -> Any:
        """The answer's message; a refusal is raised."""
        method = self.method(rpc)
        answer = self.send(Attack(method, "plain", self.request(rpc, **fields).SerializeToString(), timeout_s))
        if not answer.is_ok:
            raise Refused(rpc, answer)
        return GetMessageClass(method.output_type).FromString(answer.message)

    def attempt(self, rpc: str, *, timeout_s: float = CALL_TIMEOUT_S, **fields: Any) -> Answer:
        payload = self.request(rpc, **fields).SerializeToString()
        return self.send(Attack(self.method(rpc), "plain", payload, timeout_s))

    def send(self, attack: Attack) -> Answer:
        return _answer(self._begin(attack))

    def send_all(self, attacks: Iterable[Attack], at_once: int = AT_ONCE) -> Iterator[tuple[Attack, Answer]]:
        """All of them, a bounded number at a time."""
        under_way: deque[tuple[Attack, Callable[[], bytes]]] = deque()
        for attack in attacks:
            under_way.append((attack, self._begin(attack)))
            if len(under_way) >= at_once:
                first, wait = under_way.popleft()
                yield first, _answer(wait)
        for attack, wait in under_way:
            yield attack, _answer(wait)

    def _begin(self, attack: Attack) -> Callable[[], bytes]:
        """Sends the request, once there is a connection; calling the result waits for the answer."""
        method = attack.method
        path = f"/{method.containing_service.full_name}/{method.name}"
        if not method.client_streaming and not method.server_streaming:
            return self._channel.unary_unary(path).future(attack.payload, timeout=attack.timeout_s, wait_for_ready=True).result
        stream = self._channel.stream_stream(path)(iter([attack.payload]), timeout=attack.timeout_s, wait_for_ready=True)

        def first() -> bytes:
            """A stream is judged by its first message, or by how it ends."""
            try:
                return next(stream, b"")
            finally:
                stream.cancel()

        return first


def _answer(wait: Callable[[], bytes]) -> Answer:
    try:
        return Answer(grpc.StatusCode.OK, "", wait())
    except grpc.RpcError as error:
        return Answer(error.code(), error.details() or "")
