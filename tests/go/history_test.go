// What a legal history is: a small state machine, independent of the server's. The Python suite has the same law with more kinds of events,
// and tests of the law itself.
package acceptance

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
)

// record is what a history says, once it is known to be legal.
type record struct {
	events          []*history.HistoryEvent
	activities      map[int64]*activityRecord
	timers          map[int64]string
	openTimers      map[int64]bool
	signals         []*history.WorkflowExecutionSignaledEventAttributes
	markers         []string
	stickyQueues    []string
	close           enums.EventType
	task            workflowTask
	taskCompletedID int64
	inCommandEvents bool
}

type activityRecord struct {
	typeName  string
	startedID int64
	attempt   int32
	ended     bool
	completed *history.ActivityTaskCompletedEventAttributes
}

// workflowTask is the pending one; zero ids mean that there is none, or that it is not started.
type workflowTask struct {
	scheduledID int64
	startedID   int64
}

// checkHistory reads the whole history of a closed run and fails the test at its first illegal event.
func checkHistory(ctx context.Context, t *testing.T, c client.Client, run client.WorkflowRun) *record {
	t.Helper()
	r := &record{activities: map[int64]*activityRecord{}, timers: map[int64]string{}, openTimers: map[int64]bool{}}
	events := c.GetWorkflowHistory(ctx, run.GetID(), run.GetRunID(), false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		r.events = append(r.events, event)
		if err := r.read(event); err != nil {
			t.Fatalf("event %d: %v\n%s", event.EventId, err, r.show())
		}
	}
	if r.close == enums.EVENT_TYPE_UNSPECIFIED {
		t.Fatalf("no close event\n%s", r.show())
	}
	return r
}

func (r *record) read(event *history.HistoryEvent) error {
	place := int64(len(r.events))
	switch {
	case event.EventId != place:
		return fmt.Errorf("in place %d", place)
	case (place == 1) != (event.EventType == enums.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED):
		return fmt.Errorf("%v in place %d", event.EventType, place)
	case r.close != enums.EVENT_TYPE_UNSPECIFIED:
		return fmt.Errorf("%v after %v", event.EventType, r.close)
	case r.task.startedID != 0 && !endsStartedTask(event.EventType):
		return fmt.Errorf("%v while a workflow task is started", event.EventType)
	}
	if command, ok := commandOf(event); ok {
		if !r.inCommandEvents || command != r.taskCompletedID {
			return fmt.Errorf("%v does not follow the workflow task %d that asked for it", event.EventType, command)
		}
	} else {
		r.inCommandEvents = false
	}
	return r.apply(event)
}

func (r *record) apply(event *history.HistoryEvent) error {
	switch event.EventType {
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		return nil
	case enums.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED, enums.EVENT_TYPE_WORKFLOW_TASK_STARTED, enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED,
		enums.EVENT_TYPE_WORKFLOW_TASK_FAILED, enums.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
		return r.applyWorkflowTask(event)
	case enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, enums.EVENT_TYPE_ACTIVITY_TASK_STARTED, enums.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		return r.applyActivity(event)
	case enums.EVENT_TYPE_TIMER_STARTED, enums.EVENT_TYPE_TIMER_FIRED:
		return r.applyTimer(event)
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
		r.signals = append(r.signals, event.GetWorkflowExecutionSignaledEventAttributes())
		return nil
	case enums.EVENT_TYPE_MARKER_RECORDED:
		r.markers = append(r.markers, event.GetMarkerRecordedEventAttributes().MarkerName)
		return nil
	case enums.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES:
		return nil
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		if r.task.scheduledID != 0 {
			return fmt.Errorf("closed while workflow task %d is pending", r.task.scheduledID)
		}
		r.close = event.EventType
		return nil
	default:
		return fmt.Errorf("%v is not known here", event.EventType)
	}
}

func (r *record) applyWorkflowTask(event *history.HistoryEvent) error {
	switch event.EventType {
	case enums.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED:
		if r.task.scheduledID != 0 {
			return fmt.Errorf("workflow task %d is pending already", r.task.scheduledID)
		}
		r.task = workflowTask{scheduledID: event.EventId}
		queue := event.GetWorkflowTaskScheduledEventAttributes().TaskQueue
		if queue.Kind == enums.TASK_QUEUE_KIND_STICKY {
			r.stickyQueues = append(r.stickyQueues, queue.NormalName)
		}
		return nil
	case enums.EVENT_TYPE_WORKFLOW_TASK_STARTED:
		named := event.GetWorkflowTaskStartedEventAttributes().ScheduledEventId
		if named != r.task.scheduledID {
			return fmt.Errorf("names workflow task %d, not %d", named, r.task.scheduledID)
		}
		r.task.startedID = event.EventId
		return nil
	case enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
		attributes := event.GetWorkflowTaskCompletedEventAttributes()
		r.taskCompletedID, r.inCommandEvents = event.EventId, true
		return r.endTask(workflowTask{attributes.ScheduledEventId, attributes.StartedEventId})
	case enums.EVENT_TYPE_WORKFLOW_TASK_FAILED:
		attributes := event.GetWorkflowTaskFailedEventAttributes()
		return r.endTask(workflowTask{attributes.ScheduledEventId, attributes.StartedEventId})
	default:
		attributes := event.GetWorkflowTaskTimedOutEventAttributes()
		return r.endTask(workflowTask{attributes.ScheduledEventId, attributes.StartedEventId})
	}
}

func (r *record) endTask(named workflowTask) error {
	if named.scheduledID == 0 || named != r.task {
		return fmt.Errorf("names workflow task %v, not %v", named, r.task)
	}
	r.task = workflowTask{}
	return nil
}

func (r *record) applyActivity(event *history.HistoryEvent) error {
	switch event.EventType {
	case enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		r.activities[event.EventId] = &activityRecord{typeName: event.GetActivityTaskScheduledEventAttributes().ActivityType.Name}
		return nil
	case enums.EVENT_TYPE_ACTIVITY_TASK_STARTED:
		attributes := event.GetActivityTaskStartedEventAttributes()
		activity := r.activities[attributes.ScheduledEventId]
		if activity == nil || activity.startedID != 0 {
			return fmt.Errorf("activity %d is not there to be started", attributes.ScheduledEventId)
		}
		activity.startedID, activity.attempt = event.EventId, attributes.Attempt
		return nil
	default:
		attributes := event.GetActivityTaskCompletedEventAttributes()
		activity := r.activities[attributes.ScheduledEventId]
		if activity == nil || activity.ended || activity.startedID == 0 || activity.startedID != attributes.StartedEventId {
			return fmt.Errorf("activity %d is not there to be completed", attributes.ScheduledEventId)
		}
		activity.ended, activity.completed = true, attributes
		return nil
	}
}

func (r *record) applyTimer(event *history.HistoryEvent) error {
	if event.EventType == enums.EVENT_TYPE_TIMER_STARTED {
		r.timers[event.EventId] = event.GetTimerStartedEventAttributes().TimerId
		r.openTimers[event.EventId] = true
		return nil
	}
	attributes := event.GetTimerFiredEventAttributes()
	started := attributes.StartedEventId
	if !r.openTimers[started] || r.timers[started] != attributes.TimerId {
		return fmt.Errorf("timer %q of event %d is not there to be fired", attributes.TimerId, started)
	}
	delete(r.openTimers, started)
	begun := r.events[started-1]
	delay := begun.GetTimerStartedEventAttributes().StartToFireTimeout.AsDuration()
	if waited := event.EventTime.AsTime().Sub(begun.EventTime.AsTime()); waited < delay {
		return fmt.Errorf("timer %q fired after %v, not %v", attributes.TimerId, waited, delay)
	}
	return nil
}

func (r *record) activity(t *testing.T, typeName string) *activityRecord {
	t.Helper()
	for _, activity := range r.activities {
		if activity.typeName == typeName {
			return activity
		}
	}
	t.Fatalf("no activity %s\n%s", typeName, r.show())
	return nil
}

func (r *record) show() string {
	var lines strings.Builder
	for _, event := range r.events {
		fmt.Fprintf(&lines, "%5d %v\n", event.EventId, event.EventType)
	}
	return lines.String()
}

func endsStartedTask(kind enums.EventType) bool {
	return kind == enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED || kind == enums.EVENT_TYPE_WORKFLOW_TASK_FAILED ||
		kind == enums.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT
}

// commandOf names the workflow task whose command made this event, if one did.
func commandOf(event *history.HistoryEvent) (int64, bool) {
	switch event.EventType {
	case enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		return event.GetActivityTaskScheduledEventAttributes().WorkflowTaskCompletedEventId, true
	case enums.EVENT_TYPE_TIMER_STARTED:
		return event.GetTimerStartedEventAttributes().WorkflowTaskCompletedEventId, true
	case enums.EVENT_TYPE_MARKER_RECORDED:
		return event.GetMarkerRecordedEventAttributes().WorkflowTaskCompletedEventId, true
	case enums.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES:
		return event.GetUpsertWorkflowSearchAttributesEventAttributes().WorkflowTaskCompletedEventId, true
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		return event.GetWorkflowExecutionCompletedEventAttributes().WorkflowTaskCompletedEventId, true
	default:
		return 0, false
	}
}
