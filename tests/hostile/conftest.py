"""A server for each file of attacks; after each attack, the proof that it did no harm."""

from __future__ import annotations

import os
import random
import resource
from collections.abc import Iterator

import pytest

from api import Api
from arena import Arena, Arenas
from bystander import Bystander
from not_yet import NOT_YET
from verdict import unharmed
from victim import Victim
from world import World

# The same seed makes the same requests. More rounds make more of them, of other random choices.
SEED = int(os.environ.get("EVERROW_FUZZ_SEED") or random.SystemRandom().randrange(1 << 32))
ROUNDS = int(os.environ.get("EVERROW_FUZZ_ROUNDS") or 1)


def pytest_configure() -> None:
    # An attacker has more file descriptors than the server.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def pytest_report_header() -> str:
    return f"EVERROW_FUZZ_SEED={SEED} EVERROW_FUZZ_ROUNDS={ROUNDS}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        reason = NOT_YET.get(item.name)
        if reason:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


@pytest.fixture(scope="module")
def arenas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arenas]:
    arenas = Arenas(lambda: tmp_path_factory.mktemp("victim"))
    yield arenas
    arenas.abandon()


@pytest.fixture(autouse=True)
def arena(arenas: Arenas) -> Arena:
    """Every test of this suite is an attack."""
    return arenas.current()


@pytest.fixture
def victim(arena: Arena) -> Victim:
    return arena.victim


@pytest.fixture
def bystander(arena: Arena) -> Bystander:
    return arena.bystander


@pytest.fixture
def world(arena: Arena) -> World:
    return arena.world


@pytest.fixture
def api(victim: Victim) -> Iterator[Api]:
    api = Api(victim.address)
    yield api
    api.close()


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    """Choices of the test's own: they do not depend on which tests ran before."""
    return random.Random(f"{SEED} {request.node.name}")


@pytest.fixture
def rounds() -> int:
    return ROUNDS


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """The proof is a part of the test: a fixture that failed after it would not count for `NOT_YET`."""
    arena = item.funcargs["arena"]
    try:
        yield
        unharmed(arena.victim, arena.bystander)
    except BaseException:
        item.add_report_section("call", "log of the server", arena.victim.log_tail())
        item.funcargs["arenas"].abandon()
        raise
