package autoscaling

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
	// lessonsAtOnce is how many calls to learn from one round may make: a
	// cluster that was never seen is learned in a few rounds.
	lessonsAtOnce = 20
)

// groups is which instance is in which group, as far as it was learned.
type groups struct {
	of   map[string]string    // by instance
	none map[string]time.Time // instances in no group, and when that was asked
}

func newGroups() groups { return groups{of: map[string]string{}, none: map[string]time.Time{}} }

// candidates returns the ids of the instances of nodes that may be in a group.
func candidates(nodes []corev1.Node) []string {
	var ids []string
	for i := range nodes {
		if _, made := nodes[i].Labels[nodePoolLabel]; made {
			continue
		}
		if id := nodeindex.InstanceID(&nodes[i]); id != "" {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// forget drops the instances that are no nodes any more, and what was learned
// too long ago. Ids are sorted.
func (g *groups) forget(ids []string, now time.Time) {
	maps.DeleteFunc(g.of, func(id, _ string) bool { return !contains(ids, id) })
	maps.DeleteFunc(g.none, func(id string, at time.Time) bool { return !contains(ids, id) || now.Sub(at) > noneFor })
}

// learn asks for the groups of instances of which nothing is known. What it
// learned before an error counts.
func (g *groups) learn(ctx context.Context, api API, ids []string, now time.Time) error {
	var unknown []string
	for _, id := range ids {
		if _, asked := g.none[id]; !asked && g.of[id] == "" {
			unknown = append(unknown, id)
		}
	}
	lessons := 0
	for some := range slices.Chunk(unknown, instancesAtOnce) {
		if lessons++; lessons > lessonsAtOnce {
			break
		}
		found, err := api.groupsOf(ctx, some)
		g.know(found, ids)
		if err != nil {
			return err
		}
		for _, id := range some {
			if found[id] == "" {
				g.none[id] = now
			}
		}
	}
	return nil
}

// know notes the groups of instances, of those that are nodes.
func (g *groups) know(found map[string]string, ids []string) {
	for id, group := range found {
		if group != "" && contains(ids, id) {
			g.of[id] = group
			delete(g.none, id)
		}
	}
}

// names returns the groups that have a node in them, sorted.
func (g *groups) names() []string {
	return slices.Compact(slices.Sorted(maps.Values(g.of)))
}

// contains reports whether a sorted list does.
func contains(sorted []string, id string) bool {
	_, found := slices.BinarySearch(sorted, id)
	return found
}
