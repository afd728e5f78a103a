package scenario

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// deploymentTrack is the observed data of one Deployment.
type deploymentTrack struct {
	name      string
	available int // replicas that its status calls available
	least     int // available replicas that its rollout strategy allows at the least
}

// Deployment records the status of a Deployment.
func (w *World) Deployment(d *appsv1.Deployment, gone bool) {
	key := workloadKey("Deployment", d.Namespace, d.Name)
	if gone {
		delete(w.deployments, key)
		return
	}
	w.deployments[key] = deploymentTrack{d.Name, int(d.Status.AvailableReplicas), leastAvailable(d)}
}

// leastAvailable is the number of replicas below which a rollout never goes, as the Deployment
// controller calculates it: maxUnavailable is rounded down, and is 1 if both limits are 0
// (k8s.io/kubernetes, pkg/controller/deployment/util, ResolveFenceposts).
func leastAvailable(d *appsv1.Deployment) int {
	replicas, rolling := int(wanted(d.Spec.Replicas)), d.Spec.Strategy.RollingUpdate
	if rolling == nil || rolling.MaxUnavailable == nil {
		return 0 // the strategy Recreate; the API server sets the default of the other
	}
	unavailable, err := intstr.GetScaledValueFromIntOrPercent(rolling.MaxUnavailable, replicas, false)
	if err != nil {
		return 0 // the API server rejects invalid values
	}
	if unavailable == 0 && rolling.MaxSurge != nil {
		if surge, err := intstr.GetScaledValueFromIntOrPercent(rolling.MaxSurge, replicas, true); err == nil && surge == 0 {
			unavailable = 1
		}
	}
	return max(replicas-unavailable, 0)
}

// deploymentAvailable bounds the available replicas in the status of Deployments of a name, which
// dashboards, alerts and autoscalers read.
type deploymentAvailable struct {
	Name, Op string
	N        int
}

func (c deploymentAvailable) Holds(w *World) (bool, string) {
	for _, d := range w.deployments {
		if d.name == c.Name {
			return compare(d.available, c.Op, c.N), fmt.Sprintf("available=%d", d.available)
		}
	}
	return false, "there is no Deployment " + c.Name
}

// deploymentsServing: every Deployment has as many Ready pods as it wants. A surged pod counts, because
// Services route to it. A pod that stops does not count.
type deploymentsServing struct{}

func (deploymentsServing) Holds(w *World) (bool, string) {
	return w.eachDeployment(func(key string, d deploymentTrack) string {
		s := w.services[key]
		if s == nil {
			return ""
		}
		if n := w.serving(s.has); n < s.wanted {
			return fmt.Sprintf("%s serves with %d of %d", d.name, n, s.wanted)
		}
		return ""
	})
}

// deploymentsAvailable: the status of no Deployment says less than its rollout strategy allows.
type deploymentsAvailable struct{}

func (deploymentsAvailable) Holds(w *World) (bool, string) {
	return w.eachDeployment(func(_ string, d deploymentTrack) string {
		if d.available < d.least {
			return fmt.Sprintf("the status of %s says %d available, and its rollout strategy allows %d", d.name, d.available, d.least)
		}
		return ""
	})
}

// eachDeployment reports whether nothing is wrong with any Deployment, and that there is one.
func (w *World) eachDeployment(wrong func(key string, d deploymentTrack) string) (bool, string) {
	var found []string
	for key, d := range w.deployments {
		if text := wrong(key, d); text != "" {
			found = append(found, text)
		}
	}
	slices.Sort(found)
	if len(w.deployments) == 0 {
		found = append(found, "there is no Deployment")
	}
	return len(found) == 0, strings.Join(found, "; ")
}

func deploymentCondition(words []string) (Condition, error) {
	const example = "available>=3"
	if len(words) != 2 {
		return nil, fmt.Errorf("deployment goes with a name and a count, as in deployment web %s", example)
	}
	what, op, n, err := bound(words[1], example)
	if err == nil && what != "available" {
		err = fmt.Errorf("unknown count %q: write available, as in deployment web %s", what, example)
	}
	return deploymentAvailable{words[0], op, n}, err
}

func deploymentsCondition(words []string) (Condition, error) {
	switch {
	case slices.Equal(words, []string{"serving"}):
		return deploymentsServing{}, nil
	case slices.Equal(words, []string{"available"}):
		return deploymentsAvailable{}, nil
	}
	return nil, fmt.Errorf("deployments goes with serving or available")
}
