"""The HTTP API by hand: any verb, header and body, and only as much of each as is wanted."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass

TIMEOUT_S = 10.0
# It has all that it will get; what it says to that, it says at once.
RAW_TIMEOUT_S = 2.0


@dataclass(frozen=True)
class HttpAnswer:
    status: int
    body: bytes


def ask(endpoint: tuple[str, int], verb: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None) -> HttpAnswer:
    """Status 0 if the server did not answer, or closed the connection without."""
    plain = {"Host": f"localhost:{endpoint[1]}", "Content-Length": str(len(body)), "Connection": "close"}
    if body:
        plain["Content-Type"] = "application/json"
    written = plain | (headers or {})
    head = f"{verb} {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in written.items())
    return raw(endpoint, head.encode() + b"\r\n" + body, TIMEOUT_S)


def raw(endpoint: tuple[str, int], request: bytes, timeout_s: float = RAW_TIMEOUT_S) -> HttpAnswer:
    with socket.create_connection(endpoint, timeout_s) as connection:
        try:
            connection.sendall(request)
        except OSError:
            # It may answer, and close, before all of it has come.
            pass
        return _read(connection)


def _read(connection: socket.socket) -> HttpAnswer:
    received = b""
    try:
        while chunk := connection.recv(1 << 16):
            received += chunk
    except OSError:
        # Closed, or it waits for more of what it takes for a request.
        pass
    head, _, body = received.partition(b"\r\n\r\n")
    words = head.split(b" ", 2)
    return HttpAnswer(int(words[1]) if len(words) > 1 and words[1].isdigit() else 0, body)


def as_json(value: object) -> bytes:
    return json.dumps(value).encode()
