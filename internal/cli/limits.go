package cli

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// limit is how many of so many nodes policy takes at a time, and how many it has.
type limit struct {
	// Says is the limit as the policy has it, such as 20%.
	Says string `json:"says"`
	// Of is how many nodes it is a share of, Nodes what that makes.
	Of    int `json:"of"`
	Nodes int `json:"nodes"`
	// Taken is how many are being drained, or terminated, now.
	Taken int `json:"taken"`
	// Counts is false where the deadline is hard and waits for nobody.
	Counts bool `json:"counts"`
}

// full reports whether the node would have to wait for its turn.
func (l *limit) full() bool { return l != nil && l.Counts && l.Taken >= l.Nodes }

func (l *limit) String() string {
	text := fmt.Sprintf("%d of %s at a time", l.Nodes, counted(l.Of, "node"))
	if strings.HasSuffix(l.Says, "%") {
		text = l.Says + ", which is " + text
	}
	if !l.Counts {
		return text + "; it does not count, since the deadline is hard"
	}
	return text + fmt.Sprintf(", and %d now", l.Taken)
}

// isHard reports whether nobody can move the deadline.
func isHard(d *v1alpha1.Deadline) bool { return notice.IsFirm(d) }

// budget is the governor's budget; nil where it has none.
func (w *observed) budget(d policy.Decision) *limit {
	if d.Budget == nil || !record.Drains(d.Action) {
		return nil
	}
	i := slices.IndexFunc(w.policy.Policies, func(p v1alpha1.InterruptionPolicy) bool { return p.Name == d.Governor })
	if i < 0 {
		return nil
	}
	l := &limit{Says: d.Budget.MaxConcurrent.String(), Counts: !isHard(d.Deadline)}
	for n := range w.nodes {
		if policy.Selects(&w.policy.Policies[i], &w.nodes[n]) {
			l.Of++
		}
	}
	l.Nodes = policy.Share(d.Budget.MaxConcurrent, l.Of)
	l.Taken = w.inWork(func(in *v1alpha1.Interruption) bool {
		return in.Status.Decision.Governor == d.Governor && record.Draining(&in.Status, d.Hooks)
	})
	return l
}

// terminations bounds forced terminations in the node's pool; nil where the
// action is another.
func (w *observed) terminations(d policy.Decision) *limit {
	if d.Action != v1alpha1.ActionTerminate || w.node == nil {
		return nil
	}
	pool := policy.Pool(w.node)
	inPool := func(n *corev1.Node) bool { return policy.Pool(n) == pool }
	l := &limit{Says: d.Terminations.MaxConcurrent.String(), Counts: !isHard(d.Deadline)}
	ids := map[string]bool{}
	for n := range w.nodes {
		if inPool(&w.nodes[n]) {
			id, _ := instanceOf(&w.nodes[n])
			ids[id] = true
			l.Of++
		}
	}
	l.Nodes = policy.Share(d.Terminations.MaxConcurrent, l.Of)
	l.Taken = w.inWork(func(in *v1alpha1.Interruption) bool {
		return in.Status.Decision.Action == v1alpha1.ActionTerminate && ids[in.Spec.InstanceID]
	})
	return l
}

// inWork counts the other records whose node is cordoned and of which it holds.
func (w *observed) inWork(holds func(*v1alpha1.Interruption) bool) int {
	n := 0
	for i := range w.records {
		in := &w.records[i]
		if in.Spec.InstanceID != w.instanceID() && in.Status.Decision != nil && !record.Begun(&in.Status).IsZero() && holds(in) {
			n++
		}
	}
	return n
}
