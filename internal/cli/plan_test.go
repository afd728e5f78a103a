package cli

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// mixedNode returns a node with pods of every kind.
func mixedNode() []client.Object {
	return append(twoNodes(),
		pod("shop", "web-1", "web", "ReplicaSet", 15), pod("shop", "web-2", "web", "ReplicaSet", 15), budget("shop", "web", 2, 1),
		pod("shop", "db-0", "db", "StatefulSet", 30), budget("shop", "db", 1, 0),
		pod("kube-system", "agent", "agent", "DaemonSet", 30),
	)
}

func policyOf(action v1beta1.Action, kinds ...string) *v1beta1.InterruptionPolicy {
	return &v1beta1.InterruptionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "batch"},
		Spec: v1beta1.InterruptionPolicySpec{Rules: []v1beta1.Rule{
			{Name: "ours", Kinds: kinds, Action: action, DoNotDisrupt: v1beta1.DoNotDisruptUntilLastCall},
		}},
	}
}

func TestPlan(t *testing.T) {
	over := interruption(spotNotice("n0", time.Hour))
	complete(over, 50*time.Minute, 3, 0)
	tomorrow, decided := stopping(26*time.Hour), stopping(26*time.Hour)
	decided.Spec.Approval, decided.Spec.Hold = say("alice", 10*time.Second, ""), say("bob", 5*time.Second, "")
	urgent := databases()
	urgent.Spec.Rules[0].Approval = v1beta1.ApprovalRequired
	unattended := append(mixedNode(), urgent)
	unattended[0].SetLabels(map[string]string{"pool": "db"})
	full := databases()
	full.Spec.Nodes, full.Spec.Budget.MaxConcurrent = v1beta1.NodeSelector{}, intstr.FromInt32(1)
	full.Spec.Rules[1].Approval, full.Spec.Rules[1].NotBefore, full.Spec.Hooks = "", &metav1.Duration{Duration: 30 * time.Hour}, nil
	respect := databases()
	respect.Spec.Nodes, respect.Spec.Rules[0].DoNotDisrupt = v1beta1.NodeSelector{}, v1beta1.DoNotDisruptRespect
	pinned := pod("shop", "pinned", "pinned", "ReplicaSet", 5)
	pinned.Annotations = map[string]string{v1beta1.AnnotationDoNotDisrupt: "true"}
	job := pod("batch", "report-x", "report", "Job", 5)
	calledOff := stopping(26 * time.Hour)
	calledOff.Spec.Notices[0].Withdrawn = true
	inPool := mixedNode()
	inPool[0].SetLabels(map[string]string{"karpenter.sh/nodepool": "general"})
	other := draining("")
	other.Status.Decision.Action = v1beta1.ActionTerminate
	poolFull := append(mixedNode(), other)
	poolFull[0].SetLabels(map[string]string{"karpenter.sh/nodepool": "general"})
	poolFull[1].SetLabels(map[string]string{"karpenter.sh/nodepool": "general"})
	slow := append(mixedNode(), pod("shop", "slow", "slow", "ReplicaSet", 300))
	for _, c := range []struct {
		name    string
		objects []client.Object
		args    []string
		code    int
	}{
		{"spot", mixedNode(), []string{nodeName}, ExitOK},
		{"by-instance", mixedNode(), []string{instanceA}, ExitOK},
		{"does-not-fit", slow, []string{nodeName, "--in", "90s"}, ExitDoesNotFit},
		{"rebalance", mixedNode(), []string{nodeName, "--kind", "rebalance"}, ExitOK},
		{"under-way", append(mixedNode(), interruption(spotNotice("n1", 20*time.Second))), []string{nodeName}, ExitOK},
		{"over", append(mixedNode(), over), []string{nodeName}, ExitOK},
		{"ignored", append(mixedNode(), policyOf(v1beta1.ActionIgnore, notice.KindSpotInterruption)), []string{nodeName}, ExitDoesNotFit},
		{"empty", twoNodes(), []string{otherNode}, ExitOK},
		{"awaits-approval", database(tomorrow), []string{nodeName}, ExitOK},
		{"approved-and-held", database(decided), []string{nodeName}, ExitOK},
		{"unattended", unattended, []string{nodeName, "--kind", "spot"}, ExitDoesNotFit},
		{"hook", database(), []string{nodeName, "--kind", "spot"}, ExitOK},
		{"queued", append(mixedNode(), full, stopping(26*time.Hour), draining("databases")), []string{nodeName}, ExitOK},
		{"scheduled", mixedNode(), []string{nodeName, "--kind", "scheduled"}, ExitOK},
		{"shutting-down", mixedNode(), []string{nodeName, "--kind", "state"}, ExitOK},
		{"withdrawn", append(mixedNode(), calledOff), []string{nodeName}, ExitOK},
		{"terminate", append(inPool, policyOf(v1beta1.ActionTerminate, notice.KindInstanceStatus)), []string{nodeName, "--kind", "status"}, ExitOK},
		{"pool-full", append(poolFull, policyOf(v1beta1.ActionTerminate, notice.KindInstanceStatus)), []string{nodeName, "--kind", "status"}, ExitOK},
		{"left-behind", append(mixedNode(), respect, pinned, job), []string{nodeName, "--kind", "spot"}, ExitDoesNotFit},
		{"json", slow, []string{nodeName, "-o", "json"}, ExitDoesNotFit},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &harness{t: t, cluster: fakeCluster(t, interceptor.Funcs{}, c.objects...)}
			r := h.run(t.Context(), append([]string{"plan"}, c.args...)...)
			if r.code != c.code {
				t.Errorf("exit code %d, want %d", r.code, c.code)
			}
			if r.err != "" {
				t.Errorf("standard error: %s", r.err)
			}
			golden(t, "plan-"+c.name+".golden", r.out)
			for line := range strings.Lines(r.out) {
				if n := len([]rune(line)); n > 101 && c.name != "json" {
					t.Errorf("a line has %d columns: %s", n, line)
				}
			}
		})
	}
}

// A person reads before the drain that the successor of such a pod may come back to the node.
func TestPlanNamesPodThatComesBack(t *testing.T) {
	agent := pod("shop", "agent-1", "agent", "ReplicaSet", 15)
	agent.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	h := &harness{t: t, cluster: fakeCluster(t, interceptor.Funcs{}, append(twoNodes(), agent, pod("shop", "web-1", "web", "ReplicaSet", 15))...)}
	var p planned
	if r := h.run(t.Context(), "plan", nodeName, "--kind", "spot", "-o", "json"); json.Unmarshal([]byte(r.out), &p) != nil || len(p.Pods) != 2 {
		t.Fatalf("%s%s", r.out, r.err)
	}
	for _, v := range p.Pods {
		if comesBack := strings.Contains(v.Reason, "may come back to this node"); comesBack != (v.Name == "agent-1") {
			t.Errorf("pod %s: %s", v.Name, v.Reason)
		}
	}
	text := h.run(t.Context(), "plan", nodeName, "--kind", "spot").out
	if words := strings.Join(strings.Fields(text), " "); strings.Count(words, "may come back to this node") != 1 {
		t.Errorf("the table does not say it once:\n%s", text)
	}
}

// draining returns the record of another node that is being drained under the
// given policy.
func draining(effectivePolicy string) *v1beta1.Interruption {
	in := stopping(26 * time.Hour)
	in.Name, in.UID, in.Spec.InstanceID, in.Spec.NodeName = instanceB, "uid-b", instanceB, otherNode
	in.Status.NodeName, in.Status.Phase = otherNode, v1beta1.PhaseDraining
	in.Status.Decision = &v1beta1.Decision{Action: v1beta1.ActionDrain, EffectivePolicy: effectivePolicy}
	in.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionCordoned, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(clock)}}
	begun := metav1.NewMicroTime(clock)
	record.EnsureDrain(&in.Status).StartTime = &begun
	return in
}

// surging returns a node with the single pod of a Deployment that the policy
// surges.
func surging() []client.Object {
	yes, one := true, int32(1)
	labels := map[string]string{"app": "solo", "pod-template-hash": "abc"}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "solo", UID: "d", Generation: 1},
		Spec:       appsv1.DeploymentSpec{Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "solo"}}, Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType}},
		Status:     appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1},
	}
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "solo-abc", UID: "rs", Generation: 1, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "solo", UID: "d", Controller: &yes}}},
		Spec:   appsv1.ReplicaSetSpec{Replicas: &one, Selector: selector},
		Status: appsv1.ReplicaSetStatus{ObservedGeneration: 1, Replicas: 1, ReadyReplicas: 1, AvailableReplicas: 1},
	}
	p := pod("shop", "solo-abc-x", "solo", "ReplicaSet", 30)
	p.Labels = labels
	p.OwnerReferences[0].Name, p.OwnerReferences[0].UID = "solo-abc", "rs"
	policy := databases()
	policy.Spec = v1beta1.InterruptionPolicySpec{Rules: []v1beta1.Rule{{Kinds: []string{"*"}, Action: v1beta1.ActionDrain, Strategy: v1beta1.StrategySurge}}}
	return append(twoNodes(), d, rs, p, policy)
}

// The plan reads the owners of pods, so that it surges the pods that lifeboatd
// would surge.
func TestPlanSurges(t *testing.T) {
	h := &harness{t: t, cluster: fakeCluster(t, interceptor.Funcs{}, surging()...)}
	r := h.run(t.Context(), "plan", nodeName, "--kind", "scheduled", "--event-type-code", "instance-stop", "--in", "2h", "-o", "json")
	var p planned
	if err := json.Unmarshal([]byte(r.out), &p); err != nil {
		t.Fatalf("%v in %s%s", err, r.out, r.err)
	}
	if p.Decision.Strategy != v1beta1.StrategySurge || len(p.Pods) != 1 ||
		!strings.Contains(p.Pods[0].Now+p.Pods[0].Reason, "its successor is started first: Deployment solo may run it twice") {
		t.Errorf("got %+v", p)
	}
	r = h.run(t.Context(), "plan", nodeName, "--kind", "scheduled", "--event-type-code", "instance-stop", "--in", "2h", "--surge=false")
	if strings.Contains(r.out, "its successor is started first") || !strings.Contains(strings.Join(strings.Fields(r.out), " "), "not surged: surge is disabled in lifeboatd") {
		t.Errorf("with --surge=false it prints\n%s%s", r.out, r.err)
	}
}

func TestPlanWaitsForLoadBalancers(t *testing.T) {
	waiting := policyOf(v1beta1.ActionDrain, "*")
	for wait, want := range map[time.Duration]bool{0: false, time.Minute: true} {
		waiting.Spec.WaitForDeregistration = nil
		if wait > 0 {
			waiting.Spec.WaitForDeregistration = &metav1.Duration{Duration: wait}
		}
		h := &harness{t: t, cluster: fakeCluster(t, interceptor.Funcs{}, append(mixedNode(), waiting.DeepCopy())...)}
		r := h.run(t.Context(), "plan", nodeName, "--kind", "spot", "-o", "json")
		if got := strings.Contains(r.out, "load balancers may still send new connections to its instance"); got != want {
			t.Errorf("waitForDeregistration %s: %s%s", wait, r.out, r.err)
		}
	}
}

func TestPlanWorksWithoutLifeboat(t *testing.T) {
	funcs := interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, ok := list.(*v1beta1.InterruptionPolicyList); ok {
			return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "lifeboat.dev", Kind: "InterruptionPolicy"}}
		}
		return c.List(ctx, list, opts...)
	}}
	h := &harness{t: t, cluster: fakeCluster(t, funcs, mixedNode()...)}
	r := h.run(t.Context(), "plan", nodeName, "-o", "json")
	if r.code != ExitOK || !strings.Contains(r.err, "not installed") {
		t.Errorf("exit code %d, standard error %q", r.code, r.err)
	}
	var p planned
	if err := json.Unmarshal([]byte(r.out), &p); err != nil {
		t.Fatal(err)
	}
	if p.Decision.Action != v1beta1.ActionDrain || len(p.Pods) != 4 {
		t.Errorf("got %+v", p)
	}
}
