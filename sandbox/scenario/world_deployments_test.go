package scenario

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// deployment is a Deployment as the API server returns it.
func deployment(name string, replicas, available int32, maxUnavailable, maxSurge intstr.IntOrString) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Strategy: appsv1.DeploymentStrategy{
				Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: &maxUnavailable, MaxSurge: &maxSurge},
			},
		},
		Status: appsv1.DeploymentStatus{AvailableReplicas: available},
	}
}

func quarter() intstr.IntOrString { return intstr.FromString("25%") }

// Each case plants what a defect would do, or what a correct drain does.
func TestDeploymentConditionsFindPlantedDefects(t *testing.T) {
	for _, tc := range []struct {
		name   string
		see    func(w *World)
		holds  bool
		reason string
	}{
		{"nothing happens", func(*World) {}, true, ""},
		{"a pod leaves before its successor is Ready", func(w *World) {
			w.Pod(at(1), deleted(replica("web", "w1", "node-a"), 30), false)
		}, false, "web serves with 1 of 2"},
		{"a pod leaves after its successor is Ready", func(w *World) {
			w.Pod(at(20), replica("web", "w3", "node-b"), false)
			w.Pod(at(21), deleted(replica("web", "w1", "node-a"), 30), false)
		}, true, ""},
		{"the machine of a pod loses power", func(w *World) { w.PowerLost(at(120), "i-a") }, false, "web serves with 0 of 2"},
		{"the surged pod serves, and the status counts only the other one", func(w *World) {
			recordDeployment(w, at(5), deployment("web", 2, 1, intstr.FromInt32(1), quarter()), false)
		}, true, ""},
		{"too many pods are surged at a time", func(w *World) {
			recordDeployment(w, at(5), deployment("web", 2, 0, intstr.FromInt32(1), quarter()), false)
		}, false, "the status of web says 0 available, and its rollout strategy allows 1"},
		{"a pod of another Deployment leaves", func(w *World) {
			recordDeployment(w, at(0), deployment("other", 1, 1, quarter(), quarter()), false)
			w.Pod(at(3), deleted(replica("other", "o1", "node-b"), 30), false)
		}, false, "other serves with 0 of 1"},
		{"the Deployment is deleted", func(w *World) {
			recordDeployment(w, at(5), deployment("web", 2, 2, quarter(), quarter()), true)
		}, false, "there is no Deployment"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := served()
			recordDeployment(w, at(-5), deployment("web", 2, 2, intstr.FromInt32(1), quarter()), false)
			tc.see(w)
			serving, why := (deploymentsServing{}).Holds(w)
			available, whyNot := (deploymentsAvailable{}).Holds(w)
			if why == "" || whyNot != "" && whyNot != why {
				why += whyNot
			}
			if ok := serving && available; ok != tc.holds || why != tc.reason {
				t.Errorf("holds %v, %q; want %v, %q", ok, why, tc.holds, tc.reason)
			}
		})
	}
}

func TestRolloutStrategyLimitsAvailableReplicas(t *testing.T) {
	number := intstr.FromInt32
	for _, tc := range []struct {
		name               string
		replicas           int32
		unavailable, surge intstr.IntOrString
		want               int
	}{
		{"a quarter of six is one", 6, quarter(), quarter(), 5},
		{"a quarter of twelve is three", 12, quarter(), quarter(), 9},
		{"a quarter of one is none", 1, quarter(), quarter(), 1},
		{"both limits are zero", 3, number(0), number(0), 2},
		{"more than there are", 2, number(5), number(1), 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := leastAvailable(deployment("web", tc.replicas, 0, tc.unavailable, tc.surge)); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
	recreate := deployment("web", 3, 0, quarter(), quarter())
	recreate.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	if got := leastAvailable(recreate); got != 0 {
		t.Errorf("Recreate: got %d, want 0", got)
	}
}
