package acceptance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

const (
	approveSignal = "approve"
	// The charge fails before this attempt.
	chargeSucceedsAt = 3
	packingSteps     = 3
	heartbeatEvery   = 50 * time.Millisecond
)

// orderWorkflow has two activities, a timer and a signal, as the issue asks for. It returns what it used.
func orderWorkflow(ctx workflow.Context, key string) ([]string, error) {
	options := workflow.ActivityOptions{
		StartToCloseTimeout: 30 * time.Second,
		HeartbeatTimeout:    10 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 50 * time.Millisecond, BackoffCoefficient: 1},
	}
	ctx = workflow.WithActivityOptions(ctx, options)
	var w *warehouse
	var charge, parcel, approval string
	if err := workflow.ExecuteActivity(ctx, w.ChargeCard, key).Get(ctx, &charge); err != nil {
		return nil, err
	}
	if err := workflow.Sleep(ctx, 200*time.Millisecond); err != nil {
		return nil, err
	}
	if err := workflow.ExecuteActivity(ctx, w.PackParcel, key).Get(ctx, &parcel); err != nil {
		return nil, err
	}
	workflow.GetSignalChannel(ctx, approveSignal).Receive(ctx, &approval)
	return []string{charge, parcel, approval}, nil
}

// warehouse has the activities, and a ledger of what they gave out: each execution gives something else.
type warehouse struct {
	mayShip chan struct{}
	mutex   sync.Mutex
	issued  []string
}

func (w *warehouse) ChargeCard(ctx context.Context, key string) (string, error) {
	attempt := activity.GetInfo(ctx).Attempt
	if attempt < chargeSucceedsAt {
		return "", errors.New("declined")
	}
	return w.issue("charge", key, attempt), nil
}

// PackParcel goes on packing, with a heartbeat at each turn, until the test has seen one.
func (w *warehouse) PackParcel(ctx context.Context, key string) (string, error) {
	for step := 1; ; step = min(step+1, packingSteps) {
		activity.RecordHeartbeat(ctx, step)
		select {
		case <-w.mayShip:
			return w.issue("parcel", key, activity.GetInfo(ctx).Attempt), nil
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(heartbeatEvery):
		}
	}
}

func (w *warehouse) issue(what, key string, attempt int32) string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	token := fmt.Sprintf("%s/%s/%d/%d", what, key, attempt, len(w.issued))
	w.issued = append(w.issued, token)
	return token
}

func TestAnOrderRunsWithRetriesHeartbeatsATimerAndASignal(t *testing.T) {
	onEveryEngine(t, func(ctx context.Context, t *testing.T, c client.Client, taskQueue string) {
		w := &warehouse{mayShip: make(chan struct{})}
		// The sticky cache is on, which is the SDK's default. Heartbeats are passed on at once.
		startWorker(t, c, taskQueue, worker.Options{MaxHeartbeatThrottleInterval: heartbeatEvery}, func(r worker.Registry) {
			r.RegisterWorkflow(orderWorkflow)
			r.RegisterActivity(w)
		})
		run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: taskQueue, TaskQueue: taskQueue}, orderWorkflow, "first")
		if err != nil {
			t.Fatal(err)
		}
		awaitHeartbeat(ctx, t, c, run)
		close(w.mayShip)
		if err := c.SignalWorkflow(ctx, run.GetID(), "", approveSignal, "approved"); err != nil {
			t.Fatal(err)
		}
		var result []string
		if err := run.Get(ctx, &result); err != nil {
			t.Fatal(err)
		}
		checkOrder(ctx, t, c, run, result, w)
	})
}

// awaitHeartbeat returns once the server shows the details of the last packing step.
func awaitHeartbeat(ctx context.Context, t *testing.T, c client.Client, run client.WorkflowRun) {
	t.Helper()
	eventually(ctx, t, "the last heartbeat is shown", func() bool {
		description, err := c.DescribeWorkflowExecution(ctx, run.GetID(), run.GetRunID())
		if err != nil {
			t.Fatal(err)
		}
		for _, pending := range description.PendingActivities {
			var step int
			if pending.HeartbeatDetails == nil {
				continue
			}
			if err := converter.GetDefaultDataConverter().FromPayloads(pending.HeartbeatDetails, &step); err != nil {
				t.Fatal(err)
			}
			return step == packingSteps
		}
		return false
	})
}

func checkOrder(ctx context.Context, t *testing.T, c client.Client, run client.WorkflowRun, result []string, w *warehouse) {
	t.Helper()
	r := checkHistory(ctx, t, c, run)
	charge, parcel := r.activity(t, "ChargeCard"), r.activity(t, "PackParcel")
	recorded := []string{resultOf(t, charge), resultOf(t, parcel), "approved"}
	if !slices.Equal(result, recorded) {
		t.Errorf("the order returned %v, its history says %v", result, recorded)
	}
	if !slices.Equal(w.issued, result[:2]) {
		t.Errorf("the activities gave out %v, the order used %v", w.issued, result[:2])
	}
	if charge.attempt != chargeSucceedsAt || parcel.attempt != 1 {
		t.Errorf("attempts %d and %d, not %d and 1", charge.attempt, parcel.attempt, chargeSucceedsAt)
	}
	if len(r.activities) != 2 || len(r.timers) != 1 || len(r.openTimers) != 0 || len(r.signals) != 1 {
		t.Errorf("not two activities, one timer that fired, one signal\n%s", r.show())
	}
	if len(r.stickyQueues) == 0 {
		t.Errorf("no workflow task went to the sticky queue\n%s", r.show())
	}
	checkReplay(ctx, t, c, run, orderWorkflow)
}

func resultOf(t *testing.T, activity *activityRecord) string {
	t.Helper()
	if activity.completed == nil {
		t.Fatalf("activity %s did not complete", activity.typeName)
	}
	var result string
	if err := converter.GetDefaultDataConverter().FromPayloads(activity.completed.Result, &result); err != nil {
		t.Fatal(err)
	}
	return result
}
