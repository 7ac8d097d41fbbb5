"""HTTP/2 against its own rules: streams by the thousand, resets, windows that never open, uploads that never end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from api import Api
from bystander import Bystander
from connections import held
from hand_worker import HandWorker
from http2 import FRAME_BYTES_MAX, Http2Attacker, beginning_of_message
from uploader import Uploader
from verdict import unharmed
from victim import Victim
from world import NAMESPACE, World

SERVICE = "/temporal.api.workflowservice.v1.WorkflowService"
START = f"{SERVICE}/StartWorkflowExecution"
POLL = f"{SERVICE}/PollWorkflowTaskQueue"
HISTORY = f"{SERVICE}/GetWorkflowExecutionHistory"
SYSTEM_INFO = f"{SERVICE}/GetSystemInfo"
# Below the limit of a payload.
LARGE_BYTES = 1_900_000
MESSAGE_BYTES_MAX = 4 << 20
LONGEST_MEANWHILE_S = 5.0
DRAIN_S = 0.2
IDLE_CONNECTIONS = 200


@pytest.fixture
def attacker(victim: Victim) -> Iterator[Http2Attacker]:
    with Http2Attacker(victim.grpc_endpoint) as attacker:
        yield attacker


@pytest.fixture
def large_run(api: Api) -> HandWorker:
    """A run whose history is an answer of almost 2 MB."""
    worker = HandWorker(api, "large")
    worker.start(input={"payloads": [{"data": b"x" * LARGE_BYTES}]})
    return worker


def test_ten_thousand_long_polls_on_one_connection_are_bounded(
    api: Api, world: World, victim: Victim, bystander: Bystander, attacker: Http2Attacker
) -> None:
    """Of another namespace: how many polls wait in one is limited, and its users share that."""
    poll = api.request("PollWorkflowTaskQueue", namespace=NAMESPACE, task_queue={"name": "flood"}).SerializeToString()
    for _ in range(10_000):
        attacker.send(attacker.request(POLL, poll))
    unharmed(victim, bystander)


def test_streams_that_are_opened_and_never_finished_are_bounded(
    victim: Victim, bystander: Bystander, attacker: Http2Attacker
) -> None:
    for _ in range(20_000):
        if not attacker.send(attacker.request(START)):
            break
    unharmed(victim, bystander)


def test_rapid_resets_hold_nobody_up(api: Api, victim: Victim, bystander: Bystander) -> None:
    start = api.request("StartWorkflowExecution", namespace="default", workflow_id="x").SerializeToString()
    with bystander.not_held_up(LONGEST_MEANWHILE_S):
        for _ in range(5):
            with Http2Attacker(victim.grpc_endpoint) as attacker:
                for _ in range(10_000):
                    stream = attacker.new_stream()
                    opened = attacker.headers(stream, START) + attacker.data(stream, beginning_of_message(len(start), start))
                    if not attacker.send(opened + attacker.reset(stream)):
                        break


def test_cancelled_polls_do_not_end_the_connection(api: Api, attacker: Http2Attacker) -> None:
    """A worker under load cancels many polls at once; its other calls go on."""
    poll = api.request("PollWorkflowTaskQueue", namespace="default", task_queue={"name": "cancelled"}).SerializeToString()
    for _ in range(100):
        stream = attacker.new_stream()
        opened = attacker.headers(stream, POLL) + attacker.data(stream, beginning_of_message(len(poll), poll), end=True)
        assert attacker.send(opened + attacker.reset(stream))
    assert attacker.send(attacker.request(SYSTEM_INFO, b""))
    kinds = {type(frame).__name__ for frame in attacker.frames(1.0)}
    assert "GoAwayFrame" not in kinds and "HeadersFrame" in kinds, kinds


def test_clients_that_never_read_make_the_server_keep_little(
    victim: Victim, bystander: Bystander, large_run: HandWorker
) -> None:
    with ExitStack() as attacks:
        for window in (0, 1, 1_000):
            attacks.enter_context(_unread(victim, large_run, window))
        unharmed(victim, bystander)


def test_uploads_that_never_end_make_the_server_keep_little(victim: Victim, bystander: Bystander) -> None:
    with _uploading(victim):
        unharmed(victim, bystander)


def test_control_frames_by_the_hundred_thousand_hold_nobody_up(victim: Victim, bystander: Bystander) -> None:
    with bystander.not_held_up(LONGEST_MEANWHILE_S):
        for frames in (_pings, _settings, _window_updates, _empty_data, _continuations, _unknown_frames):
            with Http2Attacker(victim.grpc_endpoint) as attacker:
                for chunk in frames(attacker):
                    if not attacker.send(chunk):
                        break


def test_headers_without_measure_are_refused(victim: Victim, bystander: Bystander) -> None:
    for headers in (
        {"x-long": "x" * 1_000_000},
        {f"x-many-{n}": "x" for n in range(20_000)},
        {"grpc-timeout": "99999999H"},
        {"grpc-timeout": "9" * 1_000 + "n"},
        {"grpc-timeout": "-1S"},
        {"grpc-timeout": "0n"},
        {"grpc-encoding": "x" * 10_000},
        {"content-type": "x" * 10_000},
        {"x-bin-bin": "not base64 at all!"},
        {"client-name": "x" * 10_000, "client-version": "x" * 10_000, "supported-features": "," * 10_000},
    ):
        with Http2Attacker(victim.grpc_endpoint) as attacker:
            stream = attacker.new_stream()
            block = attacker.header_block(SYSTEM_INFO, headers)
            first, *rest = [block[at : at + FRAME_BYTES_MAX] for at in range(0, len(block), FRAME_BYTES_MAX)]
            attacker.send(attacker.unfinished_headers(stream, first))
            for part in rest:
                attacker.send(attacker.continuation(stream, part))
            list(attacker.frames(DRAIN_S))


def test_all_at_once_stay_below_the_ceiling(victim: Victim, bystander: Bystander, large_run: HandWorker) -> None:
    with ExitStack() as attacks:
        for _ in range(3):
            attacks.enter_context(_unread(victim, large_run, 0))
        attacks.enter_context(_uploading(victim))
        attacks.enter_context(held(victim.grpc_endpoint, IDLE_CONNECTIONS))
        unharmed(victim, bystander)


@contextmanager
def _unread(victim: Victim, run: HandWorker, window: int) -> Iterator[None]:
    """600 answers of almost 2 MB that nobody takes."""
    request = run.request("GetWorkflowExecutionHistory", execution=run.execution)
    with Http2Attacker(victim.grpc_endpoint, initial_window=window) as attacker:
        for _ in range(600):
            if not attacker.send(attacker.request(HISTORY, request)):
                break
        yield


@contextmanager
def _uploading(victim: Victim) -> Iterator[None]:
    """200 requests of 4 MB, of each of which the last byte never comes."""
    content = beginning_of_message(MESSAGE_BYTES_MAX, b"x" * (MESSAGE_BYTES_MAX - 1))
    with ExitStack() as connections:
        for _ in range(4):
            uploader = connections.enter_context(Uploader(victim.grpc_endpoint, START))
            uploader.upload(content, n_streams=50)
        yield


def _pings(attacker: Http2Attacker) -> Iterator[bytes]:
    yield from (attacker.ping() * 1_000 for _ in range(100))


def _settings(attacker: Http2Attacker) -> Iterator[bytes]:
    yield from (attacker.settings() * 1_000 for _ in range(100))


def _window_updates(attacker: Http2Attacker) -> Iterator[bytes]:
    yield from (attacker.open_window(0, 1) * 1_000 for _ in range(100))


def _empty_data(attacker: Http2Attacker) -> Iterator[bytes]:
    stream = attacker.new_stream()
    yield attacker.headers(stream, START)
    # Nine bytes: a frame of data without any.
    empty = b"\0\0\0\0\0" + stream.to_bytes(4, "big")
    yield from (empty * 1_000 for _ in range(100))


def _continuations(attacker: Http2Attacker) -> Iterator[bytes]:
    stream = attacker.new_stream()
    yield attacker.unfinished_headers(stream, attacker.header_block(START))
    yield from (attacker.continuation(stream, b"") * 1_000 for _ in range(100))


def _unknown_frames(_: Http2Attacker) -> Iterator[bytes]:
    yield from (bytes.fromhex("000000ff0000000000") * 1_000 for _ in range(100))
