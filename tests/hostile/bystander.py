"""Somebody who only wants to run a workflow, while others attack the server and after they have."""

from __future__ import annotations

import statistics
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from api import Api

NAMESPACE = "default"
TRIALS = 3
TASK_TIMEOUT_S = 10


class Bystander:
    """Client and worker in one hand, on one connection that is kept."""

    def __init__(self, address: str) -> None:
        self._api = Api(address)
        self._queue = f"ordinary-{uuid.uuid4().hex[:8]}"

    def close(self) -> None:
        self._api.close()

    def workflow_s(self) -> float:
        """How long an ordinary workflow takes: one activity, one result, read from its history."""
        began = time.monotonic()
        workflow_id = f"ordinary-{uuid.uuid4().hex}"
        run = self._call(
            "StartWorkflowExecution",
            workflow_id=workflow_id,
            workflow_type={"name": "ordinary"},
            task_queue={"name": self._queue},
            workflow_task_timeout={"seconds": TASK_TIMEOUT_S},
            request_id=uuid.uuid4().hex,
        )
        self._decide("SCHEDULE_ACTIVITY_TASK", self._activity())
        self._act()
        self._decide("COMPLETE_WORKFLOW_EXECUTION", {"complete_workflow_execution_command_attributes": {}})
        history = self._call(
            "GetWorkflowExecutionHistory",
            execution={"workflow_id": workflow_id, "run_id": run.run_id},
            history_event_filter_type="HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT",
            wait_new_event=True,
        )
        closed = history.history.events[-1]
        assert closed.HasField("workflow_execution_completed_event_attributes"), f"the ordinary workflow ended with {closed}"
        return time.monotonic() - began

    def usual_workflow_s(self) -> float:
        """The median of a few."""
        return statistics.median(self.workflow_s() for _ in range(TRIALS))

    @contextmanager
    def not_held_up(self, longest_s: float) -> Iterator[None]:
        """Runs ordinary workflows, one after the other, during what happens inside; fails if one takes longer."""
        slowest_s = [0.0]
        failed: list[BaseException] = []
        over = threading.Event()

        def work() -> None:
            try:
                while not over.is_set():
                    slowest_s[0] = max(slowest_s[0], self.workflow_s())
            except BaseException as error:
                failed.append(error)

        working = threading.Thread(target=work)
        working.start()
        try:
            yield
        finally:
            over.set()
            working.join()
        if failed:
            raise failed[0]
        assert slowest_s[0] < longest_s, f"meanwhile an ordinary workflow took {slowest_s[0]:.1f} s"

    def _decide(self, command: str, attributes: dict[str, Any]) -> None:
        token = self._polled("PollWorkflowTaskQueue")
        commands = [{"command_type": f"COMMAND_TYPE_{command}", **attributes}]
        self._call("RespondWorkflowTaskCompleted", task_token=token, commands=commands)

    def _act(self) -> None:
        self._call("RespondActivityTaskCompleted", task_token=self._polled("PollActivityTaskQueue"))

    def _activity(self) -> dict[str, Any]:
        attributes = {
            "activity_id": "one",
            "activity_type": {"name": "ordinary"},
            "task_queue": {"name": self._queue},
            "start_to_close_timeout": {"seconds": TASK_TIMEOUT_S},
        }
        return {"schedule_activity_task_command_attributes": attributes}

    def _polled(self, rpc: str) -> bytes:
        return self._call(rpc, task_queue={"name": self._queue}).task_token

    def _call(self, rpc: str, **fields: Any) -> Any:
        return self._api.call(rpc, namespace=NAMESPACE, **fields)
