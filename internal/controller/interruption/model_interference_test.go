package interruption

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/model"
)

// change is a change of a node by others.
func (b *bookkeeping) change(name string, do func(*corev1.Node)) {
	n := b.run.Node(name)
	if n == nil {
		return
	}
	b.run.note("node changed by others: %s", name)
	do(b.as[name])
	n = n.DeepCopy()
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	do(n)
	b.run.Put(n)
}

// deleteRecord deletes the record of a node.
func (b *bookkeeping) deleteRecord(name string) {
	n := b.run.Node(name)
	if n == nil {
		return
	}
	k := model.Key{Kind: "Interruption", Name: instanceOf(n)}
	if b.run.Get(k) == nil {
		return
	}
	b.run.note("record deleted by others: %s", name)
	b.inst(k.Name).deletedAt = b.run.c.Now()
	b.run.Remove(k)
}

func (b *bookkeeping) powerOff(name, instance string) {
	if n := b.run.Node(name); n == nil || instanceOf(n) != instance || !b.inst(instance).off.IsZero() {
		return
	}
	b.run.note("%s (%s) is off", name, instance)
	if b.run.group != nil {
		b.run.group.checkAsked(name, instance)
	}
	b.inst(instance).off = b.run.c.Now()
	b.run.PowerOff(name)
}

// terminated ends an instance, after a request to the cloud.
func (b *bookkeeping) terminated(instance string) {
	i := b.inst(instance)
	i.terminated, i.ended = b.run.c.Now(), true
	b.terminations++
	b.run.c.After(b.run.c.Between(5*time.Second, 30*time.Second), "power", func() { b.powerOff(i.node, instance) })
	b.run.c.After(b.run.c.Between(time.Minute, 3*time.Minute), "node", func() {
		if n := b.run.Node(i.node); n != nil && instanceOf(n) == instance {
			b.run.RemoveNode(i.node)
		}
	})
}

// uncordon makes a node schedulable.
func (b *bookkeeping) uncordon(name string) {
	n := b.run.Node(name)
	if n == nil || !n.Spec.Unschedulable {
		return
	}
	n = n.DeepCopy()
	n.Spec.Unschedulable = false
	b.run.note("uncordoned by others: %s", name)
	b.inst(instanceOf(n)).uncordoned = true
	b.run.Put(n)
}

// setStatement changes the approval or hold of a node's record.
func (b *bookkeeping) setStatement(name string, what func(*v1beta1.Interruption, v1beta1.UserAction)) {
	n := b.run.Node(name)
	if n == nil {
		return
	}
	d, ok := b.decision(instanceOf(n))
	if !ok {
		return
	}
	in := b.recordOf(instanceOf(n)).DeepCopy()
	what(in, v1beta1.UserAction{By: "ann", Time: metav1.NewMicroTime(b.run.c.Now()), About: subjectOf(d.notice)})
	b.run.note("statement about %s: approval %v, hold %v", name, in.Spec.Approval, in.Spec.Hold)
	b.run.Put(in)
}

func approves(in *v1beta1.Interruption, s v1beta1.UserAction) { in.Spec.Approval = &s }

func releases(in *v1beta1.Interruption, _ v1beta1.UserAction) { in.Spec.Hold = nil }

func holdsFor(d time.Duration) func(*v1beta1.Interruption, v1beta1.UserAction) {
	return func(in *v1beta1.Interruption, s v1beta1.UserAction) {
		until := metav1.NewTime(s.Time.Add(d).Truncate(time.Second))
		s.Until, s.About = &until, ""
		in.Spec.Hold = &s
	}
}
