package record

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

// Draining reports whether the node uses a slot of its policy's budget: it is cordoned, and its
// pods or the hooks after the drain are not finished. A hook that has not begun, or is between
// two tries, is not finished. A hook without tries left is finished, even if it holds the drain.
func Draining(s *v1beta1.InterruptionStatus, hooks []v1beta1.Hook) bool {
	if Begun(s).IsZero() {
		return false
	}
	return !meta.IsStatusConditionTrue(s.Conditions, v1beta1.ConditionDrained) ||
		slices.ContainsFunc(hooks, func(h v1beta1.Hook) bool {
			if h.When != v1beta1.HookAfterDrain {
				return false
			}
			how := Hook(Drain(s).Hooks, h.Name)
			return how == nil || how.State == v1beta1.HookRunning || how.CompletionTime == nil
		})
}

// Frees reports whether a change of a record may have freed a slot of its policy's budget, for
// any hooks of the policy.
func Frees(was, is *v1beta1.InterruptionStatus) bool {
	if Begun(was).IsZero() || Draining(is, nil) {
		return false
	}
	return Draining(was, nil) || Begun(is).IsZero() || !equality.Semantic.DeepEqual(Drain(was).Hooks, Drain(is).Hooks)
}

// Surges reports whether some pod may be moved by starting its successor first.
func Surges(d *policy.Decision) bool {
	return d.Strategy == v1beta1.StrategySurge || slices.ContainsFunc(d.Workloads, func(w v1beta1.Workload) bool {
		return w.Strategy == v1beta1.StrategySurge
	})
}
