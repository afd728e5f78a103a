package simulate_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/drain/simulate"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

var now = time.Date(2026, 5, 11, 8, 14, 2, 0, time.UTC)

// pod is a Ready pod of a ReplicaSet.
func pod(name, app string, grace int64) *corev1.Pod {
	yes := true
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID(name), Labels: map[string]string{"app": app},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app, Controller: &yes}},
		},
		Spec: corev1.PodSpec{NodeName: "n", TerminationGracePeriodSeconds: &grace},
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

func owned(p *corev1.Pod, kind string) *corev1.Pod {
	if kind == "" {
		p.OwnerReferences = nil
	} else {
		p.OwnerReferences[0].Kind = kind
	}
	return p
}

// budget allows that many disruptions of its healthy pods.
func budget(app string, healthy, allowed int32) *drain.Budget {
	least := intstr.FromInt32(healthy - allowed)
	return drain.NewBudget(&policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: app + "-pdb", Generation: 1},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &least, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		},
		Status: policyv1.PodDisruptionBudgetStatus{
			ObservedGeneration: 1, CurrentHealthy: healthy, DesiredHealthy: healthy - allowed,
			DisruptionsAllowed: allowed, ExpectedPods: healthy,
		},
	})
}

func facts(in time.Duration, pods []*corev1.Pod, budgets ...*drain.Budget) simulate.Facts {
	return simulate.Facts{
		Facts: drain.Facts{
			Now: now, Deadline: notice.At(now.Add(in), v1beta1.DeadlineHard), Margin: 10 * time.Second,
			Pods: pods, Budgets: budgets,
		},
		Replaced: 20 * time.Second,
	}
}

// formatOutcomes formats an outcome: pod, step, asked, gone, grace, overrides.
func formatOutcomes(outcomes []simulate.PodOutcome) []string {
	var lines []string
	for _, f := range outcomes {
		line := fmt.Sprintf("%s %s", f.Pod.Name, f.Step)
		if !f.Asked.IsZero() {
			line += fmt.Sprintf(" asked %+.0f gone %+.0f grace %.0f/%.0f", f.Asked.Sub(now).Seconds(), f.Gone.Sub(now).Seconds(), f.Grace.Seconds(), f.Wants.Seconds())
		}
		if f.Overrides != "" {
			line += " overrides " + f.Overrides
		}
		if !f.Fits {
			line += " DOES NOT FIT"
		}
		lines = append(lines, line)
	}
	return lines
}

func TestMake(t *testing.T) {
	leaving := pod("leaving", "web", 30)
	at, grace := metav1.NewTime(now.Add(25*time.Second)), int64(30)
	leaving.DeletionTimestamp, leaving.DeletionGracePeriodSeconds = &at, &grace
	long := pod("long", "web", 600)
	late, tenMinutes := metav1.NewTime(now.Add(580*time.Second)), int64(600)
	long.DeletionTimestamp, long.DeletionGracePeriodSeconds = &late, &tenMinutes

	cut := pod("cut", "web", 7*24*60*60)
	soon, most := metav1.NewTime(now.Add(100*time.Second)), int64(110)
	cut.DeletionTimestamp, cut.DeletionGracePeriodSeconds = &soon, &most
	forced := pod("forced", "web", 30)
	present := metav1.NewTime(now)
	forced.DeletionTimestamp, forced.DeletionGracePeriodSeconds = &present, new(int64)

	soft := facts(time.Hour, []*corev1.Pod{pod("only", "db", 30)}, budget("db", 1, 0))
	soft.Deadline.Type = v1beta1.DeadlineSoft

	for _, c := range []struct {
		name  string
		facts simulate.Facts
		want  []string
	}{
		{"no one is there", facts(2*time.Minute, nil), nil},
		{"without budgets all are asked at once", facts(2*time.Minute, []*corev1.Pod{pod("b", "web", 45), pod("a", "web", 15)}),
			[]string{"a Evict asked +0 gone +15 grace 15/15", "b Evict asked +0 gone +45 grace 45/45"}},
		{"a budget for one lets the second go when the first is replaced",
			facts(2*time.Minute, []*corev1.Pod{pod("a", "web", 15), pod("b", "web", 15)}, budget("web", 2, 1)),
			[]string{"a Evict asked +0 gone +15 grace 15/15", "b Evict asked +20 gone +35 grace 15/15"}},
		{"a StatefulSet replaces a pod only when it has gone",
			facts(2*time.Minute, []*corev1.Pod{owned(pod("a", "db", 15), "StatefulSet"), owned(pod("b", "db", 15), "StatefulSet")}, budget("db", 2, 1)),
			[]string{"a Evict asked +0 gone +15 grace 15/15", "b Evict asked +35 gone +50 grace 15/15"}},
		{"a budget that allows nothing is overridden at last call",
			facts(2*time.Minute, []*corev1.Pod{pod("only", "db", 30)}, budget("db", 1, 0)),
			[]string{"only Delete asked +80 gone +110 grace 30/30 overrides PodDisruptionBudget db-pdb"}},
		{"under a soft deadline it never ends", soft, []string{"only Waits DOES NOT FIT"}},
		{"a grace longer than the time left is cut", facts(2*time.Minute, []*corev1.Pod{pod("slow", "web", 300)}),
			[]string{"slow Evict asked +0 gone +110 grace 110/300 DOES NOT FIT"}},
		{"one that is leaving already is not asked again", facts(2*time.Minute, []*corev1.Pod{leaving}),
			[]string{"leaving Leaving asked -5 gone +25 grace 30/30"}},
		{"one that is leaving too slowly is cut short at the end", facts(2*time.Minute, []*corev1.Pod{long}),
			[]string{"long Delete asked -20 gone +110 grace 130/600 DOES NOT FIT"}},
		{"one whose grace was cut when it was asked does not fit", facts(2*time.Minute, []*corev1.Pod{cut}),
			[]string{"cut Leaving asked -10 gone +100 grace 110/604800 DOES NOT FIT"}},
		{"nor does one that was deleted without grace", facts(2*time.Minute, []*corev1.Pod{forced}),
			[]string{"forced Leaving asked +0 gone +0 grace 0/30 DOES NOT FIT"}},
		{"who must not move stays", facts(2*time.Minute, []*corev1.Pod{owned(pod("agent", "agent", 30), "DaemonSet")}),
			[]string{"agent Stays"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, formatOutcomes(simulate.Simulate(c.facts))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMakeDoesNotModifyFacts(t *testing.T) {
	f := facts(2*time.Minute, []*corev1.Pod{pod("a", "web", 15), pod("b", "web", 15)}, budget("web", 2, 1))
	before := f
	before.Pods = []*corev1.Pod{f.Pods[0].DeepCopy(), f.Pods[1].DeepCopy()}
	counted := *f.Budgets[0]
	before.Budgets = []*drain.Budget{&counted}
	simulate.Simulate(f)
	if diff := cmp.Diff(before, f); diff != "" {
		t.Errorf("the facts were changed (-before +after):\n%s", diff)
	}
}

// Any simulation ends, returns every pod once, asks no pod after the deadline,
// and gives no pod more grace than it requests.
func TestMakeInvariants(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var pods []*corev1.Pod
		var budgets []*drain.Budget
		for i := range r.IntN(20) {
			p := pod(fmt.Sprintf("p%02d", i), fmt.Sprintf("app%d", r.IntN(4)), int64(r.IntN(150)))
			pods = append(pods, owned(p, []string{"", "ReplicaSet", "StatefulSet", "DaemonSet"}[r.IntN(4)]))
		}
		for app := range r.IntN(4) {
			budgets = append(budgets, budget(fmt.Sprintf("app%d", app), int32(5+r.IntN(5)), int32(r.IntN(3))))
		}
		f := facts(time.Duration(r.IntN(200))*time.Second, pods, budgets...)
		outcomes := simulate.Simulate(f)
		seen := map[string]bool{}
		for _, fate := range outcomes {
			seen[fate.Pod.Name] = true
			switch {
			case fate.Asked.After(f.Deadline.Time.Time):
				t.Errorf("seed %d: %s is asked after the deadline", seed, fate.Pod.Name)
			case fate.Grace > fate.Wants:
				t.Errorf("seed %d: %s gets %v and wants only %v", seed, fate.Pod.Name, fate.Grace, fate.Wants)
			case fate.Fits && fate.Gone.After(f.Deadline.Time.Time):
				t.Errorf("seed %d: %s fits but ends after the deadline", seed, fate.Pod.Name)
			case fate.Step == "" || fate.Reason == "":
				t.Errorf("seed %d: no outcome of %s", seed, fate.Pod.Name)
			}
		}
		if len(seen) != len(pods) || len(outcomes) != len(pods) {
			t.Errorf("seed %d: %d fates of %d pods", seed, len(outcomes), len(pods))
		}
		if t.Failed() {
			t.Fatal(strings.Join(formatOutcomes(outcomes), "\n"))
		}
	}
}
