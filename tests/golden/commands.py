"""Commands, payloads and failures, made by hand."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from google.protobuf.any_pb2 import Any as Packed
from google.protobuf.message import Message
from temporalio.api.command.v1 import Command
from temporalio.api.common.v1 import Payload, Payloads
from temporalio.api.failure.v1 import Failure
from temporalio.api.protocol.v1 import Message as ProtocolMessage

SECOND = timedelta(seconds=1)
# For what must strike, but not before a busy machine has done something else first.
SHORTLY = timedelta(seconds=3)
# Nothing in a scenario waits this long: a timeout that must not strike.
NEVER = timedelta(seconds=600)


def payload(value: Any) -> Payload:
    return Payload(metadata={"encoding": b"json/plain"}, data=json.dumps(value).encode())


def typed(value: Any, kind: str) -> Payload:
    """A search attribute's value."""
    return Payload(metadata={"encoding": b"json/plain", "type": kind.encode()}, data=json.dumps(value).encode())


def input_of(*values: Any) -> Payloads | None:
    return Payloads(payloads=[payload(value) for value in values]) if values else None


def failure(message: str, kind: str = "Refused", **application: Any) -> Failure:
    return Failure(message=message, source="golden", application_failure_info={"type": kind} | application)


def command(kind: str, user_metadata: Any = None, **attributes: Any) -> Command:
    return Command(
        command_type=f"COMMAND_TYPE_{kind.upper()}",
        user_metadata=user_metadata,
        **{f"{kind}_command_attributes": attributes},
    )


def complete(*result: Any) -> Command:
    return command("complete_workflow_execution", result=input_of(*result))


def fail(message: str = "gave up", **fields: Any) -> Command:
    return command("fail_workflow_execution", failure=failure(message, **fields))


def cancel_workflow(*details: Any) -> Command:
    return command("cancel_workflow_execution", details=input_of(*details))


def continue_as_new(queue: str, **fields: Any) -> Command:
    plain = {"workflow_type": {"name": "golden"}, "task_queue": {"name": queue}}
    return command("continue_as_new_workflow_execution", **plain | fields)


def start_timer(timer_id: str = "timer", after: timedelta = SECOND, **fields: Any) -> Command:
    return command("start_timer", timer_id=timer_id, start_to_fire_timeout=after, **fields)


def cancel_timer(timer_id: str = "timer") -> Command:
    return command("cancel_timer", timer_id=timer_id)


def schedule_activity(queue: str, activity_id: str = "activity", **fields: Any) -> Command:
    plain = {
        "activity_id": activity_id,
        "activity_type": {"name": "act"},
        "task_queue": {"name": queue},
        "start_to_close_timeout": NEVER,
    }
    return command("schedule_activity_task", **plain | fields)


def cancel_activity(scheduled_event_id: int) -> Command:
    return command("request_cancel_activity_task", scheduled_event_id=scheduled_event_id)


def marker(name: str = "marker", **fields: Any) -> Command:
    return command("record_marker", marker_name=name, **fields)


def start_child(child_id: str, queue: str, **fields: Any) -> Command:
    plain = {"workflow_id": child_id, "workflow_type": {"name": "child"}, "task_queue": {"name": queue}}
    return command("start_child_workflow_execution", **plain | fields)


def signal_external(workflow_id: str, name: str = "hello", run_id: str = "", **fields: Any) -> Command:
    execution = {"workflow_id": workflow_id, "run_id": run_id}
    return command("signal_external_workflow_execution", execution=execution, signal_name=name, **fields)


def cancel_external(workflow_id: str, run_id: str = "", **fields: Any) -> Command:
    return command("request_cancel_external_workflow_execution", workflow_id=workflow_id, run_id=run_id, **fields)


def protocol_command(message_id: str) -> Command:
    return command("protocol_message", message_id=message_id)


def protocol_message(message_id: str, instance_id: str, body: Message, **fields: Any) -> ProtocolMessage:
    packed = Packed()
    packed.Pack(body)
    return ProtocolMessage(id=message_id, protocol_instance_id=instance_id, body=packed, **fields)
