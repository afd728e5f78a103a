package drain_test

import (
	"fmt"
	"math"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// fuzzInput makes choices from fuzzed bytes, and 0 when none are left.
type fuzzInput struct{ bytes []byte }

func (d *fuzzInput) choose(sides int) int {
	if len(d.bytes) == 0 {
		return 0
	}
	b := d.bytes[0]
	d.bytes = d.bytes[1:]
	return int(b) % sides
}

func (d *fuzzInput) number() int64 {
	return []int64{0, 1, 2, 30, 300, -1, -30, 1 << 31, -1 << 31, math.MaxInt64, math.MinInt64, math.MaxInt64 / int64(time.Second)}[d.choose(12)]
}

func (d *fuzzInput) moment() time.Time {
	return []time.Time{noon, {}, noon.Add(time.Minute), noon.Add(-time.Minute), time.Unix(0, 0), time.Unix(1<<40, 0), noon.Add(math.MaxInt64), noon.Add(math.MinInt64)}[d.choose(8)]
}

func (d *fuzzInput) word() string {
	return []string{"", "a", "true", "false", "5m", "-1h", "9223372036854775807h", "\xff\xfe", "<nil>", string(make([]byte, 700))}[d.choose(10)]
}

func (d *fuzzInput) labels() map[string]string {
	if d.choose(4) == 0 {
		return nil
	}
	return map[string]string{"app": d.word(), d.word(): d.word()}
}

func (d *fuzzInput) pod(i int) *corev1.Pod {
	if d.choose(16) == 15 {
		return nil
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("%s%d", d.word(), i), Namespace: d.word(), UID: types.UID(fmt.Sprint(i)), Labels: d.labels(),
		CreationTimestamp: metav1.NewTime(d.moment()),
	}}
	if d.choose(2) == 1 {
		grace := d.number()
		p.Spec.TerminationGracePeriodSeconds = &grace
	}
	if d.choose(3) == 2 {
		at := metav1.NewTime(d.moment())
		p.DeletionTimestamp = &at
		if d.choose(3) > 0 {
			grace := d.number()
			p.DeletionGracePeriodSeconds = &grace
		}
		p.Finalizers = []string{d.word(), d.word()}
	}
	if d.choose(3) == 2 {
		p.Annotations = map[string]string{
			[]string{v1beta1.AnnotationDoNotDisrupt, "karpenter.sh/do-not-disrupt", "cluster-autoscaler.kubernetes.io/safe-to-evict", corev1.MirrorPodAnnotationKey}[d.choose(4)]: d.word(),
		}
	}
	if d.choose(4) == 3 {
		yes := d.choose(2) == 1
		p.OwnerReferences = []metav1.OwnerReference{{Kind: []string{"DaemonSet", "Node", "ReplicaSet"}[d.choose(3)], Name: d.word(), Controller: &yes}}
	}
	p.Status.Phase = []corev1.PodPhase{corev1.PodRunning, corev1.PodPending, corev1.PodFailed, "", "Odd"}[d.choose(5)]
	p.Spec.PriorityClassName = []string{"", "system-node-critical", "x"}[d.choose(3)]
	if d.choose(3) == 2 {
		priority := int32(d.number())
		p.Spec.Priority = &priority
	}
	if d.choose(2) == 1 {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionStatus([]string{"True", "False", ""}[d.choose(3)])}}
	}
	return p
}

func (d *fuzzInput) budget(i int) *drain.Budget {
	if d.choose(16) == 15 {
		return nil
	}
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s%d", d.word(), i), Namespace: d.word(), Generation: d.number()},
		Status: policyv1.PodDisruptionBudgetStatus{
			ObservedGeneration: d.number(), DisruptionsAllowed: int32(d.number()), CurrentHealthy: int32(d.number()),
			DesiredHealthy: int32(d.number()), ExpectedPods: int32(d.number()),
		},
	}
	switch d.choose(4) {
	case 0:
		b.Spec.Selector = &metav1.LabelSelector{}
	case 1:
		b.Spec.Selector = &metav1.LabelSelector{MatchLabels: d.labels()}
	case 2:
		b.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: d.word(), Operator: metav1.LabelSelectorOperator([]string{"In", "Exists", "NotIn", "Near", ""}[d.choose(5)]), Values: []string{d.word()},
		}}}
	}
	if d.choose(3) == 2 {
		when := policyv1.UnhealthyPodEvictionPolicyType([]string{"AlwaysAllow", "IfHealthyBudget", "Odd"}[d.choose(3)])
		b.Spec.UnhealthyPodEvictionPolicy = &when
	}
	return drain.NewBudget(b)
}

func (d *fuzzInput) facts() drain.Facts {
	f := drain.Facts{
		Now: noon, InstanceGone: d.choose(8) == 7, Margin: time.Duration(d.number()),
		DoNotDisrupt: v1beta1.DoNotDisrupt([]string{"", "Respect", "UntilLastCall", "Ignore", "Odd"}[d.choose(5)]),
	}
	if d.choose(4) > 0 {
		f.Deadline = &v1beta1.Deadline{Time: metav1.NewTime(d.moment()), Type: v1beta1.DeadlineType([]string{"Hard", "Estimated", "Soft", ""}[d.choose(4)])}
	}
	for i := range d.choose(8) {
		f.Pods = append(f.Pods, d.pod(i))
	}
	for i := range d.choose(5) {
		f.Budgets = append(f.Budgets, d.budget(i))
	}
	d.policy(&f)
	if d.choose(4) == 3 {
		f.Refused = map[types.UID]string{"0": d.word(), "1": d.word()}
	}
	return f
}

// policy generates a policy, and owners that may match no pod.
func (d *fuzzInput) policy(f *drain.Facts) {
	f.Strategy = v1beta1.Strategy([]string{"", "Evict", "Surge", "Surge", "Never", "Odd"}[d.choose(6)])
	for range d.choose(3) {
		w := v1beta1.Workload{
			Order:    v1beta1.Order([]string{"", "First", "Last", "Odd"}[d.choose(4)]),
			Strategy: v1beta1.Strategy([]string{"", "Surge", "Never", "Odd"}[d.choose(4)]),
		}
		switch d.choose(4) {
		case 0:
			w.Selector = &metav1.LabelSelector{MatchLabels: d.labels()}
		case 1:
			w.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: d.word(), Operator: "Near"}}}
		case 2:
			w.MatchOwnerKinds = []string{[]string{"None", "Deployment", "ReplicaSet", ""}[d.choose(4)]}
		}
		f.Workloads = append(f.Workloads, w)
	}
	for range d.choose(3) {
		f.Gates = append(f.Gates, drain.Gate{Why: d.word(), Until: d.moment()})
	}
	for i := range d.choose(4) {
		f.Owners.ReplicaSets = append(f.Owners.ReplicaSets, d.set(i))
		f.Owners.Deployments = append(f.Owners.Deployments, d.deployment(i))
	}
	for i, p := range f.Pods {
		if p != nil && d.choose(2) == 1 {
			d.assignReplicaSet(p, i)
		}
	}
}

func (d *fuzzInput) count() *int32 {
	if d.choose(6) == 5 {
		return nil
	}
	n := int32(d.number())
	return &n
}

func (d *fuzzInput) set(i int) *appsv1.ReplicaSet {
	if d.choose(8) == 7 {
		return nil
	}
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: d.word(), UID: types.UID(fmt.Sprintf("set-%d", i)), Generation: d.number(), ResourceVersion: d.word()}}
	rs.Spec.Replicas, rs.Status.ReadyReplicas, rs.Status.ObservedGeneration = d.count(), int32(d.number()), d.number()
	if d.choose(4) > 0 {
		rs.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "h"}}
	}
	if d.choose(4) > 0 {
		rs.OwnerReferences = controlledBy("Deployment", d.word(), types.UID(fmt.Sprintf("deployment-%d", i)))
	}
	return rs
}

func (d *fuzzInput) deployment(i int) *appsv1.Deployment {
	if d.choose(8) == 7 {
		return nil
	}
	dep := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: d.word(), UID: types.UID(fmt.Sprintf("deployment-%d", i)), Generation: d.number()}}
	dep.Spec.Replicas, dep.Status.ObservedGeneration = d.count(), d.number()
	dep.Spec.Strategy.Type = appsv1.DeploymentStrategyType([]string{"RollingUpdate", "RollingUpdate", "Recreate", ""}[d.choose(4)])
	dep.Status.Replicas, dep.Status.UpdatedReplicas = int32(d.choose(2)), int32(d.choose(2))
	return dep
}

// assignReplicaSet makes the pod one of a ReplicaSet or one that was surged, sometimes incompletely.
func (d *fuzzInput) assignReplicaSet(p *corev1.Pod, i int) {
	set := types.UID(fmt.Sprintf("set-%d", d.choose(4)))
	if p.Labels == nil {
		p.Labels = map[string]string{}
	}
	if d.choose(2) == 1 {
		p.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = "h"
		p.OwnerReferences = controlledBy("ReplicaSet", d.word(), set)
		return
	}
	p.Labels[v1beta1.LabelSurged] = d.word()
	if d.choose(4) > 0 {
		o := drain.Origin{ReplicaSet: fmt.Sprint(i), UID: set, Time: d.moment(), Seen: d.word()}
		p.Annotations = map[string]string{v1beta1.AnnotationSurgeOrigin: o.String()}
	}
}
