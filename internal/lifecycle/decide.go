package lifecycle

import (
	"fmt"
	"time"
)

// Verb is something to do.
type Verb string

// What is done to hooks, and to nodes.
const (
	Nothing Verb = ""
	// Complete has each of the hooks answered CONTINUE. Nothing ever has one
	// answered ABANDON: what a hook does without an answer is its owner's choice.
	Complete Verb = "Complete"
	// Extend sends each of the hooks a heartbeat.
	Extend Verb = "Extend"
	// GiveUp leaves it to the hook's own result.
	GiveUp Verb = "GiveUp"
	// Free takes the startup taint off a node, Keep puts it on.
	Free Verb = "Free"
	Keep Verb = "Keep"
	// Evict has the pods of a node evicted, and Delete the node deleted.
	Evict  Verb = "Evict"
	Delete Verb = "Delete"
)

// Decision is what is to be done about an instance.
type Decision struct {
	// Do is done to the hooks of these names.
	Do    Verb
	Hooks []string
	// Node is done to its node.
	Node Verb
	// Reason says why, or what is waited for.
	Reason string
	// Hook is the own hook that holds it; empty: none does, or none of one's own.
	Hook string
	// Wake is when to decide again, if nothing changes before; zero: never.
	Wake time.Time
	// Ask is from when on Auto Scaling is worth asking where the instance stands,
	// before that is looked at anyway; zero: never.
	Ask time.Time
	// Expires is when the hook's time is out, as far as is known; zero: it is not.
	Expires time.Time
	// Alarm is worth a warning: the node is Ready, and the hook holds it for so long
	// that it may be lost.
	Alarm bool
}

const (
	// grace is how long an instance is to be without a node before its
	// termination is answered: one may be about to register.
	grace = 30 * time.Second
	// proven is for how long a node has to have been Ready in a phase for its kubelet
	// to be alive: more than twice what the control plane takes to notice.
	proven = 2 * time.Minute
	// settled is how much older than what Auto Scaling was last asked all that is
	// known of a node in the warm pool has to be for anything to be done to it: it
	// may have left the pool since, and a kubelet whose node is deleted does not
	// register again.
	settled = 10 * time.Second
	// soon is how soon it is worth asking again.
	soon = 3 * time.Second
	// firstRetry and lastRetry bound how soon a hook is told again what it did not
	// hear.
	firstRetry, lastRetry = 2 * time.Second, 30 * time.Second
	// heardRetry is how soon one is answered again that took the answer, and holds
	// the instance all the same; othersRetry, where other hooks may.
	heardRetry, othersRetry = 5 * time.Second, time.Minute
	// deniedRetry is how soon it is looked whether a permission was given.
	deniedRetry = 5 * time.Minute
	// beats is how many heartbeats there are in a hook's timeout.
	beats = 3
)

// Decide decides about an instance. That of instances whose pods an Interruption
// moves is about their node alone.
func Decide(f Facts, m Memory) Decision {
	switch f.At.Phase {
	case Joining:
		return joining(f, m)
	case Serving:
		return serving(f)
	case Warming:
		return warming(f, m)
	case Warm:
		return ghost(f, Decision{})
	case Leaving:
		return leaving(f, m)
	case LeavingPool:
		return ghost(f, leaving(f, m))
	case Retained:
		return Decision{Reason: "it was abandoned on its way out, and is kept until somebody terminates it: " +
			"see to its pods, then call TerminateInstanceInAutoScalingGroup"}
	}
	return Decision{Reason: kept(f)}
}

// serving is in service: the startup taint has done its work.
func serving(f Facts) Decision {
	switch n := f.Node; {
	case n == nil, !n.Kept, n.Deleting:
		return Decision{}
	case !f.Seen.After(n.Created): // it was, in another life maybe
		return Decision{Ask: n.Created.Add(time.Second)}
	}
	return Decision{Node: Free, Reason: "it is in service"}
}

// kept says why a node keeps the startup taint.
func kept(f Facts) string {
	if f.Node == nil || !f.Node.Kept {
		return ""
	}
	return fmt.Sprintf("its node is kept free of pods until Auto Scaling has it in service; its state is %s", f.State)
}

// joining is on its way into service.
func joining(f Facts, m Memory) Decision {
	if !f.At.Held() {
		d := Decision{Reason: kept(f)}
		if f.Node != nil && f.Node.Ready { // nothing but its state is missing
			d.Ask = f.Seen.Add(soon)
		}
		return d
	}
	own, d := holders(f, false)
	if len(own) == 0 {
		return d
	}
	if why := unready(f, m); why != "" {
		return extend(f, m, own, why)
	}
	d = answer(f, m, own, "its node is Ready")
	d.Alarm = len(m.Said) > 0 && f.Now.Sub(m.Held) > shortest(own)/2
	return d
}

// unready says what the launch hook waits for; empty: nothing.
func unready(f Facts, m Memory) string {
	switch {
	case f.Node == nil:
		return "its node has not registered yet"
	case f.Node.Deleting:
		return "its node is being deleted"
	case !f.Node.Ready:
		return "its node is not Ready yet"
	case !ofThisLife(f, m):
		return "its node was Ready before the instance was started this time, and its kubelet has not reported since"
	}
	return ""
}

// ofThisLife reports whether that the node is Ready is known to be of this phase.
// Kubelets report when they start, and every five minutes where nothing changes;
// one that is silent for less than a minute has its node counted as not Ready by the
// control plane (Kubernetes documentation, "Nodes", node heartbeats and the node
// controller). So one that has been Ready for longer than that is alive.
func ofThisLife(f Facts, m Memory) bool {
	switch {
	case f.Node.Heartbeat.After(m.Began), f.Now.Sub(m.Began) >= proven:
		return true
	case m.After.IsZero():
		return m.New || !f.Pool // it never was anything else
	}
	return f.Node.Created.After(m.After) || f.Node.Turned.After(m.After)
}

// warming is on its way into the warm pool: from launch, held by the launch hook,
// or back from service, held by the terminate hook. The state does not tell which.
func warming(f Facts, m Memory) Decision {
	if f.Interrupted {
		return Decision{Reason: interrupted}
	}
	if m.Returns() || terminates(f, m) {
		return leaving(f, m)
	}
	var d Decision
	if f.At.Held() {
		own, none := holders(f, false)
		switch {
		case m.enters() && len(own) == 0:
			d = none
		case m.enters():
			d = extend(f, m, own, settingUp)
		default: // try per hook: one that holds it takes a heartbeat
			back, _ := holders(f, true)
			if own = append(own, back...); len(own) == 0 {
				d = none
				break
			}
			d = extend(f, m, probe(own, m), settingUp)
		}
	}
	if m.enters() || launches(f, m) {
		return ghost(f, d)
	}
	return d
}

// last is when anything was last heard of a node.
func (n *Node) last() time.Time {
	last := n.Created
	for _, t := range []time.Time{n.Heartbeat, n.Turned} {
		if t.After(last) {
			last = t
		}
	}
	return last
}

const (
	interrupted = "its Interruption drains the node and answers"
	settingUp   = "it is being set up, and its agent tells when that is done"
)

// probe returns the hook to try: launch hooks first, then the next where one has
// refused.
func probe(own []Hook, m Memory) []Hook {
	for _, h := range own {
		if s := m.Said[h.Name]; s.Heard || !s.Extended.IsZero() || s.Tries == 0 {
			return []Hook{h}
		}
	}
	return own
}

// terminates reports whether a terminate hook has taken a heartbeat, so that the
// instance is known to go back into the pool; launches, whether a launch hook has.
func terminates(f Facts, m Memory) bool { return took(f, m, true) }
func launches(f Facts, m Memory) bool   { return took(f, m, false) }

func took(f Facts, m Memory, terminating bool) bool {
	for _, h := range f.Hooks {
		if h.Own && h.Terminating == terminating && !m.Said[h.Name].Extended.IsZero() {
			return true
		}
	}
	return false
}

// leaving is on its way out of service, or of the pool. Instances that have a node
// are an Interruption's, which makes sure of their pods.
func leaving(f Facts, m Memory) Decision {
	switch {
	case f.Interrupted:
		return Decision{Reason: interrupted}
	case !f.At.Held():
		return Decision{}
	}
	own, none := holders(f, true)
	switch {
	case len(own) == 0:
		return none
	case f.Node != nil:
		return Decision{Hook: own[0].Name, Expires: expires(m, own), Reason: "it has a node: it is answered once an Interruption has drained that"}
	}
	since := m.Alone
	if m.Held.After(since) {
		since = m.Held
	}
	if ready := since.Add(grace); f.Now.Before(ready) {
		return Decision{Hook: own[0].Name, Expires: expires(m, own), Wake: ready, Reason: fmt.Sprintf("it has no node: it is answered unless one registers within %s", grace)}
	}
	return answer(f, m, own, "it has no node")
}

// ghost adds to a decision what is done to the node of an instance that is in the
// warm pool, or on its way there or out: none of its pods can stay.
func ghost(f Facts, d Decision) Decision {
	n := f.Node
	if n == nil || n.Deleting || f.Interrupted {
		return d
	}
	switch last := n.last(); {
	case !f.Seen.After(last): // most likely it has left the pool
		d.Ask = last.Add(time.Second)
		return d
	case f.Seen.Before(last.Add(settled)):
		d.Ask = last.Add(settled)
		return d
	}
	stopped := f.State == "Warmed:Stopped" || f.State == "Warmed:Hibernated" || f.At.Phase == LeavingPool && !n.Ready
	switch {
	case stopped:
		d.Node, d.Reason = Delete, "the instance is in the warm pool and its machine does not run: its node is of no use"
	case !n.Kept:
		d.Node, d.Reason = Keep, "the instance is in the warm pool: its kubelet should not have started"
	case n.Pods < 0:
		d.Reason = "the instance is in the warm pool: it is not known yet which pods have to leave its node"
	case n.Pods > 0:
		d.Node, d.Reason = Evict, fmt.Sprintf("the instance is in the warm pool: %d pods have to leave its node", n.Pods)
	default:
		d.Node, d.Reason = Delete, "the instance is in the warm pool: its node is of no use"
	}
	return d
}
