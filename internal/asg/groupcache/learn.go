package groupcache

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
)

const (
	// nodePoolLabel is on every node that Karpenter launched; such a node is in
	// no Auto Scaling group (Karpenter documentation, "Well-Known Labels").
	nodePoolLabel = "karpenter.sh/nodepool"
	// noneFor is how long the answer "in no group" is valid: the instance may
	// be attached to one later.
	noneFor = time.Hour
	// youngFor is the age of a node up to which that answer is valid for one
	// round only. Auto Scaling may not show a new instance yet: its API is
	// eventually consistent (Amazon EC2 Developer Guide, "Eventual
	// consistency in the Amazon EC2 API").
	youngFor = 10 * time.Minute
	// hadFor is how long a group is polled after its last node is gone: a hook
	// may still hold its instances, and new ones may launch.
	hadFor = time.Hour
	// lookupsAtOnce bounds the lookup calls of one round: an unknown cluster
	// takes a few rounds.
	lookupsAtOnce = 20
)

// membership maps instances to groups, as far as known.
type membership struct {
	of   map[string]string    // by instance
	none map[string]time.Time // instances in no group, and when that was read
	had  map[string]time.Time // groups, and when they last had a node
}

func newMembership() membership {
	return membership{of: map[string]string{}, none: map[string]time.Time{}, had: map[string]time.Time{}}
}

// InstancesOf returns the sorted instance ids of nodes that may be in a group.
func InstancesOf(nodes []*corev1.Node) []string {
	var ids []string
	for _, node := range nodes {
		if MayBeInGroup(node) {
			ids = append(ids, nodeindex.InstanceID(node))
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// MayBeInGroup reports whether a node's instance may be in a group.
func MayBeInGroup(node *corev1.Node) bool {
	_, made := node.Labels[nodePoolLabel]
	return !made && nodeindex.InstanceID(node) != ""
}

// youngOf returns the instances of nodes that joined less than youngFor ago.
func youngOf(nodes []*corev1.Node, now time.Time) map[string]bool {
	young := map[string]bool{}
	for _, node := range nodes {
		if now.Sub(node.CreationTimestamp.Time) < youngFor {
			young[nodeindex.InstanceID(node)] = true
		}
	}
	return young
}

// forget drops instances that are no longer nodes, and expired entries. ids is
// sorted.
func (l *membership) forget(ids []string, now time.Time) {
	maps.DeleteFunc(l.of, func(id, _ string) bool { return !contains(ids, id) })
	maps.DeleteFunc(l.none, func(id string, at time.Time) bool { return !contains(ids, id) || now.Sub(at) > noneFor })
	for _, group := range l.of {
		l.had[group] = now
	}
	maps.DeleteFunc(l.had, func(_ string, at time.Time) bool { return now.Sub(at) > hadFor })
}

// learn looks up the groups of unknown instances. Results before an error are
// kept. It does not remember that a young instance is in no group.
func (l *membership) learn(ctx context.Context, ask func(context.Context, []string) (map[string]string, error), ids []string, young map[string]bool, now time.Time) error {
	var unknown []string
	for _, id := range ids {
		if _, asked := l.none[id]; !asked && l.of[id] == "" {
			unknown = append(unknown, id)
		}
	}
	calls := 0
	for some := range slices.Chunk(unknown, instancesAtOnce) {
		if calls++; calls > lookupsAtOnce {
			break
		}
		found, err := ask(ctx, some)
		l.know(found, ids, now)
		if err != nil {
			return err
		}
		for _, id := range some {
			if found[id] == "" && !young[id] {
				l.none[id] = now
			}
		}
	}
	return nil
}

// know stores the groups of those instances that are nodes.
func (l *membership) know(found map[string]string, ids []string, now time.Time) {
	for id, group := range found {
		if group != "" && contains(ids, id) {
			l.of[id] = group
			delete(l.none, id)
			if _, ok := l.had[group]; !ok {
				l.had[group] = now
			}
		}
	}
}

// names returns the groups that have or recently had a node, sorted.
func (l *membership) names() []string { return slices.Sorted(maps.Keys(l.had)) }

// contains reports whether a sorted list contains id.
func contains(sorted []string, id string) bool {
	_, found := slices.BinarySearch(sorted, id)
	return found
}
