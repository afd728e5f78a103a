package concurrency

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

const (
	// reservationTTL is for how long a slot counts as used although the Interruption
	// does not show that yet. It covers the time until the status is written.
	reservationTTL = 30 * time.Second
	// nodeCountTTL is for how long a count of nodes is reused.
	nodeCountTTL = 10 * time.Second
)

// Slots gives slots to Interruptions. The Interruptions show who uses one. In memory
// are only the reservations that they do not show yet, and counts of nodes.
type Slots struct {
	mu       sync.Mutex
	reserved map[reservation]time.Time // until when it counts
	counts   map[string]nodeCount      // by the key of the limit
}

type reservation struct{ interruption, limit string }

type nodeCount struct {
	n     int
	until time.Time
}

// Acquire gives an Interruption a slot, or returns a message about what it waits for. A
// free slot goes to the Interruption with the earliest deadline.
func (s *Slots) Acquire(ctx context.Context, cache client.Reader, l *Limit, in *v1beta1.Interruption, now time.Time) (wait string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	limit, err := s.limit(ctx, cache, l, now)
	if err != nil {
		return "", err
	}
	var all v1beta1.InterruptionList
	if err := cache.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("listing interruptions: %w", err)
	}
	maps.DeleteFunc(s.reserved, func(_ reservation, until time.Time) bool { return !now.Before(until) })
	if l.uses(in) || s.isReserved(in, l, now) {
		return "", nil
	}
	used, waiting := l.count(all.Items, in.Name, func(other *v1beta1.Interruption) bool { return s.isReserved(other, l, now) })
	first := 0
	for _, other := range waiting {
		if hasPriority(other, in) {
			first++
		}
	}
	if used+first >= limit {
		return l.message(used, limit), nil
	}
	if s.reserved == nil {
		s.reserved = map[reservation]time.Time{}
	}
	s.reserved[reservation{in.Name, l.Key}] = now.Add(reservationTTL)
	return "", nil
}

// Release gives back the slots that an Interruption got and cannot use.
func (s *Slots) Release(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.reserved, func(r reservation, _ time.Time) bool { return r.interruption == name })
}

func hasPriority(a, b *v1beta1.Interruption) bool {
	return cmp.Or(cmp.Compare(record.Priority(b, true), record.Priority(a, true)), cmp.Compare(a.Name, b.Name)) < 0
}

// isReserved reports whether an Interruption got a slot and does not show yet that its
// drain has begun.
func (s *Slots) isReserved(in *v1beta1.Interruption, l *Limit, now time.Time) bool {
	key := reservation{in.Name, l.Key}
	until, ok := s.reserved[key]
	if ok && (!now.Before(until) || !record.Begun(&in.Status).IsZero()) {
		delete(s.reserved, key)
		return false
	}
	return ok
}

// limit returns how many slots there are.
func (s *Slots) limit(ctx context.Context, cache client.Reader, l *Limit, now time.Time) (int, error) {
	if l.Max.Type == intstr.Int {
		return policy.Share(l.Max, 0), nil
	}
	known, ok := s.counts[l.Key]
	if !ok || !now.Before(known.until) {
		var nodes corev1.NodeList
		if err := cache.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
			return 0, fmt.Errorf("counting nodes: %w", err)
		}
		known = nodeCount{l.Of(nodes.Items), now.Add(nodeCountTTL)}
		if s.counts == nil {
			s.counts = map[string]nodeCount{}
		}
		s.counts[l.Key] = known
	}
	return policy.Share(l.Max, known.n), nil
}
