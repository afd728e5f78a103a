package instancelaunch

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/groupcache"
	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
)

const (
	// maxActions and maxFailures are the bounds of a NodeGroup's status.
	maxActions, maxFailures = 50, 10
	// warnAfterFailures is how many consecutive launches must fail for a warning.
	warnAfterFailures = 3
	// unseenTTL is how long the status of the previous leader is kept for a group that is not
	// seen any more.
	unseenTTL = time.Hour
)

// Book records the instances that hooks hold, and the results of launches. It is initialised
// from the status of NodeGroups, and written to it.
type Book struct {
	mu      sync.Mutex
	seeded  bool
	entries map[string]*entry // by instance
	groups  map[string]*tally
}

// entry is the state of an instance.
type entry struct {
	group, node string
	state       string
	memory      lifecycle.Memory
	decision    lifecycle.Decision
	// nodeTried is when the node was last changed, and podsAt when its pods were last counted.
	nodeTried, podsAt time.Time
	pods              int
	// warned are the warnings emitted in this phase, and refreshes is the number of refreshes
	// requested for the instance.
	warned    map[string]bool
	refreshes int
}

// tally has the launch results of a group.
type tally struct {
	boots    v1beta1.BootTimes
	inARow   int32
	failures []v1beta1.GroupFailure
}

func newBook() *Book { return &Book{entries: map[string]*entry{}, groups: map[string]*tally{}} }

// Seeded reports whether the Book has been initialised.
func (b *Book) Seeded() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seeded
}

// Actions returns the instances of a group that hooks hold, the oldest first.
func (b *Book) Actions(group string) []v1beta1.LifecycleAction {
	b.mu.Lock()
	defer b.mu.Unlock()
	var actions []v1beta1.LifecycleAction
	for id, e := range b.entries {
		if e.group == group && lifecycle.Read(e.state).Held() {
			actions = append(actions, e.action(id))
		}
	}
	slices.SortFunc(actions, func(x, y v1beta1.LifecycleAction) int {
		return cmp.Or(x.Since.Compare(y.Since.Time), cmp.Compare(x.InstanceID, y.InstanceID))
	})
	return actions[:min(len(actions), maxActions)]
}

func (e *entry) action(id string) v1beta1.LifecycleAction {
	a := v1beta1.LifecycleAction{
		InstanceID: id, State: e.state, NodeName: e.node, Hook: e.decision.Hook,
		Since: metav1.NewTime(e.memory.Held), Message: cut(e.decision.Reason),
	}
	if t := e.decision.Expires; !t.IsZero() {
		a.Expires = new(metav1.NewTime(t))
	}
	var last time.Time
	for _, s := range e.memory.Calls {
		if s.Extended.After(last) {
			last = s.Extended
		}
	}
	if !last.IsZero() {
		a.LastHeartbeat = new(metav1.NewTime(last))
	}
	return a
}

// Boots returns how long launches of a group took, or nil if none was seen.
func (b *Book) Boots(group string) *v1beta1.BootTimes {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.groups[group]; t != nil && t.boots.Count > 0 {
		return new(t.boots)
	}
	return nil
}

// Failures returns the number of consecutive failed launches of a group, and its latest
// failures, newest first.
func (b *Book) Failures(group string) (inARow int32, last []v1beta1.GroupFailure) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.groups[group]; t != nil {
		return t.inARow, slices.Clone(t.failures)
	}
	return 0, nil
}

// seed initialises the Book from the status that the previous leader wrote.
func (b *Book) seed(groups []v1beta1.NodeGroup) {
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
				m = m.RecordCall(a.Hook, a.LastHeartbeat.Time, lifecycle.Heartbeat, nil)
			}
			b.entries[a.InstanceID] = &entry{group: name, state: a.State, memory: m}
		}
	}
}

// tally returns the tally of a group. The caller holds the lock.
func (b *Book) tally(group string) *tally {
	if b.groups[group] == nil {
		b.groups[group] = &tally{}
	}
	return b.groups[group]
}

// see records the state of an instance. It returns its entry, and the launch that ended with
// this state. known is set if its group was seen before.
func (b *Book) see(m groupcache.Member, at, now time.Time, known bool, node string) (*entry, launchResult) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[m.InstanceID]
	isNew := e == nil && known
	if e == nil || e.group != m.Group {
		e = &entry{group: m.Group}
		b.entries[m.InstanceID] = e
	}
	var out launchResult
	if was := e.memory; !was.Seen.IsZero() && was.Phase != m.At.Phase {
		out = launchResult{e.group, m.InstanceID, was.Result(m.At.Phase), was, at}
		e.warned, e.refreshes, e.decision = nil, 0, lifecycle.Decision{}
	}
	if at.After(e.memory.Seen) || e.memory.Seen.IsZero() {
		e.memory = e.memory.See(at, m.At, isNew)
	}
	e.memory = e.memory.WithNode(now, node != "")
	e.state, e.node = m.State, node
	return e, out
}

// forget drops the instances that are in no group any more, and returns the launches that ended
// with that. For some time it keeps instances of groups that were not seen yet.
func (b *Book) forget(there, known map[string]bool, now time.Time) []launchResult {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []launchResult
	for id, e := range b.entries {
		if !there[id] && (known[e.group] || now.Sub(e.memory.Seen) > unseenTTL) {
			out = append(out, launchResult{e.group, id, e.memory.Result(lifecycle.Gone), e.memory, now})
			delete(b.entries, id)
		}
	}
	return out
}

// launchResult is a launch that ended.
type launchResult struct {
	group, id string
	result    lifecycle.Result
	was       lifecycle.Memory
	at        time.Time
}

// count adds a launch to its group's tally. It returns the number of consecutive failures if
// that needs a warning.
func (b *Book) count(l launchResult) (failed int32) {
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
		if t.inARow >= warnAfterFailures {
			return t.inARow
		}
	}
	return 0
}

// failed records a failed answer that a user must fix.
func (b *Book) failed(group, id string, at time.Time, message string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.note(group, id, at, message)
}

func (b *Book) note(group, id string, at time.Time, message string) {
	t := b.tally(group)
	failure := v1beta1.GroupFailure{Time: metav1.NewTime(at), InstanceID: id, Message: cut(message)}
	t.failures = append([]v1beta1.GroupFailure{failure}, t.failures...)
	t.failures = t.failures[:min(len(t.failures), maxFailures)]
}

// decided records a decision, and reports whether its text differs from the previous one.
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

// recordCall records a call for a hook, unless the instance is in another phase by now.
func (b *Book) recordCall(e *entry, phase lifecycle.Phase, hook string, at time.Time, do lifecycle.Verb, err error) lifecycle.CallRecord {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.memory.Phase == phase {
		e.memory = e.memory.RecordCall(hook, at, do, err)
	}
	return e.memory.Calls[hook]
}

// once reports whether this is the first time in this phase.
func (b *Book) once(e *entry, what string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.warned[what] {
		return false
	}
	if e.warned == nil {
		e.warned = map[string]bool{}
	}
	e.warned[what] = true
	return true
}

// cut shortens a message to the limit of the API.
func cut(message string) string {
	const most = 512
	runes := []rune(message)
	return string(runes[:min(len(runes), most)])
}
