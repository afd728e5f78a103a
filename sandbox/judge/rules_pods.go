package judge

import (
	"strings"
	"time"
)

// eachAsk calls f for every request of Lifeboat that a pod stops, with the pod's node and its
// Interruption at that time; nil: there is none.
func (h *History) eachAsk(f func(p *pod, i int, n *node, r *record)) {
	for _, p := range h.pods {
		for i, a := range p.asks {
			if !a.ours {
				continue
			}
			n := h.namedAt(p.Spec.NodeName, a.Received)
			var r *record
			if n != nil {
				r = h.recordAt(n.instance(), a.Received)
			}
			f(p, i, n, r)
		}
	}
}

func onlyInterruptedNodes(h *History, found report) {
	h.eachAsk(func(p *pod, i int, n *node, r *record) {
		switch {
		case n == nil: // the Node is deleted already
		case r == nil:
			found(p.key(), p.asks[i].Received, "asked to stop, and node %s has no Interruption", n.name)
		case !r.drains() && !r.detached():
			found(p.key(), p.asks[i].Received, "asked to stop, and the Interruption of node %s does not say Drain", n.name)
		}
	})
}

func listedBeforeEviction(h *History, found report) {
	h.eachAsk(func(p *pod, i int, n *node, r *record) {
		if n == nil || r == nil {
			return
		}
		if r.Status.Drain != nil {
			for _, pending := range r.Status.Drain.PendingPods {
				if pending.UID == p.Metadata.UID {
					return
				}
			}
		}
		found(p.key(), p.asks[i].Received, "asked to stop before status.drain.pendingPods lists it")
	})
}

func cordonedBeforeEviction(h *History, found report) {
	h.eachAsk(func(p *pod, i int, n *node, _ *record) {
		if n == nil {
			return
		}
		if was := n.before(p.asks[i].Received); was != nil && !was.Spec.Unschedulable {
			found(p.key(), p.asks[i].Received, "asked to stop, and node %s is not cordoned", n.name)
		}
	})
}

// cordonBarrier is how long the first eviction waits for other nodes at most.
const cordonBarrier = 15 * time.Second

func allCordonedFirst(h *History, found report) {
	h.eachAsk(func(p *pod, i int, n *node, _ *record) {
		at := p.asks[i].Received
		if n != nil && h.records[n.instance()].urgentBefore(at.Add(-cordonBarrier)) { // it has waited as long as it may
			return
		}
		for name, other := range h.records {
			r, o := other.before(at), h.nodeAt(name, at)
			// Before a soft deadline a node may wait, for a window or for a policy's budget of nodes.
			if r == nil || o == nil || o == n || !r.drains() || !r.Status.Deadline.firm() || r.finished() {
				continue
			}
			// A decision of the last moment can be on its way.
			recent := other.decidedAt().After(at.Add(-time.Second))
			if !recent && other.versions[0].at.After(at.Add(-cordonBarrier)) && !o.before(at).Spec.Unschedulable {
				found(p.key(), at, "asked to stop before the interrupted node %s is cordoned", o.name)
			}
		}
	})
}

// urgentBefore reports whether an Interruption had a notice by a time that leaves no choice of when to begin.
func (i *interruption) urgentBefore(at time.Time) bool {
	if i == nil {
		return false
	}
	for _, v := range i.versions {
		for _, n := range v.object.Spec.Notices {
			switch n.Kind {
			case "Requested", "RebalanceRecommendation", "ScheduledChange", "HealthIssue", "InstanceStatus":
			default:
				return !v.at.After(at)
			}
		}
	}
	return false
}

// decidedAt is when an Interruption first said that its node drains.
func (i *interruption) decidedAt() time.Time {
	for _, v := range i.versions {
		if v.object.drains() {
			return v.at
		}
	}
	return time.Time{}
}

func daemonsStay(h *History, found report) {
	h.eachAsk(func(p *pod, i int, _ *node, _ *record) {
		if p.stays() {
			found(p.key(), p.asks[i].Received, "asked to stop, and it belongs to its node")
		}
	})
}

func graceKept(h *History, found report) {
	h.eachAsk(func(p *pod, i int, n *node, r *record) {
		a := p.asks[i]
		if i > 0 || a.grace >= p.grace() || r == nil || h.without(n, a.Received) {
			return
		}
		if d := r.Status.Deadline; !d.firm() || d.Time.Sub(a.Received) >= p.grace()+h.o.Margin+h.o.Skew {
			found(p.key(), a.Received, "got %s of its grace of %s, and there was time", a.grace, p.grace())
		}
	})
}

func graceNotShortened(h *History, found report) {
	h.eachAsk(func(p *pod, i int, n *node, r *record) {
		a := p.asks[i]
		for _, earlier := range p.asks[:i] {
			if h.without(n, a.Received) || !earlier.accepted() || earlier.grace == 0 || a.end().Add(time.Second).After(earlier.end()) || r == nil {
				continue
			}
			if d := r.Status.Deadline; !d.firm() || d.Time.Add(-h.o.Margin-h.o.Skew).After(earlier.end()) {
				found(p.key(), a.Received, "asked again to stop by %s, after it was given until %s", a.end().Format("15:04:05"), earlier.end().Format("15:04:05"))
			}
		}
	})
}

// covered returns the name of a budget that covers a pod.
func (h *History) covered(p *pod) string {
	for name, b := range h.budgets {
		if b.Metadata.Namespace == p.Metadata.Namespace && b.Spec.Selector.matches(p.Metadata.Labels) {
			return name
		}
	}
	return ""
}

func budgetRespected(h *History, found report) {
	h.eachAsk(func(p *pod, i int, n *node, r *record) {
		a, budget := p.asks[i], h.covered(p)
		if !a.forced || budget == "" || r == nil || p.asked(i) || h.without(n, a.Received) {
			return
		}
		switch d := r.Status.Deadline; {
		case !d.firm():
			found(p.key(), a.Received, "deleted past budget %s without a firm deadline", budget)
		case d.Time.Sub(a.Received) > p.grace()+h.o.Margin+h.o.Skew+2*time.Second:
			found(p.key(), a.Received, "deleted past budget %s, %s before the deadline", budget, d.Time.Sub(a.Received))
		}
	})
}

// asked reports whether a client asked the pod to stop before its ask i.
func (p *pod) asked(i int) bool {
	for _, a := range p.asks[:i] {
		if a.accepted() {
			return true
		}
	}
	return false
}

func overrideReported(h *History, found report) {
	h.eachAsk(func(p *pod, i int, n *node, r *record) {
		a := p.asks[i]
		if !a.forced || h.covered(p) == "" || n == nil || r == nil || p.asked(i) || h.without(n, a.Received) {
			return
		}
		for _, line := range h.records[n.instance()].last().Status.Timeline {
			if line.Reason == reasonOverride && strings.Contains(line.Message, p.Metadata.Name) {
				return
			}
		}
		if h.o.End.IsZero() || a.Received.Add(h.o.Delay).Before(h.o.End) {
			found(p.key(), a.Received, "its budget was overridden, and the timeline does not say so")
		}
	})
}

func podsNotCut(h *History, found report) {
	for _, off := range h.cloud {
		if off.Kind != PowerOff {
			continue
		}
		n, warned := h.nodeAt(off.Instance, off.Time), h.warning(off.Instance, off.Time)
		if n == nil || warned.IsZero() || h.leavesAlone(off.Instance, off.Time) {
			continue
		}
		for _, p := range h.onNode(n.name) {
			affected := !p.stays() && p.there(off.Time) && !p.created.After(warned)
			hadTime := off.Time.Sub(warned) >= p.grace()+h.o.Margin+h.o.Delay
			if affected && hadTime && !p.askedBy(off.Time.Add(-p.grace())) {
				found(p.key(), off.Time, "lost power %s after the warning, and had not been asked to stop in time", off.Time.Sub(warned))
			}
		}
	}
}

// leavesAlone reports whether a policy lets the pods of an instance run to the end.
func (h *History) leavesAlone(instance string, t time.Time) bool {
	r := h.recordAt(instance, t)
	return r != nil && r.Status.Decision != nil && !r.drains()
}

// warning returns when EC2 last warned of the reclaim of an instance.
func (h *History) warning(instance string, before time.Time) (at time.Time) {
	for _, e := range h.cloud {
		if e.Kind == Warned && e.Instance == instance && e.Time.Before(before) {
			at = e.Time
		}
	}
	return at
}

// askedBy reports whether a client asked the pod to stop by a time.
func (p *pod) askedBy(t time.Time) bool {
	for _, a := range p.asks {
		if a.accepted() && !a.Received.After(t) {
			return true
		}
	}
	return false
}

func foreignPods(h *History, found report) {
	for _, r := range h.requests {
		if r.Resource != "pods" || r.Verb != "patch" || !h.ours(r) || !r.accepted() {
			continue
		}
		p, err := h.removed(r, deleteOptions{})
		if err != nil || p == nil {
			continue
		}
		if n := h.namedAt(p.Spec.NodeName, r.Received); n != nil && h.recordAt(n.instance(), r.Received) == nil {
			found(p.key(), r.Received, "changed, and node %s has no Interruption", n.name)
		}
	}
}
