"""The server under test: started on an engine, killed by its process id, started again on the same data and port."""

from __future__ import annotations

import asyncio
import os
import random
import socket
import subprocess
import time
import uuid
from pathlib import Path

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

NAMESPACE = "default"
REPOSITORY = Path(__file__).resolve().parents[2]
# A cold start on Cassandra creates a keyspace and its tables first, on a machine that may be compiling.
READY_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 30.0
POLL_INTERVAL_S = 0.05
LOG_TAIL_LINES = 80


class ServerProcess:
    """One `everrow` process and what it left on disk. A kill keeps the data, the port and the log."""

    def __init__(self, folder: Path, port: int, command: list[str]) -> None:
        self._command = command
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None
        self.log = folder / "server.log"

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        return self._require_running().pid

    def start(self) -> None:
        """Returns once the server answers GetSystemInfo and the namespace exists."""
        assert self._process is None, "the server is running"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        asyncio.run(self._answered(time.monotonic() + READY_TIMEOUT_S))

    def kill(self) -> None:
        """kill -9: nothing is flushed, nothing is handed over."""
        process = self._require_running()
        process.kill()
        process.wait()
        self._process = None

    def stop(self) -> None:
        """An orderly end; one that does not come in time is a failure of the server."""
        process = self._require_running()
        self._process = None
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"the server did not end within {STOP_TIMEOUT_S} s of SIGTERM") from None

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def complaints(self) -> list[str]:
        """What the server says of itself that it should never have to say; clients' faults are not logged as errors."""
        return [line for line in self._log_lines() if "panicked at" in line or " ERROR " in line]

    def log_tail(self) -> str:
        return "\n".join(self._log_lines()[-LOG_TAIL_LINES:])

    def _log_lines(self) -> list[str]:
        return self.log.read_text(errors="replace").splitlines() if self.log.exists() else []

    def _require_running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "the server was not started"
        status = self._process.poll()
        assert status is None, f"the server ended by itself with status {status}:\n{self.log_tail()}"
        return self._process

    async def _answered(self, deadline: float) -> None:
        while True:
            self._require_running()
            try:
                client = await Client.connect(self.address, namespace=NAMESPACE)
                await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=NAMESPACE))
                return
            except (RuntimeError, RPCError) as error:
                assert time.monotonic() < deadline, f"no answer in {READY_TIMEOUT_S} s: {error}\n{self.log_tail()}"
            await asyncio.sleep(POLL_INTERVAL_S)


class RunningServer:
    """A server that somebody else started (the reference, for checking the tests). It cannot be restarted."""

    def __init__(self, address: str) -> None:
        self.address = address

    def is_running(self) -> bool:
        return True

    def complaints(self) -> list[str]:
        return []

    def log_tail(self) -> str:
        return f"(the log of {self.address} is elsewhere)"

    def stop(self) -> None:
        pass


def embedded(folder: Path, http_port: int = 0) -> ServerProcess:
    """With port 0 the HTTP API is anywhere."""
    port = free_port()
    options = ["--ip", "127.0.0.1", "--port", str(port), "--http-port", str(http_port), "--data", str(folder / "data")]
    return ServerProcess(folder, port, [binary(), "dev", *options])


def cassandra(folder: Path) -> ServerProcess:
    contact = os.environ.get("EVERROW_TEST_CASSANDRA")
    assert contact, "EVERROW_TEST_CASSANDRA=host:port is not set; `cargo xtask cassandra start` gives you one"
    port = free_port()
    config = folder / "everrow.toml"
    config.write_text(cassandra_config(contact, f"everrow_{uuid.uuid4().hex[:12]}", port))
    subprocess.run([binary(), "schema", "setup", "--config", str(config)], check=True, timeout=READY_TIMEOUT_S)
    return ServerProcess(folder, port, [binary(), "server", "--config", str(config)])


def cassandra_config(contact: str, keyspace: str, port: int) -> str:
    return f"""
[cluster]
shards = 4
namespaces = ["{NAMESPACE}"]

[frontend]
listen = "127.0.0.1:{port}"

[store]
engine = "cassandra"

[store.cassandra]
contact_points = ["{contact}"]
keyspace = "{keyspace}"
replication = 1

[log]
level = "warn"
"""


ENGINES = {"embedded": embedded, "cassandra": cassandra}


def binary() -> str:
    named = os.environ.get("EVERROW_BIN") or os.environ.get("EVERROW_TEST_BINARY")
    if named:
        return named
    target = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))
    built = [target / profile / "everrow" for profile in ("release", "debug")]
    found = next((path for path in built if path.is_file()), None)
    assert found, f"no server binary: set EVERROW_BIN, or build one of {', '.join(map(str, built))}"
    return str(found)


def free_port() -> int:
    """Below the range that the kernel gives to outgoing connections: a killed server must find its port free again."""
    for port in random.Random().sample(range(20_000, 32_000), 200):
        with socket.socket() as holder:
            try:
                holder.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no free port")
