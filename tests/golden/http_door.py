"""The HTTP API, spoken by hand: what is sent is what a scenario says, and nothing else."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any

TIMEOUT_S = 90.0


@dataclass(frozen=True)
class HttpAnswer:
    status: int
    # Data if it is JSON, else the text.
    body: Any


class HttpDoor:
    def __init__(self, address: str) -> None:
        self._address = address

    async def ask(self, verb: str, path: str, body: Any, headers: dict[str, str]) -> HttpAnswer:
        sent = body if body is None or isinstance(body, str) else json.dumps(body)
        if sent is not None:
            headers = {"Content-Type": "application/json"} | headers
        return await asyncio.to_thread(self._ask, verb, path, sent, headers)

    def _ask(self, verb: str, path: str, body: str | None, headers: dict[str, str]) -> HttpAnswer:
        connection = HTTPConnection(self._address, timeout=TIMEOUT_S)
        try:
            connection.request(verb, path, body, headers)
            response = connection.getresponse()
            text = response.read().decode(errors="replace")
        finally:
            connection.close()
        return HttpAnswer(response.status, _read(text))


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
