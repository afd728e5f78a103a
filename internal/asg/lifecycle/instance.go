package lifecycle

import (
	"cmp"
	"fmt"
	"time"
)

// NodeVerb is an action for a node.
type NodeVerb string

// The actions for nodes.
const (
	// Untaint removes the startup taint of a node, Taint adds it.
	Untaint NodeVerb = "Untaint"
	Taint   NodeVerb = "Taint"
	// Evict evicts the pods of a node, and Delete deletes the node.
	Evict  NodeVerb = "Evict"
	Delete NodeVerb = "Delete"
)

// Decision is the action for an instance. Complete sends CONTINUE, and never ABANDON: the owner
// of a hook chooses its default result.
type Decision struct {
	Call
	// Node is the action for its node; empty: none.
	Node NodeVerb
	// Reason says why, or what it waits for.
	Reason string
	// Hook is Lifeboat's hook that holds it; empty: none does, or only others do.
	Hook string
	// Ask is from when on an early read of the state is useful; zero: never.
	Ask time.Time
	// Expires is when the hook times out, as far as is known; zero: it does not.
	Expires time.Time
	// Alarm requests a warning: the node is Ready, and the hook has held it for so long that it
	// may be terminated.
	Alarm bool
}

const (
	// grace is how long an instance must be without a node before its termination is completed:
	// a node may be about to register.
	grace = 30 * time.Second
	// proven is how long a node must have been Ready in a phase to prove that its kubelet runs:
	// more than twice the time in which the control plane notices a failure.
	proven = 2 * time.Minute
	// settled is how much older than the last state everything known about a node in the warm
	// pool must be before the node is changed. The instance may have left the pool since, and a
	// kubelet whose node is deleted does not register again.
	settled = 10 * time.Second
	// soon is when an early read of the state is useful.
	soon = 3 * time.Second
)

// Decide decides about an instance. If an Interruption moves its pods, it decides only about the
// node.
func Decide(f Facts, m Memory) Decision {
	switch f.At.Phase {
	case Joining:
		return joining(f, m)
	case Serving:
		return serving(f)
	case Warming:
		return warming(f, m)
	case Warm:
		return warmPoolNode(f, Decision{})
	case Leaving:
		return leaving(f, m)
	case LeavingPool:
		return warmPoolNode(f, leaving(f, m))
	case Retained:
		return Decision{Reason: "its termination was abandoned, and it is kept until it is terminated manually: " +
			"move its pods, then call TerminateInstanceInAutoScalingGroup"}
	}
	return Decision{Reason: tainted(f)}
}

// serving decides about an instance in service: the startup taint is not needed any more.
func serving(f Facts) Decision {
	switch n := f.Node; {
	case n == nil, !n.Tainted, n.Deleting:
		return Decision{}
	case !f.Seen.After(n.Created): // the state may be from before a restart
		return Decision{Ask: n.Created.Add(time.Second)}
	}
	return Decision{Node: Untaint, Reason: "it is in service"}
}

// tainted says why a node has the startup taint.
func tainted(f Facts) string {
	if f.Node == nil || !f.Node.Tainted {
		return ""
	}
	return fmt.Sprintf("its node is kept free of pods until Auto Scaling has it in service; its state is %s", f.State)
}

// joining decides about an instance on its way into service.
func joining(f Facts, m Memory) Decision {
	if !f.At.Held() {
		d := Decision{Reason: tainted(f)}
		if f.Node != nil && f.Node.Ready { // only its state is missing
			d.Ask = f.Seen.Add(soon)
		}
		return d
	}
	h, why := hold(f, m, false)
	if why != "" {
		return Decision{Reason: why}
	}
	if why := unready(f, m); why != "" {
		return extend(f, m, h, why)
	}
	d := complete(f, m, h, "its node is Ready")
	timeout, _ := Limits(h.Own)
	d.Alarm = len(m.Calls) > 0 && f.Now.Sub(m.Held) > cmp.Or(timeout, unknownTimeout)/2
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

// ofThisLife reports whether the node is known to be Ready in this phase. Kubelets report when
// they start, and every five minutes without a change. The control plane sets a node to not
// Ready if its kubelet is silent for a minute (Kubernetes documentation, "Nodes"). So the
// kubelet of a node that has been Ready for longer runs.
func ofThisLife(f Facts, m Memory) bool {
	switch {
	case f.Node.Heartbeat.After(m.Began), f.Now.Sub(m.Began) >= proven:
		return true
	case m.After.IsZero():
		return m.New || !f.Pool // it had no earlier phase in service
	}
	return f.Node.Created.After(m.After) || f.Node.Turned.After(m.After)
}

const (
	interrupted = "its Interruption drains the node and answers"
	settingUp   = "it is being set up, and its agent completes the hook when that is done"
)

// warming decides about an instance on its way into the warm pool: from launch, held by the
// launch hook, or from service, held by the terminate hook. The state does not show which.
func warming(f Facts, m Memory) Decision {
	if f.Interrupted {
		return Decision{Reason: interrupted}
	}
	if m.Returns() || extended(f, m, true) {
		return leaving(f, m)
	}
	var d Decision
	if f.At.Held() {
		h, why := hold(f, m, false)
		if !m.enters() { // the hook that holds it accepts a heartbeat
			if back, _ := hold(f, m, true); len(back.Own) > 0 {
				h.Own, why = append(h.Own, back.Own...), ""
			}
			h.Own = probe(h)
		}
		if d = (Decision{Reason: why}); why == "" {
			d = extend(f, m, h, settingUp)
		}
	}
	if m.enters() || extended(f, m, false) {
		return warmPoolNode(f, d)
	}
	return d
}

// probe returns the hook to try: launch hooks first, then the next one after each refusal.
func probe(h Hold) []Hook {
	for i, hook := range h.Own {
		if t := h.Calls[hook.Name]; t.At.IsZero() || !t.Extended.IsZero() {
			return h.Own[i : i+1]
		}
	}
	return h.Own
}

// extended reports whether a hook of a transition has accepted a heartbeat, which shows that the
// instance is in that transition.
func extended(f Facts, m Memory, terminating bool) bool {
	own, _ := Split(f.Hooks, terminating)
	for _, h := range own {
		if !m.Calls[h.Name].Extended.IsZero() {
			return true
		}
	}
	return false
}

// leaving decides about an instance on its way out of service or of the pool. Instances with a
// node are left to an Interruption, which moves their pods.
func leaving(f Facts, m Memory) Decision {
	switch {
	case f.Interrupted:
		return Decision{Reason: interrupted}
	case !f.At.Held():
		return Decision{}
	}
	h, why := hold(f, m, true)
	if why != "" {
		return Decision{Reason: why}
	}
	d := Decision{Hook: h.Own[0].Name, Expires: h.Expires()}
	if f.Node != nil {
		d.Reason = "it has a node: it is answered once an Interruption has drained that"
		return d
	}
	since := m.Alone
	if m.Held.After(since) {
		since = m.Held
	}
	if d.Wake = since.Add(grace); f.Now.Before(d.Wake) {
		d.Reason = fmt.Sprintf("it has no node: it is answered unless one registers within %s", grace)
		return d
	}
	return complete(f, m, h, "it has no node")
}

// hold returns Lifeboat's hooks of a transition that hold the instance, or says why none of them
// may be completed.
func hold(f Facts, m Memory, terminating bool) (h Hold, why string) {
	h = Hold{Now: f.Now, InstanceID: f.InstanceID, Since: m.Held, Uncertain: !m.Sure, Calls: m.Calls}
	if f.Operator != "" {
		return h, fmt.Sprintf("its group belongs to %s, which alone may answer its hooks", f.Operator)
	}
	h.Own, h.Others = Split(f.Hooks, terminating)
	switch {
	case len(h.Own) > 0:
		return h, ""
	case len(h.Others) > 0:
		return h, hooks(h.Others, "of others %s it, which Lifeboat does not answer")
	case !f.HooksKnown:
		return h, "the hooks of its group could not be read"
	}
	return h, "its group has no hook that could hold it: the hook was deleted, and its wait ends without an answer"
}

// hooks begins a sentence with the names of hooks; rest has a placeholder for the verb.
func hooks(of []Hook, rest string) string {
	subject, verb := "the hook", "holds"
	if len(of) > 1 {
		subject, verb = "the hooks", "hold"
	}
	return fmt.Sprintf("%s %s "+rest, subject, Names(of), verb)
}

// complete sends a result to the hooks that are due. It is done when the state has left :Wait,
// and not when a result was accepted.
func complete(f Facts, m Memory, h Hold, because string) Decision {
	if f.Stale {
		return extend(f, m, h, because+"; it is answered once Auto Scaling can be asked whether it still waits")
	}
	d := Decision{Call: h.Complete(), Hook: h.Own[0].Name, Expires: h.Expires(), Reason: because}
	if d.Do == Nothing {
		d.Reason += "; " + outcome(f, h)
	}
	return d
}

// outcome describes the results that were sent.
func outcome(f Facts, h Hold) string {
	completed := true
	for _, hook := range h.Own {
		t := h.Calls[hook.Name]
		if t.Outcome == Denied {
			return "hook " + hook.Name + " cannot be answered: " + t.Error
		}
		completed = completed && !t.Completed.IsZero()
	}
	switch {
	case completed && len(h.Others) > 0:
		return "it was answered, and " + hooks(h.Others, "still %s it")
	case completed:
		return "it was answered, and its state is to follow"
	}
	return fmt.Sprintf("Auto Scaling took no answer although its state is %s: it is answered again", f.State)
}

// extend sends heartbeats until the patience is over.
func extend(f Facts, m Memory, h Hold, why string) Decision {
	d := Decision{Hook: h.Own[0].Name, Expires: h.Expires(), Reason: why}
	patience := h.Patience(f.Patience)
	over := m.Held.Add(patience)
	if !f.Now.Before(over) {
		d.Reason = fmt.Sprintf("%s, and its patience of %s is over: it is left to the hook's own result", why, patience)
		if !m.GaveUp {
			d.Do = GiveUp
		}
		return d
	}
	d.Call = h.Heartbeat()
	d.Wake = earlier(d.Wake, over)
	for _, hook := range h.Own {
		if t := h.Calls[hook.Name]; t.Outcome == Denied {
			d.Reason = why + "; hook " + hook.Name + " cannot be extended: " + t.Error
		}
	}
	return d
}

// warmPoolNode adds the action for a node to a decision, if its instance is in the warm pool, enters
// it or leaves it. None of its pods can stay.
func warmPoolNode(f Facts, d Decision) Decision {
	n := f.Node
	if n == nil || n.Deleting || f.Interrupted {
		return d
	}
	switch last := n.last(); {
	case !f.Seen.After(last): // it has probably left the pool
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
	case !n.Tainted:
		d.Node, d.Reason = Taint, "the instance is in the warm pool: its kubelet should not have started"
	case n.Pods < 0:
		d.Reason = "the instance is in the warm pool: it is not known yet which pods have to leave its node"
	case n.Pods > 0:
		d.Node, d.Reason = Evict, fmt.Sprintf("the instance is in the warm pool: %d pods have to leave its node", n.Pods)
	default:
		d.Node, d.Reason = Delete, "the instance is in the warm pool: its node is of no use"
	}
	return d
}
