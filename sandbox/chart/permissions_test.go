//go:build e2e

package chart_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
)

// granted returns the RBAC permissions of an account in the release's namespace as
// "group/resource verb", without those of every authenticated user.
func granted(t *testing.T, config *rest.Config) []string {
	t.Helper()
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: chart.Namespace}}
	if err := clientOf(t, config).Create(t.Context(), review); err != nil {
		t.Fatal(err)
	}
	if review.Status.Incomplete {
		t.Fatalf("the review is incomplete: %s", review.Status.EvaluationError)
	}
	var out []string
	for _, r := range review.Status.ResourceRules {
		for _, group := range r.APIGroups {
			if strings.HasSuffix(group, "authorization.k8s.io") || group == "authentication.k8s.io" {
				continue // system:basic-user: reviews of its own permissions
			}
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					if len(r.ResourceNames) > 0 {
						verb += " of " + strings.Join(r.ResourceNames, ",")
					}
					out = append(out, group+"/"+resource+" "+verb)
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

func TestAgentPermissions(t *testing.T) {
	admin(t)
	want := []string{
		"/nodes get",
		"lifeboat.dev/nodenotices create", "lifeboat.dev/nodenotices get", "lifeboat.dev/nodenotices patch",
	}
	if diff := cmp.Diff(want, granted(t, as(t, chart.AgentAccount, nil))); diff != "" {
		t.Errorf("granted (-want +got):\n%s", diff)
	}
}

// TestControllerPermissions checks that the granted permissions equal the generated
// roles, bindings included. The end-to-end tests, in which lifeboatd has this
// account, check that each of them is needed.
func TestControllerPermissions(t *testing.T) {
	admin(t)
	var want []string
	for _, o := range render(t, with(t, "")).Objects {
		if !strings.HasSuffix(o.GetKind(), "Role") || o.GetName() != chart.ControllerAccount {
			continue
		}
		var role rbacv1.ClusterRole // a Role has the same rules
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			t.Fatal(err)
		}
		for _, r := range role.Rules {
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					if len(r.ResourceNames) > 0 {
						verb += " of " + strings.Join(r.ResourceNames, ",")
					}
					want = append(want, r.APIGroups[0]+"/"+resource+" "+verb)
				}
			}
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, granted(t, as(t, chart.ControllerAccount, nil))); diff != "" {
		t.Errorf("granted (-rules +got):\n%s", diff)
	}
}

// TestRequestsUseLifeboatsPriorityLevels checks, with the response headers of the API
// server, which FlowSchema classifies requests.
func TestRequestsUseLifeboatsPriorityLevels(t *testing.T) {
	c := admin(t)
	var schemas flowcontrolv1.FlowSchemaList
	if err := c.List(t.Context(), &schemas); err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for _, s := range schemas.Items {
		names[string(s.UID)] = s.Name + " in " + s.Spec.PriorityLevelConfiguration.Name
	}
	const (
		main       = "lifeboat-controller in lifeboat"
		background = "lifeboat-controller-background in lifeboat-background"
	)
	for _, test := range []struct{ account, method, path, want string }{
		{chart.ControllerAccount, http.MethodGet, "/api/v1/nodes", main},
		{chart.ControllerAccount, http.MethodGet, "/api/v1/pods", main},
		{chart.ControllerAccount, http.MethodGet, "/apis/policy/v1/poddisruptionbudgets", main},
		{chart.ControllerAccount, http.MethodPost, "/api/v1/namespaces/default/pods/p/eviction", main},
		{chart.ControllerAccount, http.MethodPatch, "/apis/lifeboat.dev/v1beta1/interruptions/i/status", main},
		{chart.ControllerAccount, http.MethodPost, "/apis/events.k8s.io/v1/namespaces/default/events", background},
		{chart.ControllerAccount, http.MethodPatch, "/apis/events.k8s.io/v1/namespaces/default/events/e", background},
		{chart.ControllerAccount, http.MethodPatch, "/apis/lifeboat.dev/v1beta1/nodegroups/g/status", background},
		{chart.ControllerAccount, http.MethodPatch, "/apis/lifeboat.dev/v1beta1/interruptionpolicies/p/status", background},
		{chart.ControllerAccount, http.MethodPatch, "/apis/lifeboat.dev/v1beta1/nodenotices/n/status", background},
		{chart.ControllerAccount, http.MethodGet, "/apis/coordination.k8s.io/v1/namespaces/lifeboat-system/leases/lifeboat-controller", "lifeboat-leader-election in leader-election"},
		{chart.AgentAccount, http.MethodGet, "/api/v1/nodes/n", "lifeboat-agent in lifeboat"},
		{"default", http.MethodGet, "/api/v1/nodes", "service-accounts in workload-low"},
	} {
		until(t, "the flow schema of "+test.account+" at "+test.method+" "+test.path, func() (bool, error) {
			got := names[flowSchemaOf(t, as(t, test.account, nil), test.method, test.path)]
			if got != test.want {
				t.Logf("%s at %s %s: %q, want %q", test.account, test.method, test.path, got, test.want)
			}
			return got == test.want, nil
		})
	}
}

// flowSchemaOf returns the UID of the FlowSchema of a request. The API server
// classifies a request before it reads the body or finds it missing.
func flowSchemaOf(t *testing.T, config *rest.Config, method, path string) string {
	t.Helper()
	web, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, config.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := web.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.Header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID)
}
