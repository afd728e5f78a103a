package scenario

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/sandbox/kwok"
)

// notice is when the clocks of these tests start.
var noticeTime = time.Date(2026, 5, 11, 8, 14, 2, 0, time.UTC)

func at(seconds float64) time.Time {
	return noticeTime.Add(time.Duration(seconds * float64(time.Second)))
}

// stage is a world with the interrupted node a, its pod p, and two minutes to go.
func stage() (*World, *corev1.Pod) {
	w := NewWorld()
	w.Launched("a", "i-a", "node-a")
	w.Launched("b", "i-b", "node-b")
	for _, name := range []string{"node-a", "node-b"} {
		w.Node(at(-20), &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		}, false)
	}
	pod := newPod("p", "node-a", 15, 30)
	w.Pod(at(-10), pod, false)
	w.MarkInterrupted([]string{"a"})
	w.Start(at(0), at(120))
	return w, pod
}

func newPod(name, node string, stop, grace int64) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)},
		Spec: corev1.PodSpec{
			NodeName: node, TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: stop}}}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

func deleted(pod *corev1.Pod, grace int64) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: noticeTime}, &grace
	return pod
}

func ended(pod *corev1.Pod, exitCode int32) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Status.Phase = corev1.PodSucceeded
	if exitCode != 0 {
		pod.Status.Phase = corev1.PodFailed
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: exitCode}}}}
	return pod
}

func TestVerdicts(t *testing.T) {
	for _, tc := range []struct {
		name string
		see  func(w *World, p *corev1.Pod)
		want Verdict
		text string
	}{
		{"not asked to stop", func(*World, *corev1.Pod) {}, Kept, "still running"},
		{"asked, at its hook", func(w *World, p *corev1.Pod) { w.Pod(at(1), deleted(p, 30), false) }, Leaving, "still stopping"},
		{"its hook ran to the end", func(w *World, p *corev1.Pod) {
			w.Pod(at(1), deleted(p, 30), false)
			w.Pod(at(16.4), ended(deleted(p, 30), 0), false)
			w.Pod(at(16.5), ended(deleted(p, 0), 0), true) // the kubelet deletes it with a grace period of zero
		}, Whole, "gone: used 15.4 s of 30 s grace"},
		{"its grace was too short", func(w *World, p *corev1.Pod) {
			w.Pod(at(1), deleted(p, 10), false)
			w.Pod(at(11), ended(deleted(p, 10), 137), false)
		}, Cut, "cut: it needed 15 s to stop and was given 10 s"},
		{"it was shortened on the way", func(w *World, p *corev1.Pod) {
			w.Pod(at(1), deleted(p, 30), false)
			w.Pod(at(3), deleted(p, 4), false)
			w.Pod(at(6), ended(deleted(p, 4), 137), true)
		}, Cut, "cut: it needed 15 s to stop and was given 4 s"},
		{"it was taken off the API server by force", func(w *World, p *corev1.Pod) { w.Pod(at(1), p, true) }, Cut, "cut: it needed 15 s to stop and was given 0 s"},
		{"power loss before it was asked", func(w *World, _ *corev1.Pod) { w.PowerLost(at(120), "i-a") }, Lost, "lost: its machine lost power before it was asked to stop"},
		{"asked after the power loss", func(w *World, p *corev1.Pod) {
			w.PowerLost(at(120), "i-a")
			w.Pod(at(120.1), deleted(p, 30), false)
			w.Pod(at(121), deleted(p, 0), true)
		}, Lost, "lost: its machine lost power before it was asked to stop"},
		{"power loss during its hook", func(w *World, p *corev1.Pod) {
			w.Pod(at(112), deleted(p, 30), false)
			w.PowerLost(at(120), "i-a")
			w.Pod(at(160), deleted(p, 0), true)
		}, Cut, "cut: 8 s of its 15 s stop work done when its machine lost power"},
		{"ended before the power loss", func(w *World, p *corev1.Pod) {
			w.Pod(at(100), deleted(p, 30), false)
			w.Pod(at(115.5), ended(deleted(p, 30), 0), false)
			w.PowerLost(at(120), "i-a")
		}, Whole, "gone: used 15.5 s of 30 s grace"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w, p := stage()
			tc.see(w, p)
			got := w.affected()
			if len(got) != 1 || got[0].verdict() != tc.want || got[0].describe() != tc.text {
				t.Fatalf("judged %d pods, the first %s (%s), want %s (%s)", len(got), got[0].verdict(), got[0].describe(), tc.want, tc.text)
			}
		})
	}
}

func TestStayingPodsAreNotChecked(t *testing.T) {
	w, _ := stage()
	yes := true
	daemon := newPod("daemon", "node-a", 0, 30)
	daemon.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "d", Controller: &yes}}
	static := newPod("static", "node-a", 0, 30)
	static.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	for _, p := range []*corev1.Pod{daemon, static, ended(newPod("job", "node-a", 0, 30), 0), newPod("elsewhere", "node-b", 0, 30), newPod("unbound", "", 0, 30)} {
		w.Pod(at(-5), p, false)
	}
	gone := newPod("gone-before", "node-a", 0, 30)
	w.Pod(at(-5), gone, false)
	w.Pod(at(-4), gone, true)
	if got := w.affected(); len(got) != 1 || got[0].name != "p" {
		t.Errorf("judged %d pods, want only p", len(got))
	}
}

func TestMovedPodTimeline(t *testing.T) {
	w, p := stage()
	var got []string
	note := func(moments []Moment) {
		for _, m := range moments {
			got = append(got, strings.Join([]string{offset(m.Seconds), string(m.Kind), m.Node, m.Pod, m.Text}, "|"))
		}
	}
	cordoned := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-a"},
		Spec:       corev1.NodeSpec{Unschedulable: true},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	record := &v1beta1.Interruption{Spec: v1beta1.InterruptionSpec{InstanceID: "i-a", Notices: []v1beta1.Notice{{ID: "1", Kind: "SpotInterruption"}}}}
	note(w.Record(at(0.1), record))
	note(w.Node(at(0.2), cordoned, false))
	note(w.Node(at(0.2), cordoned, false)) // the same again is no news
	record.Status.Timeline = []v1beta1.TimelineEntry{
		{Time: metav1.NewMicroTime(at(0.2)), Reason: v1beta1.ReasonCordoned, Message: "shown from observation"},
		{Time: metav1.NewMicroTime(at(0.3)), Reason: v1beta1.ReasonEvicted, Message: "default/p goes now: nothing holds it"},
	}
	note(w.Record(at(0.3), record))
	note(w.Record(at(0.3), record))
	note(w.Pod(at(0.4), deleted(p, 30), false))
	next := newPod("p2", "node-b", 15, 30)
	next.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	note(w.Pod(at(2), next, false))
	note(w.Pod(at(15.9), ended(deleted(p, 30), 0), false))
	note(w.Pod(at(16), ended(deleted(p, 0), 0), true))
	note(w.PowerLost(at(120), "i-a"))
	note(w.Node(at(140), cordoned, true))
	want := []string{
		"+0.1s|recorded|a||Lifeboat has recorded: SpotInterruption",
		"+0.2s|cordoned|a||cordoned: new pods are kept off",
		"+0.3s|reported|a|default/p|goes now: nothing holds it",
		"+0.4s|asked|a|default/p|asked to stop: needs 15 s, has 30 s",
		"+2.0s|ready|b|default/p2|is Ready on b",
		"+15.9s|whole|a|default/p|gone: used 15.5 s of 30 s grace",
		"+15.9s|empty|a||empty: every pod that had to leave is gone, 104.1 s before the deadline",
		"+120.0s|power-lost|a||the machine lost its power",
		"+140.0s|gone|a||the Node is deleted",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("timeline (-want +got):\n%s", diff)
	}
	checkReport(t, w)
}

// checkReport compares the report of that scenario, as JSON and as a table.
func checkReport(t *testing.T, w *World) {
	t.Helper()
	r := w.report(&Scenario{Name: "s", Title: "T"}, at(140), nil)
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"scenario":"s","title":"T","notices":1,"podsMoved":1,"podsCut":0,"podsLost":0,"podsKept":0,` +
		`"secondsToCordon":0.2,"secondsToSpare":104.1,"passed":true,"pods":[{"namespace":"default","name":"p","node":"a",` +
		`"stopSeconds":15,"graceSeconds":30,"askedAt":0.4,"overAt":15.9,"secondsToSpare":104.1,"verdict":"whole",` +
		`"description":"gone: used 15.5 s of 30 s grace"}]}`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	var out bytes.Buffer
	Render(terminal.Stream{Writer: &out}, r)
	const table = `POD  NODE  ASKED  NEEDS  GRACE  OVER    TO SPARE  VERDICT
p    a     +0.4s  15.0s  30.0s  +15.9s  104.1s    whole

1 notice recorded, 1 pod moved whole, 0 cut short, 0 lost, cordoned after 0.2s, 104.1s to spare
✓ every expectation held
`
	if diff := cmp.Diff(table, out.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestConditions(t *testing.T) {
	w, p := stage()
	w.Applied("Deployment", "default", "web")
	w.Pod(at(70), deleted(p, 30), false)
	w.Record(at(1), &v1beta1.Interruption{
		Spec: v1beta1.InterruptionSpec{InstanceID: "i-a", Notices: []v1beta1.Notice{{ID: "1", Kind: "SpotInterruption"}, {ID: "2", Kind: "RebalanceRecommendation"}}},
		Status: v1beta1.InterruptionStatus{
			Phase: v1beta1.PhaseDraining, Decision: &v1beta1.Decision{Action: v1beta1.ActionDrain, Policy: "team"},
			Drain: &v1beta1.DrainStatus{Replacement: &v1beta1.ReplacementStatus{Reason: "NoCapacity"}},
		},
	})
	for text, want := range map[string]bool{
		"pods ready":                         false, // web was applied and not seen
		"pods leaving=1 lost=0":              true,
		"pods asked>=2":                      false,
		"every pod leaving":                  true,
		"some pod whole":                     false,
		"no pod lost":                        true,
		"pod p asked":                        true,
		"pod p asked after 60s":              true,
		"pod p asked before deadline-60s":    false,
		"pod q asked":                        false, // there is none
		"node a ready":                       true,
		"node a open":                        true,
		"node a cordoned":                    false,
		"node a pods=1":                      true,
		"node a empty":                       false,
		"node b empty":                       true,
		"record b none":                      true,
		"record a none":                      false,
		"record a phase=Draining":            true,
		"record a action=Drain policy=other": false,
		"record a replacement=NoCapacity":    true,
		"record a replacement=Ready":         false,
		"record a kinds=RebalanceRecommendation,SpotInterruption": true,
	} {
		parser := &parser{nodes: map[string]bool{"a": true, "b": true}, clock: true, deadline: true}
		cond, err := parser.condition(strings.Fields(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, why := cond.Holds(w); got != want || !got && why == "" {
			t.Errorf("%s: %v (%s), want %v", text, got, why, want)
		}
	}
	w.Workload("Deployment", "default", "web", true)
	if ok, why := (podsReady{}).Holds(w); !ok {
		t.Errorf("pods ready: %s", why)
	}
}

func TestStopWork(t *testing.T) {
	exec := func(command ...string) *corev1.Lifecycle {
		return &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: command}}}
	}
	for name, tc := range map[string]struct {
		pod  corev1.Pod
		want time.Duration
	}{
		"nothing":           {corev1.Pod{}, 0},
		"annotation":        {corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{kwok.StopSecondsAnnotation: "7.5"}}}, 8 * time.Second},
		"no number":         {corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{kwok.StopSecondsAnnotation: "soon"}}}, 0},
		"sleeps in a shell": {corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Lifecycle: exec("sh", "-c", "sleep 3; nosleep 9; sleep 1.5")}}}}, 5 * time.Second},
		"the longest hook":  {corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Lifecycle: exec("sleep", "3")}, {Lifecycle: exec("sleep", "6")}}}}, 6 * time.Second},
	} {
		if got := stopWork(&tc.pod); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
