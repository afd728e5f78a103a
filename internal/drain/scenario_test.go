package drain_test

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// noon is the time of every scenario.
var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// scenario is the input of a golden file: Facts with defaults, so that a case states only what
// it tests. Times are relative to now.
type scenario struct {
	Deadline     *deadlineIn          `json:"deadline,omitempty"`
	InstanceGone bool                 `json:"instanceGone,omitempty"`
	DoNotDisrupt v1beta1.DoNotDisrupt `json:"doNotDisrupt,omitempty"`
	Margin       *metav1.Duration     `json:"margin,omitempty"` // 10s
	Pods         []podIn              `json:"pods"`
	Budgets      []budgetIn           `json:"budgets,omitempty"`
	Strategy     v1beta1.Strategy     `json:"strategy,omitempty"`
	Workloads    []v1beta1.Workload   `json:"workloads,omitempty"`
	Gates        []gateIn             `json:"gates,omitempty"`
	Sets         []setIn              `json:"sets,omitempty"`
	Claims       map[string]string    `json:"claims,omitempty"` // by name: the access mode
}

type gateIn struct {
	Why   string          `json:"why"`
	Until metav1.Duration `json:"until,omitempty"` // from now
}

// setIn is a ReplicaSet, by default of a Deployment of the same name.
type setIn struct {
	Name       string `json:"name"`
	Replicas   int32  `json:"replicas"`
	Ready      int32  `json:"ready"`
	Stale      bool   `json:"stale,omitempty"`
	Version    string `json:"version,omitempty"`    // resourceVersion
	Deployment string `json:"deployment,omitempty"` // "-": none controls it
	Strategy   string `json:"strategy,omitempty"`   // RollingUpdate
	Paused     bool   `json:"paused,omitempty"`
	Unobserved bool   `json:"unobserved,omitempty"` // the Deployment has changed
	Others     int32  `json:"others,omitempty"`     // pods of other ReplicaSets
	Wanted     *int32 `json:"wanted,omitempty"`     // of the Deployment
	Gone       bool   `json:"gone,omitempty"`       // being deleted
}

type deadlineIn struct {
	In   metav1.Duration      `json:"in"`
	Type v1beta1.DeadlineType `json:"type,omitempty"` // Hard
}

type podIn struct {
	Name          string            `json:"name"`
	Namespace     string            `json:"namespace,omitempty"` // default
	App           string            `json:"app,omitempty"`       // the label app
	Owner         string            `json:"owner,omitempty"`     // Kind/name
	Grace         *int64            `json:"grace,omitempty"`     // 30
	PriorityClass string            `json:"priorityClass,omitempty"`
	Priority      *int32            `json:"priority,omitempty"`
	Annotations   map[string]string `json:"annotations,omitempty"`
	Finalizers    []string          `json:"finalizers,omitempty"`
	Phase         corev1.PodPhase   `json:"phase,omitempty"` // Running
	NotReady      bool              `json:"notReady,omitempty"`
	Started       *metav1.Duration  `json:"started,omitempty"` // how long ago; 1h
	Leaving       *leavingIn        `json:"leaving,omitempty"`
	Refused       string            `json:"refused,omitempty"`
	Set           string            `json:"set,omitempty"`    // its ReplicaSet
	Surged        *surgedIn         `json:"surged,omitempty"` // taken from that
	HostPort      int32             `json:"hostPort,omitempty"`
	HostNetwork   bool              `json:"hostNetwork,omitempty"`
	Claim         string            `json:"claim,omitempty"`
	Ephemeral     bool              `json:"ephemeral,omitempty"`
}

type surgedIn struct {
	Ago        metav1.Duration `json:"ago"`
	Seen       string          `json:"seen,omitempty"`
	Unreleased bool            `json:"unreleased,omitempty"`
	Unreadable bool            `json:"unreadable,omitempty"`
}

type leavingIn struct {
	Asked metav1.Duration `json:"asked"` // how long ago
	Grace int64           `json:"grace"`
}

type budgetIn struct {
	Name        string `json:"name"`
	Namespace   string `json:"namespace,omitempty"` // default
	App         string `json:"app,omitempty"`       // the label app it selects; empty: every pod
	Allowed     int32  `json:"allowed,omitempty"`
	Healthy     int32  `json:"healthy,omitempty"`
	Desired     int32  `json:"desired,omitempty"`
	Expected    int32  `json:"expected,omitempty"`
	Stale       bool   `json:"stale,omitempty"`
	AlwaysAllow bool   `json:"alwaysAllow,omitempty"`
	SyncFailed  string `json:"syncFailed,omitempty"`
	Unseen      int    `json:"unseen,omitempty"` // evictions granted that the controller has not seen
	Operator    string `json:"operator,omitempty"`
}

func (s scenario) facts() drain.Facts {
	f := drain.Facts{
		Now:          noon,
		InstanceGone: s.InstanceGone,
		DoNotDisrupt: s.DoNotDisrupt,
		Margin:       10 * time.Second,
		Refused:      map[types.UID]string{},
	}
	if s.Margin != nil {
		f.Margin = s.Margin.Duration
	}
	if d := s.Deadline; d != nil {
		f.Deadline = &v1beta1.Deadline{Time: metav1.NewTime(noon.Add(d.In.Duration)), Type: d.Type}
		if d.Type == "" {
			f.Deadline.Type = v1beta1.DeadlineHard
		}
	}
	for _, p := range s.Pods {
		pod := p.pod()
		f.Pods = append(f.Pods, pod)
		if p.Refused != "" {
			f.Refused[pod.UID] = p.Refused
		}
	}
	for _, b := range s.Budgets {
		f.Budgets = append(f.Budgets, b.budget())
	}
	f.Strategy, f.Workloads = s.Strategy, s.Workloads
	for _, g := range s.Gates {
		gate := drain.Gate{Why: g.Why}
		if g.Until.Duration != 0 {
			gate.Until = noon.Add(g.Until.Duration)
		}
		f.Gates = append(f.Gates, gate)
	}
	for _, set := range s.Sets {
		rs, d := set.objects()
		f.Owners.ReplicaSets = append(f.Owners.ReplicaSets, rs)
		if d != nil {
			f.Owners.Deployments = append(f.Owners.Deployments, d)
		}
	}
	for name, mode := range s.Claims {
		f.Owners.Claims = append(f.Owners.Claims, &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec:       corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.PersistentVolumeAccessMode(mode)}},
		})
	}
	return f
}

func (p podIn) pod() *corev1.Pod {
	namespace := orDefault(p.Namespace, "default")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: p.Name, Namespace: namespace, UID: types.UID(namespace + "/" + p.Name),
			Annotations: p.Annotations, Finalizers: p.Finalizers,
			CreationTimestamp: metav1.NewTime(noon.Add(-2 * time.Hour)),
		},
		Spec: corev1.PodSpec{TerminationGracePeriodSeconds: p.Grace, PriorityClassName: p.PriorityClass, Priority: p.Priority},
		Status: corev1.PodStatus{
			Phase:      orDefault(p.Phase, corev1.PodRunning),
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
	if p.App != "" {
		pod.Labels = map[string]string{"app": p.App}
	}
	if kind, name, ok := strings.Cut(p.Owner, "/"); ok {
		yes := true
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: name, Controller: &yes}}
	}
	p.own(pod)
	if p.NotReady {
		pod.Status.Conditions[0].Status = corev1.ConditionFalse
	}
	started := metav1.NewTime(noon.Add(-time.Hour))
	if p.Started != nil {
		started = metav1.NewTime(noon.Add(-p.Started.Duration))
	}
	if pod.Status.Phase != corev1.PodPending {
		pod.Status.StartTime = &started
	}
	if l := p.Leaving; l != nil {
		end := metav1.NewTime(noon.Add(-l.Asked.Duration).Add(time.Duration(l.Grace) * time.Second))
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &end, &l.Grace
	}
	return pod
}

func (b budgetIn) budget() *drain.Budget {
	pdb := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: b.Name, Namespace: orDefault(b.Namespace, "default"), Generation: 2},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}},
		Status: policyv1.PodDisruptionBudgetStatus{
			ObservedGeneration: 2, DisruptionsAllowed: b.Allowed,
			CurrentHealthy: b.Healthy, DesiredHealthy: b.Desired, ExpectedPods: b.Expected,
		},
	}
	if b.App != "" {
		pdb.Spec.Selector.MatchLabels = map[string]string{"app": b.App}
	}
	if b.Operator != "" {
		pdb.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOperator(b.Operator)}}
	}
	if b.Stale {
		pdb.Status.ObservedGeneration = 1
	}
	if b.AlwaysAllow {
		always := policyv1.AlwaysAllow
		pdb.Spec.UnhealthyPodEvictionPolicy = &always
	}
	if b.SyncFailed != "" {
		pdb.Status.Conditions = []metav1.Condition{{
			Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse,
			Reason: policyv1.SyncFailedReason, Message: b.SyncFailed,
		}}
	}
	for range b.Unseen {
		if pdb.Status.DisruptedPods == nil {
			pdb.Status.DisruptedPods = map[string]metav1.Time{}
		}
		pdb.Status.DisruptedPods["gone-"+time.Duration(len(pdb.Status.DisruptedPods)).String()] = metav1.NewTime(noon)
	}
	return drain.NewBudget(pdb)
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}
