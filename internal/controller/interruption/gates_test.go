package interruption

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/hooks/runner"
	"github.com/lifeboat-dev/lifeboat/internal/kube/writes"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

func withHook(when v1beta1.HookTime, onFailure v1beta1.HookFailure) func(*v1beta1.InterruptionPolicySpec) {
	return func(s *v1beta1.InterruptionPolicySpec) {
		s.Hooks = []v1beta1.Hook{{
			Name: "leaders", When: when, OnFailure: onFailure, Timeout: &metav1.Duration{Duration: time.Minute},
			Job: &v1beta1.HookJob{Template: runtime.RawExtension{Raw: []byte(
				`{"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`)}},
		}}
	}
}

// withHookRunner adds a hook runner to the controller. Its client notes refused writes, as in package app.
func (w *world) withHookRunner() *world {
	w.loop.HookRunner = runner.New(runner.Options{Client: writes.Observe(w.client, w.loop.Metrics.WriteRefused), Live: w.client, Namespace: "lifeboat-system", JobNamespaces: []string{"node-hooks"}})
	return w
}

func (w *world) jobs() []batchv1.Job {
	w.t.Helper()
	var jobs batchv1.JobList
	if err := w.client.List(w.t.Context(), &jobs); err != nil {
		w.t.Fatal(err)
	}
	return jobs.Items
}

// ended simulates the Job controller.
func (w *world) ended(typ batchv1.JobConditionType) {
	w.t.Helper()
	for _, job := range w.jobs() {
		job.Status.Conditions = []batchv1.JobCondition{{Type: typ, Status: corev1.ConditionTrue}}
		if err := w.client.Status().Update(w.t.Context(), &job); err != nil {
			w.t.Fatal(err)
		}
	}
}

func TestPodsWaitForBeforeDrainHook(t *testing.T) {
	w := newWorld(t, recordOf(spot()), node("a", instance), pod("web-1"), team(withHook(v1beta1.HookBeforeDrain, ""))).withHookRunner()
	w.settle(time.Second)
	if len(w.jobs()) != 1 || len(w.evictions) > 0 {
		t.Fatalf("%d jobs, evictions %v", len(w.jobs()), w.evictions)
	}
	if left := record.Pending(record.Drain(&w.record().Status)); len(left) != 1 || !strings.Contains(left[0].Message, "hook leaders") {
		t.Errorf("left: %+v", left)
	}
	w.ended(batchv1.JobComplete)
	w.settle(5 * time.Second)
	if got := reasons(w.record().Status); len(w.evictions) != 1 || !slices.Contains(got, v1beta1.ReasonHookSucceeded) {
		t.Errorf("evictions %v, timeline %v", w.evictions, got)
	}
	w.settle(time.Second)
	if len(w.jobs()) != 1 {
		t.Errorf("%d jobs were made", len(w.jobs()))
	}
}

func TestHangingHookKeepsFullGrace(t *testing.T) {
	w := newWorld(t, recordOf(spot()), node("a", instance), pod("web-1"), team(func(s *v1beta1.InterruptionPolicySpec) {
		withHook(v1beta1.HookBeforeDrain, v1beta1.HookHold)(s)
		s.Hooks[0].Timeout.Duration = time.Hour
	})).withHookRunner()
	w.settle(time.Second)
	for len(w.evictions) == 0 && w.now.Sub(start) < 2*time.Minute {
		w.settle(max(w.wake, time.Second))
	}
	if at := w.now.Sub(start); at != 80*time.Second {
		t.Errorf("asked after %s, want at its last call, after 80s", at)
	}
}

func TestUserReleasesFailedHook(t *testing.T) {
	n := planned("h1", notice.ActionStop, start.Add(50*time.Minute))
	w := newWorld(t, recordOf(n), node("a", instance), pod("web-1"), team(withHook(v1beta1.HookBeforeDrain, v1beta1.HookHold))).withHookRunner()
	w.settle(time.Second)
	w.ended(batchv1.JobFailed)
	w.settle(time.Second)
	w.settle(time.Second)
	if got := reasons(w.record().Status); len(w.evictions) > 0 || !slices.Contains(got, v1beta1.ReasonHookFailed) {
		t.Fatalf("evictions %v, timeline %v", w.evictions, got)
	}
	w.now = w.now.Add(time.Second)
	w.setStatement(func(s *v1beta1.InterruptionSpec) { s.Approval = w.by(about) })
	w.settle(time.Second)
	if len(w.evictions) != 1 {
		t.Errorf("evictions %v: %+v", w.evictions, record.Pending(record.Drain(&w.record().Status)))
	}
}

func TestAfterDrainHookRunsAfterPodsLeft(t *testing.T) {
	w := newWorld(t, recordOf(spot()), node("a", instance), pod("web-1"), team(withHook(v1beta1.HookAfterDrain, ""))).withHookRunner()
	w.settle(time.Second)
	if len(w.jobs()) > 0 || len(w.evictions) != 1 {
		t.Fatalf("%d jobs, evictions %v", len(w.jobs()), w.evictions)
	}
	w.stopped("web-1")
	w.settle(time.Second)
	if len(w.jobs()) != 1 {
		t.Errorf("%d jobs", len(w.jobs()))
	}
}

// owned is a fake ownerwatch.
type owned struct {
	owners drain.Owners
	unread bool // it has not read the owners yet
}

func (o *owned) Owners(context.Context, string, []*corev1.Pod) (drain.Owners, bool, error) {
	return o.owners, !o.unread, nil
}
func (o *owned) Forget(string) {}

// surging is a world with a pod of a Deployment that is surged, and its ReplicaSet.
func surging(t *testing.T, strategy v1beta1.Strategy) (*world, *appsv1.ReplicaSet) {
	t.Helper()
	one, yes := int32(1), true
	p := pod("web-1")
	p.Labels["pod-template-hash"] = "5d9c"
	p.OwnerReferences[0].Name, p.OwnerReferences[0].UID = "web-5d9c", "rs-uid"
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "web-5d9c", UID: "rs-uid",
			OwnerReferences: []metav1.OwnerReference{{Kind: "Deployment", Name: "web", UID: "d-uid", Controller: &yes}},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: &one, Selector: &metav1.LabelSelector{
			MatchLabels: map[string]string{"app": "web", "pod-template-hash": "5d9c"},
		}},
		Status: appsv1.ReplicaSetStatus{Replicas: 1, ReadyReplicas: 1},
	}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "d-uid"},
		Spec:       appsv1.DeploymentSpec{Replicas: &one, Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType}},
		Status:     appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1},
	}
	w := newWorld(t, recordOf(spot()), node("a", instance), p, team(func(s *v1beta1.InterruptionPolicySpec) {
		s.Rules[0].Strategy = strategy
	}))
	w.loop.Owners = &owned{owners: drain.Owners{ReplicaSets: []*appsv1.ReplicaSet{rs}, Deployments: []*appsv1.Deployment{d}}}
	return w, rs
}

// In a storm the default strategy evicts at once: if all pods waited for their successors until last
// call, the API server could not evict them before the deadline. A rule that says Surge applies.
func TestDefaultStrategyEvictsInStorm(t *testing.T) {
	for _, c := range []struct {
		name    string
		rule    v1beta1.Strategy
		watched int
		surged  bool
	}{
		{"by default", "", maxSurgedNodes, true},
		{"by default in a storm", "", maxSurgedNodes + 1, false},
		{"by a rule in a storm", v1beta1.StrategySurge, maxSurgedNodes + 1, true},
		{"evicted by a rule", v1beta1.StrategyEvict, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, _ := surging(t, c.rule)
			w.watched = c.watched
			w.settle(time.Second)
			got := &corev1.Pod{}
			if err := w.client.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "web-1"}, got); err != nil {
				t.Fatal(err)
			}
			if surged := got.Labels[v1beta1.LabelSurged] != ""; surged != c.surged || (len(w.evictions) == 0) != c.surged {
				t.Fatalf("surged %t, evicted %v", surged, w.evictions)
			}
			storm := slices.ContainsFunc(record.Pending(record.Drain(&w.record().Status)), func(p v1beta1.PodStatus) bool {
				return strings.Contains(p.Message, "not surged: more than 20 nodes are being drained")
			})
			if want := c.rule == "" && !c.surged; storm != want {
				t.Errorf("the reason names the storm: %t: %+v", storm, record.Pending(record.Drain(&w.record().Status)))
			}
		})
	}
}

func TestPodIsEvictedAfterSuccessorIsReady(t *testing.T) {
	w, rs := surging(t, v1beta1.StrategySurge)
	w.settle(time.Second)
	got := &corev1.Pod{}
	if err := w.client.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "web-1"}, got); err != nil {
		t.Fatal(err)
	}
	if _, still := got.Labels["pod-template-hash"]; still || got.Labels[v1beta1.LabelSurged] == "" || len(w.evictions) > 0 {
		t.Fatalf("labels %v, evictions %v: %+v", got.Labels, w.evictions, record.Pending(record.Drain(&w.record().Status)))
	}
	got.OwnerReferences = nil // as the ReplicaSet's controller does, which starts another
	if err := w.client.Update(t.Context(), got); err != nil {
		t.Fatal(err)
	}
	rs.Status.ReadyReplicas = 0
	w.settle(3 * time.Second)
	if len(w.evictions) > 0 {
		t.Fatalf("evicted %v before the successor is Ready", w.evictions)
	}
	rs.Status.ReadyReplicas = 1
	w.settle(3 * time.Second)
	if !slices.Equal(w.evictions, []string{"web-1"}) {
		t.Errorf("evictions %v: %+v", w.evictions, record.Pending(record.Drain(&w.record().Status)))
	}
	surged := slices.DeleteFunc(reasons(w.record().Status), func(r string) bool { return r != v1beta1.ReasonSurged })
	if len(surged) != 1 {
		t.Errorf("%d entries about the surge", len(surged))
	}
}

// A user may uncordon the node before the notice is withdrawn. The surged pods must still return to
// their ReplicaSets: no later step finds them.
func TestSurgesAreRevertedAfterUserUncordons(t *testing.T) {
	w, rs := surging(t, v1beta1.StrategySurge)
	if err := w.client.Create(t.Context(), rs); err != nil {
		t.Fatal(err)
	}
	w.loop.Live = w.client
	w.settle(time.Second)
	n := w.node()
	n.Spec.Unschedulable, n.Spec.Taints = false, nil
	delete(n.Labels, v1beta1.LabelExcludeBalancers)
	over := spot()
	over.ID, over.Withdrawn = "over", true
	in := w.record()
	in.Spec.Notices = []v1beta1.Notice{over}
	if err := errors.Join(w.client.Update(t.Context(), n), w.client.Update(t.Context(), in)); err != nil {
		t.Fatal(err)
	}
	w.settle(time.Second)
	got := &corev1.Pod{}
	if err := w.client.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "web-1"}, got); err != nil {
		t.Fatal(err)
	}
	if got.Labels["pod-template-hash"] != "5d9c" || got.Labels[v1beta1.LabelSurged] != "" {
		t.Errorf("the pod stays without a ReplicaSet: %v; %+v", got.Labels, w.record().Status)
	}
}

// Otherwise pods that should be surged would be evicted after each restart while they wait, for
// example for a replacement.
func TestOwnersAreReadAgainAfterRestart(t *testing.T) {
	w := newWorld(t, recordOf(spot()), node("a", instance), pod("web-1"), team(func(s *v1beta1.InterruptionPolicySpec) {
		s.Rules[0].Strategy = v1beta1.StrategySurge
	}))
	w.loop.Owners = &owned{unread: true}
	w.settle(time.Second)
	w.settle(8 * time.Second)
	w.loop = New(w.loop.Options)
	w.settle(4 * time.Second)
	w.settle(4 * time.Second)
	if len(w.evictions) > 0 {
		t.Fatalf("evicted %v before what controls the pods was read", w.evictions)
	}
	w.settle(ownersTimeout)
	if !slices.Equal(w.evictions, []string{"web-1"}) {
		t.Errorf("evictions %v: it never ends: %+v", w.evictions, record.Pending(record.Drain(&w.record().Status)))
	}
}

// Reading the owners takes a list and a watch for each ReplicaSet and Deployment, and pods would
// wait for it.
func TestOwnersAreNotReadWhileSurgeIsDisabled(t *testing.T) {
	w := newWorld(t, recordOf(spot()), node("a", instance), pod("web-1"), team(func(s *v1beta1.InterruptionPolicySpec) {
		s.Rules[0].Strategy = v1beta1.StrategySurge
	}))
	w.loop.SurgeDisabled, w.loop.Owners = true, &owned{unread: true}
	w.settle(time.Second)
	if !slices.Equal(w.evictions, []string{"web-1"}) {
		t.Errorf("evictions %v, want web-1 at once: %+v", w.evictions, record.Pending(record.Drain(&w.record().Status)))
	}
}
