package nodegroup

import (
	"cmp"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// What hooks have where nothing is declared.
const (
	launchTimeout    = 10 * time.Minute
	terminateTimeout = 5 * time.Minute
	usualPatience    = 30 * time.Minute
)

// Hook is a lifecycle hook, as it is wanted or as it is.
type Hook struct {
	Name string
	// Terminating tells a hook of terminations from one of launches.
	Terminating bool
	// Timeout is how long it waits for an answer or a heartbeat, Global for how
	// long it can be extended in all; Global is zero where the hook is not there
	// yet.
	Timeout, Global time.Duration
	// Abandons tells whether no answer means ABANDON; otherwise it is CONTINUE.
	Abandons bool
	// Target is the ARN of the queue or topic that is told of it besides
	// EventBridge; empty: none.
	Target string
}

// Pool is a warm pool, as it is wanted or as it is.
type Pool struct {
	// State of its instances: Stopped, Running or Hibernated.
	State string
	Min   int32
	// MaxPrepared bounds instances in service and warm together; nil: by the
	// group's own largest size.
	MaxPrepared *int32
	Reuse       bool
	// Deleting is true while AWS takes it away.
	Deleting bool
}

// Wanted is how a group is wanted.
type Wanted struct {
	// Object is the name of the NodeGroup, Group that of the Auto Scaling group,
	// and Cluster what the cluster is called; empty: not known.
	Object, Group, Cluster string

	Management v1alpha1.Management
	// Launch and Terminate are the two hooks, with their defaults filled in.
	Launch, Terminate Hook
	// Patience bounds for how long a launch is extended.
	Patience time.Duration
	// Pool is nil where none is declared.
	Pool *Pool
	// Spec is what was declared.
	Spec v1alpha1.NodeGroupSpec
}

// Name is the name of the Auto Scaling group that a NodeGroup stands for.
func Name(o *v1alpha1.NodeGroup) string { return cmp.Or(o.Spec.AutoScalingGroup, o.Name) }

// HookNames are the names of the hooks of a NodeGroup that Lifeboat answers.
func HookNames(o *v1alpha1.NodeGroup) (launch, terminate string) {
	w := Want(o, "")
	return w.Launch.Name, w.Terminate.Name
}

// Want reads what a NodeGroup declares, in a cluster of this name; empty: not
// known.
func Want(o *v1alpha1.NodeGroup, cluster string) Wanted {
	s := o.Spec
	w := Wanted{
		Object: o.Name, Group: Name(o), Cluster: cluster, Management: cmp.Or(s.Management, v1alpha1.ManageNothing), Spec: s,
		Launch:    wantHook(s.Hooks.Launch, Hook{Name: v1alpha1.LaunchHook, Timeout: launchTimeout, Abandons: true}),
		Terminate: wantHook(s.Hooks.Terminate, Hook{Name: v1alpha1.TerminateHook, Terminating: true, Timeout: terminateTimeout, Abandons: s.RetainUndrained != nil && *s.RetainUndrained}),
		Patience:  usualPatience,
	}
	if h := s.Hooks.Launch; h != nil && h.PatienceSeconds > 0 {
		w.Patience = time.Duration(h.PatienceSeconds) * time.Second
	}
	if p := s.WarmPool; p != nil {
		w.Pool = &Pool{State: cmp.Or(p.State, "Stopped"), Min: p.MinSize, MaxPrepared: p.MaxPreparedCapacity, Reuse: p.ReuseOnScaleIn}
	}
	return w
}

// wantHook fills the defaults into what is declared of a hook.
func wantHook(declared *v1alpha1.LifecycleHook, usual Hook) Hook {
	if declared == nil {
		return usual
	}
	usual.Name = cmp.Or(declared.Name, usual.Name)
	if declared.TimeoutSeconds > 0 {
		usual.Timeout = time.Duration(declared.TimeoutSeconds) * time.Second
	}
	if declared.OnTimeout != "" {
		usual.Abandons = declared.OnTimeout == resultAbandon
	}
	return usual
}

// timeoutDeclared tells whether the timeout of a hook was written down, and not
// only filled in.
func (w Wanted) timeoutDeclared(terminating bool) bool {
	h := w.Spec.Hooks.Launch
	if terminating {
		h = w.Spec.Hooks.Terminate
	}
	return h != nil && h.TimeoutSeconds > 0
}

// What a hook does without an answer (EC2 Auto Scaling API Reference,
// PutLifecycleHook).
const (
	resultAbandon  = "ABANDON"
	resultContinue = "CONTINUE"
)

func (h Hook) result() string {
	if h.Abandons {
		return resultAbandon
	}
	return resultContinue
}

// transition is what Auto Scaling calls what the hook holds instances in.
func (h Hook) transition() string {
	if h.Terminating {
		return "autoscaling:EC2_INSTANCE_TERMINATING"
	}
	return "autoscaling:EC2_INSTANCE_LAUNCHING"
}

// kind names it for people.
func (h Hook) kind() string {
	if h.Terminating {
		return "terminate hook"
	}
	return "launch hook"
}
