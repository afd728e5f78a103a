package record

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Summary says what is under way.
type Summary struct {
	// Groups counts the Interruptions that are not finished.
	Groups map[Group]int
	// NearestDeadlines are the earliest deadlines of nodes with pods that must leave, by type.
	NearestDeadlines map[v1beta1.DeadlineType]time.Time
	// PastLastCall counts, by node, the pods that wait to be asked to leave although their last call
	// is over.
	PastLastCall map[string]int
	// OldestBlocked is since when the first of the blocked drains has made no progress, and Blocked
	// counts them, without those that a person has acknowledged.
	Blocked       int
	OldestBlocked time.Time
	// AwaitingApproval and OnHold count the Interruptions that wait for a person.
	AwaitingApproval, OnHold int
	// OldestApproval is the start of the longest wait for an approval; zero: none waits.
	OldestApproval time.Time
	// Paused counts those that a pause stops.
	Paused int
	// Uncorroborated counts those that wait because facts do not agree.
	Uncorroborated int
	// PodsWaiting and PodsLeaving count the pods that must still leave.
	PodsWaiting, PodsLeaving int
	// ReplacementsPending counts the replacements that have no instance yet, and OldestReplacement
	// is when the first of them was needed.
	ReplacementsPending int
	OldestReplacement   time.Time
	// HooksRunning counts running hooks; OldestHook is the start of the first of them.
	// HooksFailed counts hooks whose last try failed.
	HooksRunning, HooksFailed int
	OldestHook                time.Time
	// LifecycleHooks counts the instances that a lifecycle hook of their group holds.
	LifecycleHooks int
}

// Group is what Interruptions have in common.
type Group struct {
	Phase  v1beta1.Phase
	Action v1beta1.Action
	Pool   string
}

// Summarize returns what is under way. pool returns the pool of an Interruption's node.
func Summarize(all []v1beta1.Interruption, pool func(*v1beta1.Interruption) string, now time.Time) Summary {
	s := Summary{Groups: map[Group]int{}, NearestDeadlines: map[v1beta1.DeadlineType]time.Time{}, PastLastCall: map[string]int{}}
	for i := range all {
		if in := &all[i]; !notice.Finished(in) {
			s.add(in, pool(in), now)
		}
	}
	return s
}

func (s *Summary) add(in *v1beta1.Interruption, pool string, now time.Time) {
	g := Group{Phase: in.Status.Phase, Pool: pool}
	if in.Status.Decision != nil {
		g.Action = in.Status.Decision.Action
	}
	s.Groups[g]++
	s.addWaits(in, now)
	if Drains(g.Action) && !meta.IsStatusConditionTrue(in.Status.Conditions, v1beta1.ConditionDrained) {
		s.addPods(in)
	}
	s.addDrain(Drain(&in.Status))
	if n := PastLastCall(in, now); n > 0 {
		s.PastLastCall[NodeName(in)] += n
	}
	if since, _ := Blocked(in, now); !since.IsZero() && Acknowledged(in, now).Before(since) {
		s.Blocked++
		earlier(&s.OldestBlocked, since)
	}
	if l := in.Status.LifecycleHooks; l != nil && len(l.Hooks) > 0 && l.CompletedTime == nil {
		s.LifecycleHooks++
	}
}

// addDrain counts what a drain waits for.
func (s *Summary) addDrain(drain *v1beta1.DrainStatus) {
	if r := drain.Replacement; r != nil && replacementPending(r) {
		s.ReplacementsPending++
		if r.StartTime != nil {
			earlier(&s.OldestReplacement, r.StartTime.Time)
		}
	}
	for i := range drain.Hooks {
		h := &drain.Hooks[i]
		if h.State == v1beta1.HookRunning {
			s.HooksRunning++
			earlier(&s.OldestHook, h.StartTime.Time)
		}
		if h.State == v1beta1.HookFailed && h.CompletionTime != nil {
			s.HooksFailed++
		}
	}
}

// addWaits counts what waits for a person or for facts.
func (s *Summary) addWaits(in *v1beta1.Interruption, now time.Time) {
	if since, waits := AwaitsApproval(in); waits {
		s.AwaitingApproval++
		earlier(&s.OldestApproval, since)
	}
	if Hold(in, now) != nil {
		s.OnHold++
	}
	if IsPaused(in) {
		s.Paused++
	}
	if meta.IsStatusConditionFalse(in.Status.Conditions, v1beta1.ConditionCorroborated) {
		s.Uncorroborated++
	}
}

func (s *Summary) addPods(in *v1beta1.Interruption) {
	counts := Drain(&in.Status).PodCounts
	s.PodsWaiting += int(counts.Waiting)
	s.PodsLeaving += int(counts.Leaving)
	d := in.Status.Deadline
	if d == nil {
		return
	}
	nearest := s.NearestDeadlines[d.Type]
	earlier(&nearest, d.Time.Time)
	s.NearestDeadlines[d.Type] = nearest
}

// AwaitsApproval reports whether an Interruption waits for a person's approval, and since when.
func AwaitsApproval(in *v1beta1.Interruption) (since time.Time, waits bool) {
	c := meta.FindStatusCondition(in.Status.Conditions, v1beta1.ConditionApproved)
	if in.Status.Phase != v1beta1.PhaseAwaitingApproval {
		return time.Time{}, false
	}
	if c == nil {
		return in.CreationTimestamp.Time, true
	}
	return c.LastTransitionTime.Time, true
}

// replacementPending reports whether a replacement is wanted and has no instance yet.
func replacementPending(r *v1beta1.ReplacementStatus) bool {
	switch r.Phase {
	case v1beta1.ReplacementQueued, v1beta1.ReplacementOrdered, v1beta1.ReplacementRetrying, v1beta1.ReplacementFailed:
		return true
	}
	return false
}

// earlier sets t to at if that is earlier, or if t is zero.
func earlier(t *time.Time, at time.Time) {
	if t.IsZero() || at.Before(*t) {
		*t = at
	}
}
