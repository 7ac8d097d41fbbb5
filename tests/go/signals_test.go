package acceptance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"golang.org/x/sync/errgroup"
)

const (
	numberSignal = "number"
	signalsSent  = 1000
	// What the SDK gives a call.
	signalTimeout = 10 * time.Second
)

// collectNumbers returns the numbers that it was sent, as they came.
func collectNumbers(ctx workflow.Context, count int) ([]int, error) {
	numbers := make([]int, count)
	for place := range numbers {
		workflow.GetSignalChannel(ctx, numberSignal).Receive(ctx, &numbers[place])
	}
	return numbers, nil
}

func TestAThousandSignalsAtOnceAreEachReceivedOnce(t *testing.T) {
	onEveryEngine(t, func(ctx context.Context, t *testing.T, c client.Client, taskQueue string) {
		startWorker(t, c, taskQueue, worker.Options{}, func(r worker.Registry) { r.RegisterWorkflow(collectNumbers) })
		run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: taskQueue, TaskQueue: taskQueue}, collectNumbers, signalsSent)
		if err != nil {
			t.Fatal(err)
		}
		senders, sending := errgroup.WithContext(ctx)
		for number := range signalsSent {
			senders.Go(func() error { return signal(sending, c, run, number) })
		}
		if err := senders.Wait(); err != nil {
			t.Fatal(err)
		}
		var received []int
		if err := run.Get(ctx, &received); err != nil {
			t.Fatal(err)
		}

		r := checkHistory(ctx, t, c, run)
		if recorded := numbersIn(t, r); !slices.Equal(received, recorded) {
			t.Errorf("received in another order than recorded:\n%v\n%v", received, recorded)
		}
		slices.Sort(received)
		for number := range signalsSent {
			if received[number] != number {
				t.Fatalf("signal %d was received more or less than once", number)
			}
		}
		checkReplay(ctx, t, c, run, collectNumbers)
	})
}

// signal sends the number until it is answered. A call that runs out of time may have been done: its request id must keep it from being
// done twice.
func signal(ctx context.Context, c client.Client, run client.WorkflowRun, number int) error {
	input, err := converter.GetDefaultDataConverter().ToPayloads(number)
	if err != nil {
		return err
	}
	request := &workflowservice.SignalWorkflowExecutionRequest{
		Namespace:         namespace,
		WorkflowExecution: &common.WorkflowExecution{WorkflowId: run.GetID(), RunId: run.GetRunID()},
		SignalName:        numberSignal,
		Input:             input,
		RequestId:         fmt.Sprintf("%s/%d", run.GetRunID(), number),
	}
	for {
		call, cancel := context.WithTimeout(ctx, signalTimeout)
		_, err := c.WorkflowService().SignalWorkflowExecution(call, request)
		cancel()
		if err == nil || ctx.Err() != nil || !isSlow(err) {
			return err
		}
	}
}

func isSlow(err error) bool {
	var late *serviceerror.DeadlineExceeded
	var busy *serviceerror.ResourceExhausted
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &late) || errors.As(err, &busy)
}

func numbersIn(t *testing.T, r *record) []int {
	t.Helper()
	numbers := make([]int, len(r.signals))
	for place, signal := range r.signals {
		if err := converter.GetDefaultDataConverter().FromPayloads(signal.Input, &numbers[place]); err != nil {
			t.Fatal(err)
		}
	}
	return numbers
}
