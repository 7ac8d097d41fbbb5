"""Runs scenarios against a server, many at once, and keeps what came of each."""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from temporalio.client import Client
from temporalio.service import RPCError

from catalogue import SCENARIOS, Scenario
from http_door import HttpDoor
from stage import NAMESPACE, Stage

# Most of a scenario is waiting. The bound keeps calls of one from starving behind those of all others.
AT_ONCE = 24
# The reference gives up on a task that it cannot hand over within a second, which must not get into a golden.
AT_ONCE_RECORDING = 4
# No scenario has more than a few timeouts of a second or two to wait for; the rest is for a busy machine.
SCENARIO_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Doors:
    """Where a server is reached: host and port of each of its APIs."""

    grpc: str
    http: str


@dataclass
class Performance:
    """What is compared, and why the scenario could not be played to its end, if so."""

    record: dict[str, Any]
    trouble: str = ""


async def perform(doors: Doors, names: Iterable[str], at_once: int = AT_ONCE) -> dict[str, Performance]:
    client = await Client.connect(doors.grpc, namespace=NAMESPACE)
    room = asyncio.Semaphore(at_once)

    async def play(name: str) -> Performance:
        async with room:
            stage = Stage(client, HttpDoor(doors.http), name, SCENARIOS[name].masked)
            return await _play(stage, SCENARIOS[name])

    names = list(names)
    return dict(zip(names, await asyncio.gather(*map(play, names))))


def _told() -> str:
    """The exception at hand, with the scenario's own lines only."""
    _, error, trace = sys.exc_info()
    own = [frame for frame in traceback.extract_tb(trace) if "catalogue" in frame.filename]
    return "".join(traceback.format_list(own)) + f"{type(error).__name__}: {error}"


async def _play(stage: Stage, scenario: Scenario) -> Performance:
    trouble = ""
    try:
        await asyncio.wait_for(scenario.play(stage), SCENARIO_TIMEOUT_S)
    except Exception:  # Whatever went wrong with one, the others are played.
        trouble = _told()
    histories: list[dict[str, Any]] = []
    try:
        histories = await stage.histories()
        await stage.leave()
    except RPCError:
        trouble = trouble or _told()
    return Performance({"shows": scenario.shows, "transcript": stage.transcript, "histories": histories}, trouble)
