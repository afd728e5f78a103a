package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// What Karpenter puts on nodes and reads from them (Karpenter documentation,
// "Disruption" and "NodeClaims").
const (
	taintUnregistered      = "karpenter.sh/unregistered"
	taintDisrupted         = "karpenter.sh/disrupted"
	annotationDoNotDisrupt = "karpenter.sh/do-not-disrupt"
	tagNodePool            = "karpenter.sh/nodepool"
)

// groupTag is on every instance of an Auto Scaling group (Amazon EC2 Auto Scaling User Guide, "Tag
// Auto Scaling groups and instances").
const (
	karpenterName = "Karpenter"
	groupTag      = "aws:autoscaling:groupName"
)

// machineTrack is the observed data of one instance.
type machineTrack struct{ ending bool }

// claimTrack is the observed data of one NodeClaim.
type claimTrack struct {
	instance  string // "": nothing is launched for it yet
	protected bool
	deleting  bool
}

// Machine records an instance, and whether its end has begun.
func (w *World) Machine(instance string, ending bool) {
	w.machines[instance] = &machineTrack{ending: ending}
}

// Provisioned records an instance that Karpenter or a group launched. Until the script names it,
// its id is its name.
func (w *World) Provisioned(t time.Time, by, instance, node, what string) []Moment {
	if w.byInstance(instance) != nil {
		return nil
	}
	n := &nodeTrack{name: instance, instance: instance, node: node, provisioned: by == karpenterName}
	w.nodes[n.name], w.byNode[node] = n, n
	w.unnamed = append(w.unnamed, n)
	return []Moment{w.moment(t, MomentLaunched, n.name, "", by+" launches "+what)}
}

// Name gives a name to the first launched instance without one, and returns its id; "": there is
// none.
func (w *World) Name(name string) (instance string) {
	if len(w.unnamed) == 0 {
		return ""
	}
	n := w.unnamed[0]
	w.unnamed = w.unnamed[1:]
	delete(w.nodes, n.name)
	n.name = name
	w.nodes[name] = n
	return n.instance
}

// called is the script's name of an instance, or its id.
func (w *World) called(instance string) string {
	if n := w.byInstance(instance); n != nil {
		return n.name
	}
	return instance
}

// Claim records a NodeClaim at time t; gone means that it was deleted.
func (w *World) Claim(t time.Time, claim *unstructured.Unstructured, gone bool) []Moment {
	name := claim.GetName()
	c := w.claims[name]
	if gone {
		delete(w.claims, name)
		if c == nil {
			return nil
		}
		return []Moment{w.moment(t, MomentClaim, w.of(c), "", "NodeClaim "+name+" is gone")}
	}
	var out []Moment
	if c == nil {
		c = &claimTrack{}
		w.claims[name] = c
		out = append(out, w.moment(t, MomentClaim, "", "", "NodeClaim "+name+" is made"+w.inPlaceOf(claim)))
	}
	before := *c
	id, _, _ := unstructured.NestedString(claim.Object, "status", "providerID") // another type counts as none
	c.instance = id[strings.LastIndex(id, "/")+1:]
	c.protected = claim.GetAnnotations()[annotationDoNotDisrupt] == "true"
	c.deleting = claim.GetDeletionTimestamp() != nil
	if c.deleting && !before.deleting {
		out = append(out, w.moment(t, MomentClaim, w.of(c), "", "NodeClaim "+name+" is being deleted: Karpenter terminates its instance"))
	}
	return out
}

// of is the script's name of the node of a NodeClaim, or "".
func (w *World) of(c *claimTrack) string {
	if c.instance == "" {
		return ""
	}
	return w.called(c.instance)
}

// inPlaceOf describes the node for which Lifeboat made a NodeClaim, if it did.
func (w *World) inPlaceOf(claim *unstructured.Unstructured) string {
	instance := claim.GetLabels()[v1beta1.LabelReplacesInstance]
	if instance == "" {
		return ""
	}
	return " by Lifeboat, to replace " + w.called(instance)
}

// protected reports whether a node's Node or NodeClaim forbids Karpenter to disrupt it.
func (w *World) protected(n *nodeTrack) bool {
	for _, c := range w.claims {
		if c.protected && c.instance == n.instance {
			return true
		}
	}
	return n.protected
}

// recordProtection records whether a Node forbids Karpenter to disrupt it.
func (w *World) recordProtection(t time.Time, n *nodeTrack, node *corev1.Node) []Moment {
	before := n.protected
	n.protected = node.Annotations[annotationDoNotDisrupt] == "true"
	switch {
	case n.protected && !before:
		return []Moment{w.moment(t, MomentProtected, n.name, "", "protected: Karpenter may not disrupt the node")}
	case before && !n.protected:
		return []Moment{w.moment(t, MomentOpen, n.name, "", "no longer protected: Karpenter may disrupt the node")}
	default:
		return nil
	}
}

// keepsPodsOff reports whether a taint is Karpenter's on a node that it is about to terminate.
func keepsPodsOff(t corev1.Taint) bool {
	return t.Key == taintDisrupted && t.Effect == corev1.TaintEffectNoSchedule
}

// joining reports whether a taint keeps the scheduler off a Node until it is in service.
func joining(t corev1.Taint) bool {
	return slices.Contains([]string{corev1.TaintNodeNotReady, taintUnregistered, v1beta1.TaintNotInService}, t.Key)
}

// describeMachine describes an instance.
func describeMachine(id, typeName, zone, lifecycle string) string {
	if lifecycle == "" {
		lifecycle = "on-demand"
	}
	return fmt.Sprintf("%s: %s %s in %s", id, lifecycle, typeName, zone)
}
