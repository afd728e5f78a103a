package interruption

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// report collects what a pass found, to be written once at its end.
type report struct {
	now    time.Time
	before *v1alpha1.Interruption
	after  *v1alpha1.Interruption
	node   *corev1.Node
	// older is the timeline as read; happened are the events of this pass, in order.
	older    []v1alpha1.TimelineEntry
	happened []happening
	// isNews is set while the timeline lacks an event of this pass.
	isNews bool
	// material is set where the change cannot be recomputed by a later pass, so that
	// its write must not be deferred.
	material bool
	// durable are the events that are written, and written is set after any write.
	durable []happening
	written bool
	// told are the entries of pods that this pass reported as evicted, as they were
	// before.
	told map[types.UID]v1alpha1.PendingPod
	// untold are events about pods that are not in the timeline yet.
	untold []untold
	// moved and lost count the pods that this pass found to be so.
	moved, lost int
	// seen is nil until decided was called.
	seen *seen
}

// seen is what decided and reached hand to each other.
type seen struct {
	facts    *facts
	decision policy.Decision
	plan     drain.Plan
}

// begin remembers the object as it was read.
func begin(in *v1alpha1.Interruption, now time.Time) *report {
	r := &report{now: now, before: in.DeepCopy(), after: in}
	r.older = r.before.Status.Timeline
	if done := in.Status.CompletionTime; done != nil {
		in.Status = v1alpha1.InterruptionStatus{Since: done, Timeline: in.Status.Timeline, LastNoticeID: in.Status.LastNoticeID, Answered: in.Status.Answered}
		r.happen(v1alpha1.ReasonReopened, "a new notice came after the earlier interruption was over")
	}
	return r
}

// drain returns the drain of the status that is about to be written.
func (r *report) drain() *v1alpha1.DrainStatus { return record.EnsureDrain(&r.after.Status) }

// endDrain removes all status of the drain: the node lives, or another drain begins.
func (r *report) endDrain() {
	s := &r.after.Status
	s.Drain = nil
	meta.RemoveStatusCondition(&s.Conditions, v1alpha1.ConditionReplaced)
	meta.RemoveStatusCondition(&s.Conditions, v1alpha1.ConditionDrained)
}

// pruneAnswered keeps of the handled notices those that the spec still has, which
// bounds the list as the CRD does.
func (r *report) pruneAnswered() {
	s := &r.after.Status
	s.Answered = slices.DeleteFunc(slices.Clone(s.Answered), func(id string) bool {
		return !slices.ContainsFunc(r.before.Spec.Notices, func(n v1alpha1.Notice) bool { return n.ID == id })
	})
}

// complete notes that nothing is left to do about any notice that this pass has read.
func (r *report) complete() {
	s, done := &r.after.Status, microTime(r.now)
	s.CompletionTime = &done
	for i := range r.before.Spec.Notices {
		if id := r.before.Spec.Notices[i].ID; !slices.Contains(s.Answered, id) {
			s.Answered = append(s.Answered, id)
		}
	}
	r.pruneAnswered()
}

// decided notes the decision, and the state of the pods.
func (r *report) decided(f *facts, d policy.Decision, plan drain.Plan) {
	r.node, r.seen = f.node, &seen{facts: f, decision: d, plan: plan}
	s := &r.after.Status
	r.noticed(f)
	r.pruneAnswered()
	if s.Decision == nil || !sameDecision(*s.Decision, d.Decision) {
		r.happen(v1alpha1.ReasonDecided, d.Message)
	}
	decision := d.Decision // its message may have changed
	s.Decision = &decision
	s.Kind, s.NodeName = d.Notice.Kind, f.nodeName
	if !f.postponed(d) { // else it is, once the node has been put back
		s.Deadline = d.Deadline
	}
	if d.Withdrawn && s.Drain != nil {
		s.Drain.PendingPods = nil
	}
	r.said(f, d)
	r.planned(f, d, plan)
}

// planned notes how the pods stand.
func (r *report) planned(f *facts, d policy.Decision, plan drain.Plan) {
	r.seen.plan = plan
	if record.Drains(d.Action) && f.podsKnown {
		r.replacement(f.replacing.status)
		r.settle(f, plan, d)
		r.list(f, plan, d)
	}
}

// noticed adds a timeline entry for each notice that was not there before.
func (r *report) noticed(f *facts) {
	notices, s := f.in.Spec.Notices, &r.after.Status
	first := 0
	if s.LastNoticeID != "" {
		first = max(0, len(notices)-1) // where later news has taken the place of the last one
	}
	for i := range notices {
		if notices[i].ID == s.LastNoticeID {
			first = i + 1
		}
	}
	for _, n := range notices[first:] {
		reason, text := v1alpha1.ReasonNoticeReceived, n.Kind+" by "+n.Source
		if n.Withdrawn {
			reason, text = v1alpha1.ReasonWithdrawn, n.Kind+" withdrawn by "+n.Source
		}
		if n.Description != "" {
			text += ": " + n.Description
		}
		r.happenAt(n.ReceivedTime.Time, reason, text)
		s.LastNoticeID = n.ID
	}
}

// untrusted says that a record is not acted on because only an agent of another
// node speaks of its instance, and lets it expire.
func (r *report) untrusted(f *facts) {
	trusted := notice.Unanswered(record.Trusted(f.in, f.node), f.was.Answered)
	if f.node == nil || slices.ContainsFunc(trusted, func(n v1alpha1.Notice) bool { return !n.Withdrawn }) {
		return
	}
	r.complete()
	r.node, r.after.Status.Phase = f.node, v1alpha1.PhaseIgnored
	text := fmt.Sprintf("the agent of node %s spoke of instance %s, which is node %s: not acted on", r.before.Spec.NodeName, r.before.Spec.InstanceID, f.node.Name)
	r.condition(v1alpha1.ConditionAccepted, false, v1alpha1.ReasonInvalid, text)
	r.happen(v1alpha1.ReasonInvalid, text)
}

func sameDecision(a, b v1alpha1.Decision) bool {
	return a.Action == b.Action && a.Policy == b.Policy && a.Rule == b.Rule &&
		a.Governor == b.Governor && a.Strategy == b.Strategy && a.Replacement == b.Replacement
}

// reached notes what the steps did.
func (r *report) reached(o outcome) {
	if r.seen == nil {
		return
	}
	if o.hooks != nil {
		r.drain().Hooks, r.material = o.hooks, true
	}
	if o.postponed {
		r.postponed(o)
	}
	if o.letGo {
		r.endDrain()
		r.condition(v1alpha1.ConditionCordoned, false, v1alpha1.ReasonPutBack, "what rules now does not drain the node")
	}
	r.asked(o)
	r.count()
	r.conditions(o)
	r.tellPods()
	if o.terminated {
		r.happen(v1alpha1.ReasonTerminated, "the cloud was asked to terminate the instance")
	}
	if o.undone > 0 {
		r.happen(v1alpha1.ReasonSurgeUndone, fmt.Sprintf("%d pods are their ReplicaSets' again", o.undone))
	}
	if o.putBack && !r.seen.decision.InstanceGone {
		r.happen(v1alpha1.ReasonPutBack, "the node is as it was before")
	}
	if o.answered != "" {
		r.endDrain()
		r.after.Status.Answered = append(r.after.Status.Answered, o.answered)
		r.happen(v1alpha1.ReasonAnswered, r.seen.decision.Notice.Kind+" is dealt with; another notice still stands")
	}
	if o.completed && r.after.Status.CompletionTime == nil {
		r.complete()
		r.happen(v1alpha1.ReasonCompleted, r.summary())
	}
	r.after.Status.Phase = phase(&r.after.Status, o.stage, r.seen.decision.Withdrawn, r.seen.facts.node != nil, r.now)
}

// postponed notes that a node whose drain had begun was put back.
func (r *report) postponed(o outcome) {
	r.after.Status.Deadline = r.seen.decision.Deadline
	r.endDrain()
	text := "the deadline has moved; the node is as it was before"
	if o.undone > 0 {
		text += fmt.Sprintf(", and %d pods are their ReplicaSets' again", o.undone)
	}
	r.condition(v1alpha1.ConditionCordoned, false, v1alpha1.ReasonPostponed, text)
	r.happen(v1alpha1.ReasonPostponed, text)
}

// summary says how it ended.
func (r *report) summary() string {
	pods := r.drain().Pods
	if d := r.after.Status.Decision; !record.Drains(d.Action) || len(r.after.Status.Conditions) > 0 &&
		meta.FindStatusCondition(r.after.Status.Conditions, v1alpha1.ConditionDrained) == nil {
		return "nothing is left to do"
	}
	text := fmt.Sprintf("%d of %d pods moved, %d lost", pods.Moved, pods.Total, pods.Lost)
	if a := r.after.Status.Answer; a != nil && a.Returns && a.CompletedTime != nil {
		text += "; the instance went back to the warm pool of group " + a.Group
	}
	return text
}

// drop leaves what was found to the next pass.
func (r *report) drop() {
	r.after, r.happened, r.isNews, r.material = r.before.DeepCopy(), nil, false, false
}

// close writes the status if it changed. Only after the write succeeds does it emit
// Events, metrics and logs. It returns when to write a deferred change; zero: there
// is none.
func (c *Controller) close(ctx context.Context, r *report) (flushAt time.Time, err error) {
	r.timeline()
	if at := c.deferUntil(r); at.After(r.now) {
		r.drop()
		flushAt = at
	} else {
		err = c.write(ctx, r)
	}
	if !r.written {
		return flushAt, err
	}
	for _, h := range mergePods(r.durable) {
		log.FromContext(ctx).Info("reported", "reason", h.Reason, "message", h.Message)
		c.emit(r, h)
	}
	c.Metrics.report(r)
	return flushAt, err
}

// write writes the status if it changed by more than a correction that can ride with
// the next change. It is the one place where the status of an Interruption in work is
// written.
func (c *Controller) write(ctx context.Context, r *report) error {
	r.timeline()
	if d := r.after.Status.Drain; d != nil && equality.Semantic.DeepEqual(*d, v1alpha1.DrainStatus{}) {
		r.after.Status.Drain = nil
	}
	if isNegligible(&r.before.Status, &r.after.Status) {
		return nil
	}
	version, err := c.patchStatus(ctx, r.before, &r.after.Status)
	if err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	if version != r.before.ResourceVersion { // else the API server found no change
		c.records.replaced(r.before.Name, r.before.ResourceVersion, r.now)
	}
	r.before.ResourceVersion = version
	r.after.Status.DeepCopyInto(&r.before.Status)
	r.after, r.written, r.material = r.before.DeepCopy(), true, false
	r.durable, r.happened = append(r.durable, r.happened...), nil
	return nil
}

// patchStatus writes the status of an Interruption that has not changed since it was
// read, and returns its new version. A JSON patch (RFC 6902) replaces the status as a
// whole, which costs the API server less than a merge patch. The response is metadata
// only.
func (c *Controller) patchStatus(ctx context.Context, in *v1alpha1.Interruption, status *v1alpha1.InterruptionStatus) (version string, err error) {
	patch, err := json.Marshal([]any{
		map[string]any{"op": "replace", "path": "/metadata/resourceVersion", "value": in.ResourceVersion}, // else: a conflict
		map[string]any{"op": "add", "path": "/status", "value": status},
	})
	if err != nil {
		return "", fmt.Errorf("writing the status as JSON: %w", err)
	}
	answer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: in.Name}}
	answer.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Interruption"))
	if err := c.Client.Status().Patch(ctx, answer, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return "", err
	}
	return answer.ResourceVersion, nil
}
