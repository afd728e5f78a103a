package outofservice

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/corroborate"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// facts are what the decision about one Node depends on.
type facts struct {
	enabled bool
	now     time.Time
	node    *corev1.Node
	// nodes are all Nodes that state the same instance, the Node itself included.
	nodes int
	// record is the Interruption of the instance; nil: there is none.
	record *v1beta1.Interruption
	pauses []v1beta1.Pause
}

// step is what to do next.
type step string

const (
	leave  step = "leave"  // nothing, until something changes
	wait   step = "wait"   // nothing, and look again
	ask    step = "ask"    // ask EC2, which decides
	remove step = "remove" // remove the taint
)

// next decides what to do before EC2 is asked. EC2 is asked before the taint is set, and while it
// is there: a DaemonSet's pod may not tolerate it, and could then not make the Node Ready.
func (f facts) next() step {
	instance := nodeindex.InstanceID(f.node)
	of, ours := mutate.IsOutOfService(f.node)
	switch {
	case ours && (!f.enabled || of != instance || nodeindex.Ready(f.node) || !mutate.HasOutOfServiceTaint(f.node)):
		return remove
	case ours:
		return ask
	case !f.enabled, instance == "", nodeindex.Ready(f.node), !f.node.DeletionTimestamp.IsZero(),
		mutate.HasOutOfServiceTaint(f.node), // a person's
		f.record == nil, !isReal(f.record):
		return leave
	case f.nodes != 1, record.Hold(f.record, f.now) != nil, f.paused(), f.ignored():
		return wait
	}
	return ask
}

// isReal reports whether a notice counts that is no drill. A drill alone taints no Node.
func isReal(in *v1beta1.Interruption) bool {
	return slices.ContainsFunc(in.Spec.Notices, func(n v1beta1.Notice) bool { return !n.Withdrawn && !n.Drill })
}

func (f facts) paused() bool {
	p := record.PauseOf(f.pauses, f.node, f.now)
	return p != nil && record.StopsEverything(p)
}

func (f facts) ignored() bool {
	d := f.record.Status.Decision
	return d != nil && d.Action == v1beta1.ActionIgnore
}

// patience is when to look again: while the interruption is under way the instance may be gone
// at any moment.
func (f facts) patience() time.Duration {
	if f.record != nil && !notice.Finished(f.record) && !mutate.HasOutOfServiceTaint(f.node) {
		return lookSoon
	}
	return lookLater
}

// confirmed decides whether a Node may get the taint, from the Node as the API server has it now
// and the instance as EC2 describes it. EC2 gives no name or address of a terminated instance, so
// that their comparison may be unknown; it must not differ.
func confirmed(node *corev1.Node, i *cloud.Instance) corroborate.Verdict {
	if nodeindex.Ready(node) {
		return corroborate.Verdict{Answer: corroborate.Differ, Why: "its kubelet reports Ready"}
	}
	if v := corroborate.PoweredOff(i); !v.Agrees() {
		return v
	}
	if v := corroborate.Node(node, i); v.Answer == corroborate.Differ || v.Answer == corroborate.Unknown && i.State != "terminated" {
		return v
	}
	return corroborate.Verdict{Answer: corroborate.Agree}
}
