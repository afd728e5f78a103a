package admission_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/admission"
)

// installed returns the chart's policies with their bindings.
func installed(t *testing.T) *admission.Found {
	t.Helper()
	expected, err := admission.Expected()
	if err != nil {
		t.Fatal(err)
	}
	found := &admission.Found{Agents: true, Jobs: true}
	for _, name := range []string{admission.Agent, admission.Controller, admission.Hooks, admission.Interruptions, admission.Pauses} {
		spec, ok := expected[name]
		if !ok {
			t.Fatalf("the chart has no policy %s", name)
		}
		meta := metav1.ObjectMeta{Name: name}
		found.Policies = append(found.Policies, admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: spec})
		found.Bindings = append(found.Bindings, admissionv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: meta,
			Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
		})
	}
	return found
}

func TestCheck(t *testing.T) {
	const policy = "validatingadmissionpolicy "
	ignore := admissionv1.Ignore
	some := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	for name, test := range map[string]struct {
		change func(*admission.Found)
		want   []string
	}{
		"as installed":       {func(*admission.Found) {}, nil},
		"no policy":          {func(f *admission.Found) { f.Policies = f.Policies[1:] }, []string{"admission-policy-missing " + policy + admission.Agent}},
		"no agents":          {func(f *admission.Found) { f.Policies, f.Agents = f.Policies[1:], false }, nil},
		"no hook namespaces": {func(f *admission.Found) { f.Policies, f.Jobs = append(f.Policies[:2:2], f.Policies[3:]...), false }, nil},
		"no binding":         {func(f *admission.Found) { f.Bindings = append(f.Bindings[:3], f.Bindings[4:]...) }, []string{"admission-policy-unbound " + policy + admission.Interruptions}},
		"only an audit": {func(f *admission.Found) {
			f.Bindings[1].Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Audit}
		}, []string{"admission-policy-unbound " + policy + admission.Controller}},
		"a binding of some objects": {func(f *admission.Found) {
			f.Bindings[1].Spec.MatchResources = &admissionv1.MatchResources{ObjectSelector: some}
		}, []string{"admission-policy-unbound " + policy + admission.Controller}},
		"errors are ignored":    {func(f *admission.Found) { f.Policies[0].Spec.FailurePolicy = &ignore }, []string{"admission-policy-changed " + policy + admission.Agent}},
		"a rule is missing":     {func(f *admission.Found) { f.Policies[1].Spec.Validations = f.Policies[1].Spec.Validations[1:] }, []string{"admission-policy-changed " + policy + admission.Controller}},
		"a condition was added": {func(f *admission.Found) { f.Policies[3].Spec.MatchConditions[0].Expression += " && false" }, []string{"admission-policy-changed " + policy + admission.Interruptions}},
		"a variable is edited":  {func(f *admission.Found) { f.Policies[1].Spec.Variables[0].Expression = "true" }, []string{"admission-policy-changed " + policy + admission.Controller}},
		"updates are left out": {func(f *admission.Found) {
			f.Policies[0].Spec.MatchConstraints.ResourceRules[0].Operations = []admissionv1.OperationType{admissionv1.Create}
		}, []string{"admission-policy-changed " + policy + admission.Agent}},
		"with the out-of-service taint": {func(f *admission.Found) {
			for i, v := range f.Policies[1].Spec.Validations {
				f.Policies[1].Spec.Validations[i].Expression = strings.Replace(v.Expression, "false || ", "true || ", 1)
			}
		}, nil},
		"other hook namespaces": {func(f *admission.Found) {
			v := &f.Policies[2].Spec.Validations[0]
			v.Expression = strings.Replace(v.Expression, "['hooks']", "['a','b']", 1)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			found := installed(t)
			test.change(found)
			all, err := admission.Check(*found)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range all {
				got = append(got, f.ID+" "+f.Object)
				if f.Problem == "" || f.Fix == "" {
					t.Errorf("%s explains nothing", f.ID)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGuideListsTheFindings(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/guides/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range admission.IDs() {
		if !strings.Contains(string(guide), "</a>`"+id+"` |") {
			t.Errorf("docs/guides/doctor.md does not describe %s", id)
		}
	}
}
