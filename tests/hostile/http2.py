"""An HTTP/2 client that keeps to the rules only where it wants to: frames written one by one, windows never opened."""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Iterator

from hpack import Encoder
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    Frame,
    HeadersFrame,
    PingFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
CONNECT_TIMEOUT_S = 10.0
# What a server that reads nothing more is sent before the attacker gives up.
STALLED_S = 1.0
FRAME_BYTES_MAX = 16_384
FRAME_HEADER_BYTES = 9
WINDOW_MAX = 2**31 - 1


class Http2Attacker:
    def __init__(self, endpoint: tuple[str, int], initial_window: int | None = None) -> None:
        self._socket = socket.create_connection(endpoint, CONNECT_TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._authority = f"{endpoint[0]}:{endpoint[1]}"
        self._encoder = Encoder()
        self._received = b""
        self._next_stream = 1
        settings = {} if initial_window is None else {SettingsFrame.INITIAL_WINDOW_SIZE: initial_window}
        self.send(PREFACE + SettingsFrame(0, settings=settings).serialize())

    def __enter__(self) -> Http2Attacker:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, data: bytes) -> bool:
        """False if the server took no more for a while, or closed the connection. Both are its right."""
        self._socket.settimeout(STALLED_S)
        try:
            self._socket.sendall(data)
        except (TimeoutError, OSError):
            return False
        return True

    def request(self, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> bytes:
        """A whole call, as frames; without a body it stays open."""
        stream = self.new_stream()
        opened = self.headers(stream, path, headers)
        return opened if body is None else opened + self.data(stream, message(body), end=True)

    def new_stream(self) -> int:
        stream, self._next_stream = self._next_stream, self._next_stream + 2
        return stream

    def headers(self, stream: int, path: str, more: dict[str, str] | None = None) -> bytes:
        frame = HeadersFrame(stream, self.header_block(path, more))
        frame.flags.add("END_HEADERS")
        return frame.serialize()

    def header_block(self, path: str, more: dict[str, str] | None = None) -> bytes:
        plain = {
            ":method": "POST",
            ":scheme": "http",
            ":path": path,
            ":authority": self._authority,
            "content-type": "application/grpc",
            "te": "trailers",
        }
        return self._encoder.encode(list((plain | (more or {})).items()), huffman=False)

    def data(self, stream: int, content: bytes, end: bool = False) -> bytes:
        frames = [DataFrame(stream, content[at : at + FRAME_BYTES_MAX]) for at in range(0, len(content), FRAME_BYTES_MAX)]
        if end:
            frames[-1].flags.add("END_STREAM")
        return b"".join(frame.serialize() for frame in frames)

    def reset(self, stream: int) -> bytes:
        return RstStreamFrame(stream, 8).serialize()

    def open_window(self, stream: int, by: int) -> bytes:
        return WindowUpdateFrame(stream, by).serialize()

    def ping(self) -> bytes:
        return PingFrame(0, b"hostile!").serialize()

    def settings(self) -> bytes:
        return SettingsFrame(0, settings={SettingsFrame.INITIAL_WINDOW_SIZE: 1}).serialize()

    def unfinished_headers(self, stream: int, block: bytes) -> bytes:
        return HeadersFrame(stream, block).serialize()

    def continuation(self, stream: int, block: bytes) -> bytes:
        return ContinuationFrame(stream, block).serialize()

    def frames(self, within_s: float) -> Iterator[Frame]:
        """What the server has sent, until it is silent for this long or closes the connection."""
        self._socket.setblocking(False)
        while select.select([self._socket], [], [], within_s)[0]:
            try:
                data = self._socket.recv(1 << 16)
            except OSError:
                return
            if not data:
                return
            self._received += data
            yield from self._parsed()

    def is_closed_within(self, within_s: float) -> bool:
        """Whether the server ends the connection."""
        deadline = time.monotonic() + within_s
        self._socket.setblocking(False)
        while time.monotonic() < deadline:
            if select.select([self._socket], [], [], deadline - time.monotonic())[0]:
                try:
                    if not self._socket.recv(1 << 16):
                        return True
                except OSError:
                    return True
        return False

    def _parsed(self) -> Iterator[Frame]:
        while len(self._received) >= FRAME_HEADER_BYTES:
            frame, length = Frame.parse_frame_header(memoryview(self._received[:FRAME_HEADER_BYTES]))
            if len(self._received) < FRAME_HEADER_BYTES + length:
                return
            frame.parse_body(memoryview(self._received[FRAME_HEADER_BYTES : FRAME_HEADER_BYTES + length]))
            self._received = self._received[FRAME_HEADER_BYTES + length :]
            yield frame


def message(body: bytes) -> bytes:
    """As gRPC sends it, uncompressed."""
    return struct.pack(">BI", 0, len(body)) + body


def beginning_of_message(declared: int, body: bytes) -> bytes:
    """A message that is longer than what comes."""
    return struct.pack(">BI", 0, declared) + body
