package chart_test

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
)

const gitopsDir = "../../deploy/gitops"

// gitopsManifests are the documents of a tool's directory.
func gitopsManifests(t *testing.T, tool string) []*unstructured.Unstructured {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(gitopsDir, tool, "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %v, %v", tool, paths, err)
	}
	var all []*unstructured.Unstructured
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range bytes.Split(text, []byte("\n---\n")) {
			o := &unstructured.Unstructured{}
			if err := yaml.UnmarshalStrict(document, &o.Object); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			all = append(all, o)
		}
	}
	return all
}

// gitopsRelease renders the chart as the tool does.
func gitopsRelease(t *testing.T, tool string) []*unstructured.Unstructured {
	t.Helper()
	for _, o := range gitopsManifests(t, tool) {
		switch o.GetKind() {
		case "Application":
			sources, _, _ := unstructured.NestedSlice(o.Object, "spec", "sources")
			helm, _ := sources[0].(map[string]any)["helm"].(map[string]any)
			m := renderIn(t, helm["valuesObject"], o, "spec", "destination", "namespace")
			if helm["skipCrds"] != true || helm["skipTests"] != true || helm["releaseName"] != chart.Release {
				t.Errorf("the Application's settings of Helm are %v", helm)
			}
			return m.Objects
		case "HelmRelease":
			values, _, _ := unstructured.NestedMap(o.Object, "spec", "values")
			m := renderIn(t, values, o, "spec", "targetNamespace")
			name, _, _ := unstructured.NestedString(o.Object, "spec", "releaseName")
			install, _, _ := unstructured.NestedString(o.Object, "spec", "install", "crds")
			upgrade, _, _ := unstructured.NestedString(o.Object, "spec", "upgrade", "crds")
			if name != chart.Release || install != "CreateReplace" || upgrade != install {
				t.Errorf("the HelmRelease is called %s, and its CRDs are %s and %s", name, install, upgrade)
			}
			return append(m.CRDs, m.Objects...)
		}
	}
	t.Fatalf("%s: no manifest has values", tool)
	return nil
}

func renderIn(t *testing.T, values any, o *unstructured.Unstructured, namespace ...string) chart.Manifests {
	t.Helper()
	v, _ := values.(map[string]any)
	ns, _, _ := unstructured.NestedString(o.Object, namespace...)
	m, err := chart.Render(t.Context(), chart.Options{Values: v, Namespace: ns})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// argoKinds are kinds in the order in which Argo CD applies them in one wave (gitops-engine,
// pkg/sync/sync_tasks.go, kindOrder). It applies kinds that it does not know last.
var argoKinds = []string{"CustomResourceDefinition", "DaemonSet", "Deployment", "ValidatingAdmissionPolicy"}

// TestArgoOrderHasPoliciesBeforePods checks the order that docs/guides/gitops.md promises: CRDs,
// admission policies, controller, agents.
func TestArgoOrderHasPoliciesBeforePods(t *testing.T) {
	t.Parallel()
	objects := slices.DeleteFunc(gitopsRelease(t, "argocd"), func(o *unstructured.Unstructured) bool {
		return !slices.Contains(argoKinds, o.GetKind())
	})
	wave := func(o *unstructured.Unstructured) int {
		n, _ := strconv.Atoi(o.GetAnnotations()["argocd.argoproj.io/sync-wave"])
		return n
	}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(wave(a)-wave(b), slices.Index(argoKinds, a.GetKind())-slices.Index(argoKinds, b.GetKind()))
	})
	var order []string
	for _, o := range objects {
		order = append(order, o.GetKind())
		if got := o.GetAnnotations()["argocd.argoproj.io/sync-options"]; o.GetKind() == argoKinds[0] && got != "Prune=false" {
			t.Errorf("Argo CD may prune %s: its sync options are %q", o.GetName(), got)
		}
	}
	want := []string{"CustomResourceDefinition", "ValidatingAdmissionPolicy", "Deployment", "DaemonSet"}
	if got := slices.Compact(order); !slices.Equal(got, want) {
		t.Errorf("the order is %v, want %v", got, want)
	}
}
