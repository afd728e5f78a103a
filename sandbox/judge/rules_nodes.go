package judge

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// eachNodeWrite calls f for every change of a node by Lifeboat.
func (h *History) eachNodeWrite(f func(n *node, was, is version[nodeObject])) {
	for _, n := range h.allNodes() {
		for i := 1; i < len(n.versions); i++ {
			if n.versions[i].by == h.o.Controller {
				f(n, n.versions[i-1], n.versions[i])
			}
		}
	}
}

func interruptedTaint(o nodeObject) bool {
	return slices.ContainsFunc(o.Spec.Taints, func(t taint) bool { return t.Key == taintInterrupted })
}

func foreignNodes(h *History, found report) {
	h.eachNodeWrite(func(n *node, was, is version[nodeObject]) {
		cordons := is.object.Spec.Unschedulable && !was.object.Spec.Unschedulable || interruptedTaint(is.object) && !interruptedTaint(was.object)
		if cordons && h.recordAt(n.instance(), is.at) == nil {
			found(n.name, is.at, "cordoned, and its instance has no Interruption")
		}
	})
}

func ownNodeFields(h *History, found report) {
	h.eachNodeWrite(func(n *node, was, is version[nodeObject]) {
		if what := foreignChange(was.object, is.object); what != "" {
			found(n.name, is.at, "Lifeboat changed its %s", what)
		}
	})
}

// foreignChange names what differs between two states of a node and is not Lifeboat's.
func foreignChange(a, b nodeObject) string {
	switch {
	case a.Spec.ProviderID != b.Spec.ProviderID:
		return "provider ID"
	case !reflect.DeepEqual(foreign(a.Metadata.Labels, labelNoBalancer), foreign(b.Metadata.Labels, labelNoBalancer)):
		return "labels"
	case !reflect.DeepEqual(foreign(a.Metadata.Annotations, annotationProtect), foreign(b.Metadata.Annotations, annotationProtect)):
		return "annotations"
	case !slices.Equal(foreignTaints(a), foreignTaints(b)):
		return "taints"
	}
	return ""
}

// foreign returns the entries that are not Lifeboat's.
func foreign(all map[string]string, own string) map[string]string {
	out := maps.Clone(all)
	maps.DeleteFunc(out, func(k, _ string) bool { return k == own || strings.HasPrefix(k, ownPrefix) })
	if len(out) == 0 {
		return nil
	}
	return out
}

func foreignTaints(o nodeObject) []taint {
	return slices.DeleteFunc(slices.Clone(o.Spec.Taints), func(t taint) bool {
		// Kubernetes adds this one for spec.unschedulable, and others for conditions.
		return strings.HasPrefix(t.Key, ownPrefix) || strings.HasPrefix(t.Key, "node.kubernetes.io/")
	})
}

// nodeRestored compares a node that lives with what it was before Lifeboat first changed it. It
// looks only at what Lifeboat changes: others may have changed the rest meanwhile.
func nodeRestored(h *History, found report) {
	for _, n := range h.nodes {
		first := slices.IndexFunc(n.versions, func(v version[nodeObject]) bool { return v.by == h.o.Controller })
		if !n.deleted.IsZero() || h.isOff(n.instance()) || first < 1 || !h.isOver(n.instance()) {
			continue
		}
		was, is := n.versions[first-1].object, n.last()
		_, hidden := was.Metadata.Labels[labelNoBalancer]
		_, hides := is.Metadata.Labels[labelNoBalancer]
		if is.Spec.Unschedulable != was.Spec.Unschedulable || interruptedTaint(*is) || hidden != hides {
			found(n.name, n.versions[len(n.versions)-1].at, "its Interruption is over, and it stays cordoned or marked")
			continue
		}
		for _, left := range leftovers(was, *is) {
			found(n.name, n.versions[len(n.versions)-1].at, "its Interruption is over, and %s stays", left)
		}
	}
}

// leftovers names what of Lifeboat a node has, and did not have before.
func leftovers(was, is nodeObject) (all []string) {
	for _, pair := range []struct {
		what    string
		was, is map[string]string
	}{{"the label ", was.Metadata.Labels, is.Metadata.Labels}, {"the annotation ", was.Metadata.Annotations, is.Metadata.Annotations}} {
		for _, key := range slices.Sorted(maps.Keys(pair.is)) {
			if _, before := pair.was[key]; !before && (strings.HasPrefix(key, ownPrefix) || key == annotationProtect) {
				all = append(all, pair.what+key)
			}
		}
	}
	for _, t := range is.Spec.Taints {
		if strings.HasPrefix(t.Key, ownPrefix) && !slices.Contains(was.Spec.Taints, t) {
			all = append(all, "the taint "+t.Key)
		}
	}
	return all
}

// isOver reports whether the Interruption of an instance is completed since a while, or deleted.
func (h *History) isOver(instance string) bool {
	i := h.records[instance]
	if i == nil || i.deleted.IsZero() && !i.last().finished() {
		return false
	}
	settled := i.versions[len(i.versions)-1].at.Add(h.o.Delay)
	return !i.deleted.IsZero() || h.o.End.IsZero() || !settled.After(h.o.End)
}

// isOff reports whether an instance has lost its power.
func (h *History) isOff(instance string) bool {
	return slices.ContainsFunc(h.cloud, func(e CloudEvent) bool {
		return e.Instance == instance && (e.Kind == PowerOff || e.Kind == Terminate)
	})
}

// without reports whether a node's instance has no power at a time. Its pods have ended, and their
// objects are only removed.
func (h *History) without(n *node, t time.Time) bool {
	return n != nil && slices.ContainsFunc(h.cloud, func(e CloudEvent) bool {
		return e.Instance == n.instance() && e.Kind == PowerOff && !e.Time.After(t)
	})
}

func oneReplacement(h *History, found report) {
	alive := func(c *claim, t time.Time) bool {
		return !c.created.After(t) && (c.deleted.IsZero() || c.deleted.After(t))
	}
	for name, c := range h.claims {
		of := c.Metadata.Annotations[claimInterruption]
		if c.createdBy != h.o.Controller || of == "" {
			continue
		}
		for other, d := range h.claims {
			if other != name && d.createdBy == h.o.Controller && d.Metadata.Annotations[claimInterruption] == of &&
				d.created.Before(c.created) && alive(d, c.created) {
				found(name, c.created, "created for %s, which has the replacement %s already", of, other)
			}
		}
	}
}

func claimDeletedForNotice(h *History, found report) {
	for name, c := range h.claims {
		if c.deletedBy != h.o.Controller || c.createdBy == h.o.Controller {
			continue
		}
		if r := h.recordAt(instanceOf(c.Status.ProviderID), c.deleted); r == nil || !r.drains() || r.isDrill() {
			found(name, c.deleted, "deleted, and no notice drains its instance %s", instanceOf(c.Status.ProviderID))
		}
	}
}
