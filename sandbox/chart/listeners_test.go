package chart_test

import (
	"net"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// podSpecOf returns the pod template of a Deployment or a DaemonSet.
func podSpecOf(t *testing.T, o *unstructured.Unstructured) corev1.PodSpec {
	t.Helper()
	spec, _, err := unstructured.NestedMap(o.Object, "spec", "template", "spec")
	if err != nil {
		t.Fatal(err)
	}
	var pod corev1.PodSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// TestHostNetworkHasNoWildcardListener checks each flag with an address. A wildcard would
// serve on each address of the node, also on a public one.
func TestHostNetworkHasNoWildcardListener(t *testing.T) {
	addresses := 0
	for _, o := range render(t, with(t, "{controller: {hostNetwork: true}, agent: {hostNetwork: true, metrics: true}}")).Objects {
		if o.GetKind() != "Deployment" && o.GetKind() != "DaemonSet" {
			continue
		}
		pod := podSpecOf(t, o)
		if !pod.HostNetwork {
			t.Fatalf("%s is not in the node's network", o.GetName())
		}
		for _, arg := range pod.Containers[0].Args {
			flag, address, _ := strings.Cut(arg, "=")
			if !strings.HasSuffix(flag, "-bind-address") {
				continue
			}
			addresses++
			host, _, err := net.SplitHostPort(address)
			if err != nil || (host != "127.0.0.1" && host != "$(POD_IP)") {
				t.Errorf("%s listens at %s, %v: write one address", o.GetName(), arg, err)
			}
		}
		for _, probe := range []*corev1.Probe{pod.Containers[0].LivenessProbe, pod.Containers[0].ReadinessProbe} {
			if probe.HTTPGet.Host != "127.0.0.1" {
				t.Errorf("%s is probed at the host %q, and listens at 127.0.0.1", o.GetName(), probe.HTTPGet.Host)
			}
		}
		if pod.Containers[0].Env == nil || !hasPodIP(pod.Containers[0].Env) {
			t.Errorf("%s has no variable POD_IP", o.GetName())
		}
	}
	if addresses != 4 {
		t.Errorf("found %d addresses, want 4: two of the controller and two of the agent", addresses)
	}
}

func hasPodIP(env []corev1.EnvVar) bool {
	for _, e := range env {
		if e.Name == "POD_IP" && e.ValueFrom != nil && e.ValueFrom.FieldRef.FieldPath == "status.podIP" {
			return true
		}
	}
	return false
}

func TestAgentServesMetricsOnRequest(t *testing.T) {
	for _, o := range render(t, with(t, "")).Objects {
		if o.GetKind() == "Service" && o.GetName() == "lifeboat-agent" {
			t.Error("there is a Service for metrics that the agent does not serve")
		}
		if o.GetKind() != "DaemonSet" {
			continue
		}
		if args := strings.Join(podSpecOf(t, o).Containers[0].Args, " "); !strings.Contains(args, "--metrics-bind-address=0") {
			t.Errorf("the agent's arguments are %s, want no metrics", args)
		}
	}
}
