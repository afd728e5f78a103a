package interruption

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/internal/kube/budgetcache"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/model"
)

// The cache delivers budgets as the planner reads them, so whatever it reads starts a pass.
func TestEachChangeOfABudgetThatThePlannerReadsStartsAPass(t *testing.T) {
	always := policyv1.AlwaysAllow
	for name, c := range map[string]struct {
		change func(b *policyv1.PodDisruptionBudget)
		starts bool
	}{
		"disruptionsAllowed":         {func(b *policyv1.PodDisruptionBudget) { b.Status.DisruptionsAllowed++ }, true},
		"currentHealthy":             {func(b *policyv1.PodDisruptionBudget) { b.Status.CurrentHealthy++ }, true},
		"desiredHealthy":             {func(b *policyv1.PodDisruptionBudget) { b.Status.DesiredHealthy++ }, true},
		"expectedPods":               {func(b *policyv1.PodDisruptionBudget) { b.Status.ExpectedPods++ }, true},
		"observedGeneration":         {func(b *policyv1.PodDisruptionBudget) { b.Status.ObservedGeneration-- }, true},
		"unhealthyPodEvictionPolicy": {func(b *policyv1.PodDisruptionBudget) { b.Spec.UnhealthyPodEvictionPolicy = &always }, true},
		"selector":                   {func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector.MatchLabels["tier"] = "front" }, true},
		"disruptedPods": {func(b *policyv1.PodDisruptionBudget) {
			b.Status.DisruptedPods = map[string]metav1.Time{"web-9": metav1.NewTime(start)}
		}, true},
		"conditions": {func(b *policyv1.PodDisruptionBudget) {
			b.Status.Conditions = []metav1.Condition{{
				Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason, Message: "no scale",
			}}
		}, true},
		"uid": {func(b *policyv1.PodDisruptionBudget) { b.UID = "another" }, true},
		"labels and annotations": {func(b *policyv1.PodDisruptionBudget) {
			b.Labels, b.Annotations, b.ResourceVersion = map[string]string{"a": "b"}, map[string]string{"a": "b"}, "2"
		}, false},
		"time of a condition": {func(b *policyv1.PodDisruptionBudget) {
			b.Status.Conditions = []metav1.Condition{{
				Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(start.Add(time.Hour)),
			}}
		}, false},
	} {
		was := budget(1)
		is := was.DeepCopy()
		c.change(is)
		if got := passes(budgetPredicate, parsed(model.Change{Old: was, New: is})); got != c.starts {
			t.Errorf("%s: starts a pass is %t, want %t", name, got, c.starts)
		}
	}
	if _, ok := parsed(model.Change{New: budget(1)}).New.(*budgetcache.Object); !ok {
		t.Error("the cache does not deliver what the planner reads")
	}
	var _ client.Object = &budgetcache.Object{}
}

// A pass reads whether the kubelet reports, and what the node is; a heartbeat starts none.
func TestEachChangeOfANodeThatAPassReadsStartsAPass(t *testing.T) {
	ready := func(s corev1.ConditionStatus) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Status.Conditions[0].Status = s }
	}
	for _, c := range []struct {
		name        string
		was, change func(*corev1.Node)
		starts      bool
	}{
		{"ready to not ready", ready(corev1.ConditionTrue), ready(corev1.ConditionFalse), true},
		{"ready to silent", ready(corev1.ConditionTrue), ready(corev1.ConditionUnknown), true},
		{"not ready to silent", ready(corev1.ConditionFalse), ready(corev1.ConditionUnknown), true},
		{"silent to not ready", ready(corev1.ConditionUnknown), ready(corev1.ConditionFalse), true},
		{"silent to no condition", ready(corev1.ConditionUnknown), func(n *corev1.Node) { n.Status.Conditions = nil }, true},
		{"label", nil, func(n *corev1.Node) { n.Labels["pool"] = "web" }, true},
		{"annotation", nil, func(n *corev1.Node) { n.Annotations = map[string]string{"a": "b"} }, true},
		{"taint", nil, func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{notInService()} }, true},
		{"unschedulable", nil, func(n *corev1.Node) { n.Spec.Unschedulable = true }, true},
		{"providerID", nil, func(n *corev1.Node) { n.Spec.ProviderID = "aws:///us-east-1a/i-1" }, true},
		{"heartbeat", nil, func(n *corev1.Node) {
			n.ResourceVersion, n.Status.Conditions[0].LastHeartbeatTime = "2", metav1.NewTime(start)
		}, false},
		{"another condition", nil, func(n *corev1.Node) {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue})
		}, false},
		{"images", nil, func(n *corev1.Node) { n.Status.Images = []corev1.ContainerImage{{Names: []string{"i"}}} }, false},
	} {
		was := node("a", instance)
		if c.was != nil {
			c.was(was)
		}
		is := was.DeepCopy()
		c.change(is)
		if got := passes(nodePredicate, model.Change{Old: was, New: is}); got != c.starts {
			t.Errorf("%s: starts a pass is %t, want %t", c.name, got, c.starts)
		}
	}
}
