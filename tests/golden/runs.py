"""A run of a workflow, and how one leads to the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent


@dataclass(frozen=True)
class Run:
    workflow_id: str
    run_id: str

    @property
    def execution(self) -> WorkflowExecution:
        return WorkflowExecution(workflow_id=self.workflow_id, run_id=self.run_id)

    def leads(self, event: HistoryEvent) -> list[Run]:
        """The runs that an event of this run names: its successor, a child."""
        attributes = attributes_of(event)
        if event.event_type == EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED:
            child = attributes.workflow_execution
            return [Run(child.workflow_id, child.run_id)]
        successor = getattr(attributes, "new_execution_run_id", "")
        return [Run(self.workflow_id, successor)] if successor else []


def attributes_of(event: HistoryEvent) -> Any:
    return getattr(event, event.WhichOneof("attributes"))


def type_of(event: HistoryEvent) -> str:
    return EventType.Name(event.event_type).removeprefix("EVENT_TYPE_")


def summary(event: HistoryEvent) -> str:
    return f"{event.event_id} {type_of(event)}"
