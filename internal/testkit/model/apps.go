package model

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// App is a workload. Its pods have the label app with its name.
type App struct {
	// Kind is ReplicaSet, StatefulSet, DaemonSet or Job, or empty for a pod without a
	// controller.
	Kind      string
	Namespace string
	Name      string
	Replicas  int
	// Grace is the pods' grace period in seconds, and StopsIn the share of it that they need to
	// stop.
	Grace   int64
	StopsIn float64
	// StartsIn is how long a new pod takes until it is Ready.
	StartsIn time.Duration
	// Hangs is how long a finalizer keeps the object of a pod that has stopped.
	Hangs       time.Duration
	Annotations map[string]string
	Critical    bool
	// Deployed is set if a Deployment controls the ReplicaSet.
	Deployed bool
}

// Run adds a workload with its pods on nodes; they are Ready immediately.
func (k *Cluster) Run(a *App, nodes []string) {
	k.apps = append(k.apps, a)
	if a.Kind == "ReplicaSet" {
		k.deploy(a)
	}
	for i := range a.Replicas {
		p := k.must(k.Create(k.pod(a, i, nodes[i%len(nodes)])))
		if pod, ok := p.(*corev1.Pod); ok {
			k.setPod(pod, func(p *corev1.Pod) {
				p.Status.Phase, p.Status.StartTime = corev1.PodRunning, &p.CreationTimestamp
				if a.Kind == "Job" {
					p.Status.Phase = corev1.PodSucceeded
				}
				setPodReady(p, corev1.ConditionTrue)
			})
		}
	}
}

// owns is the owner reference of its pods.
func (a *App) owns() []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: a.Kind, Name: a.Name, UID: types.UID("app-" + a.Name), Controller: &yes}}
}

// App returns a workload, or nil.
func (k *Cluster) App(name string) *App { return k.app(name) }

func (k *Cluster) app(name string) *App {
	for _, a := range k.apps {
		if a.Name == name {
			return a
		}
	}
	return nil
}

func (k *Cluster) pod(a *App, ordinal int, node string) *corev1.Pod {
	name := fmt.Sprintf("%s-%d", a.Name, ordinal)
	labels := map[string]string{"app": a.Name}
	if a.Kind == "ReplicaSet" {
		k.serial++
		labels[hashLabel] = hash
		name = fmt.Sprintf("%s-x%d", a.Name, k.serial)
	}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: a.Namespace, Name: name, Labels: labels, Annotations: a.Annotations,
		},
		Spec: corev1.PodSpec{
			NodeName: node, TerminationGracePeriodSeconds: &a.Grace, Containers: []corev1.Container{{Name: "c", Image: "c"}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	if a.Hangs > 0 {
		p.Finalizers = []string{"example.com/hangs"}
	}
	if a.Kind != "" {
		p.OwnerReferences = a.owns()
	}
	if a.Critical {
		p.Spec.PriorityClassName = "system-cluster-critical"
	}
	return p
}

// replicate simulates a workload's controller: it creates the missing pods.
func (k *Cluster) replicate(name string) {
	a := k.app(name)
	switch {
	case a == nil:
	case a.Kind == "ReplicaSet":
		k.replicateSet(a)
	case a.Kind == "StatefulSet":
		for i := range a.Replicas {
			if k.Get(Key{"Pod", a.Namespace, fmt.Sprintf("%s-%d", name, i)}) == nil {
				k.launch(a, i)
			}
		}
	}
}

func (k *Cluster) launch(a *App, ordinal int) {
	node := k.place()
	made := k.must(k.Create(k.pod(a, ordinal, node)))
	if p, ok := made.(*corev1.Pod); ok {
		k.start(p, a.StartsIn)
	}
}

// place chooses a node for a pod. There is always one: some nodes are never interrupted.
func (k *Cluster) place() string {
	var fit, worse []string
	k.Each("Node", func(o client.Object) {
		n, ok := o.(*corev1.Node)
		if !ok || n.Spec.Unschedulable || !isReady(n) {
			return
		}
		switch {
		case slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectNoSchedule }):
		case len(n.Spec.Taints) > 0:
			worse = append(worse, n.Name)
		default:
			fit = append(fit, n.Name)
		}
	})
	if len(fit) == 0 {
		fit = worse
	}
	slices.Sort(fit)
	return fit[k.scheduler.Rand.IntN(len(fit))]
}

func isReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// Protect adds a budget for a workload, counted immediately.
func (k *Cluster) Protect(name string, a *App, maxUnavailable int) {
	limit := intstr.FromInt32(int32(maxUnavailable))
	k.must(k.Create(&policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: &limit, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": a.Name}},
		},
	}))
	k.count(Key{"PodDisruptionBudget", a.Namespace, name})
}

// recount makes the disruption controller count the budgets of a pod soon.
func (k *Cluster) recount(p *corev1.Pod) {
	for _, b := range k.BudgetsOf(p) {
		key := KeyOf(b)
		k.later(key.String(), k.scheduler.Between(20*time.Millisecond, 500*time.Millisecond), func() { k.count(key) })
	}
}

// count simulates the disruption controller (kubernetes pkg/controller/disruption).
func (k *Cluster) count(key Key) {
	was, ok := k.Get(key).(*policyv1.PodDisruptionBudget)
	if !ok {
		return
	}
	b := was.DeepCopy()
	name := b.Spec.Selector.MatchLabels["app"]
	expected := int32(k.app(name).Replicas)
	var healthy int32
	disrupted := map[string]metav1.Time{}
	for _, p := range k.Pods(func(p *corev1.Pod) bool { return p.Namespace == b.Namespace && covers(b, p) }) {
		at, granted := b.Status.DisruptedPods[p.Name]
		switch {
		case p.DeletionTimestamp != nil:
		case granted && k.Now().Sub(at.Time) < 2*time.Minute:
			disrupted[p.Name] = at
		case IsReady(p) && p.Status.Phase == corev1.PodRunning:
			healthy++
		}
	}
	b.Status.ObservedGeneration = b.Generation
	b.Status.ExpectedPods, b.Status.CurrentHealthy = expected, healthy
	b.Status.DesiredHealthy = max(0, expected-int32(b.Spec.MaxUnavailable.IntValue()))
	b.Status.DisruptionsAllowed = max(0, healthy-b.Status.DesiredHealthy)
	b.Status.DisruptedPods = nil
	if len(disrupted) > 0 {
		b.Status.DisruptedPods = disrupted
	}
	k.Put(b)
}
