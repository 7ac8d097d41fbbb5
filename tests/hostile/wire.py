"""Protobuf's wire format by hand: what no library would write."""

from __future__ import annotations

from functools import cache

VARINT, FIXED64, LENGTH_DELIMITED, START_GROUP, END_GROUP, FIXED32 = 0, 1, 2, 3, 4, 5


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def tag(number: int, wire_type: int) -> bytes:
    return varint(number << 3 | wire_type)


def field(number: int, content: bytes | str) -> bytes:
    """A field that is a string, bytes or a message."""
    content = content.encode() if isinstance(content, str) else content
    return tag(number, LENGTH_DELIMITED) + varint(len(content)) + content


def number(field_number: int, value: int) -> bytes:
    return tag(field_number, VARINT) + varint(value)


@cache
def nested(field_number: int, levels: int, innermost: bytes = b"") -> bytes:
    """A field that holds itself, this many times. Linear in the result's size, unlike wrapping from the inside."""
    lengths = [len(innermost)]
    for _ in range(levels - 1):
        inner = lengths[-1]
        lengths.append(len(tag(field_number, LENGTH_DELIMITED)) + len(varint(inner)) + inner)
    opening = tag(field_number, LENGTH_DELIMITED)
    return b"".join(opening + varint(length) for length in reversed(lengths)) + innermost
