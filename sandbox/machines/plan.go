package machines

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
)

// act is one thing to do to one machine.
type act string

const (
	start   act = "start"   // it has power: boot it
	down    act = "down"    // its operating system must shut down
	halted  act = "halted"  // its operating system has halted
	cut     act = "cut"     // it has lost its power
	restart act = "restart" // it was rebooted
	remove  act = "remove"  // it is terminated, and its Node NotReady: delete the Node
)

// step is one act, on one machine.
type step struct {
	Act     act
	Machine Machine
}

// view is the input of a plan.
type view struct {
	Now       time.Time
	BootDelay func(instanceID string) time.Duration
	Instances []ec2.Instance
	Nodes     []*corev1.Node
	Boot      func(Machine) (id string, on bool)
}

// plan returns the steps to do now, and the time of the next plan (zero: on a change). It ignores
// Nodes that do not belong to EC2.
func plan(v view) (steps []step, wake time.Time) {
	nodes := map[string]*corev1.Node{}
	for _, n := range v.Nodes {
		if id := nodeindex.InstanceID(n); id != "" {
			nodes[id] = n
		}
	}
	for _, in := range v.Instances {
		m := Machine{Instance: in, Node: nodes[in.ID]}
		delete(nodes, in.ID)
		boot, on := v.Boot(m)
		// Launch times are whole seconds, so a boot may be up to one shorter.
		boots, _ := BootTime(in, v.BootDelay(in.ID)) // Node reports the error
		ready := in.LaunchTime.Add(boots)
		switch {
		case !in.ShutdownTime.IsZero() && on:
			steps = append(steps, step{down, m})
			wake = earlier(wake, v.Now.Add(shutdownPoll))
		case !in.ShutdownTime.IsZero():
			steps = append(steps, step{halted, m})
		case !in.Powered:
			steps = append(steps, unpowered(m, on)...)
		case on && boot != in.BootID:
			steps = append(steps, step{restart, m})
		case on:
		case v.Now.Before(ready):
			wake = earlier(wake, ready)
		default:
			steps = append(steps, step{start, m})
		}
	}
	return append(steps, v.withoutInstance(nodes)...), wake
}

// withoutInstance plans the Nodes whose instance does not exist any more. It keeps the order of
// v.Nodes.
func (v view) withoutInstance(nodes map[string]*corev1.Node) (steps []step) {
	for _, n := range v.Nodes {
		if id := nodeindex.InstanceID(n); nodes[id] == n {
			m := Machine{Instance: ec2.Instance{ID: id, State: ec2.Terminated}, Node: n}
			_, on := v.Boot(m)
			steps = append(steps, unpowered(m, on)...)
		}
	}
	return steps
}

// unpowered plans the steps for a machine without power, and for its Node.
func unpowered(m Machine, on bool) []step {
	_, kept := m.Tags[TagKeepNode]
	switch {
	case on:
		return []step{{cut, m}}
	case kept, m.Node != nil && m.Node.DeletionTimestamp != nil:
		return nil // a finalizer holds it, such as Karpenter's
	case m.State == ec2.Terminated && m.Node != nil && !nodeReady(m.Node):
		// A cloud controller manager deletes only NotReady nodes (k8s.io/cloud-provider, node
		// lifecycle controller).
		return []step{{remove, m}}
	default:
		return nil
	}
}

// running returns the names of the Nodes of the instances that have power and may
// have an agent.
func running(v view) map[string]string {
	powered := map[string]bool{}
	for _, in := range v.Instances {
		_, without := in.Tags[TagNoAgent]
		powered[in.ID] = in.Powered && !without
	}
	names := map[string]string{}
	for _, n := range v.Nodes {
		if id := nodeindex.InstanceID(n); powered[id] {
			names[id] = n.Name
		}
	}
	return names
}

// nodeReady reports whether a Node is Ready, or too new to have a Ready condition.
func nodeReady(n *corev1.Node) bool {
	return len(n.Status.Conditions) == 0 || nodeindex.Ready(n)
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
