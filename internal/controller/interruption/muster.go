package interruption

import (
	"maps"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// muster knows which records have a node that is to be drained and may still be
// given pods. To ask all records in every pass would take time that grows with
// the square of the nodes that are doomed at once. It holds nothing that the
// records and nodes do not say: what has become untrue is dropped by the next
// pass that meets it.
type muster struct {
	mu   sync.Mutex
	open map[string]time.Time // by name; until when it counts
	// marked is when this process cordoned the nodes of records in work.
	marked map[string]time.Time
	// sweep is how many of open there have to be for those that no longer count to be
	// looked for.
	sweep int
	// ahead are the records of nodes that were cordoned ahead, which are yet to come.
	ahead map[string]foretold
	// heard is when the last records were heard of for the first time, or foretold, in turn;
	// unforetold, when the last was of which this process did not know that it was to come.
	heard      [swarm]time.Time
	turn       int
	unforetold time.Time
	// rushes is how many sources are in a rush.
	rushes  int
	waiters waiters
}

// foretold is a record that is about to be made.
type foretold struct {
	until  time.Time // until when it may be to come
	drains bool      // whether the first thing to do then is to drain the node
}

// cordoned notes when the node of a record was.
func (m *muster) cordoned(name string, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.marked == nil {
		m.marked = map[string]time.Time{}
	}
	m.marked[name] = at
}

// lately reports whether the node of a record was cordoned a moment ago.
func (m *muster) lately(name string, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, known := m.marked[name]
	return known && now.Sub(at) < markLasts
}

// cordonedAt is when the node of a record was cordoned, if this process knows.
func (m *muster) cordonedAt(name string, otherwise time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at, known := m.marked[name]; known {
		return at
	}
	return otherwise
}

// hears is a predicate that lets everything through: what a record says is known
// here before the loop can act on it, or on one that came later.
func (m *muster) hears(clock func() time.Time) predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			if foretold := m.isThere(e.Object.GetName()); !foretold {
				m.came(clock())
			}
			m.hear(e.Object)
			return true
		},
		UpdateFunc: func(e event.UpdateEvent) bool { m.hear(e.ObjectNew); return true },
		DeleteFunc: func(e event.DeleteEvent) bool {
			m.drop(e.Object.GetName())
			m.uncordoned(e.Object.GetName())
			return true
		},
	}
}

// hear notes what a record says. It counts for a few seconds from its last
// notice only, so that one that cannot be cordoned holds nobody up.
func (m *muster) hear(o client.Object) {
	in, ok := o.(*v1alpha1.Interruption)
	if !ok {
		return
	}
	if notice.Finished(in) {
		m.uncordoned(in.Name)
	}
	if notice.Finished(in) || !mayDrain(in) {
		m.drop(in.Name)
		return
	}
	var last time.Time
	for i := range in.Spec.Notices {
		if at := in.Spec.Notices[i].ReceivedTime.Time; at.After(last) {
			last = at
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opens(in.Name, last)
}

// Expect says that this process is about to record that an instance is doomed: until that
// is heard of, the others wait for it as for one that was, a few seconds at the most. It
// is a hint and no more: what other processes record is heard of when it is.
func (c *Controller) Expect(instanceID string) { c.muster.expect(instanceID, c.Clock()) }

func (m *muster) expect(name string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.open) >= m.sweep { // where nobody asks, as on replicas that do not lead, nobody else drops any
		maps.DeleteFunc(m.open, func(_ string, until time.Time) bool { return !now.Before(until) })
		m.sweep = 2*len(m.open) + swarm
	}
	m.opens(name, now)
}

// foretold notes that a node is about to be cordoned whose record is about to be made.
func (m *muster) foretold(name string, now time.Time, drains bool) {
	m.expect(name, now)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ahead == nil {
		m.ahead = map[string]foretold{}
	}
	m.ahead[name] = foretold{now.Add(mostUnrecorded), drains}
	m.counts(now)
	if len(m.ahead) >= m.sweep {
		maps.DeleteFunc(m.ahead, func(name string, f foretold) bool {
			if now.Before(f.until) {
				return false
			}
			delete(m.marked, name) // it never had a record, so none will end
			return true
		})
	}
}

// comesAgain notes that a record which was foretold and could not be made is tried again.
func (m *muster) comesAgain(name string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f, known := m.ahead[name]; known {
		f.until = now.Add(mostUnrecorded)
		m.ahead[name] = f
	}
}

// isToDrain reports whether the node of a record that is about to be made was cordoned ahead
// of it, to be drained.
func (m *muster) isToDrain(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ahead[name].drains
}

// unrecorded returns for how long a record that was foretold may still be to come.
func (m *muster) unrecorded(name string, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return max(m.ahead[name].until.Sub(now), 0)
}

// isThere notes that a record has been made, and reports whether it was foretold.
func (m *muster) isThere(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, foretold := m.ahead[name]
	delete(m.ahead, name)
	return foretold
}

// opens counts a record for as long as is reasonable. The caller holds the lock.
func (m *muster) opens(name string, since time.Time) {
	if m.open == nil {
		m.open = map[string]time.Time{}
	}
	m.open[name] = since.Add(patienceFor(len(m.open)))
}

// patienceFor is how long one is waited for where there are so many.
func patienceFor(others int) time.Duration {
	return min(mostPatience, patience+time.Duration(others)*perOther)
}

// came notes that a record was heard of for the first time, which nothing foretold.
func (m *muster) came(at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts(at)
	m.unforetold = at
}

// counts adds one to those that came lately. The caller holds the lock.
func (m *muster) counts(at time.Time) {
	m.heard[m.turn%swarm] = at
	m.turn++
}

// moreMayCome reports whether so many records came so lately that more are likely to be on
// their way: on the queue, while intake here is in a rush, or written by another replica
// and not heard of yet.
func (m *muster) moreMayCome(now time.Time) bool {
	last, first := m.heard[(m.turn+swarm-1)%swarm], m.heard[m.turn%swarm]
	if first.IsZero() || last.Sub(first) >= burst {
		return false
	}
	return m.rushes > 0 || now.Sub(m.unforetold) < silence
}

// Rush says that notices come here one upon the other, until the function that it returns
// is called: what is not heard of yet is waited for, some seconds at the most.
func (c *Controller) Rush() (over func()) {
	c.muster.rush(1)
	return sync.OnceFunc(func() {
		c.muster.rush(-1)
		select {
		case c.mustered <- event.TypedGenericEvent[string]{}:
		default: // one is on its way, or another process leads
		}
	})
}

func (m *muster) rush(by int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rushes += by
}

// uncordoned forgets when a node was cordoned: it no longer is.
func (m *muster) uncordoned(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.marked, name)
}

func (m *muster) drop(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.open, name)
	m.waiters.are(name, false)
}

// others returns how many records, but for the one named, may have a node that
// can still be given pods; at least the first of them does. It asks cordoned of
// as many as it takes to find one. One that may be about to come counts as one.
func (m *muster) others(name string, now time.Time, cordoned func(name string) (bool, error)) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for other, until := range m.open {
		if !now.Before(until) {
			delete(m.open, other)
			continue
		}
		if other == name {
			continue
		}
		if at, known := m.marked[other]; known && now.Sub(at) < markLasts {
			delete(m.open, other) // the cache need not show it yet
			continue
		}
		done, err := cordoned(other)
		if err != nil {
			return 0, err
		}
		if !done {
			return len(m.open), nil
		}
		delete(m.open, other)
	}
	if at, known := m.marked[name]; known && now.Sub(at) < patienceFor(len(m.marked)) && m.moreMayCome(now) {
		return len(m.marked), nil // as many as there are may yet come
	}
	return 0, nil
}
