"""A client that keeps to HTTP/2's windows, and never ends its requests."""

from __future__ import annotations

import select
import socket

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.exceptions import H2Error

CONNECT_TIMEOUT_S = 10.0
# Without a word from the server for this long, it takes no more.
STALLED_S = 1.0


class Uploader:
    def __init__(self, endpoint: tuple[str, int], path: str) -> None:
        self._socket = socket.create_connection(endpoint, CONNECT_TIMEOUT_S)
        self._connection = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self._connection.initiate_connection()
        self._headers = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", path),
            (":authority", f"{endpoint[0]}:{endpoint[1]}"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
        ]

    def __enter__(self) -> Uploader:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def upload(self, content: bytes, n_streams: int) -> None:
        """Sends the same on each of `n_streams` streams, in turns, until all is sent or the server takes no more."""
        try:
            sent = {self._opened(): 0 for _ in range(n_streams)}
            self._flush()
            while any(at < len(content) for at in sent.values()):
                if not self._send_round(content, sent) and not self._received():
                    return
        except (OSError, H2Error):
            # It closed the connection.
            return

    def _opened(self) -> int:
        stream = self._connection.get_next_available_stream_id()
        self._connection.send_headers(stream, self._headers)
        return stream

    def _send_round(self, content: bytes, sent: dict[int, int]) -> bool:
        """As much as the windows allow; whether that was anything."""
        any_sent = False
        for stream, at in sent.items():
            room = self._connection.local_flow_control_window(stream)
            part = content[at : at + min(room, self._connection.max_outbound_frame_size)]
            if part:
                self._connection.send_data(stream, part)
                sent[stream] += len(part)
                any_sent = True
        self._flush()
        return any_sent

    def _received(self) -> bool:
        if not select.select([self._socket], [], [], STALLED_S)[0]:
            return False
        data = self._socket.recv(1 << 16)
        self._connection.receive_data(data)
        self._flush()
        return bool(data)

    def _flush(self) -> None:
        self._socket.sendall(self._connection.data_to_send())
