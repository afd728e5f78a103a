package app

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/event"
)

// notify returns a callback that queues a reconcile of a name. The callback blocks while
// the channel is full, so that no change is lost, and gives up when ctx ends: nothing
// reads the channel after that, and the caller must be able to stop.
func notify(ctx context.Context, to ...chan<- event.TypedGenericEvent[string]) func(name string) {
	return func(name string) {
		for _, c := range to {
			select {
			case c <- event.TypedGenericEvent[string]{Object: name}:
			case <-ctx.Done():
				return
			}
		}
	}
}
