//go:build e2e

package chart_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
)

// monitorCRD is a minimal CRD in place of the Prometheus operator's, of Services or of Pods.
const monitorCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: servicemonitors.monitoring.coreos.com, annotations: {api-approved.kubernetes.io: "unapproved, for a test"}}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {kind: ServiceMonitor, listKind: ServiceMonitorList, plural: servicemonitors, singular: servicemonitor}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

func TestAPIServerAcceptsAllValues(t *testing.T) {
	c := admin(t)
	for _, of := range []string{"Service", "Pod"} {
		crd := strings.NewReplacer("Service", of, "service", strings.ToLower(of)).Replace(monitorCRD)
		if err := c.Create(t.Context(), &unstructured.Unstructured{Object: values(t, crd)}); err != nil {
			t.Fatal(err)
		}
		until(t, of+"Monitors to be served", func() (bool, error) {
			monitors := &unstructured.UnstructuredList{}
			monitors.SetAPIVersion("monitoring.coreos.com/v1")
			monitors.SetKind(of + "MonitorList")
			err := c.List(t.Context(), monitors)
			return err == nil, err
		})
	}
	for _, name := range []string{"node-hooks", "monitoring", "agents"} { // of the example, and of everything
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := c.Create(t.Context(), ns); err != nil {
			t.Fatal(err)
		}
	}
	for name, v := range sets(t) {
		t.Run(name, func(t *testing.T) {
			m := render(t, v)
			if err := applyAll(t.Context(), c, m.CRDs, client.DryRunAll); err != nil {
				t.Error(err)
			}
			// Apply each object separately, to see all refusals. For apply, an
			// unknown field is an error.
			for _, o := range m.Objects {
				if err := applyAll(t.Context(), c, []*unstructured.Unstructured{o}, client.DryRunAll); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestPodsMeetSecurityLevel checks which Pod Security Standard admits the pods.
// The agent needs more permissions only because it uses the host network.
func TestPodsMeetSecurityLevel(t *testing.T) {
	c := admin(t)
	for _, level := range []string{"restricted", "privileged"} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: level, Labels: map[string]string{"pod-security.kubernetes.io/enforce": level}}}
		if err := c.Create(t.Context(), ns); err != nil {
			t.Fatal(err)
		}
		for _, account := range []string{chart.ControllerAccount, chart.AgentAccount} {
			sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: level, Name: account}}
			if err := c.Create(t.Context(), sa); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, test := range []struct {
		values, workload, level string
		refusal                 string
	}{
		{"", "Deployment", "restricted", ""},
		{"", "DaemonSet", "privileged", ""},
		{"", "DaemonSet", "restricted", "hostNetwork"},
		{"agent: {hostNetwork: false}", "DaemonSet", "restricted", ""},
		{"controller: {hostNetwork: true}", "Deployment", "restricted", "hostNetwork"},
	} {
		t.Run(test.workload+" under "+test.level+" with "+test.values, func(t *testing.T) {
			pod := podOf(t, render(t, with(t, test.values)), test.workload)
			pod.Namespace = test.level
			err := c.Create(t.Context(), pod, client.DryRunAll)
			switch {
			case test.refusal == "" && err != nil:
				t.Error(err)
			case test.refusal != "" && (err == nil || !strings.Contains(err.Error(), test.refusal)):
				t.Errorf("error %v, want a refusal for %s", err, test.refusal)
			case test.refusal != "" && strings.Contains(err.Error(), "securityContext"):
				t.Errorf("error %v, want %s to be the only reason", err, test.refusal)
			}
		})
	}
}

// podOf returns a pod as the workload's controller would create it.
func podOf(t *testing.T, m chart.Manifests, kind string) *corev1.Pod {
	t.Helper()
	i := slices.IndexFunc(m.Objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind })
	if i < 0 {
		t.Fatalf("there is no %s", kind)
	}
	// A DaemonSet and a Deployment have the template at the same path.
	var d appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m.Objects[i].Object, &d); err != nil {
		t.Fatal(err)
	}
	template := d.Spec.Template
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: maps.Clone(template.Labels), Annotations: template.Annotations},
		Spec:       template.Spec,
	}
}

// TestWorkloadsCreatePods checks that real controllers can create the pods of the
// installed chart: priority classes, service accounts and other dependencies exist.
func TestWorkloadsCreatePods(t *testing.T) {
	c := admin(t)
	newNode(t, "with-an-agent")
	until(t, "the pods of controller and agent", func() (bool, error) {
		var pods corev1.PodList
		err := c.List(t.Context(), &pods, client.InNamespace(chart.Namespace))
		found := map[string]int{}
		for _, p := range pods.Items {
			found[p.Labels["app.kubernetes.io/component"]]++
		}
		return found["controller"] == 2 && found["agent"] >= 1, err
	})
}

// TestOtherCRDsBlockUpgrade checks that the chart refuses an upgrade with outdated
// CRDs. Helm itself does not upgrade CRDs and reports nothing.
func TestOtherCRDsBlockUpgrade(t *testing.T) {
	c := admin(t)
	upgrade := func(text string) error {
		_, err := chart.Render(t.Context(), chart.Options{Values: with(t, text), Cluster: cluster, Upgrade: true})
		return err
	}
	if err := upgrade(""); err != nil {
		t.Fatalf("with its own CRDs: %v", err)
	}
	crd := render(t, with(t, "")).CRDs[0]
	older := crd.DeepCopy()
	versions, _, err := unstructured.NestedSlice(older.Object, "spec", "versions")
	if err != nil {
		t.Fatal(err)
	}
	v, _ := versions[0].(map[string]any)
	if err := unstructured.SetNestedField(v, "as it once was", "schema", "openAPIV3Schema", "description"); err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedSlice(older.Object, versions, "spec", "versions"); err != nil {
		t.Fatal(err)
	}
	if err := applyAll(t.Context(), c, []*unstructured.Unstructured{older}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := applyAll(context.Background(), c, []*unstructured.Unstructured{crd}); err != nil {
			t.Error(err)
		}
	})
	err = upgrade("")
	if err == nil || !strings.Contains(err.Error(), "helm show crds CHART | kubectl apply --server-side") {
		t.Errorf("with other CRDs: error %v, want it to say how to upgrade them", err)
	}
	if err := upgrade("crds: {check: false}"); err != nil {
		t.Errorf("with crds.check=false: %v", err)
	}
}

// TestMissingCRDBlocksUpgrade checks the same for a kind that the previous chart
// did not have.
func TestMissingCRDBlocksUpgrade(t *testing.T) {
	c := admin(t)
	var gone *unstructured.Unstructured
	for _, crd := range render(t, with(t, "")).CRDs {
		if crd.GetName() == "nodegroups.lifeboat.dev" {
			gone = crd
		}
	}
	if err := c.Delete(t.Context(), gone.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := applyAll(context.Background(), c, []*unstructured.Unstructured{gone}); err != nil {
			t.Error(err)
		}
	})
	until(t, "the CRD to be gone", func() (bool, error) {
		// No NodeGroup exists, so its finalizer has no work.
		free := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := client.IgnoreNotFound(c.Patch(t.Context(), gone.DeepCopy(), free)); err != nil {
			return false, err
		}
		err := c.Get(t.Context(), client.ObjectKeyFromObject(gone), gone.DeepCopy())
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	_, err := chart.Render(t.Context(), chart.Options{Values: with(t, ""), Cluster: cluster, Upgrade: true})
	if err == nil || !strings.Contains(err.Error(), "nodegroups.lifeboat.dev is not in the cluster") {
		t.Errorf("without a CRD: error %v, want it to say how to install it", err)
	}
}
