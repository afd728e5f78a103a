package judge

import "time"

type report = func(object string, at time.Time, format string, args ...any)

func noticeRecorded(h *History, found report) {
	for _, e := range h.cloud {
		if e.Kind != Warned || h.nodeAt(e.Instance, e.Time) == nil {
			continue
		}
		due := e.Time.Add(h.o.Delay)
		if !h.o.End.IsZero() && due.After(h.o.End) {
			continue
		}
		if !h.recordAt(e.Instance, due).hasWarning() {
			found(e.Instance, e.Time, "no %s in an Interruption %s after EC2's warning", kindSpot, h.o.Delay)
		}
	}
}

// hasWarning reports whether an Interruption has a spot warning.
func (r *record) hasWarning() bool {
	for i := 0; r != nil && i < len(r.Spec.Notices); i++ {
		if r.Spec.Notices[i].Kind == kindSpot {
			return true
		}
	}
	return false
}

func recordedBeforeAcknowledged(h *History, found report) {
	h.eachCall(Acknowledged, func(e CloudEvent, r *record) {
		if h.nodeAt(e.Instance, e.Time) != nil && !r.hasWarning() {
			found(e.Instance, e.Time, "the message with EC2's warning is deleted, and no Interruption has the warning")
		}
	})
}

func settled(h *History, found report) {
	for _, off := range h.cloud {
		i := h.records[off.Instance]
		if off.Kind != PowerOff || i == nil || !i.deleted.IsZero() || i.last().finished() {
			continue
		}
		// Lifeboat waits for the Node to go, which the cloud's own controllers delete.
		from := off.Time
		for _, n := range h.allNodes() {
			if n.instance() == off.Instance {
				from = n.deleted
			}
		}
		if !from.IsZero() && from.Add(2*h.o.Delay).Before(h.o.End) {
			found(off.Instance, off.Time, "its Node is gone since %s, and the Interruption is still %s", h.o.End.Sub(from), i.last().Status.Phase)
		}
	}
}

func recordKept(h *History, found report) {
	for name, i := range h.records {
		if i.deletedBy == h.o.Controller && !i.last().finished() {
			found(name, i.deleted, "the controller deleted an Interruption in phase %s", i.last().Status.Phase)
		}
	}
}

func statusTrue(h *History, found report) {
	for name, i := range h.records {
		r, at := i.last(), i.versions[len(i.versions)-1].at
		for _, pending := range r.pending() {
			switch p := h.pods[pending.UID]; {
			case r.finished():
				found(name, at, "completed, and lists %s/%s as pending", pending.Namespace, pending.Name)
			case p != nil && !p.gone.IsZero() && i.deleted.IsZero() && !h.o.End.IsZero() && p.gone.Add(h.o.Delay).Before(h.o.End):
				found(name, p.gone, "%s is gone since %s and still pending at the end", p.key(), h.o.End.Sub(p.gone))
			}
		}
	}
}

// departuresTrue checks the times at which pods left, as the records have them.
func departuresTrue(h *History, found report) {
	for name, i := range h.records {
		r := i.last()
		if r.Status.Drain == nil {
			continue
		}
		for _, left := range r.Status.Drain.Pods {
			p := h.pods[left.UID]
			if left.DepartureTime == nil || left.State != "Left" || p == nil || p.gone.IsZero() {
				continue
			}
			if off := left.DepartureTime.Sub(p.gone).Abs(); off > statusDelay+h.o.Delay+h.o.Skew {
				found(name, p.gone, "%s was gone %s from the departure in the record", p.key(), off.Round(time.Second))
			}
		}
	}
}

// statusDelay is how late Lifeboat's status may be, as its documentation says.
const statusDelay = 10 * time.Second

func statusPrompt(h *History, found report) {
	for name, i := range h.records {
		reported := map[string]bool{}
		for v, is := range i.versions {
			until := h.o.End
			if v+1 < len(i.versions) {
				until = i.versions[v+1].at
			}
			if !i.deleted.IsZero() {
				continue
			}
			for _, pending := range is.object.pending() {
				p := h.pods[pending.UID]
				if p == nil || p.gone.IsZero() || reported[pending.UID] || until.Sub(p.gone) <= statusDelay+h.o.Delay {
					continue
				}
				reported[pending.UID] = true
				found(name, p.gone, "%s is gone, and still pending %s later", p.key(), until.Sub(p.gone).Round(time.Second))
			}
		}
	}
}

// The limits of noWriteLoop: ten times what a drain of a node with ten pods writes.
const (
	loopWrites = 60
	loopSpan   = 10 * time.Second
)

func noWriteLoop(h *History, found report) {
	type object struct{ resource, namespace, name string }
	recent := map[object][]time.Time{}
	reported := map[object]bool{}
	for _, r := range h.requests {
		o := object{r.Resource, r.Namespace, r.Name}
		if !h.ours(r) || !r.accepted() || reported[o] {
			continue
		}
		times := append(recent[o], r.Completed)
		for len(times) > 0 && times[0].Before(r.Completed.Add(-loopSpan)) {
			times = times[1:]
		}
		recent[o] = times
		if len(times) > loopWrites {
			reported[o] = true
			found(r.Resource+" "+r.Name, r.Completed, "%d writes within %s", len(times), loopSpan)
		}
	}
}
