// Package nodeclaimguard marks the NodeClaims that Karpenter may not delete for an interruption:
// those of nodes whose policy delays or refuses a drain. The chart's admission policy
// lifeboat-karpenter enforces the mark, which is a time, so that the guard ends without Lifeboat.
package nodeclaimguard

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

// notReadyLimit is how long a guarded node may be not Ready. Karpenter then collects
// NodeClaims without an instance, as without the guard.
const notReadyLimit = 10 * time.Minute

// facts are what decides about one NodeClaim.
type facts struct {
	policies []v1beta1.InterruptionPolicy
	node     *corev1.Node // nil: it has none
	held     bool         // a person holds the drain of the node
}

// guarded reports whether the NodeClaim has to be guarded.
func (f facts) guarded(now time.Time) bool {
	switch {
	case f.node == nil, f.node.DeletionTimestamp != nil: // a person or the cloud controller manager deleted the Node
		return false
	case notReady(f.node, now):
		return false
	case f.held:
		return true
	}
	_, what := policy.Restriction(f.policies, f.node)
	return what != ""
}

func notReady(node *corev1.Node, now time.Time) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status != corev1.ConditionTrue && now.Sub(c.LastTransitionTime.Time) >= notReadyLimit
		}
	}
	return false
}

// mark returns the value that the annotation has to have; unchanged if it is near enough.
// An empty value removes it.
func mark(current string, guarded bool, now time.Time, limit time.Duration) (value string, change bool) {
	if !guarded {
		return "", current != ""
	}
	until, err := time.Parse(time.RFC3339, current)
	left := until.Sub(now)
	if err == nil && left > limit*2/3 && left <= limit {
		return current, false
	}
	return now.Add(limit).UTC().Truncate(time.Second).Format(time.RFC3339), true
}
