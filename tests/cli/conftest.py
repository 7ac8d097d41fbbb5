"""The servers of the acceptance tests, and the command line pointed at them."""

from pathlib import Path

import pytest

from cli import Cli
from fixtures import client, pytest_runtest_makereport, server, task_queue
from server_process import RunningServer, ServerProcess

__all__ = ["cli", "client", "pytest_runtest_makereport", "server", "task_queue"]


@pytest.fixture
def cli(server: ServerProcess | RunningServer, tmp_path: Path) -> Cli:
    return Cli(server.address, tmp_path)
