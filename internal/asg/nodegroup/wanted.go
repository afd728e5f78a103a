package nodegroup

import (
	"cmp"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// Defaults of the hooks.
const (
	launchTimeout    = 10 * time.Minute
	terminateTimeout = 5 * time.Minute
	usualPatience    = 30 * time.Minute
)

// Hook is a lifecycle hook, wanted or observed.
type Hook struct {
	Name string
	// Terminating is true for a hook of terminations, false for one of
	// launches.
	Terminating bool
	// Timeout is how long it waits for completion or a heartbeat. Global is the
	// limit including heartbeats, zero if the hook does not exist yet.
	Timeout, Global time.Duration
	// Abandons is true if a timeout means ABANDON; otherwise it means CONTINUE.
	Abandons bool
	// Target is the ARN of the queue or topic that it notifies in addition to
	// EventBridge; empty: none.
	Target string
}

// Pool is a warm pool, wanted or observed.
type Pool struct {
	// State is Stopped, Running or Hibernated.
	State string
	Min   int32
	// MaxPrepared bounds the sum of instances in service and warm; nil: the
	// group's MaxSize.
	MaxPrepared *int32
	Reuse       bool
	// Deleting is true while AWS deletes it.
	Deleting bool
}

// Wanted is the desired state of a group.
type Wanted struct {
	// Object is the name of the NodeGroup, Group that of the Auto Scaling
	// group, Cluster that of the cluster; an empty Cluster is unknown.
	Object, Group, Cluster string

	Management v1beta1.Management
	// Launch and Terminate are the two hooks, with their defaults filled in.
	Launch, Terminate Hook
	// Patience bounds how long a launch is extended.
	Patience time.Duration
	// Pool is nil if none is declared.
	Pool *Pool
	// Spec is the declared spec.
	Spec v1beta1.NodeGroupSpec
}

// Name is the name of the Auto Scaling group of a NodeGroup.
func Name(o *v1beta1.NodeGroup) string { return cmp.Or(o.Spec.AutoScalingGroup, o.Name) }

// Want returns the desired state that a NodeGroup declares in the named
// cluster; empty: unknown.
func Want(o *v1beta1.NodeGroup, cluster string) Wanted {
	s := o.Spec
	w := Wanted{
		Object: o.Name, Group: Name(o), Cluster: cluster, Management: cmp.Or(s.Management, v1beta1.ManageNothing), Spec: s,
		Launch:    wantHook(s.Hooks.Launch, Hook{Name: v1beta1.LaunchHook, Timeout: launchTimeout, Abandons: true}),
		Terminate: wantHook(s.Hooks.Terminate, Hook{Name: v1beta1.TerminateHook, Terminating: true, Timeout: terminateTimeout, Abandons: s.RetainUndrained != nil && *s.RetainUndrained}),
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

// wantHook merges a declared hook with the defaults.
func wantHook(declared *v1beta1.LifecycleHook, usual Hook) Hook {
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

// timeoutDeclared reports whether the spec sets the timeout of a hook.
func (w Wanted) timeoutDeclared(terminating bool) bool {
	h := w.Spec.Hooks.Launch
	if terminating {
		h = w.Spec.Hooks.Terminate
	}
	return h != nil && h.TimeoutSeconds > 0
}

// Default results of a hook (EC2 Auto Scaling API Reference, PutLifecycleHook).
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

// transition is Auto Scaling's name of the lifecycle transition.
func (h Hook) transition() string {
	if h.Terminating {
		return "autoscaling:EC2_INSTANCE_TERMINATING"
	}
	return "autoscaling:EC2_INSTANCE_LAUNCHING"
}

// kind describes the hook for users.
func (h Hook) kind() string {
	if h.Terminating {
		return "terminate hook"
	}
	return "launch hook"
}
