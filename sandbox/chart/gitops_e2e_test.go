//go:build e2e

package chart_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
)

// TestGitOpsManifestsAreAccepted validates the manifests of deploy/gitops with the CRDs of the
// tools, which testdata/gitops has without descriptions and status.
func TestGitOpsManifestsAreAccepted(t *testing.T) {
	c := admin(t)
	paths, err := filepath.Glob("testdata/gitops/*.json")
	if err != nil || len(paths) != 4 {
		t.Fatalf("%v, %v", paths, err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		crd := &unstructured.Unstructured{}
		if err := json.Unmarshal(text, &crd.Object); err != nil {
			t.Fatal(err)
		}
		if err := c.Create(t.Context(), crd); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { remove(t, crd) })
	}
	for tool, namespace := range map[string]string{"argocd": "argocd", "flux": "flux-system"} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		if err := c.Create(t.Context(), ns); err != nil {
			t.Fatal(err)
		}
		for _, o := range gitopsManifests(t, tool) {
			until(t, o.GetKind()+" to be served", func() (bool, error) {
				err := c.Create(t.Context(), o.DeepCopy(), client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
				if err != nil && !strings.Contains(err.Error(), "no matches for kind") {
					t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
					return true, nil
				}
				return err == nil, err
			})
			wrong := o.DeepCopy()
			spec, _ := wrong.Object["spec"].(map[string]any)
			spec["misspelt"] = true
			if err := c.Create(t.Context(), wrong, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict)); err == nil {
				t.Errorf("%s %s: an unknown field is accepted, so nothing was validated", o.GetKind(), o.GetName())
			}
		}
	}
}

// TestAppliedChartReadsBackAsWritten checks that the API server changes no field that the chart
// writes. Argo CD would otherwise report the object as OutOfSync after each sync.
func TestAppliedChartReadsBackAsWritten(t *testing.T) {
	c := admin(t)
	releases := map[string][]*unstructured.Unstructured{"argocd": gitopsRelease(t, "argocd"), "flux": gitopsRelease(t, "flux")}
	for name, v := range sets(t) {
		m := render(t, v)
		releases[name] = append(m.CRDs, m.Objects...)
	}
	seen := 0
	for name, objects := range releases {
		for _, o := range objects {
			if strings.HasPrefix(o.GetAPIVersion(), "monitoring.coreos.com/") || slices.Contains([]string{"agents", "node-hooks"}, o.GetNamespace()) {
				continue // the API server does not have these kinds and namespaces
			}
			seen++
			live := o.DeepCopy()
			err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(live), client.FieldOwner("helm"), client.ForceOwnership, client.DryRunAll)
			if err != nil {
				t.Errorf("%s: %s %s: %v", name, o.GetKind(), o.GetName(), err)
				continue
			}
			for _, change := range differences("", o.Object, live.Object) {
				t.Errorf("%s: %s %s: %s", name, o.GetKind(), o.GetName(), change)
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d objects", seen)
	}
}

// differences lists the fields of want that got lacks or has with another value. got may have more
// fields, as defaults.
func differences(path string, want, got any) (all []string) {
	switch w := want.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		for key, value := range w {
			if _, found := g[key]; !found && value != nil {
				all = append(all, fmt.Sprintf("%s.%s is gone, it was %v", path, key, value))
				continue
			}
			all = append(all, differences(path+"."+key, value, g[key])...)
		}
		return all
	case []any:
		g, _ := got.([]any)
		if len(w) != len(g) {
			return []string{fmt.Sprintf("%s has %d entries, want %d", path, len(g), len(w))}
		}
		for i := range w {
			all = append(all, differences(fmt.Sprintf("%s[%d]", path, i), w[i], g[i])...)
		}
		return all
	}
	if !reflect.DeepEqual(want, got) {
		return []string{fmt.Sprintf("%s is %v, want %v", path, got, want)}
	}
	return nil
}

// TestSecondApplyOfChartChangesNothing applies the installed chart once more, after the API server,
// Kubernetes' controllers and `lifeboat interrupt` have written to its objects. Flux compares in
// this way.
func TestSecondApplyOfChartChangesNothing(t *testing.T) {
	c := admin(t)
	m, err := chart.Render(t.Context(), chart.Options{Values: installedValues()})
	if err != nil {
		t.Fatal(err)
	}
	drills := &unstructured.Unstructured{}
	drills.SetAPIVersion("coordination.k8s.io/v1")
	drills.SetKind("Lease")
	drills.SetNamespace(chart.Namespace)
	drills.SetName("lifeboat-drills")
	permit := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"lifeboat.dev/drill-a":"b"}}}`))
	if err := c.Patch(t.Context(), drills, permit); err != nil {
		t.Fatal(err)
	}
	for _, o := range append(m.CRDs, m.Objects...) {
		before := content(t, c, o)
		if err := applyAll(t.Context(), c, []*unstructured.Unstructured{o}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, content(t, c, o)); diff != "" {
			t.Errorf("%s %s (-before +after):\n%s", o.GetKind(), o.GetName(), diff)
		}
	}
}

// content reads an object without its status, and what changes with the status.
func content(t *testing.T, c client.Client, o *unstructured.Unstructured) map[string]any {
	t.Helper()
	live := o.DeepCopy()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), live); err != nil {
		t.Fatal(err)
	}
	delete(live.Object, "status")
	live.SetResourceVersion("")
	live.SetManagedFields(nil)
	return live.Object
}
