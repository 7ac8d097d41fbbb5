"""The checker itself: it must refuse what is wrong, or every other test would prove nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

import history_law
from history_law import IllegalHistory, attributes_of

START_S = 1_000_000
TIMER_S = 5
# Places in the legal history below, by event id.
ACTIVITY_STARTED, ACTIVITY_COMPLETED, TIMER_FIRED, SIGNALED, LAST_TASK_COMPLETED, CLOSED = 7, 8, 9, 10, 13, 14


def legal() -> list[HistoryEvent]:
    """An order's history in short: one activity, one timer, one signal."""
    return [
        make(1, "workflow_execution_started", original_execution_run_id="run", workflow_type={"name": "Order"}),
        make(2, "workflow_task_scheduled"),
        make(3, "workflow_task_started", scheduled_event_id=2),
        make(4, "workflow_task_completed", scheduled_event_id=2, started_event_id=3),
        make(5, "activity_task_scheduled", activity_id="1", workflow_task_completed_event_id=4),
        make(
            6, "timer_started", timer_id="1", workflow_task_completed_event_id=4, start_to_fire_timeout={"seconds": TIMER_S}
        ),
        make(ACTIVITY_STARTED, "activity_task_started", scheduled_event_id=5, attempt=1),
        make(ACTIVITY_COMPLETED, "activity_task_completed", scheduled_event_id=5, started_event_id=7),
        make(TIMER_FIRED, "timer_fired", timer_id="1", started_event_id=6),
        make(SIGNALED, "workflow_execution_signaled", signal_name="approve", request_id="request"),
        make(11, "workflow_task_scheduled"),
        make(12, "workflow_task_started", scheduled_event_id=11),
        make(LAST_TASK_COMPLETED, "workflow_task_completed", scheduled_event_id=11, started_event_id=12),
        make(CLOSED, "workflow_execution_completed", workflow_task_completed_event_id=13),
    ]


def make(event_id: int, kind: str, **attributes: Any) -> HistoryEvent:
    event_type = EventType.Value(f"EVENT_TYPE_{kind.upper()}")
    event = HistoryEvent(event_id=event_id, event_type=event_type, **{f"{kind}_event_attributes": attributes})
    event.event_time.FromSeconds(START_S + (TIMER_S if event_id >= TIMER_FIRED else 0))
    return event


def replaced(event_id: int, kind: str, **attributes: Any) -> list[HistoryEvent]:
    events = legal()
    events[event_id - 1] = make(event_id, kind, **attributes)
    return events


def changed(event_id: int, **attributes: Any) -> list[HistoryEvent]:
    events = legal()
    for name, value in attributes.items():
        setattr(attributes_of(events[event_id - 1]), name, value)
    return events


def with_gap() -> list[HistoryEvent]:
    events = legal()
    del events[SIGNALED - 1]
    return events


def with_early_timer() -> list[HistoryEvent]:
    events = legal()
    events[TIMER_FIRED - 1].event_time.FromSeconds(START_S + TIMER_S - 1)
    return events


def with_wrong_attributes() -> list[HistoryEvent]:
    events = legal()
    events[SIGNALED - 1].event_type = EventType.EVENT_TYPE_TIMER_FIRED
    return events


BROKEN: dict[str, tuple[Callable[[], list[HistoryEvent]], str]] = {
    "a gap": (with_gap, "id 11 in place 10"),
    "an early timer": (with_early_timer, "fired after"),
    "attributes of another kind": (with_wrong_attributes, "carries"),
    "a second start": (lambda: replaced(SIGNALED, "workflow_execution_started"), "in place 10"),
    "two workflow tasks at once": (lambda: replaced(3, "workflow_task_scheduled"), "pending already"),
    "a task started for another": (lambda: changed(3, scheduled_event_id=1), "scheduled event"),
    "a task completed for another": (lambda: changed(4, started_event_id=2), "started event"),
    "an event inside a started task": (lambda: replaced(4, "workflow_execution_signaled"), "while a workflow task is"),
    "a command of no task": (lambda: replaced(SIGNALED, "timer_started", timer_id="2"), "does not follow"),
    "a command of an older task": (lambda: changed(CLOSED, workflow_task_completed_event_id=4), "not the last one"),
    "an activity that was not scheduled": (lambda: changed(ACTIVITY_STARTED, scheduled_event_id=6), "no activity"),
    "an activity that was not started": (
        lambda: replaced(ACTIVITY_STARTED, "activity_task_completed", scheduled_event_id=5),
        "not started",
    ),
    "an activity that ends twice": (
        lambda: replaced(TIMER_FIRED, "activity_task_completed", scheduled_event_id=5, started_event_id=7),
        "has completed already",
    ),
    "an activity canceled unasked": (
        lambda: replaced(ACTIVITY_COMPLETED, "activity_task_canceled", scheduled_event_id=5, started_event_id=7),
        "nobody asked",
    ),
    "a timer that fires twice": (
        lambda: replaced(SIGNALED, "timer_fired", timer_id="1", started_event_id=6),
        "has fired already",
    ),
    "a signal recorded twice": (
        lambda: replaced(TIMER_FIRED, "workflow_execution_signaled", signal_name="approve", request_id="request"),
        "recorded twice",
    ),
    "an event after the close": (lambda: [*legal(), make(15, "workflow_execution_signaled")], "after completed"),
    "a second close": (lambda: [*legal(), make(15, "workflow_execution_terminated")], "after completed"),
    "no close": (lambda: legal()[:LAST_TASK_COMPLETED], "no close event"),
    "an unknown kind": (lambda: replaced(SIGNALED, "workflow_execution_paused"), "not known here"),
}


def test_a_legal_history_passes_and_is_read() -> None:
    record = history_law.check_closed(legal())
    assert record.close == "completed"
    assert record.signals == [("approve", None)]
    assert [activity.end for activity in record.activities.values()] == ["completed"]
    assert [timer.end for timer in record.timers.values()] == ["fired"]


@pytest.mark.parametrize("broken", BROKEN)
def test_an_illegal_history_is_refused(broken: str) -> None:
    make_history, complaint = BROKEN[broken]
    with pytest.raises(IllegalHistory, match=complaint):
        history_law.check_closed(make_history())
