"""Tasks in a worker's hand, and its ways to answer them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from temporalio.api.command.v1 import Command
from temporalio.api.workflowservice.v1 import PollWorkflowTaskQueueResponse

from commands import SHORTLY, failure, input_of

if TYPE_CHECKING:
    from stage import Stage

WORKER = "worker"


class WorkflowTask:
    def __init__(self, stage: Stage, polled: PollWorkflowTaskQueueResponse) -> None:
        self._stage = stage
        self.polled = polled

    async def complete(self, *commands: Command, **fields: Any) -> Any:
        """The answer, which holds the next task if one was asked for and is due."""
        return await self._stage.call(
            "RespondWorkflowTaskCompleted",
            task_token=self.polled.task_token,
            commands=commands,
            identity=WORKER,
            **fields,
        )

    async def complete_refused(self, *commands: Command, **fields: Any) -> None:
        await self._stage.refused(
            "RespondWorkflowTaskCompleted",
            task_token=self.polled.task_token,
            commands=commands,
            identity=WORKER,
            **fields,
        )

    async def complete_stickily(self, *commands: Command, **fields: Any) -> Any:
        """The worker keeps the run in its cache: the next task is to come to a queue of its own."""
        sticky = {"worker_task_queue": {"name": self._stage.sticky_queue}, "schedule_to_start_timeout": SHORTLY}
        return await self.complete(*commands, **{"sticky_attributes": sticky} | fields)

    async def complete_and_take_next(self, *commands: Command, **fields: Any) -> WorkflowTask:
        """With the next task in the answer, asked for in the way of an SDK's local activity that takes long."""
        asked = {"return_new_workflow_task": True, "force_create_new_workflow_task": True} | fields
        answer = await self.complete(*commands, **asked)
        return WorkflowTask(self._stage, answer.workflow_task)

    async def fail(self, cause: str = "WORKFLOW_WORKER_UNHANDLED_FAILURE", **fields: Any) -> None:
        await self._stage.call(
            "RespondWorkflowTaskFailed",
            task_token=self.polled.task_token,
            cause=f"WORKFLOW_TASK_FAILED_CAUSE_{cause}",
            failure=failure("a bug in the workflow"),
            identity=WORKER,
            **fields,
        )

    async def answer_query(self, **fields: Any) -> None:
        await self._stage.call("RespondQueryTaskCompleted", task_token=self.polled.task_token, **fields)


class ActivityTask:
    def __init__(self, stage: Stage, token: bytes) -> None:
        self._stage = stage
        self._token = token

    async def complete(self, *result: Any) -> None:
        await self._respond("RespondActivityTaskCompleted", result=input_of(*result))

    async def fail(self, message: str = "refused", **fields: Any) -> None:
        await self._respond("RespondActivityTaskFailed", failure=failure(message, **fields))

    async def cancel(self, *details: Any) -> None:
        await self._respond("RespondActivityTaskCanceled", details=input_of(*details))

    async def heartbeat(self, *details: Any) -> Any:
        return await self._respond("RecordActivityTaskHeartbeat", details=input_of(*details))

    async def refused(self, rpc: str, **fields: Any) -> None:
        await self._stage.refused(rpc, task_token=self._token, identity=WORKER, **fields)

    async def _respond(self, rpc: str, **fields: Any) -> Any:
        return await self._stage.call(rpc, task_token=self._token, identity=WORKER, **fields)
