"""The README's command lines, run against the worker of its Python example."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cli import Cli
from readme import command_lines, running_example
from server_process import RunningServer, ServerProcess


async def test_the_readme_command_lines_execute_show_and_list_a_run(
    server: ServerProcess | RunningServer, cli: Cli, tmp_path: Path
) -> None:
    execute, show, list_runs = command_lines("temporal")
    async with running_example(server.address, tmp_path) as greeting:
        assert greeting == "Hello, Ada!"
        assert '"Hello, Bob!"' in await cli.text(*execute)
    assert "WorkflowExecutionCompleted" in await cli.text(*show)
    await cli.until(*list_runs, of=lambda runs: {"greeting-ada", "greeting-bob"} <= workflow_ids(runs or []))


def workflow_ids(runs: list[dict[str, Any]]) -> set[str]:
    return {run["execution"]["workflowId"] for run in runs}
