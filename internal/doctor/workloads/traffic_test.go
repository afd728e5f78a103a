package workloads

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func sends(change ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, ClusterIP: "10.0.0.1"},
	}
	for _, c := range change {
		c(s)
	}
	return s
}

func probed(p *corev1.Pod) { p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{} }

func withClaim(p *corev1.Pod) {
	p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}}}
}

func TestTraffic(t *testing.T) {
	const spot = "workloads on spot nodes that a Service sends to"
	three := int32(3)
	db := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}, Spec: appsv1.StatefulSetSpec{Replicas: &three}}
	for name, c := range map[string]struct {
		objects []any
		want    []string
	}{
		"nothing is sent to it": {[]any{deployment(2, ""), pod("a")}, nil},
		"all is well":           {[]any{sends(), deployment(2, ""), pdb("p", 2, 1), pod("a", probed, preStopSleep(5))}, nil},
		"on demand":             {[]any{sends(), deployment(2, ""), pod("a", on("od-1"))}, nil},
		"no hook":               {[]any{sends(), deployment(2, ""), pdb("p", 2, 1), pod("a", probed)}, []string{"info no-prestop " + spot}},
		"no probe":              {[]any{sends(), deployment(2, ""), pdb("p", 2, 1), pod("a", preStopSleep(5))}, []string{"info no-readiness-probe " + spot}},
		"no budget": {[]any{sends(), deployment(2, ""), pod("a", probed, preStopSleep(5))},
			[]string{"info no-budget workloads on spot nodes with several replicas"}},
		"headless": {[]any{sends(func(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone }), deployment(2, ""), pod("a")}, nil},
		"pods that are not ready": {[]any{sends(func(s *corev1.Service) { s.Spec.PublishNotReadyAddresses = true }), pdb("p", 2, 1), pod("a", probed, preStopSleep(5))},
			[]string{"warning not-ready-in-rotation Services with publishNotReadyAddresses"}},
		"a database without budget": {[]any{db, pod("db-0", owned("StatefulSet", "db"), withClaim)},
			[]string{"info no-budget workloads on spot nodes with several replicas"}},
	} {
		if diff := cmp.Diff(c.want, lines(survey(c.objects...).Findings())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestStatefulPoolWithoutPolicy(t *testing.T) {
	for name, c := range map[string]struct {
		governed func(*corev1.Node) bool
		change   func(*corev1.Pod)
		found    bool
	}{
		"no policy":             {func(*corev1.Node) bool { return false }, withClaim, true},
		"a policy":              {func(n *corev1.Node) bool { return n.Name == "spot-1" }, withClaim, false},
		"no volume":             {func(*corev1.Node) bool { return false }, func(*corev1.Pod) {}, false},
		"policies are not read": {nil, withClaim, false},
	} {
		s := New(Options{Governed: c.governed})
		s.AddNode(node("spot-1", map[string]string{"karpenter.sh/capacity-type": "spot"}))
		s.AddPod(pod("db-0", owned("StatefulSet", "db"), c.change))
		found := len(s.Findings()) == 1 && s.Findings()[0].ID == StatefulWithoutPolicy && strings.Contains(s.Findings()[0].Problem, "statefulset shop/db")
		if found != c.found {
			t.Errorf("%s: %+v", name, s.Findings())
		}
	}
}

// waitForDeregistration does nothing for pods that are targets themselves.
func TestTargetsByAddress(t *testing.T) {
	gated := func(p *corev1.Pod) {
		p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "target-health.elbv2.k8s.aws/k8s-shop-web-1a2b3c4d5e"}}
	}
	waits := func(n *corev1.Node) bool { return n.Name == "od-1" }
	for name, c := range map[string]struct {
		waits   func(*corev1.Node) bool
		changes []func(*corev1.Pod)
		found   bool
	}{
		"no hook": {waits, []func(*corev1.Pod){gated}, true},
		"a hook":  {waits, []func(*corev1.Pod){gated, preStopSleep(15)}, false},
		"another gate": {waits, []func(*corev1.Pod){func(p *corev1.Pod) {
			p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/a"}}
		}}, false},
		"the policy of others": {func(n *corev1.Node) bool { return n.Name != "od-1" }, []func(*corev1.Pod){gated}, false},
		"policies are unknown": {nil, []func(*corev1.Pod){gated}, false},
	} {
		s := New(Options{Deregisters: c.waits})
		s.AddNode(node("od-1", nil))
		s.AddPod(pod("web-0", append(c.changes, owned("StatefulSet", "web"), on("od-1"))...))
		found := len(s.Findings()) == 1 && s.Findings()[0].ID == TargetsByAddress && strings.Contains(s.Findings()[0].Problem, "statefulset shop/web")
		if found != c.found {
			t.Errorf("%s: %+v", name, s.Findings())
		}
	}
}

func TestEvictionWebhooks(t *testing.T) {
	ignore := admissionv1.Ignore
	rule := func(operation admissionv1.OperationType, resource string) []admissionv1.RuleWithOperations {
		return []admissionv1.RuleWithOperations{{
			Operations: []admissionv1.OperationType{operation}, Rule: admissionv1.Rule{APIGroups: []string{""}, Resources: []string{resource}},
		}}
	}
	for name, c := range map[string]struct {
		webhook admissionv1.ValidatingWebhook
		found   bool
	}{
		"evictions":              {admissionv1.ValidatingWebhook{Rules: rule(admissionv1.Create, "pods/eviction")}, true},
		"all subresources":       {admissionv1.ValidatingWebhook{Rules: rule(admissionv1.OperationAll, "pods/*")}, true},
		"pods":                   {admissionv1.ValidatingWebhook{Rules: rule(admissionv1.OperationAll, "pods")}, false},
		"updates":                {admissionv1.ValidatingWebhook{Rules: rule(admissionv1.Update, "pods/eviction")}, false},
		"failures that let pass": {admissionv1.ValidatingWebhook{FailurePolicy: &ignore, Rules: rule(admissionv1.Create, "pods/eviction")}, false},
	} {
		s := New(Options{})
		s.AddValidatingWebhooks(&admissionv1.ValidatingWebhookConfiguration{Webhooks: []admissionv1.ValidatingWebhook{c.webhook}})
		s.AddMutatingWebhooks(&admissionv1.MutatingWebhookConfiguration{Webhooks: []admissionv1.MutatingWebhook{{FailurePolicy: c.webhook.FailurePolicy, Rules: c.webhook.Rules}}})
		got := s.Findings()
		if found := len(got) == 1 && got[0].ID == EvictionWebhook; found != c.found || found && len(s.webhooks) != 2 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestListOfNamesIsShort(t *testing.T) {
	got := withNames(listFinding{names: []string{"a", "b", "c", "d", "e", "f", "g"}})
	if len(got) != 1 || got[0].Problem != ": a, b, c, d, e and 2 more" {
		t.Errorf("%+v", got)
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
