package acceptance

import (
	"context"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
)

// startWorker runs one until the test ends.
func startWorker(t *testing.T, c client.Client, taskQueue string, options worker.Options, register func(worker.Registry)) {
	t.Helper()
	w := worker.New(c, taskQueue, options)
	register(w)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
}

// eventually asks again until the answer is yes, or the test's time is over.
func eventually(ctx context.Context, t *testing.T, what string, ask func() bool) {
	t.Helper()
	for !ask() {
		select {
		case <-ctx.Done():
			t.Fatalf("did not come true: %s", what)
		case <-time.After(pollInterval):
		}
	}
}

// checkReplay lets the SDK decide whether the history is one that the workflow could have.
func checkReplay(ctx context.Context, t *testing.T, c client.Client, run client.WorkflowRun, workflow any) {
	t.Helper()
	var whole history.History
	events := c.GetWorkflowHistory(ctx, run.GetID(), run.GetRunID(), false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		whole.Events = append(whole.Events, event)
	}
	replayer := worker.NewWorkflowReplayer()
	replayer.RegisterWorkflow(workflow)
	if err := replayer.ReplayWorkflowHistory(quiet, &whole); err != nil {
		t.Errorf("the SDK does not replay the history: %v", err)
	}
}
