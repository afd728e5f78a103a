package chart_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestPodFieldsOfTheController(t *testing.T) {
	d := deployment(t, with(t, everything))
	if d.Spec.Strategy.Type != "Recreate" || *d.Spec.RevisionHistoryLimit != 7 {
		t.Errorf("strategy %v, revisions %d", d.Spec.Strategy, *d.Spec.RevisionHistoryLimit)
	}
	s := d.Spec.Template.Spec
	if *s.TerminationGracePeriodSeconds != 45 || len(s.TopologySpreadConstraints) != 1 || s.TopologySpreadConstraints[0].TopologyKey != "rack" ||
		s.Volumes[0].Name != "ca" || s.InitContainers[0].Name != "first" || *s.DNSConfig.Options[0].Value != "1" || s.HostAliases[0].IP != "10.0.0.1" {
		t.Errorf("the pod is %+v", s)
	}
	if len(s.Containers) != 2 || s.Containers[1].Name != "beside" {
		t.Fatalf("the containers are %+v, want lifeboatd first", s.Containers)
	}
	c := s.Containers[0]
	if c.EnvFrom[0].SecretRef.Name != "proxy" || c.VolumeMounts[0].MountPath != "/ca" || !slices.Contains(c.Args, "--canary-interval=10m") || !slices.Contains(c.Args, "--mode=Act") {
		t.Errorf("the container is %+v", c)
	}
}

func TestProbesKeepTheirTarget(t *testing.T) {
	for hostNetwork, host := range map[string]string{"true": "127.0.0.1", "false": ""} {
		c := deployment(t, with(t, "controller: {hostNetwork: "+hostNetwork+", readinessProbe: {periodSeconds: 9}, startupProbe: {failureThreshold: 30}}")).Spec.Template.Spec.Containers[0]
		for path, p := range map[string]*corev1.Probe{"/healthz": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
			if p.HTTPGet.Path != path || p.HTTPGet.Host != host || p.HTTPGet.Port.StrVal != "health" {
				t.Errorf("hostNetwork %s: the probe requests %+v", hostNetwork, p.HTTPGet)
			}
		}
		if c.LivenessProbe.FailureThreshold != 6 || c.ReadinessProbe.PeriodSeconds != 9 || c.StartupProbe.FailureThreshold != 30 {
			t.Errorf("the probes are %+v, %+v, %+v", c.LivenessProbe, c.ReadinessProbe, c.StartupProbe)
		}
	}
	if c := deployment(t, with(t, "")).Spec.Template.Spec.Containers[0]; c.StartupProbe != nil {
		t.Errorf("an empty probe is %+v", c.StartupProbe)
	}
}

func TestDefaultPodIsRestricted(t *testing.T) {
	s := deployment(t, with(t, "")).Spec.Template.Spec
	c := s.Containers[0].SecurityContext
	if !*s.SecurityContext.RunAsNonRoot || s.SecurityContext.SeccompProfile.Type != "RuntimeDefault" || !*c.ReadOnlyRootFilesystem || *c.AllowPrivilegeEscalation || c.Capabilities.Drop[0] != "ALL" {
		t.Errorf("the contexts are %+v and %+v", s.SecurityContext, c)
	}
	if len(s.TopologySpreadConstraints) != 2 || *s.TerminationGracePeriodSeconds != 30 {
		t.Errorf("the pod is %+v", s)
	}
}

func find(objects []*unstructured.Unstructured, kind string) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool { return o.GetKind() != kind })
}

func TestCRDsOfTheReleaseAreKept(t *testing.T) {
	if got := find(render(t, with(t, "")).Objects, "CustomResourceDefinition"); len(got) > 0 {
		t.Errorf("by default the release has %d CRDs", len(got))
	}
	for keep, want := range map[string]string{"true": "keep", "false": ""} {
		crds := find(render(t, with(t, "crds: {install: true, keep: "+keep+"}")).Objects, "CustomResourceDefinition")
		if len(crds) != 5 {
			t.Errorf("the release has %d CRDs, want 5", len(crds))
		}
		for _, crd := range crds {
			annotations := crd.GetAnnotations()
			if annotations["helm.sh/resource-policy"] != want || annotations["controller-gen.kubebuilder.io/version"] == "" {
				t.Errorf("keep %s: %s has the annotations %v", keep, crd.GetName(), annotations)
			}
		}
	}
}

func TestOwnServiceAccountsCanBeLeftOut(t *testing.T) {
	v := with(t, "{controller: {serviceAccount: {create: false}}, agent: {serviceAccount: {create: false}}}")
	if got := find(render(t, v).Objects, "ServiceAccount"); len(got) > 0 {
		t.Errorf("the release has %v", names(got))
	}
}

func TestTestPodChecksMetrics(t *testing.T) {
	tests := render(t, with(t, "")).Tests
	if len(tests) != 1 {
		t.Fatalf("the chart has %d tests, want one", len(tests))
	}
	containers, _, err := unstructured.NestedSlice(tests[0].Object, "spec", "containers")
	if err != nil {
		t.Fatal(err)
	}
	args := containers[0].(map[string]any)["args"].([]any)
	if args[0] != "check" || args[1] != "--url=http://lifeboat-controller.lifeboat-system.svc:8080/metrics" {
		t.Errorf("the test runs %v", args)
	}
	if got := render(t, with(t, "metrics: {service: false}")).Tests; len(got) > 0 {
		t.Error("without the Service there is a test that cannot pass")
	}
}

func TestMonitorsSelectLifeboatOnly(t *testing.T) {
	objects := render(t, with(t, everything)).Objects
	for kind, field := range map[string]string{"ServiceMonitor": "endpoints", "PodMonitor": "podMetricsEndpoints"} {
		monitor := find(objects, kind)[0]
		endpoints, _, err := unstructured.NestedSlice(monitor.Object, "spec", field)
		if err != nil || len(endpoints) != 1 {
			t.Errorf("%s has the endpoints %v (%v)", kind, endpoints, err)
		}
	}
	monitor := find(objects, "PodMonitor")[0]
	limit, _, err := unstructured.NestedInt64(monitor.Object, "spec", "sampleLimit")
	if err != nil || limit != 1000000 || monitor.GetNamespace() != "monitoring" {
		t.Errorf("the limit is %d (%v), the namespace %s", limit, err, monitor.GetNamespace())
	}
}
