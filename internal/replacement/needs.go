package replacement

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// needs returns the node requirements of the pods that Karpenter can launch by.
// All pods run on the interrupted node, so some node satisfies them all. Of
// several affinity terms it takes the one that this node meets.
func needs(pods []*corev1.Pod, node *corev1.Node, pool *Pool) []requirement {
	var found []requirement
	add := func(r requirement) {
		if !launchable(r.Key, pool) || slices.ContainsFunc(found, r.equal) {
			return
		}
		found = append(found, r)
	}
	for _, pod := range pods {
		for _, key := range sortedKeys(pod.Spec.NodeSelector) {
			add(requirement{Key: key, Operator: string(corev1.NodeSelectorOpIn), Values: []string{pod.Spec.NodeSelector[key]}})
		}
		for _, e := range metTerm(pod, node) {
			add(requirement{Key: e.Key, Operator: string(e.Operator), Values: e.Values})
		}
		if zone := node.Labels[corev1.LabelTopologyZone]; zone != "" && claimsVolume(pod) {
			add(requirement{Key: corev1.LabelTopologyZone, Operator: string(corev1.NodeSelectorOpIn), Values: []string{zone}})
		}
	}
	return found
}

// launchable reports whether Karpenter can launch by a label key.
func launchable(key string, pool *Pool) bool {
	return isKnown(key) || slices.ContainsFunc(pool.requirements, func(r requirement) bool { return r.Key == key })
}

// metTerm returns the expressions of the first required term that the node
// meets.
func metTerm(pod *corev1.Pod, node *corev1.Node) []corev1.NodeSelectorRequirement {
	for _, term := range requiredTerms(pod) {
		if len(term.MatchFields) == 0 && meets(node, term.MatchExpressions) {
			return term.MatchExpressions
		}
	}
	return nil
}

func requiredTerms(pod *corev1.Pod) []corev1.NodeSelectorTerm {
	a := pod.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
}

// meets reports whether the node's labels meet all expressions of a term. An
// empty term matches no node (Kubernetes API, NodeSelectorTerm).
func meets(node *corev1.Node, expressions []corev1.NodeSelectorRequirement) bool {
	if len(expressions) == 0 {
		return false
	}
	return !slices.ContainsFunc(expressions, func(e corev1.NodeSelectorRequirement) bool { return !meetsOne(node, e) })
}

func meetsOne(node *corev1.Node, e corev1.NodeSelectorRequirement) bool {
	value, there := node.Labels[e.Key]
	switch e.Operator {
	case corev1.NodeSelectorOpIn:
		return there && slices.Contains(e.Values, value)
	case corev1.NodeSelectorOpNotIn:
		return !there || !slices.Contains(e.Values, value)
	case corev1.NodeSelectorOpExists:
		return there
	case corev1.NodeSelectorOpDoesNotExist:
		return !there
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		return there && compares(value, e)
	}
	return false // an unknown operator of a later Kubernetes
}

func compares(value string, e corev1.NodeSelectorRequirement) bool {
	if len(e.Values) != 1 {
		return false
	}
	is, err1 := strconv.ParseInt(value, 10, 64)
	than, err2 := strconv.ParseInt(e.Values[0], 10, 64)
	if err1 != nil || err2 != nil {
		return false
	}
	if e.Operator == corev1.NodeSelectorOpGt {
		return is > than
	}
	return is < than
}

// claimsVolume reports whether a pod uses a PersistentVolumeClaim. Its volume
// may be bound to a zone, so the replacement must keep the zone.
func claimsVolume(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil || v.Ephemeral != nil
	})
}

// exclusion prevents a replacement from using the capacity that is being
// reclaimed.
type exclusion struct {
	requirements []requirement
	// note is a clause that says what is excluded, or why nothing is.
	note string
}

// exclude chooses the exclusion for a try, counted from 1. Karpenter
// requirements apply to one key, not to pairs of type and zone. So the first
// try excludes the instance type, the second the zone, and later ones nothing.
func exclude(interrupted map[string]string, all []requirement, try int32) exclusion {
	for _, key := range []string{corev1.LabelInstanceTypeStable, corev1.LabelTopologyZone}[min(max(try-1, 0), 2):] {
		value := interrupted[key]
		if value == "" || !leaves(all, key, value) {
			continue
		}
		return exclusion{
			requirements: []requirement{{Key: key, Operator: string(corev1.NodeSelectorOpNotIn), Values: []string{value}}},
			note:         "any but " + value,
		}
	}
	if try > 1 {
		return exclusion{note: "including the reclaimed capacity, since no other was available"}
	}
	return exclusion{note: "including the reclaimed capacity, since the NodePool or the pods allow no other"}
}

// leaves reports whether enough values of a key remain without one.
func leaves(all []requirement, key, without string) bool {
	values, named := allowed(all, key)
	if !named {
		return true
	}
	left := slices.DeleteFunc(values, func(v string) bool { return v == without })
	return len(left) >= leastOf(all, key)
}
