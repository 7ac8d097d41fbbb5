"""What exists on the server, so that mutated requests pass the first checks; and nearly right requests."""

from __future__ import annotations

import uuid
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from api import Api, Refused

NAMESPACE = "hostile"
DOOMED = "doomed"
QUEUE = "hostile-queue"
WORKFLOW = "hostile-workflow"
SCHEDULE = "hostile-schedule"
TYPE = "hostile-type"
# How far a right request is filled in; what lies deeper is reached by mutations.
FILLED_DEPTH = 3

# By the field's name, whatever the message. A field that is not here stays empty.
TEXTS = {
    "namespace": NAMESPACE,
    "identity": "attacker",
    "workflow_id": WORKFLOW,
    "schedule_id": SCHEDULE,
    "activity_id": "activity",
    "id": "id",
    "update_id": "update",
    "signal_name": "signal",
    "query_type": "query",
    "name": "name",
    "reason": "reason",
    "job_id": "hostile-job",
    "visibility_query": "ExecutionStatus = 'Running'",
    "query": "ExecutionStatus = 'Running'",
    "cron_schedule": "",
    "deployment_name": "deployment",
    "build_id": "build",
    "series_name": "series",
    "worker_instance_key": "worker",
    "sticky_task_queue": "hostile-sticky",
    "endpoint": "endpoint",
    "service": "service",
    "operation": "operation",
}
# Methods that would end what the others need, or that need something of their own.
EXCEPTIONS: dict[str, dict[str, Any]] = {
    "DeleteNamespace": {"namespace": DOOMED},
    "UpdateNamespace": {"namespace": DOOMED},
    "DeprecateNamespace": {"namespace": DOOMED},
    "RegisterNamespace": {"namespace": DOOMED, "workflow_execution_retention_period": {"seconds": 86_400}},
}


class World:
    def __init__(self, api: Api) -> None:
        self._api = api

    def make(self) -> None:
        retention = {"seconds": 86_400}
        for name in (NAMESPACE, DOOMED):
            self._api.call("RegisterNamespace", namespace=name, workflow_execution_retention_period=retention)
        self.mend()

    def mend(self) -> None:
        """A request that was accepted may have ended what there was."""
        self._quietly(
            "StartWorkflowExecution",
            namespace=NAMESPACE,
            workflow_id=WORKFLOW,
            workflow_type={"name": TYPE},
            task_queue={"name": QUEUE},
            workflow_id_conflict_policy="WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING",
            request_id=uuid.uuid4().hex,
        )
        action = {"workflow_id": f"{WORKFLOW}-scheduled", "workflow_type": {"name": TYPE}, "task_queue": {"name": QUEUE}}
        schedule = {"spec": {"interval": [{"interval": {"seconds": 3_600}}]}, "action": {"start_workflow": action}}
        self._quietly(
            "CreateSchedule", namespace=NAMESPACE, schedule_id=SCHEDULE, schedule=schedule, request_id=uuid.uuid4().hex
        )

    def request(self, method: MethodDescriptor) -> Message:
        """One that is nearly right."""
        message = self.filled(method.input_type)
        if method.name in EXCEPTIONS:
            message.MergeFrom(type(message)(**EXCEPTIONS[method.name]))
        return message

    def filled(self, kind: Descriptor) -> Message:
        message = GetMessageClass(kind)()
        self._fill(message, FILLED_DEPTH)
        return message

    def _fill(self, message: Message, depth: int) -> None:
        for field in message.DESCRIPTOR.fields:
            if field.is_repeated or (field.containing_oneof and field.containing_oneof.fields[0] is not field):
                continue
            if field.type == FieldDescriptor.TYPE_STRING:
                setattr(message, field.name, self._text(message.DESCRIPTOR, field.name))
            elif field.type == FieldDescriptor.TYPE_MESSAGE and depth > 0 and not _is_time(field.message_type):
                inner = getattr(message, field.name)
                self._fill(inner, depth - 1)

    def _text(self, message: Descriptor, name: str) -> str:
        if name == "request_id":
            return uuid.uuid4().hex
        if name == "name":
            return {"TaskQueue": QUEUE, "WorkflowType": TYPE, "ActivityType": TYPE}.get(message.name, "name")
        return TEXTS.get(name, "")

    def _quietly(self, rpc: str, **fields: Any) -> None:
        """What is there already is as good."""
        try:
            self._api.call(rpc, **fields)
        except Refused:
            pass


def _is_time(message: Descriptor) -> bool:
    return message.full_name in ("google.protobuf.Duration", "google.protobuf.Timestamp")
