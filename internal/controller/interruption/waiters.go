package interruption

import (
	"context"
	"sync"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// waiters are the records that wait until the nodes of others are cordoned.
type waiters struct {
	mu    sync.Mutex
	names map[string]bool
}

// are notes whether a record waits. It is noted that it does before it is found out, so that
// who stops what it waits for, and takes them then, misses none.
func (w *waiters) are(name string, waits bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !waits {
		delete(w.names, name)
		return
	}
	if w.names == nil {
		w.names = map[string]bool{}
	}
	w.names[name] = true
}

// take returns all, and forgets them: they are looked at again.
func (w *waiters) take() map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	names := w.names
	w.names = nil
	return names
}

// ofWaiters returns the records that wait for others. The rest have gone on, and what they
// have to say has time.
func (c *Controller) ofWaiters(ctx context.Context, _ string) requests {
	names := c.muster.waiters.take()
	if len(names) == 0 {
		return nil
	}
	return c.unfinished(ctx, func(in *v1alpha1.Interruption) bool { return names[in.Name] })
}
