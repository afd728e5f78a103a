package scenario

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestBrokenRequirementIsReportedOnce(t *testing.T) {
	w, p := stage()
	step := Step{Line: 7, Text: "always pods p ready>=1"}
	ready := p.DeepCopy()
	ready.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	w.Pod(at(1), ready, false)
	w.Require(step, counts{Glob: "p", Bounds: []count{{podReadyNow, ">=", 1}}})
	w.Require(Step{Line: 8, Text: "always no pod lost"}, quantified{"no", Lost})
	if moments := w.CheckRequirements(at(1)); len(moments) != 0 || len(w.BrokenRequirements()) != 0 {
		t.Fatalf("moments %v, broken %v, want all met", moments, w.BrokenRequirements())
	}
	w.Pod(at(2.5), deleted(ready, 30), false) // stopping: it serves no longer
	moments := w.CheckRequirements(at(2.5))
	w.Pod(at(3), ready, false)
	again := w.CheckRequirements(at(3)) // it holds again, and stays broken
	const want = `line 7, "always pods p ready>=1" does not hold 2.5 s after the notice: ready=0; p: still stopping`
	if len(moments) != 1 || moments[0].Kind != MomentFailed || moments[0].Text != want || len(again) != 0 {
		t.Errorf("moments %v, then %v, want %s once", moments, again, want)
	}
	if diff := cmp.Diff([]string{want}, w.BrokenRequirements()); diff != "" {
		t.Errorf("broken (-want +got):\n%s", diff)
	}
	if met := w.metRequirements(); len(met) != 1 || met[0].step.Line != 8 {
		t.Errorf("met %v, want line 8", met)
	}
}

func TestPodWithoutPowerIsNotServing(t *testing.T) {
	w, p := stage()
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	w.Pod(at(1), p, false)
	serving := counts{Glob: "*", Bounds: []count{{podReadyNow, "=", 1}}}
	if ok, why := serving.Holds(w); !ok {
		t.Fatalf("before: %s", why)
	}
	w.PowerLost(at(120), "i-a")
	w.Pod(at(121), p, false) // the API server still calls it Ready
	if ok, _ := serving.Holds(w); ok {
		t.Error("a pod without power counts as Ready")
	}
}

func TestClockRestartsWithNextNotice(t *testing.T) {
	w, p := stage()
	w.Pod(at(10), deleted(p, 30), false)
	w.Pod(at(26), ended(deleted(p, 30), 0), true)
	w.MarkInterrupted([]string{"b"})
	w.Start(at(60), at(180))
	late := newPod("q", "node-b", 0, 30)
	w.Pod(at(61), late, false)
	moments := w.Pod(at(65), deleted(late, 30), false)
	if len(moments) != 1 || *moments[0].Seconds != 5 {
		t.Errorf("moments %v, want one 5 s after the new notice", moments)
	}
	if got := w.affected(); len(got) != 2 {
		t.Errorf("judged %d pods, want those of both notices", len(got))
	}
	for text, want := range map[string]bool{
		"pod q asked after 4s":  true,
		"pod q asked before 4s": false,
		"pod p asked before 0s": true, // before the new one
	} {
		check(t, w, text, want)
	}
}

// check compares whether a condition, as a script writes it, holds.
func check(t *testing.T, w *World, text string, want bool) {
	t.Helper()
	checkWith(t, w, &parser{nodes: map[string]bool{"a": true, "b": true}, clock: true, deadline: true, window: true}, text, want)
}

// checkWith is check with a parser of its own.
func checkWith(t *testing.T, w *World, parser *parser, text string, want bool) {
	t.Helper()
	cond, err := parser.condition(strings.Fields(text))
	if err != nil {
		t.Errorf("%s: %v", text, err)
		return
	}
	if got, why := cond.Holds(w); got != want || !got && why == "" {
		t.Errorf("%s: %v (%s), want %v", text, got, why, want)
	}
}

func TestConditionsOfNodes(t *testing.T) {
	w, p := stage()
	node := func(name string) *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		}
	}
	check(t, w, "node a as-before", true)
	check(t, w, "nodes ready=2", true)
	check(t, w, "nodes draining=0", true)
	cordoned := node("node-a")
	cordoned.Spec.Unschedulable = true
	w.Node(at(1), cordoned, false)
	check(t, w, "node a as-before", false)
	check(t, w, "node b as-before", true)
	check(t, w, "node a draining", true)
	check(t, w, "nodes draining<=1", true)
	check(t, w, "nodes cordoned>=2", false)
	w.Pod(at(2), ended(deleted(p, 30), 0), true)
	check(t, w, "nodes draining=0", true) // cordoned and empty
	labelled := node("node-a")
	labelled.Labels = map[string]string{"left": "behind"}
	w.Node(at(3), labelled, false)
	check(t, w, "node a as-before", false)
	w.Node(at(4), node("node-a"), false)
	check(t, w, "node a as-before", true)
	w.Node(at(5), cordoned, false)
	w.Node(at(6), cordoned, true)
	check(t, w, "nodes cordoned=0", true) // it is gone
	check(t, w, "nodes gone=1", true)
}

func TestConditionsOfJobs(t *testing.T) {
	w, p := stage()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "flush-1"}}
	check(t, w, "job flush-* none", true)
	check(t, w, "job flush-* complete", false)
	w.Job(at(1), job, false)
	check(t, w, "job flush-* running", true)
	w.Pod(at(2), deleted(p, 30), false)
	check(t, w, "pod p asked after job", false) // none is complete
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	if moments := w.Job(at(9), job, false); len(moments) != 1 || moments[0].Text != "the Job is complete" || moments[0].Pod != "x/flush-1" {
		t.Errorf("moments %v", moments)
	}
	check(t, w, "job flush-* complete", true)
	check(t, w, "pod p asked after job", false)
	check(t, w, "pod p asked before job", true)
	if moments := w.Job(at(10), job, true); len(moments) != 0 {
		t.Errorf("moments %v of a Job that was complete and is cleaned up", moments)
	}
	check(t, w, "job flush-* complete", true)
	w.Job(at(11), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "other"}}, false)
	check(t, w, "job * complete", false) // not all of them
}

func TestConditionsOfPods(t *testing.T) {
	w, p := stage()
	yes := true
	check(t, w, "pod p grace<=110", false) // it was not asked
	check(t, w, "pod p owned", false)
	check(t, w, "pod p unowned", true)
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "r", Controller: &yes}}
	w.Pod(at(1), p, false)
	check(t, w, "pod p owned", true)
	check(t, w, "pod p unowned", false)
	w.Pod(at(2), deleted(p, 110), false)
	check(t, w, "pod p grace<=110", true)
	check(t, w, "pod p grace>=111", false)
	check(t, w, "pods p leaving=1", true)
	check(t, w, "pods q leaving=1", false)
}
