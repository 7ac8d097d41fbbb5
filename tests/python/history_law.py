"""What a legal history is: a small state machine, independent of the server's, that every history must pass.

It knows the event kinds that the tests produce. A kind that it does not know is illegal, so that a new one is added with its rules.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from temporalio.api.common.v1 import Payloads
from temporalio.api.enums.v1 import EventType, TaskQueueKind, TimeoutType
from temporalio.api.history.v1 import HistoryEvent

COMMAND_EVENTS = {
    "activity_task_scheduled",
    "activity_task_cancel_requested",
    "timer_started",
    "timer_canceled",
    "marker_recorded",
    "start_child_workflow_execution_initiated",
    "signal_external_workflow_execution_initiated",
    "request_cancel_external_workflow_execution_initiated",
    "workflow_execution_completed",
    "workflow_execution_failed",
    "workflow_execution_canceled",
    "workflow_execution_continued_as_new",
}
# They follow the workflow task that made them, like those of commands, but do not name it.
UPDATE_EVENTS = {"workflow_execution_update_accepted", "workflow_execution_update_completed"}
CLOSE_EVENTS = {
    "workflow_execution_completed",
    "workflow_execution_failed",
    "workflow_execution_canceled",
    "workflow_execution_continued_as_new",
    "workflow_execution_timed_out",
    "workflow_execution_terminated",
}
ENDS_OF_A_STARTED_TASK = {"workflow_task_completed", "workflow_task_failed", "workflow_task_timed_out"}


class IllegalHistory(AssertionError):
    """Names the event that breaks the law, and shows the history up to it."""


@dataclass
class Activity:
    id: str
    type: str
    scheduled_event_id: int
    started_event_id: int = 0
    attempt: int = 0
    end: str | None = None
    """How it ended: completed, failed, timed_out or canceled."""
    result: Any = None
    cancel_requested: bool = False


@dataclass
class Timer:
    id: str
    started: HistoryEvent
    end: str | None = None
    """How it ended: fired or canceled."""


@dataclass
class Child:
    workflow_id: str
    type: str
    started_event_id: int = 0
    first_run_id: str = ""
    end: str | None = None
    """How it ended: completed, failed, timed_out, canceled, terminated or not_started."""
    result: Any = None


@dataclass
class Request:
    """A signal or a cancel request to another workflow."""

    kind: str
    workflow_id: str
    end: str | None = None
    """What came of it: arrived or failed."""


@dataclass
class Update:
    accepted_event_id: int
    is_completed: bool = False


@dataclass
class WorkflowTask:
    scheduled_event_id: int
    started_event_id: int = 0


@dataclass
class Record:
    """What a history says, once it is known to be legal."""

    events: list[HistoryEvent] = field(default_factory=list)
    activities: dict[int, Activity] = field(default_factory=dict)
    timers: dict[int, Timer] = field(default_factory=dict)
    children: dict[int, Child] = field(default_factory=dict)
    requests: dict[int, Request] = field(default_factory=dict)
    signals: list[tuple[str, Any]] = field(default_factory=list)
    signal_request_ids: list[str] = field(default_factory=list)
    updates: dict[str, Update] = field(default_factory=dict)
    sticky_event_ids: list[int] = field(default_factory=list)
    worker_identities: list[str] = field(default_factory=list)
    close: str | None = None
    result: Any = None

    def kinds(self) -> list[str]:
        return [kind_of(event) for event in self.events]

    def attributes(self, kind: str) -> list[Any]:
        return [attributes_of(event) for event in self.events if kind_of(event) == kind]

    def activity(self, type: str) -> Activity:
        (found,) = [activity for activity in self.activities.values() if activity.type == type]
        return found

    def child(self, workflow_id: str) -> Child:
        (found,) = [child for child in self.children.values() if child.workflow_id == workflow_id]
        return found

    def activity_results(self) -> list[Any]:
        return [activity.result for activity in self.activities.values() if activity.end == "completed"]


def check_closed(events: Iterable[HistoryEvent]) -> Record:
    record = _Law().read(events)
    if record.close is None:
        raise IllegalHistory(f"no close event\n{_show(record.events)}")
    return record


def check_open(events: Iterable[HistoryEvent]) -> Record:
    record = _Law().read(events)
    if record.close is not None:
        raise IllegalHistory(f"closed by {record.close}\n{_show(record.events)}")
    return record


def kind_of(event: HistoryEvent) -> str:
    name = EventType.Name(event.event_type)
    return name.removeprefix("EVENT_TYPE_").lower()


def attributes_of(event: HistoryEvent) -> Any:
    return getattr(event, f"{kind_of(event)}_event_attributes")


def decode(payloads: Payloads) -> Any:
    """What the SDK's default converter wrote: one JSON value, or nothing."""
    if not payloads.payloads:
        return None
    (payload,) = payloads.payloads
    return json.loads(payload.data) if payload.data else None


class _Law:
    def __init__(self) -> None:
        self.record = Record()
        self.task: WorkflowTask | None = None
        self.task_completed_event_id = 0
        self.in_command_events = False
        self.cancel_requested = False

    def read(self, events: Iterable[HistoryEvent]) -> Record:
        for event in events:
            self.record.events.append(event)
            try:
                self._read_one(event)
            except IllegalHistory as broken:
                raise IllegalHistory(f"event {event.event_id}: {broken}\n{_show(self.record.events)}") from None
        return self.record

    def _read_one(self, event: HistoryEvent) -> None:
        kind = kind_of(event)
        place = len(self.record.events)
        require(event.event_id == place, f"id {event.event_id} in place {place}")
        attributes_name = event.WhichOneof("attributes")
        require(attributes_name == f"{kind}_event_attributes", f"{kind} carries {attributes_name}")
        require(event.HasField("event_time"), f"{kind} has no time")
        require((place == 1) == (kind == "workflow_execution_started"), f"{kind} in place {place}")
        require(self.record.close is None, f"{kind} after {self.record.close}")
        if self.task is not None and self.task.started_event_id:
            require(kind in ENDS_OF_A_STARTED_TASK, f"{kind} while a workflow task is started")
        if kind in COMMAND_EVENTS:
            self._check_command(kind, attributes_of(event))
        elif kind in UPDATE_EVENTS:
            require(self.in_command_events, f"{kind} does not follow the workflow task that made it")
        else:
            self.in_command_events = False
        rule = getattr(self, f"_on_{kind}", None)
        require(rule is not None, f"{kind} is not known here")
        rule(event, attributes_of(event))
        if kind in CLOSE_EVENTS:
            self._close(kind)

    def _check_command(self, kind: str, attributes: Any) -> None:
        named = attributes.workflow_task_completed_event_id
        require(self.in_command_events, f"{kind} does not follow the workflow task that asked for it")
        require(named == self.task_completed_event_id, f"{kind} names workflow task {named}, not the last one")

    def _close(self, kind: str) -> None:
        forced = kind in ("workflow_execution_terminated", "workflow_execution_timed_out")
        require(self.task is None or forced, f"{kind} while a workflow task is scheduled")
        self.record.close = kind.removeprefix("workflow_execution_")

    def _on_workflow_execution_started(self, event: HistoryEvent, attributes: Any) -> None:
        require(bool(attributes.workflow_type.name), "no workflow type")
        require(bool(attributes.original_execution_run_id), "no run id")

    def _on_workflow_task_scheduled(self, event: HistoryEvent, attributes: Any) -> None:
        require(self.task is None, "a workflow task is pending already")
        self.task = WorkflowTask(event.event_id)
        if attributes.task_queue.kind == TaskQueueKind.TASK_QUEUE_KIND_STICKY:
            require(bool(attributes.task_queue.normal_name), "a sticky queue without its normal name")
            self.record.sticky_event_ids.append(event.event_id)

    def _on_workflow_task_started(self, event: HistoryEvent, attributes: Any) -> None:
        require(self.task is not None, "no workflow task was scheduled")
        self._same("scheduled event", attributes.scheduled_event_id, self.task.scheduled_event_id)
        self.task.started_event_id = event.event_id

    def _on_workflow_task_completed(self, event: HistoryEvent, attributes: Any) -> None:
        self._end_started_task(attributes)
        self.task_completed_event_id = event.event_id
        self.in_command_events = True
        self.record.worker_identities.append(attributes.identity)

    def _on_workflow_task_failed(self, event: HistoryEvent, attributes: Any) -> None:
        self._end_started_task(attributes)

    def _on_workflow_task_timed_out(self, event: HistoryEvent, attributes: Any) -> None:
        if attributes.timeout_type == TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE:
            self._end_started_task(attributes)
            return
        require(self.task is not None and not self.task.started_event_id, "no scheduled workflow task to time out")
        self._same("scheduled event", attributes.scheduled_event_id, self.task.scheduled_event_id)
        self.task = None

    def _end_started_task(self, attributes: Any) -> None:
        require(self.task is not None and self.task.started_event_id > 0, "no workflow task was started")
        self._same("scheduled event", attributes.scheduled_event_id, self.task.scheduled_event_id)
        self._same("started event", attributes.started_event_id, self.task.started_event_id)
        self.task = None

    def _on_activity_task_scheduled(self, event: HistoryEvent, attributes: Any) -> None:
        open_ids = {activity.id for activity in self.record.activities.values() if activity.end is None}
        require(attributes.activity_id not in open_ids, f"activity {attributes.activity_id} is open already")
        activity = Activity(attributes.activity_id, attributes.activity_type.name, event.event_id)
        self.record.activities[event.event_id] = activity

    def _on_activity_task_started(self, event: HistoryEvent, attributes: Any) -> None:
        activity = self._open_activity(attributes)
        require(not activity.started_event_id, "an activity is started twice")
        require(attributes.attempt >= 1, "an attempt before the first")
        activity.started_event_id = event.event_id
        activity.attempt = attributes.attempt

    def _on_activity_task_cancel_requested(self, event: HistoryEvent, attributes: Any) -> None:
        activity = self._open_activity(attributes)
        require(not activity.cancel_requested, "an activity's cancellation is requested twice")
        activity.cancel_requested = True

    def _on_activity_task_completed(self, event: HistoryEvent, attributes: Any) -> None:
        activity = self._end_activity(attributes, "completed")
        require(activity.started_event_id > 0, "an activity completes that was not started")
        activity.result = decode(attributes.result)

    def _on_activity_task_failed(self, event: HistoryEvent, attributes: Any) -> None:
        activity = self._end_activity(attributes, "failed")
        require(activity.started_event_id > 0, "an activity fails that was not started")
        require(attributes.HasField("failure"), "no failure")

    def _on_activity_task_timed_out(self, event: HistoryEvent, attributes: Any) -> None:
        self._end_activity(attributes, "timed_out")
        require(attributes.failure.HasField("timeout_failure_info"), "no timeout failure")

    def _on_activity_task_canceled(self, event: HistoryEvent, attributes: Any) -> None:
        activity = self._end_activity(attributes, "canceled")
        require(activity.cancel_requested, "an activity is canceled that nobody asked to cancel")

    def _open_activity(self, attributes: Any) -> Activity:
        activity = self.record.activities.get(attributes.scheduled_event_id)
        require(activity is not None, f"no activity is scheduled in event {attributes.scheduled_event_id}")
        require(activity.end is None, f"activity {activity.id} has {activity.end} already")
        return activity

    def _end_activity(self, attributes: Any, end: str) -> Activity:
        activity = self._open_activity(attributes)
        self._same("started event", attributes.started_event_id, activity.started_event_id)
        activity.end = end
        return activity

    def _on_timer_started(self, event: HistoryEvent, attributes: Any) -> None:
        open_ids = {timer.id for timer in self.record.timers.values() if timer.end is None}
        require(attributes.timer_id not in open_ids, f"timer {attributes.timer_id} runs already")
        self.record.timers[event.event_id] = Timer(attributes.timer_id, event)

    def _on_timer_fired(self, event: HistoryEvent, attributes: Any) -> None:
        timer = self._end_timer(attributes, "fired")
        delay = timer.started.timer_started_event_attributes.start_to_fire_timeout.ToTimedelta()
        waited = event.event_time.ToDatetime() - timer.started.event_time.ToDatetime()
        require(waited >= delay, f"timer {timer.id} fired after {waited}, not {delay}")

    def _on_timer_canceled(self, event: HistoryEvent, attributes: Any) -> None:
        self._end_timer(attributes, "canceled")

    def _end_timer(self, attributes: Any, end: str) -> Timer:
        timer = self.record.timers.get(attributes.started_event_id)
        require(timer is not None, f"no timer is started in event {attributes.started_event_id}")
        require(timer.end is None, f"timer {timer.id} has {timer.end} already")
        self._same("timer id", attributes.timer_id, timer.id)
        timer.end = end
        return timer

    def _on_start_child_workflow_execution_initiated(self, event: HistoryEvent, attributes: Any) -> None:
        require(bool(attributes.namespace_id), "a child without a namespace")
        self.record.children[event.event_id] = Child(attributes.workflow_id, attributes.workflow_type.name)

    def _on_start_child_workflow_execution_failed(self, event: HistoryEvent, attributes: Any) -> None:
        child = self._open_child(attributes)
        require(not child.started_event_id, "a child fails to start that has started")
        child.end = "not_started"

    def _on_child_workflow_execution_started(self, event: HistoryEvent, attributes: Any) -> None:
        child = self._open_child(attributes)
        require(not child.started_event_id, "a child is started twice")
        self._same("workflow id", attributes.workflow_execution.workflow_id, child.workflow_id)
        child.started_event_id = event.event_id
        child.first_run_id = attributes.workflow_execution.run_id

    def _on_child_workflow_execution_completed(self, event: HistoryEvent, attributes: Any) -> None:
        self._end_child(attributes, "completed").result = decode(attributes.result)

    def _on_child_workflow_execution_failed(self, event: HistoryEvent, attributes: Any) -> None:
        self._end_child(attributes, "failed")
        require(attributes.HasField("failure"), "no failure")

    def _on_child_workflow_execution_canceled(self, event: HistoryEvent, attributes: Any) -> None:
        self._end_child(attributes, "canceled")

    def _on_child_workflow_execution_timed_out(self, event: HistoryEvent, attributes: Any) -> None:
        self._end_child(attributes, "timed_out")

    def _on_child_workflow_execution_terminated(self, event: HistoryEvent, attributes: Any) -> None:
        self._end_child(attributes, "terminated")

    def _open_child(self, attributes: Any) -> Child:
        child = self.record.children.get(attributes.initiated_event_id)
        require(child is not None, f"no child is initiated in event {attributes.initiated_event_id}")
        require(child.end is None, f"child {child.workflow_id} has {child.end} already")
        return child

    def _end_child(self, attributes: Any, end: str) -> Child:
        child = self._open_child(attributes)
        require(child.started_event_id > 0, "a child ends that was not started")
        self._same("started event", attributes.started_event_id, child.started_event_id)
        self._same("workflow id", attributes.workflow_execution.workflow_id, child.workflow_id)
        child.end = end
        return child

    def _on_signal_external_workflow_execution_initiated(self, event: HistoryEvent, attributes: Any) -> None:
        self.record.requests[event.event_id] = Request("signal", attributes.workflow_execution.workflow_id)

    def _on_request_cancel_external_workflow_execution_initiated(self, event: HistoryEvent, attributes: Any) -> None:
        self.record.requests[event.event_id] = Request("cancel", attributes.workflow_execution.workflow_id)

    def _on_external_workflow_execution_signaled(self, event: HistoryEvent, attributes: Any) -> None:
        self._end_request(attributes, "signal", "arrived")

    def _on_signal_external_workflow_execution_failed(self, event: HistoryEvent, attributes: Any) -> None:
        self._end_request(attributes, "signal", "failed")

    def _on_external_workflow_execution_cancel_requested(self, event: HistoryEvent, attributes: Any) -> None:
        self._end_request(attributes, "cancel", "arrived")

    def _on_request_cancel_external_workflow_execution_failed(self, event: HistoryEvent, attributes: Any) -> None:
        self._end_request(attributes, "cancel", "failed")

    def _end_request(self, attributes: Any, kind: str, end: str) -> None:
        request = self.record.requests.get(attributes.initiated_event_id)
        require(request is not None and request.kind == kind, f"no {kind} is sent in event {attributes.initiated_event_id}")
        require(request.end is None, f"what came of the {kind} in event {attributes.initiated_event_id} is told twice")
        request.end = end

    def _on_workflow_execution_signaled(self, event: HistoryEvent, attributes: Any) -> None:
        self.record.signals.append((attributes.signal_name, decode(attributes.input)))
        if attributes.request_id:
            require(attributes.request_id not in self.record.signal_request_ids, "one signal is recorded twice")
            self.record.signal_request_ids.append(attributes.request_id)

    def _on_workflow_execution_cancel_requested(self, event: HistoryEvent, attributes: Any) -> None:
        require(not self.cancel_requested, "cancellation is requested twice")
        self.cancel_requested = True

    def _on_workflow_execution_update_accepted(self, event: HistoryEvent, attributes: Any) -> None:
        update_id = attributes.protocol_instance_id
        require(update_id not in self.record.updates, f"update {update_id} is accepted twice")
        self._same("update", attributes.accepted_request.meta.update_id, update_id)
        self.record.updates[update_id] = Update(event.event_id)

    def _on_workflow_execution_update_completed(self, event: HistoryEvent, attributes: Any) -> None:
        update = self.record.updates.get(attributes.meta.update_id)
        require(update is not None and not update.is_completed, f"update {attributes.meta.update_id} is not open")
        self._same("accepted event", attributes.accepted_event_id, update.accepted_event_id)
        require(attributes.HasField("outcome"), "no outcome")
        update.is_completed = True

    def _on_marker_recorded(self, event: HistoryEvent, attributes: Any) -> None:
        require(bool(attributes.marker_name), "a marker without a name")

    def _on_workflow_execution_completed(self, event: HistoryEvent, attributes: Any) -> None:
        self.record.result = decode(attributes.result)

    def _on_workflow_execution_failed(self, event: HistoryEvent, attributes: Any) -> None:
        require(attributes.HasField("failure"), "no failure")

    def _on_workflow_execution_canceled(self, event: HistoryEvent, attributes: Any) -> None:
        require(self.cancel_requested, "canceled, but nobody asked")

    def _on_workflow_execution_continued_as_new(self, event: HistoryEvent, attributes: Any) -> None:
        require(bool(attributes.new_execution_run_id), "continued in no run")

    def _on_workflow_execution_timed_out(self, event: HistoryEvent, attributes: Any) -> None:
        pass

    def _on_workflow_execution_terminated(self, event: HistoryEvent, attributes: Any) -> None:
        pass

    @staticmethod
    def _same(what: str, named: object, expected: object) -> None:
        require(named == expected, f"names {what} {named}, which is {expected}")


def require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise IllegalHistory(otherwise)


def _show(events: list[HistoryEvent]) -> str:
    return "\n".join(f"{event.event_id:>5} {kind_of(event)}" for event in events)
