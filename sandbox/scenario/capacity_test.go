package scenario

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
)

// replica is a Ready pod of an app.
func replica(app, name, node string) *corev1.Pod {
	p := newPod(name, node, 10, 30)
	p.Labels = map[string]string{"app": app}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return p
}

func appIs(name string) labels.Selector { return labels.SelectorFromSet(labels.Set{"app": name}) }

// served is a world in which two pods of web must leave node a, and one of other need not.
func served() *World {
	w := NewWorld()
	w.Launched("a", "i-a", "node-a")
	w.Launched("b", "i-b", "node-b")
	for _, app := range []string{"web", "other"} {
		w.Wanted(at(-20), "Deployment", "default", app, appIs(app), map[string]int{"web": 2, "other": 1}[app])
	}
	for _, p := range []*corev1.Pod{replica("web", "w1", "node-a"), replica("web", "w2", "node-a"), replica("other", "o1", "node-b")} {
		w.Pod(at(-10), p, false)
	}
	w.MarkInterrupted([]string{"a"})
	w.Start(at(0), at(120))
	return w
}

func TestCapacityOverTime(t *testing.T) {
	for _, tc := range []struct {
		name   string
		see    func(w *World)
		want   []Level
		lowest int
		below  float64
	}{
		{"nothing happens", func(*World) {}, []Level{{0, 2, 2}}, 2, 0},
		{"the successor comes first", func(w *World) {
			w.Pod(at(20), replica("web", "w3", "node-b"), false)
			w.Pod(at(21), deleted(replica("web", "w1", "node-a"), 30), false)
		}, []Level{{0, 2, 2}, {20, 2, 2}, {21, 2, 2}}, 2, 0},
		{"the pod goes first", func(w *World) {
			w.Pod(at(1), deleted(replica("web", "w1", "node-a"), 30), false)
			w.Pod(at(1.5), deleted(replica("web", "w2", "node-a"), 30), false)
			w.Pod(at(40), replica("web", "w3", "node-b"), false)
			w.Pod(at(42), replica("web", "w4", "node-b"), false)
		}, []Level{{0, 2, 2}, {1, 1, 2}, {1.5, 0, 2}, {40, 1, 2}, {42, 2, 2}}, 0, 41},
		{"it never comes back", func(w *World) { w.PowerLost(at(120), "i-a") }, []Level{{0, 2, 2}, {120, 0, 2}}, 0, 20},
		{"fewer replicas wanted, then more", func(w *World) {
			w.Wanted(at(5), "Deployment", "default", "web", appIs("web"), 1)
			w.Wanted(at(9), "Deployment", "default", "web", appIs("web"), 3)
		}, []Level{{0, 2, 2}, {5, 1, 1}, {9, 2, 3}}, 1, 131},
		{"what is on other nodes is of no concern", func(w *World) {
			w.Pod(at(3), deleted(replica("other", "o1", "node-b"), 30), false)
		}, []Level{{0, 2, 2}}, 2, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := served()
			tc.see(w)
			got := w.capacity()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("levels (-want +got):\n%s", diff)
			}
			if lowest, below := shortfall(got, 140); lowest != tc.lowest || below != tc.below {
				t.Errorf("lowest %d, %g s below, want %d and %g s", lowest, below, tc.lowest, tc.below)
			}
		})
	}
}

func TestWorkloadIsReadyWithItsPods(t *testing.T) {
	w := served()
	for _, app := range []string{"web", "other"} {
		w.Workload("Deployment", "default", app, true)
	}
	check(t, w, "pods ready", true)
	w.Pod(at(1), deleted(replica("web", "w1", "node-a"), 30), false)
	check(t, w, "pods ready", false) // its status is not written yet
	w.Pod(at(2), replica("web", "w3", "node-b"), false)
	check(t, w, "pods ready", true)
}

func TestSurplusDoesNotCompensateOtherWorkload(t *testing.T) {
	w := served()
	w.MarkInterrupted([]string{"b"})
	w.Start(at(1), at(121))
	w.Pod(at(2), replica("web", "w3", "node-b"), false)
	w.Pod(at(3), deleted(replica("other", "o1", "node-b"), 30), false)
	got := w.capacity()
	if last := got[len(got)-1]; last != (Level{3, 2, 3}) {
		t.Errorf("at last %+v, want 2 of 3", last)
	}
}

func TestReportIncludesCapacityWithProvisioner(t *testing.T) {
	w := served()
	w.Pod(at(20), deleted(replica("web", "w1", "node-a"), 30), false)
	w.Pod(at(50), replica("web", "w3", "node-b"), false)
	without, err := json.Marshal(w.report(&Scenario{}, at(60), nil))
	if err != nil || strings.Contains(string(without), "Ready") || strings.Contains(string(without), "provisioner") {
		t.Errorf("%v: %s", err, without)
	}
	w.provisioner = "karpenter v1.14.1"
	r := w.report(&Scenario{}, at(60), nil)
	with, err := json.Marshal(r)
	if err != nil || !strings.Contains(string(with), `"provisioner":"karpenter v1.14.1","lowestReady":1,"secondsBelowWanted":30,"passed":true`) {
		t.Errorf("%v: %s", err, with)
	}
	var out bytes.Buffer
	Render(terminal.Stream{Writer: &out}, r)
	const want = `
Ready pods (#) of the wanted ones, by seconds since the notice
       2 |####################..............................##########
       1 |############################################################
         +---------+---------+---------+---------+---------+---------+
         0s        10s       20s       30s       40s       50s       60s

0 notices recorded, 0 pods moved whole, 0 cut short, 0 lost, 2 left alone, never fewer than 1 ready, 30.0s below what is wanted
✓ every expectation held
`
	if _, got, _ := strings.Cut(out.String(), "\n\n"); "\n"+got != want {
		t.Errorf("chart (-want +got):\n%s", cmp.Diff(want, "\n"+got))
	}
	for i, line := range strings.Split(want, "\n") {
		if strings.Contains(line, "|") && len(line) > 80 {
			t.Errorf("line %d has %d characters", i, len(line))
		}
	}
}

func TestChart(t *testing.T) {
	if got := chart(nil, 10); got != nil {
		t.Errorf("of nothing: %q", got)
	}
	if got := chart([]Level{{0, 1, 1}}, 0); got != nil {
		t.Errorf("of no time: %q", got)
	}
	// A dip of a hundredth of a second shows, and many pods are few rows.
	got := strings.Join(chart([]Level{{0, 20, 20}, {30, 9, 20}, {30.01, 20, 20}, {45, 25, 25}}, 60), "\n")
	const want = `      25 |                                             ###############
      21 |                                             ###############
      17 |##############################.#############################
      13 |##############################.#############################
       9 |############################################################
       5 |############################################################
         +---------+---------+---------+---------+---------+---------+
         0s        10s       20s       30s       40s       50s       60s`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("chart (-want +got):\n%s", diff)
	}
}
