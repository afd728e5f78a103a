package chart_test

import (
	"slices"
	"testing"
)

// TestAmbiguousYAMLValues checks that names which look like numbers or booleans stay
// strings, and that values can repeat fields that the chart sets itself.
func TestAmbiguousYAMLValues(t *testing.T) {
	const odd = `
hooks: {namespaces: ['123', 'true', 1e5x]}
commonLabels: {team: 'true'}
metrics: {serviceMonitor: {enabled: true, labels: {team: '2'}}}
controller:
  lifecycleHooks: [mine-*, a/b]
  priorityClassName: '1000'
  nodeSelector: {kubernetes.io/os: linux, pool: infra}
  podLabels: {team: '1'}
  podAnnotations: {kubectl.kubernetes.io/default-container: controller}
agent: {podLabels: {team: 'no'}}
`
	r := render(t, with(t, odd))
	var namespaces []string
	for _, o := range r.Objects {
		if o.GetKind() == "Role" && o.GetName() == "lifeboat-hooks" {
			namespaces = append(namespaces, o.GetNamespace())
		}
		if o.GetKind() == "ServiceMonitor" && o.GetLabels()["team"] != "2" {
			t.Errorf("labels of the ServiceMonitor: %v", o.GetLabels())
		}
	}
	if !slices.Equal(namespaces, []string{"123", "true", "1e5x"}) {
		t.Errorf("Roles for hooks in %q", namespaces)
	}
	d := deployment(t, with(t, odd))
	pod := d.Spec.Template
	if pod.Spec.PriorityClassName != "1000" || pod.Spec.NodeSelector["pool"] != "infra" || pod.Labels["team"] != "1" || d.Labels["team"] != "true" {
		t.Errorf("priority class %q, nodes %v, labels %v and %v", pod.Spec.PriorityClassName, pod.Spec.NodeSelector, pod.Labels, d.Labels)
	}
	if want := "--lifecycle-hooks=mine-*,a/b"; !slices.Contains(pod.Spec.Containers[0].Args, want) {
		t.Errorf("arguments %q have no %s", pod.Spec.Containers[0].Args, want)
	}
}
