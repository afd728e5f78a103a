package interruption

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// decision is the oracle's verdict for an instance, given everything in the store.
func (b *bookkeeping) decision(instance string) (verdict, bool) {
	in := b.recordOf(instance)
	if in == nil {
		return verdict{}, false
	}
	return b.decide(reopenedCopy(in), b.run.c.Now())
}

// forgetHandled removes handled notices from the history of a record.
func forgetHandled(in *v1beta1.Interruption, which func(key string) bool) {
	in.Status.History = slices.Clone(in.Status.History)
	for i := range in.Status.History {
		e := &in.Status.History[i]
		e.HandledNotices = slices.DeleteFunc(slices.Clone(e.HandledNotices), which)
	}
}

// reopenedCopy is a completed record after a new notice has reopened it.
func reopenedCopy(in *v1beta1.Interruption) *v1beta1.Interruption {
	in = in.DeepCopy()
	if in.Status.CompletionTime != nil {
		in.Status = v1beta1.InterruptionStatus{History: in.Status.History}
	}
	return in
}

func (b *bookkeeping) decide(in *v1beta1.Interruption, at time.Time) (verdict, bool) {
	c := case_{record: in, node: b.nodeOf(in.Name), policies: b.policies(), now: at}
	v, ok := c.ask()
	if ok && b.run.group != nil {
		v = c.takenOut(v)
	}
	if b.run.compares {
		b.compare(c, v, ok)
	}
	return v, ok
}

func (b *bookkeeping) policies() (all []v1beta1.InterruptionPolicy) {
	b.run.Each("InterruptionPolicy", func(o client.Object) {
		if p, ok := o.(*v1beta1.InterruptionPolicy); ok {
			all = append(all, *p)
		}
	})
	return all
}

func (b *bookkeeping) nodeOf(instance string) *corev1.Node {
	for _, n := range b.nodes() {
		if instanceOf(n) == instance {
			return n
		}
	}
	return nil
}

// compare compares the oracle with the product.
func (b *bookkeeping) compare(c case_, v verdict, ok bool) {
	type answer struct {
		OK, Withdrawn, Gone, Awaits     bool
		Notice, Governor                string
		Action                          v1beta1.Action
		DeadlineType                    v1beta1.DeadlineType
		Deadline, NotBefore, ProceedsAt time.Time
		DoNotDisrupt                    v1beta1.DoNotDisrupt
	}
	oracle := answer{
		OK: ok, Withdrawn: v.withdrawn, Gone: v.instanceGone, Awaits: v.awaits, Notice: v.notice.ID,
		Action: v.action, NotBefore: v.notBefore.UTC(), ProceedsAt: v.proceedsAt.UTC(), DoNotDisrupt: v.worth(),
	}
	if v.effectivePolicy != nil {
		oracle.Governor = v.effectivePolicy.Name
	}
	if v.deadline != nil {
		oracle.Deadline, oracle.DeadlineType = v.deadline.Time.UTC(), v.deadline.Type
	}
	d, decided := policy.Decide(record.Facts(c.record, c.node, c.policies, c.now))
	if decided && b.run.group != nil {
		d = forceDrainDetached(&facts{in: c.record, was: c.record.Status, now: c.now}, d)
	}
	product := answer{
		OK: decided, Withdrawn: d.Withdrawn, Gone: d.InstanceGone, Awaits: d.AwaitsApproval, Notice: d.Notice.ID, Governor: d.EffectivePolicy,
		Action: d.Action, NotBefore: d.NotBefore.UTC(), ProceedsAt: d.ProceedsAt.UTC(), DoNotDisrupt: d.DoNotDisrupt,
	}
	if d.Deadline != nil {
		product.Deadline, product.DeadlineType = d.Deadline.Time.UTC(), d.Deadline.Type
	}
	if !ok || v.withdrawn { // nothing else is defined then
		product = answer{OK: decided, Withdrawn: d.Withdrawn}
		oracle = answer{OK: ok, Withdrawn: v.withdrawn && ok}
	}
	if ok && v.notice.ID == "" { // it was detached, and all its notices are withdrawn: none decides
		product.Notice = ""
	}
	b.compared++
	if oracle != product {
		diff := cmp.Diff(oracle, product)
		b.run.fail("oracle and product disagree about %s at %s (-oracle +product):\n%s\nnotices %+v\npolicies %+v\nstatus %+v",
			c.record.Name, b.at(c.now), diff, c.record.Spec.Notices, c.policies, c.record.Status)
	}
}

// worth is the effective do-not-disrupt mode.
func (v *verdict) worth() v1beta1.DoNotDisrupt {
	if v.rule.DoNotDisrupt == "" {
		return v1beta1.DoNotDisruptUntilLastCall
	}
	return v.rule.DoNotDisrupt
}

// earliestStart returns when the action may begin, at or after a time, if it has not begun; zero: never.
func (b *bookkeeping) earliestStart(in *v1beta1.Interruption, at time.Time) time.Time {
	in = reopenedCopy(in)
	in.Status.Conditions = nil
	if in.Status.Drain != nil {
		in.Status.Drain.StartTime = nil
	}
	history := in.Status.History
	for range 10 {
		in.Status.History = history
		forgetHandled(in, func(id string) bool { return decidesUntil(in, id).After(at) })
		v, ok := b.decide(in, at)
		switch {
		case !ok:
			return time.Time{}
		case !v.drains() && decidesUntil(in, v.notice.ID).After(at):
			at = decidesUntil(in, v.notice.ID)
		case v.awaits:
			at = v.proceedsAt
		case v.notBefore.After(at):
			at = v.notBefore
		default:
			return at
		}
		if at.IsZero() {
			return at
		}
	}
	return time.Time{}
}

// decidesUntil is until when a notice with a firm deadline may decide, with or without an effect: ten
// minutes after its deadline. It is zero for other notices.
func decidesUntil(in *v1beta1.Interruption, id string) time.Time {
	for _, n := range in.Spec.Notices {
		if n.ID == id && firm(n.Deadline) {
			return n.Deadline.Time.Add(10 * time.Minute)
		}
	}
	return time.Time{}
}

// budgetViolation returns what is wrong if a node is marked now although the policy's budgetViolation is used up;
// empty if it is not.
func (b *bookkeeping) budgetViolation(instance string) string {
	v, ok := b.decision(instance)
	if !ok || !v.drains() || firm(v.deadline) || v.effectivePolicy == nil || v.effectivePolicy.Spec.Budget == nil {
		return ""
	}
	taken, selected := 0, 0
	b.run.Each("Interruption", func(o client.Object) {
		if in, ok := o.(*v1beta1.Interruption); ok && in.Name != instance && b.usesSlot(in, v.effectivePolicy.Name) {
			taken++
		}
	})
	for _, n := range b.nodes() {
		if selects(v.effectivePolicy, n) {
			selected++
		}
	}
	if most := share(v.effectivePolicy.Spec.Budget, selected); taken >= most {
		return fmt.Sprintf("the budget of %s is %d, and %d are being drained", v.effectivePolicy.Name, most, taken)
	}
	return ""
}

// usesSlot reports whether a record's node uses a slot of its policy's budget.
func (b *bookkeeping) usesSlot(in *v1beta1.Interruption, effectivePolicy string) bool {
	d := in.Status.Decision
	return d != nil && d.EffectivePolicy == effectivePolicy && (d.Action == v1beta1.ActionDrain || d.Action == v1beta1.ActionTerminate) &&
		in.Status.CompletionTime == nil && !b.inst(in.Name).cordoned.IsZero() &&
		!meta.IsStatusConditionTrue(in.Status.Conditions, v1beta1.ConditionDrained)
}
