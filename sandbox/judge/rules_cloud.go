package judge

import "time"

// eachCall calls f for every call of Lifeboat of one kind, with the Interruption at that time.
func (h *History) eachCall(kind CloudKind, f func(e CloudEvent, r *record)) {
	for _, e := range h.cloud {
		if e.Kind == kind && e.ByLifeboat {
			f(e, h.recordAt(e.Instance, e.Time))
		}
	}
}

func terminatedForCause(h *History, found report) {
	h.eachCall(Terminate, func(e CloudEvent, r *record) {
		if r == nil || r.Status.Decision == nil || r.Status.Decision.Action != "Terminate" && !r.detached() {
			found(e.Instance, e.Time, "terminated, and no Interruption says Terminate")
		}
	})
}

func terminatedOnce(h *History, found report) {
	last := map[string]time.Time{}
	h.eachCall(Terminate, func(e CloudEvent, _ *record) {
		if was, ok := last[e.Instance]; ok && e.Time.Sub(was) < time.Minute {
			found(e.Instance, e.Time, "terminated again after %s", e.Time.Sub(was))
		}
		last[e.Instance] = e.Time
	})
}

func hookAfterDrain(h *History, found report) {
	h.eachCall(HookCompleted, func(e CloudEvent, r *record) {
		n := h.nodeAt(e.Instance, e.Time)
		if n == nil || r == nil || !r.drains() {
			return // launch hooks, and decisions that let the node go as it is
		}
		if d := r.Status.Deadline; d.firm() && !d.Time.After(e.Time.Add(h.o.Skew)) {
			return
		}
		for _, p := range h.onNode(n.name) {
			if !p.stays() && p.there(e.Time) {
				found(e.Instance, e.Time, "the lifecycle hook is completed, and %s is still there", p.key())
				return
			}
		}
	})
}

func drillHarmless(h *History, found report) {
	for _, kind := range []CloudKind{Terminate, HookCompleted} {
		h.eachCall(kind, func(e CloudEvent, r *record) {
			if r != nil && r.isDrill() {
				found(e.Instance, e.Time, "%s in a drill", kind)
			}
		})
	}
	h.eachAsk(func(p *pod, i int, _ *node, r *record) {
		if r != nil && r.isDrill() && p.asks[i].forced && p.asks[i].grace == 0 {
			found(p.key(), p.asks[i].Received, "deleted with a grace of zero in a drill")
		}
	})
	for name, c := range h.claims {
		if c.deletedBy != h.o.Controller || c.createdBy == h.o.Controller {
			continue
		}
		if r := h.recordAt(instanceOf(c.Status.ProviderID), c.deleted); r != nil && r.isDrill() {
			found(name, c.deleted, "deleted in a drill")
		}
	}
}
