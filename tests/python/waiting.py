"""Waiting for what others do: by asking again until a deadline, never by a pause of guessed length."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from temporalio.service import RPCError, RPCStatusCode

Found = TypeVar("Found")

DEADLINE_S = 60.0
ASK_AGAIN_S = 0.05
# What a client sees of a server that is gone or not yet back. The SDK reports a connection that broke under a call as UNKNOWN.
GONE = {
    RPCStatusCode.UNAVAILABLE,
    RPCStatusCode.DEADLINE_EXCEEDED,
    RPCStatusCode.CANCELLED,
    RPCStatusCode.UNKNOWN,
}


async def eventually(ask: Callable[[], Awaitable[Found | None]], deadline_s: float = DEADLINE_S) -> Found:
    """The first answer that is not None (or False)."""
    deadline = time.monotonic() + deadline_s
    while True:
        answer = await ask()
        if answer is not None and answer is not False:
            return answer
        assert time.monotonic() < deadline, f"did not come true in {deadline_s} s: {getattr(ask, '__name__', ask)}"
        await asyncio.sleep(ASK_AGAIN_S)


async def insist(call: Callable[[], Awaitable[Found]], deadline: float) -> Found:
    """Repeats a call for as long as the server is gone. Every other error is an answer, and passed on."""
    while True:
        try:
            return await call()
        except RPCError as error:
            if error.status not in GONE or time.monotonic() > deadline:
                raise
        await asyncio.sleep(ASK_AGAIN_S)
