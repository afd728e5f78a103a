package launch

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/groupwatch"
)

const (
	// mostActions and mostFailures are what a NodeGroup's status has room for.
	mostActions, mostFailures = 50, 10
	// inARow is how many launches in a row have to fail to be worth a warning.
	inARow = 3
	// unseenFor is for how long it is believed what the last leader wrote down of a
	// group that is not seen any more.
	unseenFor = time.Hour
)

// Book is what is known of the instances that hooks hold, and of how launches came
// out. It is begun from the status of NodeGroups, into which it is written.
type Book struct {
	mu      sync.Mutex
	seeded  bool
	entries map[string]*entry // by instance
	groups  map[string]*tally
}

// entry is an instance.
type entry struct {
	group, node string
	state       string
	memory      lifecycle.Memory
	decision    lifecycle.Decision
	// nodeTried is when something was last done to its node, and podsAt when its
	// pods were last counted.
	nodeTried, podsAt time.Time
	pods              int
	// said are the warnings that were given in this phase, and hurried how often it
	// was asked where the instance stands.
	said    map[string]bool
	hurried int
}

// tally is a group.
type tally struct {
	boots    v1alpha1.BootTimes
	inARow   int32
	failures []v1alpha1.GroupFailure
}

func newBook() *Book { return &Book{entries: map[string]*entry{}, groups: map[string]*tally{}} }

// Seeded reports whether the Book has been begun.
func (b *Book) Seeded() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seeded
}

// Actions returns what hooks hold of a group, the oldest first.
func (b *Book) Actions(group string) []v1alpha1.LifecycleAction {
	b.mu.Lock()
	defer b.mu.Unlock()
	var actions []v1alpha1.LifecycleAction
	for id, e := range b.entries {
		if e.group == group && lifecycle.Read(e.state).Held() {
			actions = append(actions, e.action(id))
		}
	}
	slices.SortFunc(actions, func(x, y v1alpha1.LifecycleAction) int {
		return cmp.Or(x.Since.Compare(y.Since.Time), cmp.Compare(x.InstanceID, y.InstanceID))
	})
	return actions[:min(len(actions), mostActions)]
}

func (e *entry) action(id string) v1alpha1.LifecycleAction {
	a := v1alpha1.LifecycleAction{
		InstanceID: id, State: e.state, NodeName: e.node, Hook: e.decision.Hook,
		Since: metav1.NewTime(e.memory.Held), Message: cut(e.decision.Reason),
	}
	if t := e.decision.Expires; !t.IsZero() {
		a.Expires = new(metav1.NewTime(t))
	}
	var last time.Time
	for _, s := range e.memory.Told {
		if s.Extended.After(last) {
			last = s.Extended
		}
	}
	if !last.IsZero() {
		a.LastHeartbeat = new(metav1.NewTime(last))
	}
	return a
}

// Boots returns how long launches of a group took, or nil where none was seen.
func (b *Book) Boots(group string) *v1alpha1.BootTimes {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.groups[group]; t != nil && t.boots.Count > 0 {
		return new(t.boots)
	}
	return nil
}

// Failures returns how many launches of a group have failed since the last that
// did not, and the last of what failed, newest first.
func (b *Book) Failures(group string) (inARow int32, last []v1alpha1.GroupFailure) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.groups[group]; t != nil {
		return t.inARow, slices.Clone(t.failures)
	}
	return 0, nil
}

// seed begins the Book with what the last leader wrote down.
func (b *Book) seed(groups []v1alpha1.NodeGroup) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seeded = true
	for i := range groups {
		status := &groups[i].Status
		name := nameOf(&groups[i])
		t := b.tally(name)
		if status.Boots != nil {
			t.boots = *status.Boots
		}
		t.inARow, t.failures = status.ConsecutiveFailures, slices.Clone(status.Failures)
		for _, a := range status.Actions {
			since := a.Since.Time
			m := lifecycle.Memory{}.See(since, lifecycle.Read(a.State), false)
			if a.LastHeartbeat != nil && a.Hook != "" {
				m = m.Tell(a.Hook, a.LastHeartbeat.Time, lifecycle.Heartbeat, nil)
			}
			b.entries[a.InstanceID] = &entry{group: name, state: a.State, memory: m}
		}
	}
}

// tally returns a group's. The lock is held.
func (b *Book) tally(group string) *tally {
	if b.groups[group] == nil {
		b.groups[group] = &tally{}
	}
	return b.groups[group]
}

// see notes where an instance was seen, and returns what is remembered of it, and
// of a launch that came out by it. known tells that its group was seen before.
func (b *Book) see(m groupwatch.Member, at, now time.Time, known bool, node string) (*entry, launched) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[m.InstanceID]
	isNew := e == nil && known
	if e == nil || e.group != m.Group {
		e = &entry{group: m.Group}
		b.entries[m.InstanceID] = e
	}
	var out launched
	if was := e.memory; !was.Seen.IsZero() && was.Phase != m.At.Phase {
		out = launched{e.group, m.InstanceID, was.Result(m.At.Phase), was, at}
		e.said, e.hurried, e.decision = nil, 0, lifecycle.Decision{}
	}
	if at.After(e.memory.Seen) || e.memory.Seen.IsZero() {
		e.memory = e.memory.See(at, m.At, isNew)
	}
	e.memory = e.memory.WithNode(now, node != "")
	e.state, e.node = m.State, node
	return e, out
}

// forget drops the instances that are in no group any more, and returns the
// launches that came out by it. Of groups that were not seen yet it knows nothing,
// but for a time.
func (b *Book) forget(there, known map[string]bool, now time.Time) []launched {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []launched
	for id, e := range b.entries {
		if !there[id] && (known[e.group] || now.Sub(e.memory.Seen) > unseenFor) {
			out = append(out, launched{e.group, id, e.memory.Result(lifecycle.Gone), e.memory, now})
			delete(b.entries, id)
		}
	}
	return out
}

// launched is a launch that came out.
type launched struct {
	group, id string
	result    lifecycle.Result
	was       lifecycle.Memory
	at        time.Time
}

// count adds a launch to its group's tally. It returns how many have failed in a
// row where that is worth a warning.
func (b *Book) count(l launched) (failed int32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.tally(l.group)
	switch l.result {
	case lifecycle.LaunchSucceeded:
		t.inARow = 0
		if took := l.at.Sub(l.was.Began); l.was.Phase == lifecycle.Joining && (l.was.New || l.was.From == lifecycle.Warm) {
			t.boots.Count++
			t.boots.LastSeconds = int32(min(took, 24*time.Hour).Seconds())
			t.boots.LongestSeconds = max(t.boots.LongestSeconds, t.boots.LastSeconds)
		}
	case lifecycle.LaunchFailed:
		t.inARow++
		b.note(l.group, l.id, l.at, fmt.Sprintf("the instance was given up %s after its launch was first seen; last it was said: %s",
			l.at.Sub(l.was.Began).Round(time.Second), cmp.Or(l.was.Reason, "nothing")))
		if t.inARow >= inARow {
			return t.inARow
		}
	}
	return 0
}

// failed notes an answer that failed for a reason that somebody has to see to.
func (b *Book) failed(group, id string, at time.Time, message string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.note(group, id, at, message)
}

func (b *Book) note(group, id string, at time.Time, message string) {
	t := b.tally(group)
	failure := v1alpha1.GroupFailure{Time: metav1.NewTime(at), InstanceID: id, Message: cut(message)}
	t.failures = append([]v1alpha1.GroupFailure{failure}, t.failures...)
	t.failures = t.failures[:min(len(t.failures), mostFailures)]
}

// decided notes a decision, and reports whether it says something else than the
// one before.
func (b *Book) decided(e *entry, d lifecycle.Decision) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	news := e.decision.Reason != d.Reason || e.decision.Hook != d.Hook
	e.decision, e.memory.Reason = d, cmp.Or(d.Reason, e.memory.Reason)
	if d.Do == lifecycle.GiveUp {
		e.memory.GaveUp = true
	}
	return news
}

// told notes what a hook was told, unless the instance is in another phase by now.
func (b *Book) told(e *entry, phase lifecycle.Phase, hook string, at time.Time, do lifecycle.Verb, err error) lifecycle.Told {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.memory.Phase == phase {
		e.memory = e.memory.Tell(hook, at, do, err)
	}
	return e.memory.Told[hook]
}

// once reports whether it is the first time in this phase.
func (b *Book) once(e *entry, what string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.said[what] {
		return false
	}
	if e.said == nil {
		e.said = map[string]bool{}
	}
	e.said[what] = true
	return true
}

// cut keeps a message within what the API takes.
func cut(message string) string {
	const most = 512
	runes := []rune(message)
	return string(runes[:min(len(runes), most)])
}
