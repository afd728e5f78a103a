package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
)

// again is how long a cluster that went away is left alone before it is asked
// again.
const again = time.Second

// errSeenEnough ends a follow from within.
var errSeenEnough = errors.New("seen enough")

// followOptions say what to do while following Interruptions.
type followOptions struct {
	// saw gets every Interruption at first and whenever it changes. It ends
	// the follow by returning true.
	saw func(*v1alpha1.Interruption) bool
	// listed is called when all that exist have been seen. It ends the follow
	// by returning true.
	listed func() bool
	// warn is told when the cluster stops answering, and when it answers again.
	warn func(string)
}

// follow shows all Interruptions as they change, until it is told to stop or
// ctx ends. A cluster that does not answer at first is an error; one that goes
// away later is waited for.
func (c cluster) follow(ctx context.Context, o followOptions) error {
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
		case errors.Is(err, errSeenEnough):
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && (!answered || command.IsNotInstalled(err)):
			return err
		case err != nil && !away:
			away = true
			o.warn(fmt.Sprintf("the cluster does not answer (%v); waiting for it", err))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(again):
		}
	}
}

// followOnce lists and then watches until the watch ends, as watches do from
// time to time; nil means just that.
func (c cluster) followOnce(ctx context.Context, o followOptions, answers func()) error {
	var all v1alpha1.InterruptionList
	if err := c.list(ctx, "interruptions", &all); err != nil {
		return err
	}
	answers()
	for i := range all.Items {
		if o.saw(&all.Items[i]) {
			return errSeenEnough
		}
	}
	if o.listed() {
		return errSeenEnough
	}
	from := &metav1.ListOptions{ResourceVersion: all.ResourceVersion}
	w, err := c.Watch(ctx, &v1alpha1.InterruptionList{}, &client.ListOptions{Raw: from})
	if err != nil {
		return fmt.Errorf("watching interruptions: %w", err)
	}
	defer w.Stop()
	for change := range w.ResultChan() {
		in, ok := change.Object.(*v1alpha1.Interruption)
		if !ok {
			return nil // an error such as "too old": list again
		}
		if change.Type != watch.Deleted && o.saw(in) {
			return errSeenEnough
		}
	}
	return nil
}
