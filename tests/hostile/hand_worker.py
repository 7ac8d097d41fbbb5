"""One run, driven by hand: client and worker in one, so that an attack can come at a chosen moment of it."""

from __future__ import annotations

import uuid
from typing import Any

from api import Answer, Api

NAMESPACE = "default"
TIMEOUT_S = 60


class HandWorker:
    def __init__(self, api: Api, name: str, namespace: str = NAMESPACE) -> None:
        self._api = api
        self.namespace = namespace
        self.workflow_id = f"{name}-{uuid.uuid4().hex[:8]}"
        self.queue = self.workflow_id
        self.run_id = ""

    @property
    def execution(self) -> dict[str, str]:
        return {"workflow_id": self.workflow_id, "run_id": self.run_id}

    def start(self, **fields: Any) -> None:
        plain = {
            "workflow_id": self.workflow_id,
            "workflow_type": {"name": "attacked"},
            "task_queue": {"name": self.queue},
            "workflow_task_timeout": {"seconds": TIMEOUT_S},
            "request_id": uuid.uuid4().hex,
        }
        self.run_id = self.call("StartWorkflowExecution", **plain | fields).run_id

    def signal(self, **fields: Any) -> None:
        self.call("SignalWorkflowExecution", workflow_execution=self.execution, signal_name="signal", **fields)

    def workflow_task(self) -> bytes:
        return self.call("PollWorkflowTaskQueue", task_queue={"name": self.queue}).task_token

    def activity_task(self) -> bytes:
        return self.call("PollActivityTaskQueue", task_queue={"name": self.queue}).task_token

    def complete(self, task_token: bytes, *commands: dict[str, Any]) -> None:
        self.call("RespondWorkflowTaskCompleted", task_token=task_token, commands=commands)

    def schedule_activities(self, count: int = 1) -> None:
        def command(n: int) -> dict[str, Any]:
            attributes = {
                "activity_id": f"activity-{n}",
                "activity_type": {"name": "attacked"},
                "task_queue": {"name": self.queue},
                "start_to_close_timeout": {"seconds": TIMEOUT_S},
                "retry_policy": {"maximum_attempts": 1},
            }
            kind = {"command_type": "COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK"}
            return kind | {"schedule_activity_task_command_attributes": attributes}

        self.complete(self.workflow_task(), *(command(n) for n in range(count)))

    def check_readable(self) -> None:
        """What was accepted can be read back."""
        self.call("DescribeWorkflowExecution", execution=self.execution)
        history = self.call("GetWorkflowExecutionHistory", execution=self.execution)
        assert history.history.events, "the run has no history"

    def delete(self) -> None:
        self.call("DeleteWorkflowExecution", workflow_execution=self.execution)

    def call(self, rpc: str, **fields: Any) -> Any:
        return self._api.call(rpc, namespace=self.namespace, **fields)

    def attempt(self, rpc: str, **fields: Any) -> Answer:
        return self._api.attempt(rpc, namespace=self.namespace, **fields)

    def request(self, rpc: str, **fields: Any) -> bytes:
        return self._api.request(rpc, namespace=self.namespace, **fields).SerializeToString()
