"""The official command line, unmodified: run as a process, judged by what it prints and how it ends."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

from server_process import NAMESPACE, REPOSITORY
from waiting import eventually

TIMEOUT_S = 60.0


class Cli:
    """Commands to one server. Nothing of the user's own configuration is read."""

    def __init__(self, address: str, home: Path, namespace: str = NAMESPACE) -> None:
        self._address = address
        self._home = home
        self._namespace = namespace

    def into(self, namespace: str) -> Cli:
        return Cli(self._address, self._home, namespace)

    async def text(self, *arguments: str) -> str:
        """What a command prints for people."""
        status, output, errors = await self._run(arguments)
        assert status == 0, f"temporal {' '.join(arguments)}: {errors}\n{output}"
        return output

    async def json(self, *arguments: str) -> Any:
        """What a command prints for programs."""
        output = await self.text(*arguments, "--output", "json")
        return json.loads(output) if output.strip() else None

    async def refused(self, *arguments: str) -> str:
        """What a command that must fail complains about."""
        status, output, errors = await self._run(arguments)
        assert status != 0, f"temporal {' '.join(arguments)} should have failed: {output}"
        return errors

    async def query(self, workflow_id: str, query: str) -> Any:
        """What a workflow answers."""
        [answer] = (await self.json("workflow", "query", "-w", workflow_id, "--type", query))["queryResult"]
        return answer

    async def until(self, *arguments: str, of: Any) -> Any:
        """Asks again until what is printed for programs satisfies `of`."""

        async def asked() -> Any:
            answer = await self.json(*arguments)
            return [answer] if of(answer) else None

        return (await eventually(asked))[0]

    async def until_refused(self, *arguments: str, says: str) -> None:
        """Asks again until it is refused in such words."""

        async def asked() -> bool:
            status, _, errors = await self._run(arguments)
            return status != 0 and says in errors

        await eventually(asked)

    async def _run(self, arguments: tuple[str, ...]) -> tuple[int, str, str]:
        connection = ["--address", self._address, "--namespace", self._namespace, "--color", "never"]
        process = await asyncio.create_subprocess_exec(
            binary(),
            *arguments,
            *connection,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"HOME": str(self._home), "PATH": os.environ["PATH"]},
        )
        # Some versions ask before they delete; none minds an answer that it did not ask for.
        output, errors = await asyncio.wait_for(process.communicate(b"y\n"), TIMEOUT_S)
        assert process.returncode is not None
        return process.returncode, output.decode(), errors.decode()


def binary() -> str:
    named = os.environ.get("EVERROW_TEST_CLI")
    if named:
        return named
    built = sorted((REPOSITORY / ".everrow").glob("temporal-cli-*/temporal"))
    assert built, "no `temporal`: set EVERROW_TEST_CLI, or let `cargo xtask test --suite cli` build it"
    return str(built[-1])


def words(text: str) -> dict[str, str]:
    """A list of names and values, as the command line prints it for people."""
    lines = (line.split(maxsplit=1) for line in text.splitlines())
    return {line[0]: line[1].strip() if len(line) > 1 else "" for line in lines if line}
