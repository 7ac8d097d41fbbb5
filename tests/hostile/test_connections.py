"""Connections that say nothing, or stop in the middle of a word: those who are there already are still served."""

from __future__ import annotations

import pytest

from api import Api
from bystander import Bystander
from connections import held
from hand_worker import HandWorker
from http2 import PREFACE
from verdict import unharmed
from victim import FILE_DESCRIPTORS, Victim

# More than the server has file descriptors.
TOO_MANY = FILE_DESCRIPTORS + 50
MANY = 200
# Together more than the store keeps in memory before it writes another file.
LARGE_RUNS, LARGE_BYTES = 150, 1_900_000
IDLE_S = 1.0
SETTINGS = bytes.fromhex("000000040000000000")
# A frame of headers that says that it has 100 bytes, of which 3 come; one of data likewise.
HALF_OF_HEADERS = PREFACE + SETTINGS + bytes.fromhex("00006401040000000182 8684".replace(" ", ""))
HALF_OF_DATA = PREFACE + SETTINGS + bytes.fromhex("0040000000 00000001 000000ffff".replace(" ", ""))
BEGINNINGS = {
    "half a preface": PREFACE[:12],
    "no settings": PREFACE,
    "half of headers": HALF_OF_HEADERS,
    "half of data": HALF_OF_DATA,
    "noise": b"\xff\x00" * 500,
    "TLS": bytes.fromhex("1603010200010001fc0303") + bytes(500),
    "HTTP/1": b"GET / HTTP/1.1\r\nHost: localhost\r\n",
}


def test_more_idle_connections_than_file_descriptors_stop_nothing(api: Api, victim: Victim, bystander: Bystander) -> None:
    """The store opens files as it grows, and finds some free; nobody spins over connections that cannot be accepted."""
    # Its connection is there before the others.
    HandWorker(api, "first").start()
    with held(victim.grpc_endpoint, TOO_MANY), held(victim.http_endpoint, TOO_MANY):
        for _ in range(LARGE_RUNS):
            HandWorker(api, "large").start(input={"payloads": [{"data": b"x" * LARGE_BYTES}]})
        unharmed(victim, bystander)
        busy_s = victim.busy_s_within(IDLE_S)
        assert busy_s < IDLE_S / 2, f"{busy_s:.2f} s of processor time in {IDLE_S} s without work"


@pytest.mark.parametrize("endpoint", ["grpc_endpoint", "http_endpoint"])
@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_connections_that_stop_in_the_middle_stop_nothing(
    victim: Victim, bystander: Bystander, beginning: str, endpoint: str
) -> None:
    with held(getattr(victim, endpoint), MANY, BEGINNINGS[beginning]):
        unharmed(victim, bystander)


def test_a_new_client_is_served_after_a_flood_of_connections(victim: Victim) -> None:
    with held(victim.grpc_endpoint, TOO_MANY):
        pass
    newcomer = Bystander(victim.address)
    newcomer.workflow_s()
    newcomer.close()


