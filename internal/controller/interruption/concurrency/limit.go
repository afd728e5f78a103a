// Package concurrency limits how many nodes are drained or terminated at the same time,
// where policy does. The controller and the CLI count with the same code.
package concurrency

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// Limit is how many Interruptions may use a slot at the same time.
type Limit struct {
	// Key identifies the limit.
	Key string
	// Max is a number, or a percentage of the nodes that Includes selects.
	Max      intstr.IntOrString
	Includes func(*corev1.Node) bool
	// uses reports whether an Interruption that is not finished uses a slot, and
	// waitsFor whether it waits for one.
	uses, waitsFor func(*v1beta1.Interruption) bool
	// message says what is waited for.
	message func(used, limit int) string
}

// Budget is the budget of the policy that governs a decision; nil: it has none.
func Budget(d *policy.Decision, policies []v1beta1.InterruptionPolicy) *Limit {
	if d.Budget == nil {
		return nil
	}
	effectivePolicy, hooks := d.EffectivePolicy, d.Hooks
	var governing *v1beta1.InterruptionPolicy
	for i := range policies {
		if policies[i].Name == effectivePolicy {
			governing = &policies[i]
		}
	}
	same := func(in *v1beta1.Interruption) bool {
		return in.Status.Decision != nil && in.Status.Decision.EffectivePolicy == effectivePolicy
	}
	return &Limit{
		Key: "budget of " + effectivePolicy, Max: d.Budget.MaxConcurrent,
		Includes: func(n *corev1.Node) bool { return governing != nil && policy.Selects(governing, n) },
		uses:     func(in *v1beta1.Interruption) bool { return same(in) && record.Draining(&in.Status, hooks) },
		waitsFor: func(in *v1beta1.Interruption) bool { return same(in) && isQueued(in) },
		message: func(used, limit int) string {
			return fmt.Sprintf("waits for its turn: policy %s drains %s at a time, and %s being drained", effectivePolicy, nodes(limit), are(used))
		},
	}
}

// Terminations bounds forced terminations in the pool of a node; nil: the decision is
// not to terminate it. nodeOf returns the node of an Interruption, or nil.
func Terminations(d *policy.Decision, node *corev1.Node, nodeOf func(*v1beta1.Interruption) *corev1.Node) *Limit {
	if d.Action != v1beta1.ActionTerminate || node == nil {
		return nil
	}
	pool := policy.Pool(node)
	name := cmp.Or(pool, "the nodes of no pool")
	same := func(in *v1beta1.Interruption) bool {
		other, d := nodeOf(in), in.Status.Decision
		// The notice that the instance terminates replaces the decision, but the slot is
		// still used.
		chosen := record.Drain(&in.Status).TerminationTime != nil || d != nil && d.Action == v1beta1.ActionTerminate
		return chosen && other != nil && policy.Pool(other) == pool
	}
	return &Limit{
		Key: "terminations of " + name, Max: d.Terminations.MaxConcurrent,
		Includes: func(n *corev1.Node) bool { return policy.Pool(n) == pool },
		uses:     func(in *v1beta1.Interruption) bool { return same(in) && !record.Begun(&in.Status).IsZero() },
		waitsFor: func(in *v1beta1.Interruption) bool { return same(in) && isQueued(in) },
		message: func(used, limit int) string {
			return fmt.Sprintf("waits for its turn: %s of %s may be terminated at a time, and %s being terminated", nodes(limit), name, are(used))
		},
	}
}

// isQueued reports whether an Interruption waits for a slot. While several nodes state its instance,
// it takes none, and others do not wait for it.
func isQueued(in *v1beta1.Interruption) bool {
	doubt := meta.FindStatusCondition(in.Status.Conditions, v1beta1.ConditionCorroborated)
	return in.Status.Phase == v1beta1.PhaseQueued && (doubt == nil || doubt.Reason != v1beta1.ReasonNodeConflict)
}

// Of counts the nodes that a percentage refers to.
func (l *Limit) Of(all []corev1.Node) int {
	n := 0
	for i := range all {
		if l.Includes(&all[i]) {
			n++
		}
	}
	return n
}

// Used counts the Interruptions other than the named one that use a slot.
func (l *Limit) Used(all []v1beta1.Interruption, name string) int {
	used, _ := l.count(all, name, func(*v1beta1.Interruption) bool { return false })
	return used
}

// count returns how many Interruptions other than the named one use a slot or have
// reserved one, and which of them wait for one.
func (l *Limit) count(all []v1beta1.Interruption, name string, reserved func(*v1beta1.Interruption) bool) (used int, waiting []*v1beta1.Interruption) {
	for i := range all {
		in := &all[i]
		if in.Name == name || notice.Finished(in) {
			continue
		}
		switch {
		case l.uses(in), reserved(in):
			used++
		case l.waitsFor(in):
			waiting = append(waiting, in)
		}
	}
	return used, waiting
}

func nodes(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}

func are(n int) string {
	if n == 1 {
		return "1 is"
	}
	return fmt.Sprintf("%d are", n)
}
