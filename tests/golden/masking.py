"""Turns API messages into plain data that is the same in every run: what differs by chance gets a stable placeholder.

Everything that is not named here is kept and compared: event ids, their order, durations, defaults, texts, typed details.
"""

from __future__ import annotations

import re
from typing import Any

# Typed details are unpacked by name, so their modules must have been imported.
import temporalio.api.errordetails.v1  # noqa: F401
import temporalio.api.update.v1  # noqa: F401
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.symbol_database import Default

# Random by nature, or made of what is: a placeholder by first appearance keeps which of them are equal.
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

# A moment, as JSON writes it.
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")

# What a server prints of its own data structures in the middle of a message, with spaces as chance has it.
PRINTED = re.compile(r' TaskQueue=name:"[^"]*"(\s+kind:\w+)?')
# Names made longer than a limit allows.
OVERLONG = re.compile(r"x{256,}")

# Fields that say nothing of a scenario.
DROPPED: dict[tuple[str, str], str] = {
    ("HistoryEvent", "task_id"): "a server's own numbering",
    ("HistoryEvent", "event_time"): "every event has one",
    ("WorkflowTaskStartedEventAttributes", "history_size_bytes"): "how a server stores events",
    ("WorkflowExecutionInfo", "history_size_bytes"): "how a server stores events",
    ("WorkflowExecutionInfo", "execution_duration"): "depends on timing",
    ("PollWorkflowTaskQueueResponse", "backlog_count_hint"): "a hint; depends on timing",
    ("PollWorkflowTaskQueueResponse", "next_page_token"): "where a page ends is a server's choice",
    ("PollWorkflowTaskQueueResponse", "poller_scaling_decision"): "a hint; depends on timing",
    ("PollActivityTaskQueueResponse", "poller_scaling_decision"): "a hint; depends on timing",
}

# Set by servers newer than the one that made the goldens. Few and narrow: each is a hole in the comparison.
NEWER: dict[tuple[str, str], str] = {
    ("QueryWorkflowResponse", "link"): "came after 1.32.0",
}

UNCOMPARED = DROPPED | NEWER

# Made of moments: their fractions of a second are chance, and below a second they may be missing. (A server puts a second
# between two runs of one id; what is left of it is the backoff of the later one.)
PAUSES = {"first_workflow_task_backoff", "backoff_start_interval", "current_retry_interval"}

# Given out by a server to be handed back to it.
TOKENS = {"task_token", "next_page_token"}


def _json_name(field: str) -> str:
    first, *others = field.split("_")
    return first + "".join(map(str.title, others))


# The same in JSON, where nobody says which message a field is of.
DROPPED_KEYS = {_json_name(field) for _, field in DROPPED if field != "next_page_token"}
TOKEN_KEYS = {_json_name(field) for field in TOKENS}


class Mask:
    """The placeholders of one scenario.

    `own` is the part of names that makes them unique to this run of it, `fields` are those that it cannot foretell.
    """

    def __init__(self, own: str, fields: tuple[str, ...] = ()) -> None:
        self._own = own
        self._fields = fields
        self._ids: dict[str, str] = {}

    def plain(self, value: Any) -> Any:
        if isinstance(value, Message):
            return self._message(value)
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, (list, tuple)):
            return [self.plain(item) for item in value]
        return value

    def json(self, value: Any) -> Any:
        """A message as the HTTP API writes it."""
        if isinstance(value, dict):
            kept = {key: item for key, item in value.items() if key not in DROPPED_KEYS}
            return {self.text(key): "<token>" if key in TOKEN_KEYS else self.json(item) for key, item in kept.items()}
        if isinstance(value, list):
            return [self.json(item) for item in value]
        return MOMENT.sub("<time>", self.text(value)) if isinstance(value, str) else value

    def text(self, text: str, kind: str = "id") -> str:
        # A library of the reference prints one or the other space, as chance has it when it is built.
        text = text.replace(self._own, "").replace("\u00a0", " ")
        text = PRINTED.sub("", OVERLONG.sub("<overlong>", text))
        return UUID.sub(lambda found: self._placeholder(found.group(), kind), text)

    def _placeholder(self, value: str, kind: str) -> str:
        n = sum(name.startswith(f"<{kind}-") for name in self._ids.values()) + 1
        return self._ids.setdefault(value, f"<{kind}-{n}>")

    def _message(self, message: Message) -> Any:
        match message.DESCRIPTOR.full_name:
            case "google.protobuf.Timestamp":
                return "<time>"
            case "google.protobuf.Duration":
                return message.ToJsonString()
            case "google.protobuf.Any":
                return self._unpacked(message)
        name = message.DESCRIPTOR.name
        return {
            field.name: self._field(field, value)
            for field, value in message.ListFields()
            if (name, field.name) not in UNCOMPARED and (field.name not in PAUSES or value.seconds)
        }

    def _field(self, field: FieldDescriptor, value: Any) -> Any:
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            return self._map(value)
        if field.is_repeated:
            return [self._single(field, item) for item in value]
        return self._single(field, value)

    def _single(self, field: FieldDescriptor, value: Any) -> Any:
        if field.enum_type is not None:
            known = field.enum_type.values_by_number.get(value)
            return known.name if known else value
        if field.name in TOKENS:
            return "<token>"
        if field.name in self._fields:
            return "<masked>"
        if isinstance(value, bytes):
            return self._bytes(value)
        if field.name == "request_id" and UUID.search(value):
            # Made by a server, in its own way: scenarios name their requests.
            return self._placeholder(value, "request")
        if isinstance(value, str):
            return self.text(value, "run" if field.name.endswith("run_id") else "id")
        if field.name in PAUSES:
            return f"{value.seconds}s"
        return self.plain(value)

    def _map(self, entries: Any) -> dict[str, Any]:
        return {
            self.text(str(key)): self._bytes(entries[key]) if isinstance(entries[key], bytes) else self.plain(entries[key])
            for key in sorted(entries)
        }

    def _bytes(self, value: bytes) -> str:
        try:
            return self.text(value.decode())
        except UnicodeDecodeError:
            return f"<{len(value)} bytes>"

    def _unpacked(self, packed: Message) -> Any:
        type_name = packed.type_url.rpartition("/")[2]
        try:
            message = Default().GetSymbol(type_name)()
            message.ParseFromString(packed.value)
        except (KeyError, DecodeError):
            return {"type": type_name, "value": self._bytes(packed.value)}
        return {"type": type_name, **self._message(message)}
