"""Two records side by side: only what differs, each with the place it stands in."""

from __future__ import annotations

import json
from typing import Any

# A reader mends the first differences first; the rest often follow from them.
LINES_MAX = 60


def differences(golden: dict[str, Any], found: dict[str, Any]) -> list[str]:
    lines = _lists("transcript", golden["transcript"], found["transcript"], _step)
    for n, (theirs, ours) in enumerate(zip(golden["histories"], found["histories"]), 1):
        lines += _lists(f"run {n} ({theirs['workflow_id']})", theirs["events"], ours["events"], _event)
    if len(golden["histories"]) != len(found["histories"]):
        lines.append(f"runs: golden has {len(golden['histories'])}, found {len(found['histories'])}")
    return lines


def shown(lines: list[str]) -> str:
    more = [f"... and {len(lines) - LINES_MAX} more"] if len(lines) > LINES_MAX else []
    return "\n".join(lines[:LINES_MAX] + more)


def _lists(place: str, golden: list[Any], found: list[Any], name: Any) -> list[str]:
    lines = []
    for n in range(max(len(golden), len(found))):
        if n >= len(found):
            lines.append(f"{place}: missing {name(golden[n])}")
        elif n >= len(golden):
            lines.append(f"{place}: not in the golden: {name(found[n])} {_short(found[n])}")
        elif name(golden[n]) != name(found[n]):
            lines.append(f"{place}[{n + 1}]: golden {name(golden[n])}, found {name(found[n])} {_short(found[n])}")
        else:
            lines += _fields(f"{place}[{n + 1}] {name(golden[n])}", golden[n], found[n])
    return lines


def _fields(place: str, golden: Any, found: Any) -> list[str]:
    if isinstance(golden, dict) and isinstance(found, dict):
        keys = [*golden, *(key for key in found if key not in golden)]
        return [line for key in keys for line in _fields(f"{place}.{key}", golden.get(key), found.get(key))]
    if isinstance(golden, list) and isinstance(found, list) and len(golden) == len(found):
        return [line for n, pair in enumerate(zip(golden, found)) for line in _fields(f"{place}[{n}]", *pair)]
    if golden == found:
        return []
    return [f"{place}: golden {_short(golden)}, found {_short(found)}"]


def _event(event: dict[str, Any]) -> str:
    return event["event_type"].removeprefix("EVENT_TYPE_")


def _step(step: dict[str, Any]) -> str:
    return " ".join([step.get("call") or step["note"], *(key for key in ("answer", "refusal") if key in step)])


def _short(value: Any) -> str:
    return "nothing" if value is None else json.dumps(value)
