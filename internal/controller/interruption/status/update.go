// Package status builds and writes the status of an Interruption: phase, conditions,
// the pods that have to leave, the timeline, and the Kubernetes Events for it.
package status

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/corroborate"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// Update collects what a pass found. It is written at the end of the pass, and before
// calls that must not repeat.
type Update struct {
	now time.Time
	// before is the object as it was read, and after each write as it was written.
	before *v1beta1.Interruption
	after  *v1beta1.Interruption
	// was is the status that the pass observed. Unlike before it has no status of an
	// interruption that was completed earlier.
	was  v1beta1.InterruptionStatus
	node *corev1.Node
	// pass is nil until SetDecision was called.
	pass *Pass
	// entries is the timeline as read; events are those of this pass that are not
	// written yet, and writtenEvents those that are.
	entries               []v1beta1.TimelineEntry
	events, writtenEvents []event
	// timelineDirty is set while the timeline lacks an event of this pass.
	timelineDirty bool
	// material is set where a later pass cannot recompute the change, so that its
	// write must not be deferred.
	material bool
	written  bool
	// markedEvicted are the entries of the pods that this pass reported as evicted, as
	// they were before.
	markedEvicted map[types.UID]v1beta1.PodStatus
	departed      []v1beta1.PodStatus
	// podEvents are events about pods that are not in the timeline yet.
	podEvents []podEvent
	// moved and lost count the pods that this pass found to be so.
	moved, lost int
}

// Pass is what a pass observed and decided.
type Pass struct {
	Interruption *v1beta1.Interruption
	// Node is nil where the instance has none.
	Node     *corev1.Node
	NodeName string
	Decision policy.Decision
	// Postponed is set where something was done to the node, and what decides would not have begun yet:
	// the node has to be restored.
	Postponed bool
	Pods      Pods
}

// Pods is what a pass knows about the pods of the node.
type Pods struct {
	Plan drain.Plan
	// GoneAt returns when a pod was first missed; zero: unknown.
	GoneAt func(types.UID) time.Time
	// Known is false until the pods are listed.
	Known       bool
	Gates       []drain.Gate
	Replacement *v1beta1.ReplacementStatus
}

// Outcome is what the steps of a pass did.
type Outcome struct {
	// Node is nil where the instance has no node any more.
	Node *corev1.Node
	// Marked is set once the node carries the mark that the decision wants, and
	// MarkedAt is when, as far as this process knows.
	Marked   mutate.Mark
	MarkedAt time.Time
	// Begun is set where that mark is on a node: without a node nothing begins.
	Begun bool
	// Evicted are the verdicts that were carried out now.
	Evicted []drain.Verdict
	// NotEvicted are the pods whose eviction failed, with the reason.
	NotEvicted map[types.UID]Refusal
	// Waits is a sentence about what the whole Interruption waits for.
	Waits string
	// Stage is the phase before anything was done to the node: AwaitingApproval or
	// Queued; empty otherwise.
	Stage v1beta1.Phase
	// Rescheduled is set once a node whose drain had begun was restored, because the
	// deadline was moved.
	Rescheduled bool
	// Released is set once a drain that policy has ended is undone.
	Released bool
	// Hooks is the progress of the hooks; nil where no hook was run.
	Hooks []v1beta1.HookStatus
	// Paused says which pause stops the action; empty: none does.
	Paused string
	// Terminated is set once the termination of the instance was requested in this pass.
	Terminated bool
	// Uncorroborated is why something irreversible waits; nil: nothing does.
	Uncorroborated *corroborate.Verdict
	// Drained is set once no pod is left that has to leave.
	Drained bool
	// Abandoned is set where pods are left whose kubelet is dead: they are not waited for.
	Abandoned bool
	// SurgesUndone is how many pods were given back to their ReplicaSet.
	SurgesUndone int
	// Restored is set once a node that lives is as it was.
	Restored bool
	// Answered is the key of a notice that was handled while others stand.
	Answered string
	// KeepsDrain is set where the drain serves another notice than the one that was handled: it goes on.
	KeepsDrain bool
	// Completed is set once nothing is left to do.
	Completed bool
}

// Refusal is why a pod was not asked to leave.
type Refusal struct {
	Reason  v1beta1.PodReason
	Message string
}

// Refuse notes why a pod was not asked to leave.
func (o *Outcome) Refuse(pod types.UID, reason v1beta1.PodReason, message string) {
	if o.NotEvicted == nil {
		o.NotEvicted = map[types.UID]Refusal{}
	}
	o.NotEvicted[pod] = Refusal{reason, message}
}

// NewUpdate begins the update of an Interruption. It writes into the object. A notice
// that comes after an earlier interruption of the same instance was completed begins a
// new one.
func NewUpdate(in *v1beta1.Interruption, now time.Time) *Update {
	u := &Update{now: now, before: in.DeepCopy(), after: in, markedEvicted: map[types.UID]v1beta1.PodStatus{}}
	u.entries = u.before.Status.Timeline
	if in.Status.CompletionTime != nil {
		in.Status = v1beta1.InterruptionStatus{Timeline: in.Status.Timeline, LastNoticeID: in.Status.LastNoticeID, History: in.Status.History}
		u.Record(v1beta1.ReasonReopened, "a new notice came after the earlier interruption was over")
	}
	u.was = *in.Status.DeepCopy()
	return u
}

// Status is the status that is being built.
func (u *Update) Status() *v1beta1.InterruptionStatus { return &u.after.Status }

// Drain is the drain of the status that is being built.
func (u *Update) Drain() *v1beta1.DrainStatus { return record.EnsureDrain(&u.after.Status) }

// Changed reports whether the status differs from the one that was written.
func (u *Update) Changed() bool {
	return !equality.Semantic.DeepEqual(u.before.Status, u.after.Status)
}

// Discard leaves the change to the next pass.
func (u *Update) Discard() {
	u.after, u.events, u.timelineDirty, u.material = u.before.DeepCopy(), nil, false, false
}

// SetDecision notes the decision and the state of the pods.
func (u *Update) SetDecision(p Pass) {
	u.node, u.pass = p.Node, &p
	s, d := &u.after.Status, &p.Decision
	u.recordNotices(p.Interruption)
	u.pruneHandled()
	if s.Decision == nil || !sameDecision(*s.Decision, d.Decision) {
		u.Record(v1beta1.ReasonDecided, d.Message)
	}
	decision := d.Decision // its message may have changed
	s.Decision = &decision
	s.Kind, s.NodeName = u.kind(), p.NodeName
	if !p.Postponed { // else it is set once the node is restored
		s.Deadline = d.Deadline
	}
	if d.Withdrawn && s.Drain != nil {
		s.Drain.Pods = slices.DeleteFunc(s.Drain.Pods, func(p v1beta1.PodStatus) bool { return record.IsPending(&p) })
	}
	u.setApproval(p.Interruption)
	u.SetPods(p.Pods)
}

// kind is the kind that the Interruption is named by. An instance that is reclaimed or ended changes its
// state afterwards: that notice decides then, and it is not what began the drain. After a completion it
// still follows if the node is gone.
func (u *Update) kind() string {
	was, d := &u.before.Status, &u.pass.Decision
	follows := d.Notice.Kind == notice.KindInstanceStateChange && was.Decision != nil && record.Drains(was.Decision.Action) &&
		(was.CompletionTime == nil || u.node == nil)
	if follows && was.Kind != "" {
		return was.Kind
	}
	return d.Notice.Kind
}

// SetPods notes the state of the pods.
func (u *Update) SetPods(p Pods) {
	u.pass.Pods = p
	if record.Drains(u.pass.Decision.Action) && p.Known {
		u.SetReplacement(p.Replacement)
		u.settlePods()
		u.listPods()
	}
}

func sameDecision(a, b v1beta1.Decision) bool {
	return a.Action == b.Action && a.Policy == b.Policy && a.Rule == b.Rule &&
		a.EffectivePolicy == b.EffectivePolicy && a.Strategy == b.Strategy && a.Replacement == b.Replacement
}

// recordNotices adds a timeline entry for each notice that has none.
func (u *Update) recordNotices(in *v1beta1.Interruption) {
	notices, s := in.Spec.Notices, &u.after.Status
	first := 0
	if s.LastNoticeID != "" {
		first = max(0, len(notices)-1) // where a later notice replaced the last one
	}
	for i := range notices {
		if notices[i].ID == s.LastNoticeID {
			first = i + 1
		}
	}
	for _, n := range notices[first:] {
		reason, text := v1beta1.ReasonNoticeReceived, n.Kind+" by "+n.Source
		if n.Withdrawn {
			reason, text = v1beta1.ReasonWithdrawn, n.Kind+" withdrawn by "+n.Source
		}
		if n.Description != "" {
			text += ": " + n.Description
		}
		u.RecordAt(n.ReceivedTime.Time, reason, text)
		s.LastNoticeID = n.ID
		u.material = u.material || n.LifecycleHook != nil // package lifecyclehook waits for the decision
	}
}

// Apply notes what the steps did.
func (u *Update) Apply(o Outcome) {
	if u.pass == nil {
		return
	}
	u.pass.Node = o.Node
	if o.Hooks != nil {
		u.Drain().Hooks, u.material = o.Hooks, true
	}
	u.applyEndings(o)
	u.applyEvictions(o)
	u.CountPods()
	u.setConditions(o)
	u.flushPodEvents()
	u.recordEndings(o)
	done := o.Completed && u.after.Status.CompletionTime == nil
	if done {
		at := MicroTime(u.now)
		u.after.Status.CompletionTime = &at
		u.Record(v1beta1.ReasonCompleted, u.summary())
	}
	u.after.Status.Phase = phase(&u.after.Status, o.Stage, u.pass.Decision.Withdrawn, u.pass.Node != nil, u.now)
	if done {
		u.complete()
	}
}

// MicroTime is a time of the API with microseconds.
func MicroTime(t time.Time) metav1.MicroTime {
	return metav1.NewMicroTime(t.Truncate(time.Microsecond))
}

// Now is the time of the pass.
func (u *Update) Now() time.Time { return u.now }
