"""Requests made wrong, field by field, each in the ways that its type allows. Nothing here knows an RPC."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

import wire

# How far into nested messages fields are looked for.
DEPTH = 4
MANY = 10_000
LONG_TEXTS = (1_001, 100_000)
# Just below what a message may have in all.
HUGE_TEXT = 3_900_000
ODD_TEXTS = ("", "\0", "💥" * 300, "../../../etc/passwd", "%s%n{}", "a\nb", "' OR 1 = 1 --", " ", "temporal-sys-x")
INTEGERS = (0, 1, -1, 2**31 - 1, -(2**31))
LONG_INTEGERS = (*INTEGERS, 2**63 - 1, -(2**63))
DOUBLES = (float("nan"), float("inf"), float("-inf"), -1.0, 1e308, 5e-324)
ENUMS = (-1, 0, 9_999, 2**31 - 1, -(2**31))
# Seconds and nanoseconds: before the first moment, after the last, signs that disagree, and what no calendar has.
TIMES = (
    (0, 0),
    (-1, 0),
    (1, -1),
    (0, 2**31 - 1),
    (315_576_000_000, 999_999_999),
    (-62_135_596_801, 0),
    (253_402_300_800, 0),
    (2**63 - 1, 999_999_999),
    (-(2**63), -(2**31)),
)
TIME_MESSAGES = ("google.protobuf.Duration", "google.protobuf.Timestamp")
UNSIGNED = {
    FieldDescriptor.TYPE_UINT32,
    FieldDescriptor.TYPE_UINT64,
    FieldDescriptor.TYPE_FIXED32,
    FieldDescriptor.TYPE_FIXED64,
}
SHORT_INTEGER = {FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_SINT32, FieldDescriptor.TYPE_SFIXED32}
FLOATING = {FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT}

Path = tuple[FieldDescriptor, ...]
# What is wrong, and the request.
Mutation = tuple[str, bytes]


def of_each_field(base: Message, chance: random.Random, n_deep: int) -> Iterator[Mutation]:
    """All mutations of the request's own fields, and `n_deep` of fields that lie deeper, chosen by chance."""
    paths = list(_paths(base.DESCRIPTOR, DEPTH))
    deep = [(path, value) for path in paths if len(path) > 1 for value in _values(path[-1], chance)]
    shallow = [(path, value) for path in paths if len(path) == 1 for value in _values(path[-1], chance)]
    for path, (what, value) in shallow + chance.sample(deep, min(n_deep, len(deep))):
        mutated = type(base)()
        mutated.CopyFrom(base)
        name = ".".join(field.name for field in path)
        try:
            _set(_parent(mutated, path), path[-1], value)
            yield f"{name} {what}", mutated.SerializeToString()
        except (ValueError, TypeError) as refusal:
            raise AssertionError(f"{base.DESCRIPTOR.name}.{name} {what}: {refusal}") from None


def with_huge_text(base: Message, chance: random.Random, n: int) -> Iterator[Mutation]:
    """In `n` of the texts, one at a time, as many characters as a message can hold."""
    texts = [path for path in _paths(base.DESCRIPTOR, DEPTH) if path[-1].type == FieldDescriptor.TYPE_STRING]
    for path in chance.sample(texts, min(n, len(texts))):
        mutated = type(base)()
        mutated.CopyFrom(base)
        _set(_parent(mutated, path), path[-1], _as_many(path[-1], "x" * HUGE_TEXT))
        yield f"{'.'.join(field.name for field in path)} of {HUGE_TEXT} characters", mutated.SerializeToString()


def of_bytes(base: Message, chance: random.Random, n: int) -> Iterator[Mutation]:
    """The same request, broken on the wire."""
    right = base.SerializeToString()
    yield "nothing", b""
    yield "an unknown field", right + wire.field(50_000, chance.randbytes(100))
    yield "an unknown group", right + wire.tag(50_000, wire.START_GROUP) + wire.tag(50_000, wire.END_GROUP)
    yield "a group that never ends", right + wire.tag(50_000, wire.START_GROUP)
    yield "nested groups", right + wire.tag(50_000, wire.START_GROUP) * 10_000
    yield "field number 0", right + b"\x00\x00"
    yield "a wire type that does not exist", right + b"\x0f\x00"
    yield "a number without an end", right + b"\x08" + b"\xff" * 11
    yield "a length beyond the end", right + wire.tag(1, wire.LENGTH_DELIMITED) + wire.varint(2**31 - 1) + b"x"
    yield "a length of 64 bits", right + wire.tag(1, wire.LENGTH_DELIMITED) + wire.varint(2**64 - 1)
    yield "text that is not UTF-8", b"".join(wire.field(n, b"\xff\xfe\xc0") for n in range(1, 4))
    yield "the wrong wire types", b"".join(wire.number(n, 7) for n in range(1, 30))
    yield "everything twice", right + right
    for _ in range(n):
        yield "its end cut off", right[: chance.randrange(len(right) + 1)]
        yield "noise", chance.randbytes(chance.randrange(1, 200))
        if right:
            flipped = bytearray(right)
            flipped[chance.randrange(len(right))] ^= 1 << chance.randrange(8)
            yield "one bit turned", bytes(flipped)


def _paths(message: Descriptor, depth: int, above: Path = ()) -> Iterator[Path]:
    for field in message.fields:
        path = (*above, field)
        yield path
        is_recursive = any(field.message_type is one.message_type for one in above if field.message_type)
        if field.message_type and depth > 1 and not is_recursive and not _is_map(field) and not _is_time(field):
            yield from _paths(field.message_type, depth - 1, path)


def _values(field: FieldDescriptor, chance: random.Random) -> Iterator[tuple[str, Any]]:
    if _is_map(field):
        yield from _maps(field)
        return
    for what, value in _single_values(field, chance):
        yield what, _as_many(field, value)
    if field.is_repeated:
        what, value = chance.choice(list(_single_values(field, chance)))
        yield f"{MANY} × {what}", [value] * (MANY if _size(value) <= 100 else 3)


def _single_values(field: FieldDescriptor, chance: random.Random) -> Iterator[tuple[str, Any]]:
    kind = field.type
    if kind == FieldDescriptor.TYPE_STRING:
        yield from ((f"{text[:10]!r}", text) for text in ODD_TEXTS)
        yield from ((f"of {length} characters", "x" * length) for length in LONG_TEXTS)
    elif kind == FieldDescriptor.TYPE_BYTES:
        yield from ((f"{n} bytes of noise", chance.randbytes(n)) for n in (0, 1, 16, 1_001, 100_000))
    elif kind == FieldDescriptor.TYPE_BOOL:
        yield from ((str(value), value) for value in (True, False))
    elif kind == FieldDescriptor.TYPE_ENUM:
        yield from ((str(value), value) for value in ENUMS)
    elif kind in FLOATING:
        yield from ((str(value), value) for value in DOUBLES)
    elif kind in UNSIGNED:
        yield from ((str(value), value) for value in (0, 1, 2**32 - 1))
    elif kind == FieldDescriptor.TYPE_MESSAGE:
        yield from _messages(field)
    else:
        integers = INTEGERS if kind in SHORT_INTEGER else LONG_INTEGERS
        yield from ((str(value), value) for value in integers)


def _messages(field: FieldDescriptor) -> Iterator[tuple[str, Any]]:
    if _is_time(field):
        yield from ((f"{seconds} s {nanos} ns", {"seconds": seconds, "nanos": nanos}) for seconds, nanos in TIMES)
    elif field.message_type.full_name == "google.protobuf.Any":
        yield "of a type that does not exist", {"type_url": "type.googleapis.com/nothing", "value": b"\xff"}
    else:
        yield "empty", {}


def _maps(field: FieldDescriptor) -> Iterator[tuple[str, Any]]:
    key = field.message_type.fields_by_name["key"]
    value = field.message_type.fields_by_name["value"]
    plain = "x" if value.type == FieldDescriptor.TYPE_STRING else b"" if value.type == FieldDescriptor.TYPE_BYTES else 0
    filled = {} if value.type == FieldDescriptor.TYPE_MESSAGE else plain
    if key.type != FieldDescriptor.TYPE_STRING:
        yield f"{MANY} keys", {n: filled for n in range(MANY)}
        return
    yield "an empty key", {"": filled}
    yield from ((f"a key of {length} characters", {"k" * length: filled}) for length in LONG_TEXTS)
    yield f"{MANY} keys", {f"k{n}": filled for n in range(MANY)}
    if value.type == FieldDescriptor.TYPE_STRING:
        yield "a long value", {"k": "x" * LONG_TEXTS[-1]}


def _parent(message: Message, path: Path) -> Message:
    """The message that holds the path's last field; those above are made as needed."""
    for field in path[:-1]:
        inner = getattr(message, field.name)
        if field.is_repeated:
            inner = inner[0] if inner else inner.add()
        else:
            inner.SetInParent()
        message = inner
    return message


def _set(message: Message, field: FieldDescriptor, value: Any) -> None:
    message.ClearField(field.name)
    if field.type == FieldDescriptor.TYPE_MESSAGE and not field.is_repeated and not value:
        getattr(message, field.name).SetInParent()
        return
    message.MergeFrom(type(message)(**{field.name: value}))


def _as_many(field: FieldDescriptor, value: Any) -> Any:
    return [value] if field.is_repeated else value


def _size(value: Any) -> int:
    return len(value) if isinstance(value, (str, bytes)) else 1


def _is_map(field: FieldDescriptor) -> bool:
    return bool(field.message_type and field.message_type.GetOptions().map_entry)


def _is_time(field: FieldDescriptor) -> bool:
    return bool(field.message_type and field.message_type.full_name in TIME_MESSAGES)
