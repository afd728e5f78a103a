package groupwatch

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/internal/nodeindex"
)

const (
	// nodePoolLabel is on every node that Karpenter made, which is in no Auto
	// Scaling group (Karpenter documentation, "Well-Known Labels").
	nodePoolLabel = "karpenter.sh/nodepool"
	// noneFor is how long it stands that an instance is in no group: somebody
	// may attach it to one.
	noneFor = time.Hour
	// hadFor is how long a group is looked at after its last node is gone: its
	// instances may still wait to be let go, and new ones come.
	hadFor = time.Hour
	// lessonsAtOnce is how many calls to learn from one round may make: a
	// cluster that was never seen is learned in a few rounds.
	lessonsAtOnce = 20
)

// lessons is which instance is in which group, as far as it was learned.
type lessons struct {
	of   map[string]string    // by instance
	none map[string]time.Time // instances in no group, and when that was asked
	had  map[string]time.Time // groups, and when they last had a node
}

func newLessons() lessons {
	return lessons{of: map[string]string{}, none: map[string]time.Time{}, had: map[string]time.Time{}}
}

// InstancesOf returns the ids of the instances of nodes that may be in a group,
// sorted.
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

// MayBeInGroup reports whether a node is of an instance that may be in a group.
func MayBeInGroup(node *corev1.Node) bool {
	_, made := node.Labels[nodePoolLabel]
	return !made && nodeindex.InstanceID(node) != ""
}

// forget drops the instances that are no nodes any more, and what was learned
// too long ago. Ids are sorted.
func (l *lessons) forget(ids []string, now time.Time) {
	maps.DeleteFunc(l.of, func(id, _ string) bool { return !contains(ids, id) })
	maps.DeleteFunc(l.none, func(id string, at time.Time) bool { return !contains(ids, id) || now.Sub(at) > noneFor })
	for _, group := range l.of {
		l.had[group] = now
	}
	maps.DeleteFunc(l.had, func(_ string, at time.Time) bool { return now.Sub(at) > hadFor })
}

// learn asks for the groups of instances of which nothing is known. What it
// learned before an error counts.
func (l *lessons) learn(ctx context.Context, ask func(context.Context, []string) (map[string]string, error), ids []string, now time.Time) error {
	var unknown []string
	for _, id := range ids {
		if _, asked := l.none[id]; !asked && l.of[id] == "" {
			unknown = append(unknown, id)
		}
	}
	calls := 0
	for some := range slices.Chunk(unknown, instancesAtOnce) {
		if calls++; calls > lessonsAtOnce {
			break
		}
		found, err := ask(ctx, some)
		l.know(found, ids, now)
		if err != nil {
			return err
		}
		for _, id := range some {
			if found[id] == "" {
				l.none[id] = now
			}
		}
	}
	return nil
}

// know notes the groups of instances, of those that are nodes.
func (l *lessons) know(found map[string]string, ids []string, now time.Time) {
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

// names returns the groups that have a node in them, or had, sorted.
func (l *lessons) names() []string { return slices.Sorted(maps.Keys(l.had)) }

// contains reports whether a sorted list does.
func contains(sorted []string, id string) bool {
	_, found := slices.BinarySearch(sorted, id)
	return found
}
