package replacement

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// needs returns what pods ask of the node that they run on, in words that
// Karpenter can launch by. The pods share the doomed node, so there is always a
// node that suits them all; of several terms, the one that the doomed node meets
// is taken.
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

// launchable reports whether Karpenter can launch by a key.
func launchable(key string, pool *Pool) bool {
	return isKnown(key) || slices.ContainsFunc(pool.requirements, func(r requirement) bool { return r.Key == key })
}

// metTerm returns what the first of a pod's required terms says that the node
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

// meets reports whether labels meet all of a term's expressions. An empty term
// is met by none (Kubernetes API, NodeSelectorTerm).
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
	return false // an operator that a later Kubernetes knows
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

// claimsVolume reports whether a pod has, or brings, a PersistentVolumeClaim. Its
// volume may be bound to the zone that it is in, so the zone is kept.
func claimsVolume(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil || v.Ephemeral != nil
	})
}

// exclusion keeps a replacement from being launched as what is being reclaimed.
type exclusion struct {
	requirements []requirement
	// say is a clause on what is excluded, or why nothing is.
	say string
}

// exclude chooses what to exclude for a try, counted from 1. Karpenter takes keys
// apart and no pairs of type and zone, so first it is the type, wherever; then,
// since that found no capacity, the zone, whatever type; then nothing.
func exclude(doomed map[string]string, all []requirement, try int32) exclusion {
	for _, key := range []string{corev1.LabelInstanceTypeStable, corev1.LabelTopologyZone}[min(max(try-1, 0), 2):] {
		value := doomed[key]
		if value == "" || !leaves(all, key, value) {
			continue
		}
		return exclusion{
			requirements: []requirement{{Key: key, Operator: string(corev1.NodeSelectorOpNotIn), Values: []string{value}}},
			say:          "any but " + value,
		}
	}
	if try > 1 {
		return exclusion{say: "also what is being reclaimed, since nothing else was to be had"}
	}
	return exclusion{say: "also what is being reclaimed, since the NodePool or the pods allow nothing else"}
}

// leaves reports whether enough values of a key are left without one.
func leaves(all []requirement, key, without string) bool {
	values, named := allowed(all, key)
	if !named {
		return true
	}
	left := slices.DeleteFunc(values, func(v string) bool { return v == without })
	return len(left) >= leastOf(all, key)
}
