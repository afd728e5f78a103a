package drain

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// kindNone is the kind of pods without a controller.
const kindNone = "None"

// workload is a workload of the policy, compiled for matching pods.
type workload struct {
	*v1beta1.Workload
	position int // counted from 1
	selector labels.Selector
}

// compile prepares workloads for matching. A workload with a malformed selector matches nothing;
// the policy's condition Accepted reports it.
func compile(all []v1beta1.Workload) []workload {
	compiled := make([]workload, 0, len(all))
	for i := range all {
		w := workload{Workload: &all[i], position: i + 1, selector: labels.Everything()}
		if w.Selector != nil {
			selector, err := metav1.LabelSelectorAsSelector(w.Selector)
			if err != nil {
				continue
			}
			w.selector = selector
		}
		compiled = append(compiled, w)
	}
	return compiled
}

// treatmentOf returns the first workload that matches the pod, or nil.
func treatmentOf(all []workload, c *podState) *workload {
	for i := range all {
		if all[i].matches(c) {
			return &all[i]
		}
	}
	return nil
}

func (w *workload) matches(c *podState) bool {
	switch {
	case len(w.Namespaces) > 0 && !slices.Contains(w.Namespaces, c.pod.Namespace),
		!w.selector.Matches(labels.Set(c.pod.Labels)):
		return false
	}
	return len(w.MatchOwnerKinds) == 0 || slices.ContainsFunc(w.MatchOwnerKinds, c.isOf)
}

// isOf reports whether a controller of that kind controls the pod. A pod is a Deployment's if it
// is a ReplicaSet's and has the label pod-template-hash; a surged pod was one.
func (c *podState) isOf(kind string) bool {
	if c.surged != nil {
		return kind == kindReplicaSet || kind == kindDeployment
	}
	owner := metav1.GetControllerOfNoCopy(c.pod)
	switch {
	case owner == nil:
		return kind == kindNone
	case kind == kindDeployment && owner.Kind == kindReplicaSet:
		_, ok := c.pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
		return ok
	}
	return kind == owner.Kind
}

// title names the workload as `lifeboat explain` does: by its position, and its name if any.
func (w *workload) title() string {
	if w.Name == "" {
		return fmt.Sprintf("workload %d", w.position)
	}
	return fmt.Sprintf("workload %d, %s", w.position, w.Name)
}

// strategyOf returns how the pod is moved. A surged pod, which no ReplicaSet controls, never stays.
func (s *planContext) strategyOf(c *podState) v1beta1.Strategy {
	strategy := s.facts.Strategy
	if c.treatment != nil && c.treatment.Strategy != "" {
		strategy = c.treatment.Strategy
	} else if s.facts.Storm != "" && c.surged == nil && strategy == v1beta1.StrategySurge {
		strategy, c.whyUnsurged = v1beta1.StrategyEvict, s.facts.Storm
	}
	if strategy == v1beta1.StrategyNever && c.surged != nil {
		return v1beta1.StrategyEvict
	}
	return strategy
}

func leftInPlace(_ *planContext, c *podState) (Verdict, bool) {
	if c.strategy != v1beta1.StrategyNever {
		return Verdict{}, false
	}
	reason := "stays: policy leaves it where it is"
	if c.treatment != nil && c.treatment.Strategy != "" {
		reason += " (" + c.treatment.title() + ")"
	}
	return say(StepStays, reason)
}
