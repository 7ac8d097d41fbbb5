"""One server for all scenarios; they are played at once, then compared one by one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter

from performance import AT_ONCE, AT_ONCE_RECORDING, Doors, Performance, perform
from server_process import RunningServer, ServerProcess, embedded, free_port

# A server that runs already: the reference, for recording, or any other for looking at.
TARGET = os.environ.get("EVERROW_ACCEPTANCE_TARGET")
# Where that one, or ours, serves HTTP.
HTTP_TARGET = os.environ.get("EVERROW_ACCEPTANCE_HTTP_TARGET") or f"127.0.0.1:{free_port()}"
RECORDED = Path(__file__).parent / "recorded"

# The SDK warns of every call that it repeats or that fails, and here many are made to.
Runtime.set_default(
    Runtime(telemetry=TelemetryConfig(logging=LoggingConfig(filter=TelemetryFilter(core_level="ERROR", other_level="ERROR"))))
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", action="store_true", help="write the goldens instead of comparing with them")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess | RunningServer]:
    if TARGET:
        yield RunningServer(TARGET)
        return
    server = embedded(tmp_path_factory.mktemp("golden"), int(HTTP_TARGET.rpartition(":")[2]))
    server.start()
    try:
        yield server
    finally:
        server.stop()
    assert not server.complaints(), "\n".join(server.complaints())


@pytest.fixture(scope="session")
def performances(request: pytest.FixtureRequest, server: ServerProcess | RunningServer) -> dict[str, Performance]:
    """Of the scenarios that were asked for."""
    asked_for = [item.callspec.params["name"] for item in request.session.items if "performances" in item.fixturenames]
    at_once = AT_ONCE_RECORDING if request.config.getoption("--record") else AT_ONCE
    return asyncio.run(perform(Doors(server.address, HTTP_TARGET), asked_for, at_once))


@pytest.fixture
def record(request: pytest.FixtureRequest) -> bool:
    return request.config.getoption("--record")
