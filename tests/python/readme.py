"""The README's own text as a program: its Python example runs as a process, its shell lines are split as a shell does."""

from __future__ import annotations

import asyncio
import re
import shlex
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from server_process import REPOSITORY

# Where `cargo run --release` serves. The only text of the example that a test replaces.
README_ADDRESS = "127.0.0.1:7233"
# The interpreter imports the SDK first, on a machine that may be compiling.
FIRST_LINE_TIMEOUT_S = 60.0


def fenced_blocks(language: str) -> list[str]:
    text = (REPOSITORY / "README.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


def command_lines(program: str) -> list[list[str]]:
    """The arguments of each line of the shell examples that runs `program`."""
    lines = [shlex.split(line) for block in fenced_blocks("sh") for line in block.splitlines()]
    return [line[1:] for line in lines if line[:1] == [program]]


@asynccontextmanager
async def running_example(address: str, folder: Path) -> AsyncIterator[str]:
    """Runs the example against a server; gives the first line that it prints, and kills it at the end."""
    [example] = fenced_blocks("python")
    assert example.count(README_ADDRESS) == 1, f"the example connects to {README_ADDRESS} once"
    program = folder / "greeting.py"
    program.write_text(example.replace(README_ADDRESS, address))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-u", str(program), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), FIRST_LINE_TIMEOUT_S)
        yield line.decode().rstrip("\n")
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
