//go:build e2e

package chart_test

import (
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/rest"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/admission"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/admission/try"
	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
)

// TestDoctorAcceptsTheInstalledPolicies checks that defaults of the API server make no
// finding, and that each test request of the doctor is refused.
func TestDoctorAcceptsTheInstalledPolicies(t *testing.T) {
	var policies admissionv1.ValidatingAdmissionPolicyList
	var bindings admissionv1.ValidatingAdmissionPolicyBindingList
	if err := admin(t).List(t.Context(), &policies); err != nil {
		t.Fatal(err)
	}
	if err := admin(t).List(t.Context(), &bindings); err != nil {
		t.Fatal(err)
	}
	all, err := admission.Check(admission.Found{Policies: policies.Items, Bindings: bindings.Items, Agents: true, Jobs: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		t.Errorf("%s of %s: %s", f.ID, f.Object, f.Problem)
	}
	config := rest.CopyConfig(cluster)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + chart.Namespace + ":" + chart.ControllerAccount,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + chart.Namespace, "system:authenticated"},
	}
	controller, node := clientOf(t, config), newNode(t, "node-tried")
	for policy, request := range map[string]func() error{
		admission.Interruptions: func() error { return try.Interruption(t.Context(), admin(t)) },
		admission.Controller:    func() error { return try.Node(t.Context(), controller, node.Name) },
		admission.Hooks:         func() error { return try.Job(t.Context(), controller, hookNamespace) },
	} {
		until(t, policy+" to be in force", func() (bool, error) { err := request(); return err != nil, err })
		check(t, request(), "ValidatingAdmissionPolicy '"+policy+"'")
	}
}
