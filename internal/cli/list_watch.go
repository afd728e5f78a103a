package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
)

// retryInterval is the time between two tries to reach the cluster.
const retryInterval = time.Second

// errStopListWatch ends listWatch when a callback asks for it.
var errStopListWatch = errors.New("stopped by the caller")

// listWatchOptions are the callbacks of listWatch.
type listWatchOptions struct {
	// onChange is called for every Interruption at first and on each change. If it
	// returns true, listWatch ends.
	onChange func(*v1beta1.Interruption) bool
	// onListed is called after the first list was processed. If it returns true,
	// listWatch ends.
	onListed func() bool
	// warn is called when the cluster stops answering, and when it answers
	// again.
	warn func(string)
}

// listWatch reports all Interruptions and their changes until a callback stops it
// or ctx ends. If the cluster does not answer at first, that is an error. If it
// stops answering later, listWatch retries.
func (c cluster) listWatch(ctx context.Context, o listWatchOptions) error {
	answered, away := false, false
	answers := func() {
		if away {
			o.warn("the cluster answers again")
		}
		answered, away = true, false
	}
	for {
		err := c.followOnce(ctx, o, answers)
		switch {
		case errors.Is(err, errStopListWatch):
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && (!answered || command.IsNotInstalled(err)):
			return err
		case err != nil && !away:
			away = true
			o.warn(fmt.Sprintf("the cluster does not answer (%v); retrying", err))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(retryInterval):
		}
	}
}

// followOnce lists and then watches until the watch ends. API servers end
// watches regularly, so that returns nil.
func (c cluster) followOnce(ctx context.Context, o listWatchOptions, answers func()) error {
	var all v1beta1.InterruptionList
	if err := c.list(ctx, "interruptions", &all); err != nil {
		return err
	}
	answers()
	for i := range all.Items {
		if o.onChange(&all.Items[i]) {
			return errStopListWatch
		}
	}
	if o.onListed() {
		return errStopListWatch
	}
	from := &metav1.ListOptions{ResourceVersion: all.ResourceVersion}
	w, err := c.Watch(ctx, &v1beta1.InterruptionList{}, &client.ListOptions{Raw: from})
	if err != nil {
		return fmt.Errorf("watching interruptions: %w", err)
	}
	defer w.Stop()
	for change := range w.ResultChan() {
		in, ok := change.Object.(*v1beta1.Interruption)
		if !ok {
			return nil // an error such as "too old": list again
		}
		if change.Type != watch.Deleted && o.onChange(in) {
			return errStopListWatch
		}
	}
	return nil
}
