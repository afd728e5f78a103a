package judge

import (
	"slices"
	"time"
)

// job is a Job from its creation on.
type job struct {
	jobObject
	failed  time.Time // zero: it has not
	because string
}

func (h *History) replayJob(r Request) error {
	key := r.Namespace + "/" + r.Name
	if r.Verb == "delete" {
		return nil // the log has what the Job was
	}
	var o jobObject
	if ok, err := h.decodeAfter(r, &o); !ok || err != nil || o.Metadata.Name == "" {
		return err
	}
	j := h.jobs[key]
	if j != nil && j.Metadata.UID != o.Metadata.UID {
		h.former, j = append(h.former, j), nil
	}
	if j == nil {
		j = &job{}
		h.jobs[key] = j
	}
	j.jobObject = o
	// FailureTarget comes first, while pods of the Job still stop.
	for _, c := range o.Status.Conditions {
		if j.failed.IsZero() && c.Status == "True" && (c.Type == "FailureTarget" || c.Type == "Failed") {
			j.failed, j.because = r.Received, c.Reason
		}
	}
	return nil
}

func (p *pod) ownedBy(j *job) bool {
	return p.Metadata.Namespace == j.Metadata.Namespace && slices.ContainsFunc(p.Metadata.OwnerReferences, func(o owner) bool {
		return o.Kind == "Job" && o.Name == j.Metadata.Name && o.UID == j.Metadata.UID
	})
}

func (p *pod) isOfJob() bool {
	return slices.ContainsFunc(p.Metadata.OwnerReferences, func(o owner) bool { return o.Kind == "Job" })
}

func disruptionStated(h *History, found report) {
	for _, p := range h.pods {
		if !p.isOfJob() || p.gone.IsZero() || !p.disrupted.IsZero() && !p.disrupted.After(p.gone) {
			continue
		}
		for _, a := range p.asks {
			if !a.accepted() {
				continue
			}
			// The API server itself writes the condition with an eviction. What another client deletes first is
			// no disruption.
			if a.forced && a.ours && !a.Received.After(p.gone) && !h.refusedToState(p, a.Received) {
				found(p.key(), a.Received, "deleted, and its status did not say %s before it was gone", conditionDisrupted)
			}
			break
		}
	}
}

// statusTime is how long before a deletion Lifeboat writes the condition. It retries nothing at a last call.
const statusTime = 5 * time.Second

// refusedToState reports whether the API server refused what Lifeboat wrote to the status of a pod just before
// a time. The pod's last call does not wait for that.
func (h *History) refusedToState(p *pod, at time.Time) bool {
	return slices.ContainsFunc(h.requests, func(r Request) bool {
		return r.Resource == "pods" && r.Subresource == "status" && h.ours(r) && !r.accepted() && r.Namespace+"/"+r.Name == p.key() &&
			!r.Received.After(at) && r.Received.After(at.Add(-statusTime))
	})
}

func jobsGoOn(h *History, found report) {
	all := slices.Clone(h.former)
	for _, j := range h.jobs {
		all = append(all, j)
	}
	for _, j := range all {
		if j.failed.IsZero() || !j.ignoresDisruption() || j.because == "DeadlineExceeded" {
			continue
		}
		interrupted, others := "", false
		for _, p := range h.pods {
			switch {
			case !p.ownedBy(j) || p.Status.Phase == "Succeeded" || !p.leaves(j.failed):
			case h.isInterrupted(p, j.failed):
				interrupted = p.key()
			default:
				others = true // it failed, or another client deleted it
			}
		}
		if interrupted != "" && !others {
			found(j.Metadata.Namespace+"/"+j.Metadata.Name, j.failed, "failed (%s) after pod %s was interrupted, and ignores %s", j.because, interrupted, conditionDisrupted)
		}
	}
}

// leaves reports whether a pod is gone by a time, or is asked to go: a Job can count either as a failure. When a
// Job fails it deletes its other pods, after it has said so.
func (p *pod) leaves(by time.Time) bool {
	return !p.gone.IsZero() && !p.gone.After(by) || p.askedBy(by)
}

// isInterrupted reports whether Lifeboat asked a pod to stop by a time, or an Interruption drains its node.
func (h *History) isInterrupted(p *pod, by time.Time) bool {
	if slices.ContainsFunc(p.asks, func(a ask) bool { return a.ours && a.accepted() && !a.Received.After(by) }) {
		return true
	}
	at := by
	if !p.gone.IsZero() && p.gone.Before(by) {
		at = p.gone
	}
	n := h.lastNamed(p.Spec.NodeName, at)
	if n == nil {
		return false
	}
	r := h.recordAt(n.instance(), at)
	return r != nil && r.drains() && !r.finished()
}

// lastNamed returns the last node of a name by a time, also if it is deleted by then.
func (h *History) lastNamed(name string, by time.Time) (last *node) {
	for _, n := range h.allNodes() {
		if n.name == name && n.before(by) != nil && (last == nil || n.versions[0].at.After(last.versions[0].at)) {
			last = n
		}
	}
	return last
}
