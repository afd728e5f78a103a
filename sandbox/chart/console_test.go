package chart_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
)

const withConsole = "console: {enabled: true, allowFrom: [{ipBlock: {cidr: 10.0.0.0/16}}]}"

// rights are the rules of each role of the release, and whom the bindings give it to.
func rights(t *testing.T, values string) (rules map[string][]rbacv1.PolicyRule, bound map[string][]string) {
	t.Helper()
	rules, bound = map[string][]rbacv1.PolicyRule{}, map[string][]string{}
	for _, o := range render(t, with(t, values)).Objects {
		switch o.GetKind() {
		case "Role", "ClusterRole":
			var role rbacv1.ClusterRole
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
				t.Fatal(err)
			}
			rules[o.GetKind()+" "+o.GetName()] = role.Rules
		case "RoleBinding", "ClusterRoleBinding":
			var b rbacv1.ClusterRoleBinding
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &b); err != nil {
				t.Fatal(err)
			}
			for _, s := range b.Subjects {
				bound[b.RoleRef.Kind+" "+b.RoleRef.Name] = append(bound[b.RoleRef.Kind+" "+b.RoleRef.Name], s.Name)
			}
		}
	}
	return rules, bound
}

func TestConsoleHasNoOtherRights(t *testing.T) {
	rules, bound := rights(t, withConsole)
	want := []rbacv1.PolicyRule{{APIGroups: []string{"lifeboat.dev"}, Resources: []string{"interruptions", "interruptionpolicies", "nodegroups"}, Verbs: []string{"list", "watch"}}}
	if diff := cmp.Diff(want, rules["ClusterRole lifeboat-console"]); diff != "" {
		t.Errorf("the console's rights (-want +got):\n%s", diff)
	}
	want = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"services/proxy"}, ResourceNames: []string{"lifeboat-console", "lifeboat-console:http"}, Verbs: []string{"get"}}}
	if diff := cmp.Diff(want, rules["Role lifeboat-console-viewer"]); diff != "" {
		t.Errorf("the viewer's rights (-want +got):\n%s", diff)
	}
	for role, subjects := range bound {
		for _, s := range subjects {
			if (s == "lifeboat-console") != (role == "ClusterRole lifeboat-console") || strings.HasSuffix(role, "viewer") {
				t.Errorf("%s has %s", s, role)
			}
		}
	}
	if without, _ := rights(t, ""); without["ClusterRole lifeboat-console"] != nil || without["Role lifeboat-console-viewer"] != nil {
		t.Error("the roles exist without the console")
	}
}

// Everyone with view in the whole cluster reads Lifeboat's objects, and writes none.
func TestViewerRoleOnlyReads(t *testing.T) {
	for _, o := range find(render(t, with(t, "")).Objects, "ClusterRole") {
		if o.GetName() == "lifeboat-viewer" && o.GetLabels()["rbac.authorization.k8s.io/aggregate-to-view"] != "true" {
			t.Errorf("it is not part of view: %v", o.GetLabels())
		}
	}
	rules, _ := rights(t, "")
	for _, rule := range rules["ClusterRole lifeboat-viewer"] {
		if diff := cmp.Diff([]string{"get", "list", "watch"}, rule.Verbs); diff != "" || rule.APIGroups[0] != "lifeboat.dev" {
			t.Errorf("%+v", rule)
		}
	}
	if len(rules["ClusterRole lifeboat-viewer"]) != 1 {
		t.Error("there is no role")
	}
}

func TestConsoleAdmitsOnlyNamedClients(t *testing.T) {
	_, err := chart.Render(t.Context(), chart.Options{Values: with(t, "console: {enabled: true}")})
	if err == nil || !strings.Contains(err.Error(), "console.allowFrom is empty: write the addresses of the API server") {
		t.Errorf("without allowFrom: %v", err)
	}
	found := find(render(t, with(t, withConsole)).Objects, "NetworkPolicy")
	if len(found) != 1 {
		t.Fatalf("there are %d NetworkPolicies", len(found))
	}
	var p networkingv1.NetworkPolicy
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found[0].Object, &p); err != nil {
		t.Fatal(err)
	}
	in := p.Spec.Ingress
	if len(in) != 2 || in[0].Ports[0].Port.IntValue() != 8474 || len(in[0].From) != 1 || in[0].From[0].IPBlock.CIDR != "10.0.0.0/16" || in[1].Ports[0].Port.IntValue() != 8475 {
		t.Errorf("ingress %+v", in)
	}
}
