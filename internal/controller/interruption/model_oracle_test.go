package interruption

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/model"
)

// decision is what policy says of an instance, to who sees all.
func (b *books) decision(instance string) (policy.Decision, bool) {
	in := b.recordOf(instance)
	if in == nil {
		return policy.Decision{}, false
	}
	d, ok := b.decide(anew(in), b.run.c.Now())
	if ok && b.run.group != nil {
		d = goesOn(&facts{in: in, was: anew(in).Status, now: b.run.c.Now()}, d)
	}
	return d, ok
}

// anew is a record that is over as it is once a new notice opens it again.
func anew(in *v1alpha1.Interruption) *v1alpha1.Interruption {
	in = in.DeepCopy()
	if done := in.Status.CompletionTime; done != nil {
		in.Status = v1alpha1.InterruptionStatus{Since: done, Answered: in.Status.Answered}
	}
	return in
}

func (b *books) decide(in *v1alpha1.Interruption, at time.Time) (policy.Decision, bool) {
	var (
		node     *corev1.Node
		policies []v1alpha1.InterruptionPolicy
	)
	for _, n := range b.nodes() {
		if instanceOf(n) == in.Name {
			node = n
		}
	}
	b.run.Each("InterruptionPolicy", func(o client.Object) {
		if p, ok := o.(*v1alpha1.InterruptionPolicy); ok {
			policies = append(policies, *p)
		}
	})
	return policy.Decide(record.Facts(in, node, policies, at))
}

// free returns when what is decided may begin, at a moment or later, had it not
// begun before; zero: never.
func (b *books) free(in *v1alpha1.Interruption, at time.Time) time.Time {
	in = anew(in)
	in.Status.Conditions = nil
	record.EnsureDrain(&in.Status).StartTime = nil
	for range 10 {
		d, ok := b.decide(in, at)
		switch {
		case !ok:
			return time.Time{}
		case d.AwaitsApproval:
			at = d.ProceedsAt
		case d.NotBefore.After(at):
			at = d.NotBefore
		default:
			return at
		}
		if at.IsZero() {
			return at
		}
	}
	return time.Time{}
}

// budget says what is wrong if a node is marked now although policy lets no more
// of its nodes be drained; empty where nothing is.
func (b *books) budget(instance string) string {
	d, ok := b.decision(instance)
	if !ok || !modelDrains(d) || hard(d) || d.Budget == nil {
		return ""
	}
	taken, selected := 0, 0
	b.run.Each("Interruption", func(o client.Object) {
		if in, ok := o.(*v1alpha1.Interruption); ok && in.Name != instance && b.takes(in, d.Governor) {
			taken++
		}
	})
	p, _ := b.run.Get(model.Key{Kind: "InterruptionPolicy", Name: d.Governor}).(*v1alpha1.InterruptionPolicy)
	for _, n := range b.nodes() {
		if p != nil && policy.Selects(p, n) {
			selected++
		}
	}
	if most := policy.Share(d.Budget.MaxConcurrent, selected); taken >= most {
		return fmt.Sprintf("the budget of %s is %d, and %d are being drained", d.Governor, most, taken)
	}
	return ""
}

// takes reports whether a record's node is one of those that its policy has being
// drained.
func (b *books) takes(in *v1alpha1.Interruption, governor string) bool {
	d := in.Status.Decision
	return d != nil && d.Governor == governor && record.Drains(d.Action) && !notice.Finished(in) && !b.inst(in.Name).cordoned.IsZero() &&
		!meta.IsStatusConditionTrue(in.Status.Conditions, v1alpha1.ConditionDrained)
}

// hard reports whether a decision has a deadline that nobody can move.
func hard(d policy.Decision) bool {
	return d.Deadline != nil && d.Deadline.Type != v1alpha1.DeadlineSoft
}

func modelDrains(d policy.Decision) bool {
	return !d.Withdrawn && (d.Action == v1alpha1.ActionDrain || d.Action == v1alpha1.ActionTerminate)
}
