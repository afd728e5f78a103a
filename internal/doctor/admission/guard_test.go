package admission_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/admission"
)

func TestGuardChecks(t *testing.T) {
	expected, err := admission.Expected()
	if err != nil {
		t.Fatal(err)
	}
	found := admission.Found{
		Guard:    true,
		Policies: []admissionv1.ValidatingAdmissionPolicy{{ObjectMeta: metav1.ObjectMeta{Name: admission.Karpenter}, Spec: expected[admission.Karpenter]}},
		Bindings: []admissionv1.ValidatingAdmissionPolicyBinding{{Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: admission.Karpenter, ParamRef: &admissionv1.ParamRef{Namespace: "kube-system", Name: "karpenter-leader-election"},
		}}},
	}
	if namespace, name := admission.Clock(found.Bindings); namespace != "kube-system" || name != "karpenter-leader-election" {
		t.Errorf("clock %s/%s", namespace, name)
	}
	now := time.Date(2026, 5, 11, 8, 14, 0, 0, time.UTC)
	const account = "system:serviceaccount:kube-system:karpenter"
	for name, test := range map[string]struct {
		guard admission.Guard
		want  []string
	}{
		"as installed":      {admission.Guard{Account: account, Renewed: now}, nil},
		"no Karpenter":      {admission.Guard{}, nil},
		"another account":   {admission.Guard{Account: "system:serviceaccount:karpenter:karpenter", Renewed: now}, []string{admission.GuardAccount}},
		"no lease":          {admission.Guard{Account: account}, []string{admission.GuardNoClock}},
		"a lease, long ago": {admission.Guard{Account: account, Renewed: now.Add(-time.Hour)}, []string{admission.GuardNoClock}},
	} {
		var got []string
		for _, f := range admission.CheckGuard(found, test.guard, now) {
			got = append(got, f.ID)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
