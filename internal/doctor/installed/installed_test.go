package installed

import (
	"os"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

const interruptions = "interruptions.lifeboat.dev"

// without returns a copy of a CRD without a field.
func without(t *testing.T, crd *unstructured.Unstructured, path ...string) *unstructured.Unstructured {
	t.Helper()
	old := crd.DeepCopy()
	versions, _, err := unstructured.NestedSlice(old.Object, "spec", "versions")
	if err != nil {
		t.Fatal(err)
	}
	full := append([]string{"schema", "openAPIV3Schema", "properties"}, path...)
	if _, found, err := unstructured.NestedMap(versions[0].(map[string]any), full...); !found || err != nil {
		t.Fatalf("%v: %v", path, err)
	}
	unstructured.RemoveNestedField(versions[0].(map[string]any), full...)
	if err := unstructured.SetNestedSlice(old.Object, versions, "spec", "versions"); err != nil {
		t.Fatal(err)
	}
	return old
}

// otherVersion returns a copy of a CRD that serves another version instead of the one in use.
func otherVersion(t *testing.T, crd *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	old := crd.DeepCopy()
	versions, _, err := unstructured.NestedSlice(old.Object, "spec", "versions")
	if err != nil || len(versions) != 1 {
		t.Fatalf("%d versions, %v", len(versions), err)
	}
	version, ok := versions[0].(map[string]any)
	if !ok {
		t.Fatalf("a version is %T", versions[0])
	}
	version["name"] = "v1alpha1"
	if err := unstructured.SetNestedSlice(old.Object, versions, "spec", "versions"); err != nil {
		t.Fatal(err)
	}
	return old
}

func TestCheckCRD(t *testing.T) {
	all, err := CRDs()
	if err != nil {
		t.Fatal(err)
	}
	crd := all[interruptions]
	if len(all) < 4 || crd == nil {
		t.Fatalf("%d CRDs", len(all))
	}
	for _, tc := range []struct {
		name      string
		want, got *unstructured.Unstructured
		severity  finding.Severity
		says      string
	}{
		{"the same", crd, crd.DeepCopy(), "", ""},
		{"newer than this version", without(t, crd, "status", "properties", "drain"), crd, "", ""},
		{"older", crd, without(t, crd, "spec", "properties", "approval"), finding.Warning, "spec.approval"},
		{"older, in a list", crd, without(t, crd, "spec", "properties", "notices", "items", "properties", "deadline"), finding.Warning, "spec.notices.deadline"},
		{"only another version", crd, otherVersion(t, crd), finding.Broken, "does not serve lifeboat.dev/v1beta1"},
		{"not there", crd, nil, finding.Broken, "does not exist"},
	} {
		switch f := CheckCRD(tc.want, tc.got); {
		case f == nil && tc.severity != "", f != nil && (f.Severity != tc.severity || !strings.Contains(f.Problem, tc.says)):
			t.Errorf("%s: %+v", tc.name, f)
		}
	}
}

func TestDenied(t *testing.T) {
	required, err := Required(Uses{Surge: true, Deregistration: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(required) < 50 {
		t.Fatalf("only %d permissions", len(required))
	}
	everything := []authorizationv1.ResourceRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}
	var exact []authorizationv1.ResourceRule
	for _, p := range required {
		r := authorizationv1.ResourceRule{APIGroups: []string{p.Group}, Resources: []string{p.Resource}, Verbs: []string{p.Verb}}
		if p.Name != "" {
			r.ResourceNames = []string{p.Name}
		}
		if p.String() != "patch nodes" {
			exact = append(exact, r)
		}
	}
	for name, tc := range map[string]struct {
		rules []authorizationv1.ResourceRule
		n     int
	}{"everything": {everything, 0}, "nothing": {nil, len(required)}, "without one": {exact, 1}} {
		if denied := Denied(required, tc.rules, tc.rules); len(denied) != tc.n {
			t.Errorf("%s: %v", name, denied)
		}
	}
	if f := Incomplete(Denied(required, exact, exact)); !strings.Contains(f.Problem, "may not patch nodes: ") {
		t.Errorf("%+v", f)
	}
	for _, uses := range []Uses{{Surge: true}, {Deregistration: true}} {
		less, err := Required(uses)
		if err != nil || len(less) != len(required)-1 {
			t.Errorf("%+v: %d of %d permissions: %v", uses, len(less), len(required), err)
		}
	}
	if f := Incomplete([]Permission{{Group: "elbv2.k8s.aws", Resource: targetGroupBindings, Verb: "list"}}); !strings.Contains(f.Fix, "waitForDeregistration.enabled=true") {
		t.Errorf("the fix is %s", f.Fix)
	}
}

func TestRulesForOneNameGrantOnlyThat(t *testing.T) {
	rule := authorizationv1.ResourceRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}, ResourceNames: []string{"a"}}
	for name, granted := range map[string]bool{"": false, "a": true, "b": false} {
		if got := (Permission{Resource: "nodes", Name: name, Verb: "get"}).in(rule); got != granted {
			t.Errorf("%q: %t", name, got)
		}
	}
}

func TestGuideListsTheFindings(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/guides/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range IDs() {
		if !strings.Contains(string(guide), `<a id="`+id+`"></a>`) {
			t.Errorf("docs/guides/doctor.md does not describe %s", id)
		}
	}
}
