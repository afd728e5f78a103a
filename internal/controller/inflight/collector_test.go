package inflight_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/controller/inflight"
)

var now = time.Date(2026, 5, 11, 8, 14, 0, 0, time.UTC)

// registry has the gauges of a replica that leads for ten seconds.
func registry(t *testing.T, elected bool, objects ...client.Object) *prometheus.Registry {
	t.Helper()
	clock := now.Add(-10 * time.Second)
	r := registryAt(t, elected, func() time.Time { return clock }, objects...)
	if _, err := r.Gather(); err != nil {
		t.Fatal(err)
	}
	clock = now
	return r
}

func registryAt(t *testing.T, elected bool, clock func() time.Time, objects ...client.Object) *prometheus.Registry {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	leads := make(chan struct{})
	if elected {
		close(leads)
	}
	r := prometheus.NewPedanticRegistry()
	err := inflight.Register(r, inflight.Options{
		Reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), Elected: leads, Clock: clock,
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func node(name, pool string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"karpenter.sh/nodepool": pool}}}
}

func interruption(name, node string, phase v1beta1.Phase, action v1beta1.Action) *v1beta1.Interruption {
	return &v1beta1.Interruption{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: v1beta1.InterruptionStatus{
			NodeName: node, Phase: phase, Decision: &v1beta1.Decision{Action: action},
			Deadline: &v1beta1.Deadline{Time: metav1.NewTime(now.Add(90 * time.Second)), Type: v1beta1.DeadlineHard},
			Drain:    &v1beta1.DrainStatus{PodCounts: v1beta1.PodCounts{Waiting: 2, Leaving: 1}},
		},
	}
}

func TestGaugesOfOneInterruption(t *testing.T) {
	r := registry(t, true, node("a", "web"), interruption("i-1", "a", v1beta1.PhaseDraining, v1beta1.ActionDrain),
		interruption("i-2", "gone", "", ""))
	want := `
# HELP lifeboat_interruptions Interruptions that are not finished, by phase, action and pool. A combination without any has no series.
# TYPE lifeboat_interruptions gauge
lifeboat_interruptions{action="Drain",phase="Draining",pool="NodePool web"} 1
lifeboat_interruptions{action="None",phase="Pending",pool="none"} 1
# HELP lifeboat_nearest_deadline_seconds Time until the nearest deadline of a node that is not drained, by type of the deadline. Negative after the deadline; no series if there is none.
# TYPE lifeboat_nearest_deadline_seconds gauge
lifeboat_nearest_deadline_seconds{type="Hard"} 90
# HELP lifeboat_pending_pods Pods that must still leave interrupted nodes: waiting to be evicted, or leaving.
# TYPE lifeboat_pending_pods gauge
lifeboat_pending_pods{state="leaving"} 1
lifeboat_pending_pods{state="waiting"} 2
`
	if err := testutil.GatherAndCompare(r, strings.NewReader(want), "lifeboat_interruptions", "lifeboat_nearest_deadline_seconds", "lifeboat_pending_pods"); err != nil {
		t.Error(err)
	}
}

func TestGaugesExistWithoutInterruptions(t *testing.T) {
	if n, err := testutil.GatherAndCount(registry(t, true)); n != 20 || err != nil {
		t.Errorf("%d series, want 20 (%v)", n, err)
	}
}

func TestOnlyLeaderExportsGauges(t *testing.T) {
	if n, err := testutil.GatherAndCount(registry(t, false)); n != 0 || err != nil {
		t.Errorf("%d series, %v", n, err)
	}
}

// The deadline of one node says nothing about the pods of another.
func TestPodsPastLastCallAreThoseOfTheirNode(t *testing.T) {
	pending := func(in *v1beta1.Interruption, state string, lastCall time.Duration) *v1beta1.Interruption {
		at := metav1.NewTime(now.Add(lastCall))
		in.Status.Drain.Pods = append(in.Status.Drain.Pods, v1beta1.PodStatus{Namespace: "shop", Name: "db-0", State: v1beta1.PodState(state), LastCallTime: &at})
		return in
	}
	// a ends in five seconds, and its pods leave. b has an hour, and its pods wait. c is late.
	a := pending(interruption("i-1", "a", v1beta1.PhaseDraining, v1beta1.ActionDrain), "Leaving", -time.Minute)
	a.Status.Deadline.Time = metav1.NewTime(now.Add(5 * time.Second))
	b := pending(interruption("i-2", "b", v1beta1.PhaseDraining, v1beta1.ActionDrain), "Waits", 30*time.Minute)
	b.Status.Deadline.Time = metav1.NewTime(now.Add(time.Hour))
	c := pending(interruption("i-3", "c", v1beta1.PhaseDraining, v1beta1.ActionDrain), "Waits", -10*time.Second)
	notified := pending(interruption("i-4", "d", v1beta1.PhaseNotified, v1beta1.ActionNotify), "Waits", -10*time.Second)
	want := `
# HELP lifeboat_pods_past_last_call Pods of an interrupted node that wait to be asked to leave although their last call is over. A node without any has no series.
# TYPE lifeboat_pods_past_last_call gauge
lifeboat_pods_past_last_call{node="c"} 1
`
	if err := testutil.GatherAndCompare(registry(t, true, a, b, c, notified), strings.NewReader(want), "lifeboat_pods_past_last_call"); err != nil {
		t.Error(err)
	}
	// The record may list pods that left while nothing led.
	fresh := registryAt(t, true, func() time.Time { return now }, c)
	if n, err := testutil.GatherAndCount(fresh, "lifeboat_pods_past_last_call"); n != 0 || err != nil {
		t.Errorf("a new leader exports %d series (%v)", n, err)
	}
	var late []client.Object
	for i := range 100 {
		late = append(late, pending(interruption(fmt.Sprintf("i-%d", i), fmt.Sprintf("n-%d", i), v1beta1.PhaseDraining, v1beta1.ActionDrain), "Waits", -time.Minute))
	}
	if n, err := testutil.GatherAndCount(registry(t, true, late...), "lifeboat_pods_past_last_call"); n != 21 || err != nil {
		t.Errorf("%d series of 100 nodes, want 21 (%v)", n, err)
	}
}

func TestGaugesOfBlockedDrainsAndUnreachableNodes(t *testing.T) {
	blocked := interruption("i-1", "a", v1beta1.PhaseDraining, v1beta1.ActionDrain)
	began := metav1.NewMicroTime(now.Add(-time.Hour))
	blocked.Status.Deadline, blocked.Status.Drain.StartTime, blocked.Status.Drain.PodCounts.Leaving = nil, &began, 0
	seen := blocked.DeepCopy()
	seen.Name, seen.Annotations = "i-2", map[string]string{v1beta1.AnnotationAcknowledged: now.Add(-time.Minute).Format(time.RFC3339)}
	lost := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "ip-10-0-1-5.ec2.internal"}}
	want := `
# HELP lifeboat_blocked_drains Drains that no deadline ends and that have made no progress for 15 minutes, such as one that a PodDisruptionBudget holds. One that a person has acknowledged does not count.
# TYPE lifeboat_blocked_drains gauge
lifeboat_blocked_drains 1
# HELP lifeboat_nodes_without_provider_id Nodes on EC2 without spec.providerID: no notice about their instances reaches them.
# TYPE lifeboat_nodes_without_provider_id gauge
lifeboat_nodes_without_provider_id 1
# HELP lifeboat_oldest_blocked_drain_seconds For how long the oldest of them has made no progress; 0 where there is none.
# TYPE lifeboat_oldest_blocked_drain_seconds gauge
lifeboat_oldest_blocked_drain_seconds 3600
`
	r := registry(t, true, blocked, seen, lost, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "rack7"}})
	if err := testutil.GatherAndCompare(r, strings.NewReader(want), "lifeboat_blocked_drains", "lifeboat_nodes_without_provider_id", "lifeboat_oldest_blocked_drain_seconds"); err != nil {
		t.Error(err)
	}
}

func TestCardinalityIsBoundedAt5000Nodes(t *testing.T) {
	phases := []v1beta1.Phase{
		v1beta1.PhaseScheduled, v1beta1.PhaseAwaitingApproval, v1beta1.PhaseQueued, v1beta1.PhaseCordoned,
		v1beta1.PhaseDraining, v1beta1.PhaseDrained, v1beta1.PhaseIgnored, v1beta1.PhaseNotified,
	}
	actions := []v1beta1.Action{v1beta1.ActionIgnore, v1beta1.ActionNotify, v1beta1.ActionCordon, v1beta1.ActionDrain, v1beta1.ActionTerminate}
	var objects []client.Object
	for i := range 5000 {
		name := fmt.Sprintf("n-%d", i)
		objects = append(objects, node(name, fmt.Sprintf("pool-%d", i%500)), interruption("i-"+name, name, phases[i%7], actions[i%5]))
	}
	r := registry(t, true, objects...)
	n, err := testutil.GatherAndCount(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d series of 5,000 interrupted nodes in 500 pools", n)
	if n > 800 {
		t.Errorf("%d series, want at most 800", n)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	for _, f := range families {
		if f.GetName() == "lifeboat_interruptions" {
			for _, m := range f.GetMetric() {
				sum += m.GetGauge().GetValue()
			}
		}
	}
	if sum != 5000 {
		t.Errorf("the series count %v Interruptions, want 5000", sum)
	}
}

func TestGaugesOfPauses(t *testing.T) {
	pause := func(name string, stops v1beta1.PauseScope, from, to time.Duration) *v1beta1.Pause {
		return &v1beta1.Pause{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.PauseSpec{
			By: "dana", Stops: stops, StartTime: metav1.NewTime(now.Add(from)), Until: metav1.NewTime(now.Add(to)),
		}}
	}
	stopped := interruption("i-1", "a", v1beta1.PhaseScheduled, v1beta1.ActionDrain)
	stopped.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionPaused, Status: metav1.ConditionTrue}}
	r := registry(t, true, stopped, pause("cluster", v1beta1.PauseEverything, -time.Hour, time.Hour),
		pause("nodepool-web", v1beta1.PauseDeferrable, -2*time.Hour, 0))
	want := `
# HELP lifeboat_oldest_pause_seconds For how long the oldest of them has been in force; 0 where there is none.
# TYPE lifeboat_oldest_pause_seconds gauge
lifeboat_oldest_pause_seconds 3600
# HELP lifeboat_paused_interruptions Interruptions that a pause stops.
# TYPE lifeboat_paused_interruptions gauge
lifeboat_paused_interruptions 1
# HELP lifeboat_pauses Pauses that are in force, of the cluster and of NodePools, by what they stop.
# TYPE lifeboat_pauses gauge
lifeboat_pauses{stops="Deferrable"} 0
lifeboat_pauses{stops="Everything"} 1
`
	if err := testutil.GatherAndCompare(r, strings.NewReader(want), "lifeboat_pauses", "lifeboat_oldest_pause_seconds", "lifeboat_paused_interruptions"); err != nil {
		t.Error(err)
	}
}
