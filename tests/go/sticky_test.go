package acceptance

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"golang.org/x/sync/errgroup"
)

const (
	// Enough that tasks wait in the sticky queue while polls of it are answered together.
	stickyRuns       = 1000
	stickyConcurrent = 64
	stickyPollers    = 16
	// Half of a poll: a run that takes longer waited for the polls of an idle queue to end.
	stickyPatience = 30 * time.Second
)

func step(context.Context) error { return nil }

func twoSteps(ctx workflow.Context) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	for range 2 {
		if err := workflow.ExecuteActivity(ctx, step).Get(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// The SDK polls only the sticky queue while it believes in a backlog there.
func TestAWorkerDoesNotForgetItsNormalQueue(t *testing.T) {
	onEveryEngine(t, func(ctx context.Context, t *testing.T, c client.Client, taskQueue string) {
		options := worker.Options{MaxConcurrentWorkflowTaskPollers: stickyPollers, MaxConcurrentActivityTaskPollers: stickyPollers}
		startWorker(t, c, taskQueue, options, func(registry worker.Registry) {
			registry.RegisterWorkflow(twoSteps)
			registry.RegisterActivity(step)
		})
		var runs errgroup.Group
		runs.SetLimit(stickyConcurrent)
		for n := range stickyRuns {
			runs.Go(func() error {
				ctx, cancel := context.WithTimeout(ctx, stickyPatience)
				defer cancel()
				id := fmt.Sprintf("%s-%d", taskQueue, n)
				run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: taskQueue}, twoSteps)
				if err != nil {
					return err
				}
				return run.Get(ctx, nil)
			})
		}
		if err := runs.Wait(); err != nil {
			t.Fatal(err)
		}
	})
}
