package drain_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// steps writes a plan as one line: each pod and its step.
func steps(p drain.Plan) string {
	var lines []string
	for _, v := range p.Verdicts {
		line := v.Pod.Name + " " + string(v.Step)
		if v.GraceSeconds != nil {
			line += fmt.Sprintf(" %ds", *v.GraceSeconds)
		}
		if v.Overrides != "" {
			line += " over " + v.Overrides
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, ", ")
}

func (w *world) until(kind v1beta1.DeadlineType, in time.Duration) {
	w.facts.Deadline = &v1beta1.Deadline{Time: metav1.NewTime(w.now.Add(in)), Type: kind}
}

// The plan depends only on the current facts: each case must give the plan that it would give
// without the cases before it.
func TestPlanDependsOnlyOnCurrentFacts(t *testing.T) {
	held := map[string]string{v1beta1.AnnotationDoNotDisrupt: "true"}
	tenMinutes, minute := int64(600), int64(60)
	in := scenario{
		Deadline: &deadlineIn{In: metav1.Duration{Duration: 24 * time.Hour}, Type: v1beta1.DeadlineSoft},
		Pods: []podIn{
			{Name: "held", Annotations: held},
			{Name: "guarded", App: "db"},
			{Name: "slow", Grace: &tenMinutes, Leaving: &leavingIn{Grace: 600}},
			{Name: "surged", Set: "web", Grace: &minute, Surged: &surgedIn{Ago: metav1.Duration{Duration: 20 * time.Second}}},
		},
		Budgets: []budgetIn{{Name: "db-pdb", App: "db", Healthy: 1, Desired: 1, Expected: 1}},
		Sets:    []setIn{{Name: "web", Replicas: 1}},
	}
	for _, c := range []struct {
		name string
		now  func(w *world)
		want string
		wake int // seconds from now
	}{
		{"a soft deadline overrides nothing", func(*world) {},
			"slow Leaving, surged Waits, guarded Waits, held Waits", 280},
		{"spot overtakes it: what waited has its last call",
			func(w *world) { w.until(v1beta1.DeadlineHard, 2*time.Minute) },
			"slow Leaving, surged Waits, guarded Waits, held Waits", 50},
		{"spot with little time left: all go at once",
			func(w *world) { w.until(v1beta1.DeadlineHard, 30*time.Second) },
			"guarded Delete 20s over PodDisruptionBudget db-pdb, surged Evict 20s, held Evict 20s over do-not-disrupt, slow Leaving", 18},
		{"the hard deadline moves to later: a pod past its old last call waits again",
			func(w *world) {
				w.until(v1beta1.DeadlineHard, 30*time.Second)
				drain.NewPlan(w.facts)
				w.until(v1beta1.DeadlineHard, time.Hour)
			}, "slow Leaving, surged Waits, guarded Waits, held Waits", 280},
		{"the hard deadline moves to earlier: what is leaving is cut short",
			func(w *world) { w.until(v1beta1.DeadlineHard, 12*time.Second) },
			"guarded Delete 2s over PodDisruptionBudget db-pdb, slow Delete 2s, surged Evict 2s, held Evict 2s over do-not-disrupt", 12},
		{"the operating system shuts down: each has its last call, and keeps its grace",
			func(w *world) { w.until(v1beta1.DeadlineEstimated, 2*time.Minute) },
			"slow Leaving, surged Waits, guarded Waits, held Waits", 50},
		{"it has been shutting down for a while: all go at once, with their whole grace",
			func(w *world) { w.until(v1beta1.DeadlineEstimated, 30*time.Second) },
			"guarded Delete over PodDisruptionBudget db-pdb, surged Evict, held Evict over do-not-disrupt, slow Leaving", 30},
		{"it shuts down for longer than was estimated: nothing is shortened",
			func(w *world) { w.until(v1beta1.DeadlineEstimated, -30*time.Second) },
			"guarded Delete over PodDisruptionBudget db-pdb, surged Evict, held Evict over do-not-disrupt, slow Leaving", 660},
		{"a notice without a deadline remains after the others are withdrawn",
			func(w *world) { w.facts.Deadline = nil },
			"slow Leaving, surged Waits, guarded Waits, held Waits", 280},
		{"the instance is gone: the remaining pods are deleted",
			func(w *world) { w.facts.InstanceGone = true },
			"slow Delete 0s, surged Delete 0s, guarded Delete 0s, held Delete 0s", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &world{now: noon, facts: in.facts()}
			c.now(w)
			plan := drain.NewPlan(w.facts)
			if diff := cmp.Diff(c.want, steps(plan)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			wake := ""
			if c.wake > 0 {
				wake = hour(second(c.wake))
			}
			if got := hour(plan.WakeAt); got != wake {
				t.Errorf("wakes at %s, want %s", got, wake)
			}
		})
	}
}

// The state of its ReplicaSet and Deployment changes while a surged pod waits.
func TestSurgedPodWithChangedOwners(t *testing.T) {
	for _, c := range []struct {
		name string
		set  setIn
		want string
	}{
		{"its successor is not Ready", setIn{Replicas: 2, Ready: 1}, "web-0 Waits"},
		{"its successor is Ready", setIn{Replicas: 2, Ready: 2}, "web-0 Evict"},
		{"the autoscaler adds replicas, which are not Ready yet", setIn{Replicas: 4, Ready: 2}, "web-0 Waits"},
		{"the autoscaler adds replicas, and the ReplicaSet controller has not synced", setIn{Replicas: 2, Ready: 2, Stale: true}, "web-0 Waits"},
		{"the autoscaler removes replicas", setIn{Replicas: 1, Ready: 1}, "web-0 Evict"},
		{"it is scaled to zero", setIn{Replicas: 0}, "web-0 Evict"},
		{"a rollout has begun, which keeps its size for now", setIn{Replicas: 2, Ready: 1, Others: 1}, "web-0 Waits"},
		{"a rollout has scaled it to zero", setIn{Replicas: 0, Others: 2}, "web-0 Evict"},
		{"the Deployment is paused", setIn{Replicas: 2, Ready: 2, Paused: true}, "web-0 Evict"},
		{"the Deployment is gone", setIn{Replicas: 2, Ready: 1, Deployment: "-"}, "web-0 Waits"},
		{"it is being deleted", setIn{Replicas: 2, Ready: 1, Gone: true}, "web-0 Evict"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.set.Name = "web"
			in := scenario{
				Strategy: v1beta1.StrategySurge,
				Pods:     []podIn{{Name: "web-0", Set: "web", Surged: &surgedIn{Ago: metav1.Duration{Duration: 20 * time.Second}}}},
				Sets:     []setIn{c.set},
			}
			plan := drain.NewPlan(in.facts())
			if got := steps(plan); got != c.want {
				t.Errorf("got %s, want %s: %s", got, c.want, plan.Verdicts[0].Reason)
			}
		})
	}
}

// A surge must not use the one disruption that the budget allows: it is left for a pod that
// cannot be surged.
func TestSurgeUsesNoBudget(t *testing.T) {
	in := scenario{
		Strategy: v1beta1.StrategySurge,
		Pods:     []podIn{{Name: "a", App: "x", Set: "web"}, {Name: "b", App: "x", Owner: "StatefulSet/db"}},
		Sets:     []setIn{{Name: "web", Replicas: 1, Ready: 1}},
		Budgets:  []budgetIn{{Name: "pdb", App: "x", Allowed: 1, Healthy: 2, Desired: 1, Expected: 2}},
	}
	if got, want := steps(drain.NewPlan(in.facts())), "b Evict, a Surge"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestOriginRoundTrip(t *testing.T) {
	want := drain.Origin{ReplicaSet: "web-5d9c", UID: "u", Hash: "5d9c", Time: noon, Seen: "17"}
	pod := podIn{Name: "web-0", App: "web"}.pod()
	if _, ok := drain.SurgedFrom(pod); ok {
		t.Error("a pod that was not surged says so")
	}
	surge(pod, want)
	got, ok := drain.SurgedFrom(pod)
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("read: %t (-want +got)\n%s", ok, diff)
	}
	for _, text := range []string{"", "{", "{}", "17", "null"} {
		pod.Annotations[v1beta1.AnnotationSurgeOrigin] = text
		if o, ok := drain.SurgedFrom(pod); ok {
			t.Errorf("%q is read as %v", text, o)
		}
	}
}
