package interruption

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/model"
)

// setUp creates the cluster: two nodes that stay healthy and some that are interrupted, with
// workloads and budgets.
func (r *modelRun) setUp() {
	for i := range 2 + 1 + r.c.Rand.IntN(3) {
		r.AddNode(r.modelNode(fmt.Sprintf("n%d", i), fmt.Sprintf("i-%d", i)))
	}
	nodes := r.nodeNames()
	for i := range 1 + r.c.Rand.IntN(4) {
		a := r.drawApp(fmt.Sprintf("app%d", i))
		on := slices.Clone(nodes[1:])
		r.c.Rand.Shuffle(len(on), func(i, j int) { on[i], on[j] = on[j], on[i] })
		r.Run(a, on[:1+r.c.Rand.IntN(len(on))])
		if a.Kind == "ReplicaSet" || a.Kind == "StatefulSet" {
			for j := range pick(r, 0, 1, 1, 1, 2) {
				r.Protect(fmt.Sprintf("pdb%d-%d", i, j), a, pick(r, 0, 1, 1, 2))
			}
		}
	}
	for i := range pick(r, 0, 0, 1, 1, 2) {
		if _, err := r.Create(r.drawPolicy(fmt.Sprintf("policy%d", i))); err != nil {
			panic(err)
		}
	}
}

func pick[T any](r *modelRun, of ...T) T { return of[r.c.Rand.IntN(len(of))] }

func (r *modelRun) nodeNames() []string {
	var names []string
	for _, n := range r.bookkeeping.nodes() {
		names = append(names, n.Name)
	}
	return names
}

func (r *modelRun) modelNode(name, id string) *corev1.Node {
	n := node(name, id)
	n.Labels["pool"] = pick(r, "a", "b")
	if r.c.Chance(.3) {
		n.Labels["karpenter.sh/nodepool"] = pick(r, "x", "y")
	}
	if r.c.Chance(.2) {
		n.Annotations = map[string]string{"who": "else"}
	}
	if r.c.Chance(.2) {
		n.Labels[v1beta1.LabelExcludeBalancers] = ""
	}
	if r.c.Chance(.2) && name != "n0" {
		n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "db", Effect: corev1.TaintEffectNoSchedule}}
	}
	n.Status.NodeInfo.BootID = "first"
	return n
}

func (r *modelRun) drawApp(name string) *model.App {
	a := &model.App{
		Kind:      pick(r, "ReplicaSet", "ReplicaSet", "ReplicaSet", "StatefulSet", "StatefulSet", "DaemonSet", "Job", ""),
		Namespace: pick(r, "default", "other"), Name: name, Replicas: 1 + r.c.Rand.IntN(4),
		Grace: pick[int64](r, 1, 5, 30, 30, 60, 100, 150, 600), StopsIn: pick(r, 0, .2, 1, 1.5),
		StartsIn: pick(r, time.Second, 5*time.Second, 20*time.Second), Critical: r.c.Chance(.1), Deployed: r.c.Chance(.7),
	}
	if r.c.Chance(r.chaos.hangs) {
		a.Hangs = r.c.Between(time.Minute, 30*time.Minute)
	}
	switch r.c.Rand.IntN(8) {
	case 0:
		a.Annotations = map[string]string{v1beta1.AnnotationDoNotDisrupt: "true"}
	case 1:
		a.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": pick(r, "40s", "10m", "true", "soon")}
	case 2:
		a.Annotations = map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
	}
	return a
}

func (r *modelRun) drawPolicy(name string) *v1beta1.InterruptionPolicy {
	p := &v1beta1.InterruptionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Priority = int32(r.c.Rand.IntN(2))
	switch r.c.Rand.IntN(4) {
	case 0:
		p.Spec.Nodes.MatchLabels = map[string]string{"pool": pick(r, "a", "b")}
	case 1:
		p.Spec.Nodes.NodePools = []string{pick(r, "x", "y")}
	}
	for range 1 + r.c.Rand.IntN(3) {
		p.Spec.Rules = append(p.Spec.Rules, r.drawRule())
	}
	if r.people && r.c.Chance(.4) {
		p.Spec.Hooks = r.drawHooks()
	}
	if r.c.Chance(.4) {
		p.Spec.Budget = &v1beta1.Budget{MaxConcurrent: pick(r, intstr.FromInt32(1), intstr.FromInt32(2), intstr.FromString("30%"))}
	}
	if r.c.Chance(.3) {
		p.Spec.Workloads = []v1beta1.Workload{{
			MatchOwnerKinds: []string{pick(r, "StatefulSet", "Deployment", "None")},
			Order:           pick(r, "", v1beta1.OrderFirst, v1beta1.OrderLast),
			Strategy:        pick(r, v1beta1.StrategyEvict, v1beta1.StrategySurge, v1beta1.StrategyNever),
		}}
	}
	return p
}

func (r *modelRun) drawRule() v1beta1.Rule {
	rule := v1beta1.Rule{
		Kinds: []string{pick(r, "*", notice.KindSpotInterruption, notice.KindScheduledChange, notice.KindScheduledChange,
			notice.KindRebalanceRecommendation, notice.KindInstanceStateChange, notice.KindInstanceStatus, notice.KindInstanceStatus)},
		Action: pick(r, v1beta1.ActionIgnore, v1beta1.ActionNotify, v1beta1.ActionCordon, v1beta1.ActionTerminate,
			v1beta1.ActionDrain, v1beta1.ActionDrain, v1beta1.ActionDrain, v1beta1.ActionDrain),
	}
	if r.people && r.c.Chance(.2) {
		rule.Kinds[0] = notice.KindRequested
	}
	if rule.Kinds[0] == notice.KindInstanceStatus && r.c.Chance(.8) { // the default terminates nothing
		rule.Action = v1beta1.ActionTerminate
	}
	if rule.Action == v1beta1.ActionIgnore || rule.Action == v1beta1.ActionNotify {
		return rule
	}
	if r.c.Chance(.3) {
		schedule := pick(r, "0 * * * *", "*/10 * * * *", "0 2 * * *")
		every := map[string]time.Duration{"0 * * * *": time.Hour, "*/10 * * * *": 10 * time.Minute, "0 2 * * *": 24 * time.Hour}[schedule]
		if r.windows == 0 || every < r.windows {
			r.windows = every
		}
		rule.Window = &v1beta1.Window{Schedule: schedule, Duration: metav1.Duration{Duration: 10 * time.Minute}}
	}
	if r.c.Chance(.2) {
		rule.NotBefore = &metav1.Duration{Duration: pick(r, 5*time.Minute, 2*time.Hour, 24*time.Hour)}
	}
	if r.c.Chance(.2) {
		rule.Approval, rule.IfUnanswered = v1beta1.ApprovalRequired, pick(r, "", v1beta1.UnansweredWait, v1beta1.UnansweredProceed)
	}
	if rule.Action != v1beta1.ActionCordon && r.c.Chance(.5) {
		rule.Strategy = v1beta1.StrategySurge
	}
	rule.DoNotDisrupt = pick(r, "", v1beta1.DoNotDisruptRespect, v1beta1.DoNotDisruptUntilLastCall, v1beta1.DoNotDisruptIgnore)
	return rule
}
