package chart_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestMemoryLimitSetsGOMEMLIMIT(t *testing.T) {
	podIP := corev1.EnvVar{Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}}
	fromLimit := &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.memory"}}
	for name, test := range map[string]struct {
		values string
		want   []corev1.EnvVar
	}{
		"the default limit":      {"", []corev1.EnvVar{{Name: "GOMEMLIMIT", ValueFrom: fromLimit}}},
		"beside other variables": {"controller: {extraEnv: [{name: A, value: b}]}", []corev1.EnvVar{{Name: "GOMEMLIMIT", ValueFrom: fromLimit}, {Name: "A", Value: "b"}}},
		"no limit":               {"controller: {resources: {limits: null}}", nil},
		"overridden by the user": {"controller: {extraEnv: [{name: GOMEMLIMIT, value: 100MiB}]}", []corev1.EnvVar{{Name: "GOMEMLIMIT", Value: "100MiB"}}},
	} {
		got := deployment(t, with(t, test.values)).Spec.Template.Spec.Containers[0].Env
		if diff := cmp.Diff(append([]corev1.EnvVar{podIP}, test.want...), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
