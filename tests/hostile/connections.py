"""TCP connections by the hundred, held open for as long as the attack goes on."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held(endpoint: tuple[str, int], count: int, opening: bytes = b"") -> Iterator[list[socket.socket]]:
    """Opens `count` connections, each of which has sent `opening` and no more. The server may refuse some of them."""
    sockets = []
    try:
        for _ in range(count):
            one = socket.socket()
            sockets.append(one)
            one.setblocking(False)
            if one.connect_ex(endpoint) not in (0, errno.EINPROGRESS):
                continue
            if opening:
                _say(one, opening)
        yield sockets
    finally:
        for one in sockets:
            one.close()


def _say(one: socket.socket, opening: bytes) -> None:
    try:
        one.send(opening)
    except OSError:
        # Not accepted, or closed already: that is a way to defend oneself.
        pass
