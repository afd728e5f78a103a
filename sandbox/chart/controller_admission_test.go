//go:build e2e

package chart_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
)

// edit sends the merge patch that edit makes of an object, as a dry run.
func edit[O client.Object](t *testing.T, c client.Client, o O, change func(O)) error {
	t.Helper()
	changed := o.DeepCopyObject().(O)
	change(changed)
	return c.Patch(t.Context(), changed, client.MergeFrom(o), client.DryRunAll)
}

// A token of the controller must not be worth more than what Lifeboat does with it.
func TestControllerChangesOnlyOwnPodFields(t *testing.T) {
	controller := clientOf(t, as(t, chart.ControllerAccount, nil))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web", Namespace: metav1.NamespaceDefault,
			Labels:      map[string]string{"app": "web", "pod-template-hash": "7f"},
			Annotations: map[string]string{"example.com/a": "1"},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
	}
	until(t, "the namespace's service account", func() (bool, error) {
		err := admin(t).Create(t.Context(), pod)
		return err == nil, err
	})
	t.Cleanup(func() { remove(t, pod) })
	until(t, "the policy to apply", func() (bool, error) { // an API server reads policies seconds later
		err := edit(t, controller, pod, func(p *corev1.Pod) { p.Labels["app"] = "bank" })
		return err != nil, err
	})
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		want   string
	}{
		"surges it": {func(p *corev1.Pod) {
			delete(p.Labels, "pod-template-hash")
			p.Labels[v1beta1.LabelSurged], p.Annotations = "web-7f", map[string]string{"example.com/a": "1", v1beta1.AnnotationSurgeOrigin: "{}"}
		}, ""},
		"replaces the image":     {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "evil:1" }, "may not change the spec of a pod"},
		"takes it from its app":  {func(p *corev1.Pod) { delete(p.Labels, "app") }, "only its own labels"},
		"moves it to an app":     {func(p *corev1.Pod) { p.Labels["app"] = "bank" }, "only its own labels"},
		"adds a label":           {func(p *corev1.Pod) { p.Labels["role"] = "primary" }, "only its own labels"},
		"changes an annotation":  {func(p *corev1.Pod) { p.Annotations["example.com/a"] = "2" }, "only its own annotations"},
		"removes an annotation":  {func(p *corev1.Pod) { delete(p.Annotations, "example.com/a") }, "only its own annotations"},
		"blocks its deletion":    {func(p *corev1.Pod) { p.Finalizers = []string{"example.com/stay"} }, "may not change finalizers"},
		"gives it another owner": {func(p *corev1.Pod) { p.OwnerReferences = owners("v1", "ConfigMap") }, "may not change finalizers or owners"},
	} {
		t.Run(name, func(t *testing.T) { check(t, edit(t, controller, pod, test.change), test.want) })
	}
	podStatus(t, controller, pod)
	t.Run("others are not limited", func(t *testing.T) {
		check(t, edit(t, admin(t), pod, func(p *corev1.Pod) { p.Spec.Containers[0].Image = "web:2" }), "")
	})
}

// podStatus checks what the controller may change of a pod's status.
func podStatus(t *testing.T, controller client.Client, pod *corev1.Pod) {
	t.Helper()
	for name, test := range map[string]struct {
		status, want string
	}{
		"says why a pod is deleted":  {`{"conditions":[{"type":"DisruptionTarget","status":"True","reason":"DeletionByLifeboat","message":"why"}]}`, ""},
		"says that a pod has failed": {`{"phase":"Failed","conditions":[{"type":"DisruptionTarget","status":"True"}]}`, ""},
		"says that a pod succeeded":  {`{"phase":"Succeeded"}`, "only the condition DisruptionTarget"},
		"says that a pod is Ready":   {`{"conditions":[{"type":"Ready","status":"True"}]}`, "only the condition DisruptionTarget"},
		"gives it another's address": {`{"podIP":"10.0.0.9","podIPs":[{"ip":"10.0.0.9"}]}`, "only the condition DisruptionTarget"},
	} {
		t.Run(name, func(t *testing.T) {
			patch := client.RawPatch(types.StrategicMergePatchType, []byte(`{"status":`+test.status+`}`))
			check(t, controller.Status().Patch(t.Context(), pod.DeepCopy(), patch, client.DryRunAll), test.want)
		})
	}
}

func owners(version, kind string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: "x", UID: "b5a7d7a4-0000-0000-0000-000000000000"}}
}

func TestControllerChangesOnlyOwnNodeFields(t *testing.T) {
	controller := clientOf(t, as(t, chart.ControllerAccount, nil))
	node := newNode(t, "node-limited")
	before := node.DeepCopy()
	node.Labels["pool"] = "a"
	metav1.SetMetaDataAnnotation(&node.ObjectMeta, "karpenter.sh/do-not-disrupt", "true")
	// Without another annotation, the patch that removes the last one would remove all, also those that
	// Kubernetes' own controllers add meanwhile.
	metav1.SetMetaDataAnnotation(&node.ObjectMeta, "example.com/stays", "true")
	node.Spec.Taints = []corev1.Taint{{Key: "example.com/gpu", Effect: corev1.TaintEffectNoSchedule}}
	if err := admin(t).Patch(t.Context(), node, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	until(t, "the policy to apply", func() (bool, error) { // an API server reads policies seconds later
		err := edit(t, controller, node, func(n *corev1.Node) { n.Labels["pool"] = "b" })
		return err != nil, err
	})
	risky := corev1.Taint{Key: v1beta1.TaintInterrupted, Value: "RebalanceRecommendation", Effect: corev1.TaintEffectPreferNoSchedule}
	for name, test := range map[string]struct {
		change func(*corev1.Node)
		want   string
	}{
		"cordons it": {func(n *corev1.Node) {
			n.Spec.Unschedulable, n.Spec.Taints = true, append(n.Spec.Taints, risky)
			n.Labels[v1beta1.LabelExcludeBalancers] = "lifeboat"
			metav1.SetMetaDataAnnotation(&n.ObjectMeta, v1beta1.AnnotationOriginalState, "{}")
		}, ""},
		"releases a replacement": {func(n *corev1.Node) { delete(n.Annotations, "karpenter.sh/do-not-disrupt") }, ""},
		"changes an annotation": {func(n *corev1.Node) {
			metav1.SetMetaDataAnnotation(&n.ObjectMeta, "node.alpha.kubernetes.io/ttl", "9")
		}, "only its own annotations"},
		"removes another's taint": {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{risky} }, "only its own taints"},
		"adds another's taint": {func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "node.kubernetes.io/out-of-service", Effect: corev1.TaintEffectNoExecute})
		}, "only its own taints"},
		"adds the taint of the option, which is off": {func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute})
		}, "only with outOfServiceTaint.enabled"},
		"changes a label":       {func(n *corev1.Node) { n.Labels["pool"] = "b" }, "only its own labels"},
		"makes a control plane": {func(n *corev1.Node) { n.Labels["node-role.kubernetes.io/control-plane"] = "" }, "only its own labels"},
		"sets the instance":     {func(n *corev1.Node) { n.Spec.ProviderID = "aws:///eu-west-1a/i-0victim" }, "only taints and spec.unschedulable"},
		"gives it an owner":     {func(n *corev1.Node) { n.OwnerReferences = owners("karpenter.sh/v1", "NodeClaim") }, "may not change finalizers or owners"},
	} {
		t.Run(name, func(t *testing.T) { check(t, edit(t, controller, node, test.change), test.want) })
	}
}
