"""Fixtures: a server per engine for the session, one of its own for a test that kills it, a client, a task queue."""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator, Iterator

import pytest
from temporalio.client import Client
from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter

from server_process import ENGINES, NAMESPACE, RunningServer, ServerProcess

# For checking the tests themselves against a server that runs already; nothing is started or killed then.
TARGET = os.environ.get("EVERROW_ACCEPTANCE_TARGET")
COMPLAINTS_SHOWN = 20
ENGINE_NAMES = ["target"] if TARGET else list(ENGINES)

# The SDK warns of every call that it repeats, which is what it is made to do here.
Runtime.set_default(
    Runtime(telemetry=TelemetryConfig(logging=LoggingConfig(filter=TelemetryFilter(core_level="ERROR", other_level="ERROR"))))
)


@pytest.fixture(scope="session", params=ENGINE_NAMES)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess | RunningServer]:
    if TARGET:
        yield RunningServer(TARGET)
        return
    yield from _run(ENGINES[request.param](tmp_path_factory.mktemp(request.param)))


@pytest.fixture(params=ENGINE_NAMES)
def killable_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    if TARGET:
        pytest.skip("a server that runs already is not killed")
    yield from _run(ENGINES[request.param](tmp_path_factory.mktemp(request.param)))


def _run(server: ServerProcess) -> Iterator[ServerProcess]:
    server.start()
    try:
        yield server
    finally:
        server.stop()
    assert not server.complaints(), "\n".join(server.complaints()[:COMPLAINTS_SHOWN])


@pytest.fixture
async def client(server: ServerProcess | RunningServer) -> Client:
    return await Client.connect(server.address, namespace=NAMESPACE)


@pytest.fixture
def task_queue(request: pytest.FixtureRequest) -> str:
    """A queue of the test's own: what another test left behind is not picked up."""
    return f"{request.node.originalname}-{uuid.uuid4().hex[:8]}"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    outcome = yield
    report = outcome.get_result()
    if not report.failed:
        return
    for name in ("server", "killable_server"):
        server = getattr(item, "funcargs", {}).get(name)
        if server is not None:
            report.sections.append((f"log of the {name}", server.log_tail()))
