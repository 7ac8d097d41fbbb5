"""The HTTP API: pages of other origins, bodies without end or measure, JSON that a parser should not trust."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from bystander import Bystander
from connections import held
from http1 import HttpAnswer, as_json, ask, raw
from verdict import FORBIDDEN_WORDS, MEMORY_MIB_MAX, WORKFLOW_S_MAX, unharmed
from victim import Victim

WORKFLOWS = "/api/v1/namespaces/default/workflows"
START = {"workflowType": {"name": "x"}, "taskQueue": {"name": "x"}}
SLOW = 300
LONGEST_MEANWHILE_S = 5.0


def test_the_api_itself_is_there(victim: Victim) -> None:
    """Without this the refusals below would prove nothing."""
    assert ask(victim.http_endpoint, "GET", WORKFLOWS).status == 200
    assert ask(victim.http_endpoint, "POST", f"{WORKFLOWS}/{uuid.uuid4().hex}", as_json(START)).status == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example", ""])
def test_a_name_that_is_not_ours_is_refused(victim: Victim, host: str) -> None:
    """DNS rebinding: a name that the attacker resolves to 127.0.0.1 makes a foreign page one of this origin."""
    answer = ask(victim.http_endpoint, "GET", WORKFLOWS, headers={"Host": host})
    assert 400 <= answer.status < 500, answer


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://localhost.evil.example"])
@pytest.mark.parametrize("verb", ["GET", "POST"])
def test_a_page_of_another_origin_is_refused(victim: Victim, origin: str, verb: str) -> None:
    path, body = (WORKFLOWS, b"") if verb == "GET" else (f"{WORKFLOWS}/{uuid.uuid4().hex}", as_json(START))
    answer = ask(victim.http_endpoint, verb, path, body, {"Origin": origin})
    assert 400 <= answer.status < 500, answer


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""])
def test_a_write_that_needs_no_preflight_is_refused(victim: Victim, kind: str) -> None:
    answer = ask(
        victim.http_endpoint, "POST", f"{WORKFLOWS}/{uuid.uuid4().hex}", as_json(START), {"Content-Type": kind}
    )
    assert 400 <= answer.status < 500, answer


def test_slow_requests_hold_nobody_up(victim: Victim, bystander: Bystander) -> None:
    begun = f"POST {WORKFLOWS}/slow HTTP/1.1\r\nHost: localhost\r\nX-Slow: ".encode()
    body = begun + b"1\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{"
    with held(victim.http_endpoint, SLOW, begun), held(victim.http_endpoint, SLOW, body):
        unharmed(victim, bystander)
        assert ask(victim.http_endpoint, "GET", WORKFLOWS).status == 200


def test_bodies_without_measure_are_refused(victim: Victim) -> None:
    path = f"{WORKFLOWS}/{uuid.uuid4().hex}"
    for size in (5 << 20, 50 << 20):
        answer = ask(victim.http_endpoint, "POST", path, b'{"identity": "' + b"x" * size)
        assert answer.status == 0 or 400 <= answer.status < 500, answer


def test_json_that_no_parser_should_trust_is_refused(victim: Victim, bystander: Bystander) -> None:
    with bystander.not_held_up(LONGEST_MEANWHILE_S):
        for what, body in _bodies():
            for path in (f"{WORKFLOWS}/{uuid.uuid4().hex}", "/api/v1/namespaces/default/schedules/x"):
                answer = ask(victim.http_endpoint, "POST", path, body)
                said = answer.body.decode(errors="replace")
                assert answer.status == 200 or 400 <= answer.status < 500, (what, answer.status, said[:200])
                assert not any(word in said for word in FORBIDDEN_WORDS), (what, said[:200])


def test_large_json_is_converted_a_few_at_a_time_and_holds_nobody_up(victim: Victim, bystander: Bystander) -> None:
    """Values of three bytes each become trees and messages of a hundred times that."""
    full = 3_900_000
    bodies = (
        b'{"links": [' + b",".join([b"{}"] * (full // 3)) + b"]}",
        b'{"input": [[' + b",".join([b"0"] * (full // 2)) + b"]]}",
        b'{"links": [' + b",".join([b"{}"] * 49_000) + b"]}",
        b'{"input": [[' + b",".join([b"0"] * 98_000) + b"]]}",
        b'{"memo": {"fields": {' + b",".join(b'"k%d": 0' % n for n in range(49_000)) + b"}}}",
    )

    def post(body: bytes) -> HttpAnswer:
        return ask(victim.http_endpoint, "POST", f"{WORKFLOWS}/{uuid.uuid4().hex}", body)

    victim.forget_memory_peak()
    with bystander.not_held_up(WORKFLOW_S_MAX), ThreadPoolExecutor(8) as clients:
        for answer in clients.map(post, bodies * 4):
            assert answer.status == 200 or 400 <= answer.status < 500, (answer.status, answer.body[:200])
    assert victim.memory_peak_mib() < MEMORY_MIB_MAX, f"{victim.memory_peak_mib():.0f} MiB at the peak"


def test_requests_that_are_not_http_are_refused(victim: Victim) -> None:
    for request in (
        b"\r\n" * 10_000 + b"\r\n\r\n",
        b"GET " + b"/" * 1_000_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 10_000 + b"\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 1_000_000 + b"\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        b"CONNECT localhost:22 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    ):
        answer = raw(victim.http_endpoint, request)
        assert answer.status == 0 or 400 <= answer.status < 500, (request[:60], answer)


def test_odd_paths_are_refused(victim: Victim) -> None:
    for path in (
        "/api/v1/namespaces/" + "x" * 10_000,
        "/api/v1/namespaces/%00",
        "/api/v1/namespaces/%ff%fe",
        "/api/v1/namespaces/%zz",
        "/api/v1/namespaces/..%2f..%2fetc",
        WORKFLOWS + "?" + "&".join(f"query=x{n}" for n in range(5_000)),
        WORKFLOWS + "?maximumPageSize=99999999999999999999",
        WORKFLOWS + "?nextPageToken=!!!!",
        WORKFLOWS + "?" + ".".join(["a"] * 10_000) + "=1",
        WORKFLOWS + "?execution." * 100 + "x=1",
    ):
        answer = ask(victim.http_endpoint, "GET", path)
        assert answer.status == 0 or 200 <= answer.status < 500, (path[:60], answer)


def _bodies() -> Iterator[tuple[str, bytes]]:
    for depth in (90, 100, 101, 130, 10_000, 1_000_000):
        yield f"{depth} arrays", b'{"input": ' + b"[" * depth + b"]" * depth + b"}"
    for depth in (90, 101, 30_000):
        yield f"{depth} causes", b'{"continuedFailure": ' + b'{"cause": ' * depth + b"{}" + b"}" * (depth + 1)
    yield "an array that stays open", b"[" * 2_000_000
    yield "a number without measure", b'{"workflowTaskTimeout": ' + b"9" * 1_000_000 + b"}"
    yield "an exponent without measure", b'{"retryPolicy": {"backoffCoefficient": 1e' + b"9" * 1_000 + b"}}"
    yield "one key 100 000 times", b"{" + b",".join([b'"identity": "x"'] * 100_000) + b"}"
    yield "100 000 keys", b'{"memo": {"fields": {' + b",".join(b'"k%d": {}' % n for n in range(100_000)) + b"}}}"
    yield "half a surrogate", b'{"identity": "\\ud800"}'
    yield "not UTF-8", b'{"identity": "\xff\xfe"}'
    yield "an any of any", b'{"input": {"@type": "type.googleapis.com/google.protobuf.Any", "value": {"@type": "x"}}}'
