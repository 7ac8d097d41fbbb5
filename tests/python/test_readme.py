"""The README's Python example, run as pasted."""

from __future__ import annotations

from pathlib import Path

from readme import running_example
from server_process import RunningServer, ServerProcess


async def test_the_readme_example_prints_its_greeting(server: ServerProcess | RunningServer, tmp_path: Path) -> None:
    async with running_example(server.address, tmp_path) as greeting:
        assert greeting == "Hello, Ada!"
