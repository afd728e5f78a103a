package workloads

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

func node(name string, labels map[string]string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

// pod returns a pod of Deployment web on the spot node.
func pod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	yes := true
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, Labels: map[string]string{"app": "web", "pod-template-hash": "abc"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-abc", Controller: &yes}},
		},
		Spec: corev1.PodSpec{NodeName: "spot-1", Containers: []corev1.Container{{Name: "main"}}},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func grace(seconds int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = &seconds }
}

func on(node string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = node } }

func owned(kind, name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences[0].Kind, p.OwnerReferences[0].Name = kind, name
		delete(p.Labels, "pod-template-hash")
	}
}

func unowned(p *corev1.Pod) { p.OwnerReferences = nil }

func annotated(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{key: value} }
}

func preStop(command ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: command}}}
	}
}

func preStopSleep(seconds int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: seconds}}}
	}
}

func tolerating(t corev1.Toleration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Tolerations = append(p.Spec.Tolerations, t) }
}

func emptyDir(d corev1.EmptyDirVolumeSource) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "d", VolumeSource: corev1.VolumeSource{EmptyDir: &d}}}
	}
}

func deployment(n int32, strategy appsv1.DeploymentStrategyType) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec:       appsv1.DeploymentSpec{Replicas: &n, Strategy: appsv1.DeploymentStrategy{Type: strategy}},
	}
}

// A budget covers app=web, and the disruption controller has processed it.
func pdb(name string, expected, desired int32, change ...func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: 1},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		Status:     policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, ExpectedPods: expected, DesiredHealthy: desired},
	}
	for _, c := range change {
		c(b)
	}
	return b
}

func maxUnavailable(v string) func(*policyv1.PodDisruptionBudget) {
	return func(b *policyv1.PodDisruptionBudget) { x := intstr.Parse(v); b.Spec.MaxUnavailable = &x }
}

func minAvailable(v string) func(*policyv1.PodDisruptionBudget) {
	return func(b *policyv1.PodDisruptionBudget) { x := intstr.Parse(v); b.Spec.MinAvailable = &x }
}

// survey adds objects to a cluster with one spot and one other node.
func survey(objects ...any) *Survey {
	s := New(Options{})
	s.AddNode(node("spot-1", map[string]string{"karpenter.sh/capacity-type": "spot"}))
	s.AddNode(node("od-1", map[string]string{"karpenter.sh/capacity-type": "on-demand"}))
	add := func(want int) {
		for _, o := range objects {
			switch o := o.(type) {
			case *appsv1.Deployment:
				if want == 0 {
					s.AddDeployment(o)
				}
			case *appsv1.StatefulSet:
				if want == 0 {
					s.AddStatefulSet(o)
				}
			case *policyv1.PodDisruptionBudget:
				if want == 0 {
					s.AddBudget(o)
				}
			case *corev1.Service:
				if want == 0 {
					s.AddService(o)
				}
			case *corev1.Pod:
				if want == 1 {
					s.AddPod(o)
				}
			}
		}
	}
	add(0)
	add(1)
	return s
}

// lines returns findings as "severity id object".
func lines(all []finding.Finding) []string {
	var out []string
	for _, f := range all {
		out = append(out, fmt.Sprintf("%s %s %s", f.Severity, f.ID, f.Object))
	}
	return out
}

func TestFindings(t *testing.T) {
	everything := corev1.Toleration{Operator: corev1.TolerationOpExists}
	for name, c := range map[string]struct {
		objects []any
		want    []string
		text    string // part of the first finding
	}{
		"all is well": {[]any{deployment(2, ""), pod("a"), pod("b", grace(110))}, nil, ""},
		"a grace that a spot notice leaves no time for": {
			[]any{deployment(2, ""), pod("a", grace(600)), pod("b", grace(30))},
			[]string{"warning grace-exceeds-notice deployment shop/web"}, "may take 10m to stop, and a spot notice leaves 1m50s: they are killed up to 8m10s"},
		"a long grace on on-demand nodes is fine": {[]any{pod("a", grace(600), on("od-1"))}, nil, ""},
		"a second too long":                       {[]any{pod("a", grace(111), owned("Job", "j"))}, []string{"warning grace-exceeds-notice job shop/j"}, "set terminationGracePeriodSeconds to 110 or less in the pod template"},
		"a hook that sleeps as long as the grace": {
			[]any{deployment(2, ""), pod("a", preStopSleep(30), on("od-1"))},
			[]string{"warning prestop-exceeds-grace deployment shop/web"}, "sleeps 30s, and the grace period is 30s"},
		"a hook that leaves time":             {[]any{pod("a", preStopSleep(29))}, nil, ""},
		"a hook in a shell, in a sidecar too": {[]any{pod("a", preStop("sh", "-c", "nginx -s quit; sleep 20; sleep 1m"))}, []string{"warning prestop-exceeds-grace replicaset shop/web-abc"}, "sleeps 1m20s"},
		"a pod without owner": {
			[]any{pod("a", unowned), pod("b", unowned)},
			[]string{"warning pods-without-owner pods of namespace shop without an owner"}, "2 pods, for example a"},
		"a static pod is none":     {[]any{pod("a", unowned, annotated(corev1.MirrorPodAnnotationKey, "x"))}, nil, ""},
		"nor is a DaemonSet's":     {[]any{pod("a", owned("DaemonSet", "d"), grace(600), tolerating(everything))}, nil, ""},
		"nor one that has ended":   {[]any{pod("a", unowned, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })}, nil, ""},
		"a pod that hops back":     {[]any{pod("a", tolerating(everything))}, []string{"warning tolerates-every-taint replicaset shop/web-abc"}, "operator Exists and no key"},
		"tolerates a cordon alone": {[]any{pod("a", tolerating(corev1.Toleration{Key: "node.kubernetes.io/unschedulable", Operator: corev1.TolerationOpExists}))}, []string{"warning tolerates-every-taint replicaset shop/web-abc"}, "Lifeboat asks that one to stop once more only, at its last call"},
		"tolerates one key alone":  {[]any{pod("a", tolerating(corev1.Toleration{Key: "gpu", Operator: corev1.TolerationOpExists}))}, nil, ""},
		"tolerates all NoExecute":  {[]any{pod("a", tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}))}, nil, ""},
		"its only replica":         {[]any{deployment(1, ""), pod("a")}, []string{"warning single-replica deployment shop/web"}, "scale deployment web --replicas=2"},
		"its only replica, and two cannot run": {
			[]any{deployment(1, appsv1.RecreateDeploymentStrategyType), pod("a")}, []string{"warning single-replica deployment shop/web"}, "its strategy is Recreate"},
		"its only replica on demand": {[]any{deployment(1, ""), pod("a", on("od-1"))}, nil, ""},
		"do not disrupt, ours":       {[]any{pod("a", annotated("lifeboat.dev/do-not-disrupt", "1h"))}, []string{"warning do-not-disrupt-on-spot replicaset shop/web-abc"}, "lifeboat.dev/do-not-disrupt=1h"},
		"do not disrupt, autoscaler": {[]any{pod("a", annotated("cluster-autoscaler.kubernetes.io/safe-to-evict", "false"))}, []string{"warning do-not-disrupt-on-spot replicaset shop/web-abc"}, "safe-to-evict=false"},
		"do not disrupt, on demand":  {[]any{pod("a", on("od-1"), annotated("karpenter.sh/do-not-disrupt", "true"))}, nil, ""},
		"may be disrupted":           {[]any{pod("a", annotated("karpenter.sh/do-not-disrupt", "false"))}, nil, ""},
		"data of a StatefulSet":      {[]any{pod("a", owned("StatefulSet", "db"), emptyDir(corev1.EmptyDirVolumeSource{}))}, []string{"info data-on-the-node statefulset shop/db"}, "emptyDir"},
		"much data":                  {[]any{pod("a", emptyDir(corev1.EmptyDirVolumeSource{SizeLimit: resource.NewQuantity(5<<30, resource.BinarySI)}))}, []string{"info data-on-the-node replicaset shop/web-abc"}, ""},
		"scratch":                    {[]any{pod("a", emptyDir(corev1.EmptyDirVolumeSource{}))}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := survey(c.objects...).Findings()
			if diff := cmp.Diff(c.want, lines(got)); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			if len(got) > 0 && !strings.Contains(got[0].Problem+"\n"+got[0].Fix, c.text) {
				t.Errorf("text %q and %q, want %q", got[0].Problem, got[0].Fix, c.text)
			}
		})
	}
}

func TestBudgets(t *testing.T) {
	failed := func(b *policyv1.PodDisruptionBudget) {
		b.Status.Conditions = []metav1.Condition{{
			Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason, Message: "no scale",
		}}
	}
	for name, c := range map[string]struct {
		budgets []any
		want    []string
		text    string
	}{
		"one may go": {[]any{pdb("p", 3, 2, maxUnavailable("1"))}, nil, ""},
		"none may go": {[]any{pdb("p", 3, 3, maxUnavailable("0"))}, []string{"warning budget-never-allows PodDisruptionBudget shop/p"},
			`maxUnavailable is 0: it never allows`},
		"no part may go":             {[]any{pdb("p", 3, 3, maxUnavailable("0%"))}, []string{"warning budget-never-allows PodDisruptionBudget shop/p"}, "maxUnavailable is 0%"},
		"all have to stay":           {[]any{pdb("p", 3, 3, minAvailable("100%"))}, []string{"warning budget-never-allows PodDisruptionBudget shop/p"}, "minAvailable is 100%"},
		"as many as there are":       {[]any{pdb("p", 2, 2, minAvailable("2"))}, []string{"warning budget-never-allows PodDisruptionBudget shop/p"}, "minAvailable is 2, so it needs 2 healthy of 2 pods"},
		"more than there are":        {[]any{pdb("p", 2, 5, minAvailable("5"))}, []string{"warning budget-never-allows PodDisruptionBudget shop/p"}, "needs 5 healthy of 2"},
		"a share that rounds to all": {[]any{pdb("p", 1, 1, minAvailable("50%"))}, []string{"warning budget-never-allows PodDisruptionBudget shop/p"}, "needs 1 healthy of 1"},
		"no one is covered":          {[]any{pdb("p", 0, 0, maxUnavailable("1"))}, []string{"info budget-matches-nothing PodDisruptionBudget shop/p"}, "matches no pod"},
		"no one is covered, none may go": {[]any{pdb("p", 0, 0, maxUnavailable("0"))},
			[]string{"info budget-matches-nothing PodDisruptionBudget shop/p"}, ""},
		"not computed":       {[]any{pdb("p", 0, 0, maxUnavailable("1"), failed)}, []string{"warning budget-not-computed PodDisruptionBudget shop/p"}, "(no scale)"},
		"not looked at yet":  {[]any{pdb("p", 0, 0, minAvailable("1"), func(b *policyv1.PodDisruptionBudget) { b.Status.ObservedGeneration = 0 })}, nil, ""},
		"selector malformed": {[]any{pdb("p", 0, 0, func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector.MatchLabels["app"] = "a b" })}, []string{"warning budget-unreadable PodDisruptionBudget shop/p"}, "protects no pod"},
		"two over one pod": {[]any{pdb("p", 3, 2), pdb("q", 3, 2)},
			[]string{"warning budgets-overlap PodDisruptionBudgets p and q in namespace shop"}, "both cover 2 pods, for example a"},
	} {
		t.Run(name, func(t *testing.T) {
			got := survey(append(c.budgets, pod("a", on("od-1")), pod("b", on("od-1")))...).Findings()
			if diff := cmp.Diff(c.want, lines(got)); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			if len(got) > 0 && !strings.Contains(got[0].Problem+"\n"+got[0].Fix, c.text) {
				t.Errorf("text %q and %q, want %q", got[0].Problem, got[0].Fix, c.text)
			}
			for _, f := range got {
				if f.Fix == "" || f.Problem == "" {
					t.Errorf("%s has no fix", f.ID)
				}
			}
		})
	}
}

func TestSleepIn(t *testing.T) {
	for command, want := range map[string]time.Duration{
		"sleep 5":                         5 * time.Second,
		"/bin/sleep 5":                    5 * time.Second,
		"sh -c sleep 15 && nginx -s quit": 15 * time.Second,
		"sh -c nginx -s quit; while true;do true;": 0,
		"sh -c sleep 1;sleep 2":                    3 * time.Second,
		"sh -c sleep 1.5m":                         90 * time.Second,
		"sh -c sleep $TIME":                        0,
		"sh -c usleep 5000":                        0,
		"sh -c sleep 5x":                           0,
		"sh -c (sleep 2)":                          2 * time.Second,
		"":                                         0,
	} {
		if got := sleepIn(command); got != want {
			t.Errorf("%q sleeps %s, want %s", command, got, want)
		}
	}
}

func TestIsSpot(t *testing.T) {
	for _, c := range []struct {
		labels map[string]string
		want   bool
	}{
		{nil, false},
		{map[string]string{"karpenter.sh/capacity-type": "spot"}, true},
		{map[string]string{"karpenter.sh/capacity-type": "on-demand"}, false},
		{map[string]string{"eks.amazonaws.com/capacityType": "SPOT"}, true},
		{map[string]string{"lifecycle": "Ec2Spot"}, true},
		{map[string]string{"node-role.kubernetes.io/spot-worker": ""}, true},
	} {
		if got := IsSpot(node("n", c.labels)); got != c.want {
			t.Errorf("%v: %v", c.labels, got)
		}
	}
}

// The report of a large cluster is short: the worst findings of each kind, and a
// summary.
func TestManyFindingsOfAKindAreSummarized(t *testing.T) {
	s := New(Options{Most: 2})
	s.AddNode(node("spot-1", map[string]string{"karpenter.sh/capacity-type": "spot"}))
	for i := range 7 {
		for range i + 1 {
			s.AddPod(pod("p", grace(600), owned("Job", fmt.Sprintf("job-%d", i)), func(p *corev1.Pod) { p.Namespace = fmt.Sprintf("ns-%d", i%2) }))
		}
	}
	got := s.Findings()
	want := []string{
		"warning grace-exceeds-notice job ns-0/job-6", "warning grace-exceeds-notice job ns-1/job-5", "warning grace-exceeds-notice 5 more",
	}
	if diff := cmp.Diff(want, lines(got)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	if last := got[2].Problem; last != "the same problem for 15 pods, in namespaces ns-0 (3), ns-1 (2)" {
		t.Errorf("text %q", last)
	}
	if diff := cmp.Diff(Counts{Nodes: 1, Spot: 1, Pods: 28, Workloads: 7}, s.Counts()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFindingsDoNotDependOnTheOrderOfPods(t *testing.T) {
	pods := []any{pod("a", grace(600)), pod("b", grace(30), preStopSleep(40)), pod("c", unowned), pod("d", preStopSleep(90))}
	want := survey(pods...).Findings()
	slices.Reverse(pods)
	if diff := cmp.Diff(want, survey(pods...).Findings()); diff != "" {
		t.Errorf("(-forward +backward):\n%s", diff)
	}
}
