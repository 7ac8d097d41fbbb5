package acceptance

import (
	"context"
	"slices"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// decideLocally takes its decisions in the worker: what the server keeps of them is markers.
func decideLocally(ctx workflow.Context) ([]string, error) {
	var drawn, measured string
	draw := workflow.SideEffect(ctx, func(workflow.Context) any { return "drawn" })
	if err := draw.Get(&drawn); err != nil {
		return nil, err
	}
	if workflow.GetVersion(ctx, "a-change", workflow.DefaultVersion, 1) != 1 {
		return nil, nil
	}
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{StartToCloseTimeout: 30 * time.Second})
	if err := workflow.ExecuteLocalActivity(ctx, measure).Get(ctx, &measured); err != nil {
		return nil, err
	}
	// The worker goes on from its cache after this, or replays the markers.
	if err := workflow.Sleep(ctx, 10*time.Millisecond); err != nil {
		return nil, err
	}
	return []string{drawn, measured}, nil
}

func measure(context.Context) (string, error) {
	return "measured", nil
}

func TestWhatAWorkerDecidesLocallyIsKept(t *testing.T) {
	onEveryEngine(t, func(ctx context.Context, t *testing.T, c client.Client, taskQueue string) {
		startWorker(t, c, taskQueue, worker.Options{}, func(r worker.Registry) { r.RegisterWorkflow(decideLocally) })
		run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: taskQueue, TaskQueue: taskQueue}, decideLocally)
		if err != nil {
			t.Fatal(err)
		}
		var result []string
		if err := run.Get(ctx, &result); err != nil {
			t.Fatal(err)
		}
		if want := []string{"drawn", "measured"}; !slices.Equal(result, want) {
			t.Errorf("%v, not %v", result, want)
		}
		r := checkHistory(ctx, t, c, run)
		if want := []string{"SideEffect", "Version", "LocalActivity"}; !slices.Equal(r.markers, want) {
			t.Errorf("markers %v, not %v", r.markers, want)
		}
		checkReplay(ctx, t, c, run, decideLocally)
	})
}
