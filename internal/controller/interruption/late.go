package interruption

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	// mostLate is how long at most what has time is not written because it is not calm.
	mostLate = time.Minute
	// lateAbreast is how many are written at the same time once it is.
	lateAbreast = 8
	// lastWords is how long the writing of it may take as the process ends.
	lastWords = 2 * time.Second
)

// late holds what passes have found and what has time to be written: where many nodes go at
// once, each such write delays two pods of others. Nothing hangs on it. The record has the
// pods, and they show that they were asked to stop: who has forgotten finds that anew, but not
// why and by whom.
type late struct {
	mu   sync.Mutex
	held map[string]*report // by record
	came chan struct{}      // has room for one
}

// keep holds a report.
func (l *late) keep(r *report) {
	r.seen = &seen{decision: r.seen.decision} // pods are large
	r.told = nil
	if r.node != nil {
		r.node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: r.node.Name, UID: r.node.UID, ResourceVersion: r.node.ResourceVersion}}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = map[string]*report{}
	}
	l.held[r.before.Name] = r
	select {
	case l.came <- struct{}{}:
	default:
	}
}

// take returns what is held of a record, and holds it no longer; nil: nothing is.
func (l *late) take(record string) *report {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.held[record]
	delete(l.held, record)
	return r
}

// records returns the names of those of which something is held.
func (l *late) records() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.held))
}

// Later returns a manager's Runnable that writes what has time, on the replica that leads.
func (c *Controller) Later() manager.Runnable { return manager.RunnableFunc(c.writeLater) }

func (c *Controller) writeLater(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
		case <-c.late.came:
		}
		longest := time.NewTimer(mostLate)
		select {
		case <-ctx.Done():
			longest.Stop()
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
			defer cancel()
			c.writeHeld(last)
			return nil
		case <-c.Calm():
		case <-longest.C:
		}
		longest.Stop()
		c.writeHeld(ctx)
	}
}

// writeHeld writes all that is held, and lets go of each report as it comes to it: what was
// written is in the cache next.
func (c *Controller) writeHeld(ctx context.Context) {
	var group errgroup.Group
	group.SetLimit(lateAbreast)
	for _, record := range c.late.records() {
		group.Go(func() error {
			r := c.late.take(record)
			if r == nil {
				return nil // its next pass has come first
			}
			if err := c.writeLate(ctx, r); err != nil && ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "writing what was done for an interruption; its next pass finds what there is to say", "interruption", record)
			}
			return nil // an error here would hold up the others
		})
	}
	_ = group.Wait()
}

// writeLate writes what was held of a record. Where that has changed or gone meanwhile, the
// next pass finds it anew.
func (c *Controller) writeLate(ctx context.Context, r *report) error {
	if err := c.close(ctx, r); !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}
