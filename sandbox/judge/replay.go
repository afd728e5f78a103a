package judge

import (
	"encoding/json"
	"reflect"
	"time"
)

func (h *History) replayPod(r Request) error {
	switch {
	case r.Subresource == "eviction":
		return h.replayAsk(r, false)
	case r.Verb == "delete":
		return h.replayAsk(r, true)
	case r.Subresource == "binding":
		return h.replayBinding(r)
	}
	var o podObject
	if ok, err := h.decodeAfter(r, &o); !ok || err != nil || o.Kind == "Status" {
		return err
	}
	p := h.pods[o.Metadata.UID]
	if p == nil {
		p = &pod{created: r.Received}
		h.pods[o.Metadata.UID], h.names[o.Metadata.Namespace+"/"+o.Metadata.Name] = p, p
	}
	p.podObject = o
	p.noteDisruption(r, o)
	if p.gone.IsZero() && o.ended() {
		p.gone = r.Received
	}
	return nil
}

// noteDisruption notes when the status first said that a disruption ends the pod. The response to a deletion says
// it as well: an API server that is killed has stored requests that it has not logged.
func (p *pod) noteDisruption(r Request, o podObject) {
	if p.disrupted.IsZero() && isTrue(o.Status.Conditions, conditionDisrupted) {
		p.disrupted = r.Received
	}
}

// ended reports whether the containers of a pod have ended, or its last finalizer was removed after the
// kubelet had deleted it.
func (o *podObject) ended() bool {
	m := o.Metadata
	deleted := m.DeletionTimestamp != nil && m.DeletionGrace != nil && *m.DeletionGrace == 0 && len(m.Finalizers) == 0
	return o.Status.Phase == "Succeeded" || o.Status.Phase == "Failed" || deleted
}

func (h *History) replayBinding(r Request) error {
	var b struct {
		Metadata struct{ UID string }
		Target   struct{ Name string }
	}
	if ok, err := decode(r.Body, &b); !ok || err != nil {
		return err
	}
	// A StatefulSet reuses names, and the scheduler can be faster than the response to the creation.
	if p := h.pods[b.Metadata.UID]; p != nil {
		p.Spec.NodeName = b.Target.Name
	}
	return nil
}

// replayAsk notes an eviction or a deletion.
func (h *History) replayAsk(r Request, forced bool) error {
	var body struct {
		deleteOptions
		DeleteOptions *deleteOptions
	}
	if _, err := decode(r.Body, &body); err != nil {
		return err
	}
	options := body.deleteOptions
	if body.DeleteOptions != nil {
		options = *body.DeleteOptions
	}
	p, err := h.removed(r, options)
	if p == nil || err != nil {
		return err // created before the observation
	}
	grace := p.grace()
	if options.GracePeriodSeconds != nil {
		grace = time.Duration(*options.GracePeriodSeconds) * time.Second
	}
	var after podObject
	if r.Subresource == "" { // an eviction answers with a Status
		if _, err := decode(r.Object, &after); err != nil {
			return err
		}
		p.noteDisruption(r, after)
	}
	p.asks = append(p.asks, ask{Request: r, grace: grace, forced: forced, ours: h.ours(r)})
	// The kubelet deletes with a grace of zero when the containers have ended.
	if forced && grace == 0 && len(p.Metadata.Finalizers) == 0 && p.gone.IsZero() {
		p.gone = r.Received
	}
	return nil
}

// deleteOptions are those of a deletion or an eviction.
type deleteOptions struct {
	GracePeriodSeconds *int64
	Preconditions      struct{ UID string }
}

// removed returns the pod of a deletion, an eviction or a change. A StatefulSet reuses names, so the UID
// decides where the log has it.
func (h *History) removed(r Request, options deleteOptions) (*pod, error) {
	var answer struct{ Metadata meta }
	if _, err := decode(r.Object, &answer); err != nil {
		return nil, err
	}
	for _, uid := range []string{answer.Metadata.UID, options.Preconditions.UID} {
		if p := h.pods[uid]; p != nil {
			return p, nil
		}
	}
	return h.names[r.Namespace+"/"+r.Name], nil
}

func (h *History) replayNode(r Request) error {
	n := h.nodes[r.Name]
	if r.Verb == "delete" {
		if n != nil {
			n.deleted = r.Received
		}
		return nil
	}
	var o nodeObject
	if ok, err := h.decodeAfter(r, &o); !ok || err != nil || o.Metadata.Name == "" {
		return err
	}
	switch {
	case n == nil:
		n = &node{name: o.Metadata.Name}
		h.nodes[n.name] = n
	case n.last().Metadata.UID != o.Metadata.UID:
		h.gone = append(h.gone, n)
		n = &node{name: o.Metadata.Name}
		h.nodes[n.name] = n
	case sameNode(*n.last(), o):
		return nil // a heartbeat
	}
	n.versions = append(n.versions, version[nodeObject]{r.Received, r.User, o})
	return nil
}

// sameNode reports whether nothing changed that the judge looks at.
func sameNode(a, b nodeObject) bool {
	return reflect.DeepEqual(a.Spec, b.Spec) && reflect.DeepEqual(a.Metadata.Labels, b.Metadata.Labels) &&
		reflect.DeepEqual(a.Metadata.Annotations, b.Metadata.Annotations)
}

func (h *History) replayRecord(r Request) error {
	i := h.records[r.Name]
	if r.Verb == "delete" {
		if i != nil {
			i.deleted, i.deletedBy = r.Received, r.User
		}
		return nil
	}
	var o record
	if ok, err := h.decodeAfter(r, &o); !ok || err != nil || o.Metadata.Name == "" {
		return err
	}
	if i == nil || !i.deleted.IsZero() {
		i = &interruption{}
		h.records[o.Metadata.Name] = i
		i.versions = missed(r, o)
	}
	i.versions = append(i.versions, version[record]{r.Received, r.User, o})
	return nil
}

// missed is the creation of an Interruption that the log lacks: an API server that is killed has stored
// requests that it has not logged. Nothing is known of its status.
func missed(r Request, o record) versions[record] {
	created := o.Metadata.CreationTimestamp
	creates := r.Verb == "create" || r.Subresource == "" && !created.Before(r.Received.Truncate(time.Second)) // or an apply
	if creates || created.IsZero() || created.After(r.Received) {
		return nil
	}
	first := record{Metadata: o.Metadata, Spec: o.Spec}
	return versions[record]{{created, "", first}}
}

// addUnlogged adds an Interruption of which the log has nothing. Its status counts from its creation on: it
// is not known when it was written.
func (h *History) addUnlogged(text json.RawMessage) error {
	var o record
	if ok, err := decode(text, &o); !ok || err != nil || h.records[o.Metadata.Name] != nil {
		return err
	}
	h.records[o.Metadata.Name] = &interruption{versions: versions[record]{{o.Metadata.CreationTimestamp, "", o}}}
	return nil
}

func (h *History) replayClaim(r Request) error {
	c := h.claims[r.Name]
	if r.Verb == "delete" {
		if c != nil && c.deleted.IsZero() {
			c.deleted, c.deletedBy = r.Received, r.User
		}
		return nil
	}
	var o claimObject
	if ok, err := h.decodeAfter(r, &o); !ok || err != nil || o.Metadata.Name == "" {
		return err
	}
	if c == nil {
		c = &claim{createdBy: r.User, created: r.Received}
		h.claims[o.Metadata.Name] = c
	}
	c.claimObject = o
	return nil
}

func (h *History) replayBudget(r Request) error {
	if r.Verb == "delete" {
		delete(h.budgets, r.Namespace+"/"+r.Name)
		return nil
	}
	var o budgetObject
	if ok, err := h.decodeAfter(r, &o); !ok || err != nil || o.Metadata.Name == "" {
		return err
	}
	h.budgets[o.Metadata.Namespace+"/"+o.Metadata.Name] = o
	return nil
}

// decodeAfter decodes the object as it is after a request; false: the log does not say.
func (h *History) decodeAfter(r Request, into any) (bool, error) {
	text, err := h.bodies.of(r)
	if err != nil {
		return false, err
	}
	return decode(text, into)
}
