package machines

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/internal/awsemu/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/sandbox/kwok"
)

// act is one thing to do to one node.
type act string

const (
	register act = "register" // the machine has booted: make its Node
	lightUp  act = "light up" // it has booted again: give its Node back to kwok
	goDark   act = "go dark"  // it has no power: take its Node from kwok
	restart  act = "restart"  // it was rebooted: its Node is away for a moment
	remove   act = "remove"   // it is gone, and its Node NotReady: delete the Node
)

// step is one act, on an instance (register) or a Node.
type step struct {
	Act      act
	Instance ec2.Instance
	Node     *corev1.Node
}

// view is what is known when a plan is made.
type view struct {
	Now       time.Time
	BootDelay time.Duration
	Instances []ec2.Instance
	Nodes     []*corev1.Node
}

// plan says what to do now, and when to look again (zero: when something
// changes). It leaves Nodes alone that are none of EC2's.
func plan(v view) (steps []step, wake time.Time) {
	nodes := map[string]*corev1.Node{}
	for _, n := range v.Nodes {
		if id := nodeindex.InstanceID(n); id != "" {
			nodes[id] = n
		}
	}
	for _, in := range v.Instances {
		n := nodes[in.ID]
		delete(nodes, in.ID)
		if !in.Powered {
			steps = append(steps, unpowered(in, n)...)
			continue
		}
		if n != nil && lit(n) {
			if rebooted(in, n) {
				steps = append(steps, step{Act: restart, Instance: in, Node: n})
			}
			continue
		}
		// Launch times are whole seconds, so a boot may be up to one shorter.
		if ready := in.LaunchTime.Add(v.BootDelay); v.Now.Before(ready) {
			wake = sooner(wake, ready)
			continue
		}
		if n == nil {
			steps = append(steps, step{Act: register, Instance: in})
		} else {
			steps = append(steps, step{Act: lightUp, Instance: in, Node: n})
		}
	}
	// What is left has no instance any more. v.Nodes is walked for its order.
	for _, n := range v.Nodes {
		if nodes[nodeindex.InstanceID(n)] == n {
			steps = append(steps, unpowered(ec2.Instance{ID: nodeindex.InstanceID(n), State: ec2.Terminated}, n)...)
		}
	}
	return steps, wake
}

// unpowered says what becomes of the Node, if any, of an instance without power.
func unpowered(in ec2.Instance, n *corev1.Node) []step {
	switch {
	case n == nil:
		return nil
	case lit(n):
		return []step{{Act: goDark, Instance: in, Node: n}}
	case in.State == ec2.Terminated && !nodeReady(n):
		// Not before it is NotReady: a cloud controller manager looks only at nodes
		// that are (k8s.io/cloud-provider, node lifecycle controller).
		return []step{{Act: remove, Instance: in, Node: n}}
	default:
		return nil
	}
}

// rebooted reports whether the machine has booted since its Node came up.
func rebooted(in ec2.Instance, n *corev1.Node) bool {
	return nodeindex.Ready(n) && n.Status.NodeInfo.BootID != in.BootID
}

// running returns the names of the Nodes of the instances that have power.
func running(v view) map[string]string {
	powered := map[string]bool{}
	for _, in := range v.Instances {
		powered[in.ID] = in.Powered
	}
	names := map[string]string{}
	for _, n := range v.Nodes {
		if id := nodeindex.InstanceID(n); powered[id] {
			names[id] = n.Name
		}
	}
	return names
}

// lit reports whether kwok plays the node's kubelet.
func lit(n *corev1.Node) bool { return n.Labels[kwok.ManagedLabel] == kwok.ManagedValue }

// nodeReady reports whether a Node is Ready, or so new that it has not told its
// condition yet: it is not one to delete.
func nodeReady(n *corev1.Node) bool {
	return len(n.Status.Conditions) == 0 || nodeindex.Ready(n)
}

func sooner(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
