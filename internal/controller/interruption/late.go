package interruption

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// all takes everything.
func (l *late) all() map[string]*report {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.held
	l.held = nil
	return all
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

// writeHeld writes all that is held.
func (c *Controller) writeHeld(ctx context.Context) {
	var group errgroup.Group
	group.SetLimit(lateAbreast)
	for _, r := range c.late.all() {
		group.Go(func() error {
			if err := c.writeLate(ctx, r); err != nil && ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "writing what was done for an interruption; its next pass finds what there is to say", "interruption", r.before.Name)
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
