package drain_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// For any pods and budgets there must be a plan, and it must have the properties that every plan
// has.
func FuzzNewPlan(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 3, 0, 1, 2, 0, 7, 0, 1, 1, 1, 2, 3, 0, 1, 9, 2, 7, 9, 1, 1, 2, 0, 1})
	f.Add([]byte("a deadline, some pods, and budgets that know nothing of each other; 0123456789"))
	long := make([]byte, 600)
	for i := range long {
		long[i] = byte(i * 7)
	}
	f.Add(long)
	f.Fuzz(func(t *testing.T, bytes []byte) { checkOdd(t, bytes) })
}

// TestUnusualPodsAndBudgets runs the fuzz target with thousands of generated inputs, so that it can
// fail without fuzzing.
func TestUnusualPodsAndBudgets(t *testing.T) {
	t.Parallel()
	r := rand.NewChaCha8([32]byte{1})
	for i := 0; i < 4*worlds && !t.Failed(); i++ {
		bytes := make([]byte, 400)
		if _, err := r.Read(bytes); err != nil {
			t.Fatal(err)
		}
		checkOdd(t, bytes)
	}
}

func checkOdd(t *testing.T, bytes []byte) {
	t.Helper()
	facts := (&fuzzInput{bytes: bytes}).facts()
	plan := drain.NewPlan(facts)
	pods := len(facts.Pods)
	for _, p := range facts.Pods {
		if p == nil {
			pods--
		}
	}
	if len(plan.Verdicts) != pods {
		t.Errorf("%d verdicts for %d pods", len(plan.Verdicts), pods)
	}
	if !plan.WakeAt.IsZero() && !plan.WakeAt.After(facts.Now) {
		t.Errorf("wakes at %s", plan.WakeAt)
	}
	for _, v := range plan.Verdicts {
		checkVerdict(t, facts, v)
	}
	slices.Reverse(facts.Pods)
	slices.Reverse(facts.Budgets)
	slices.Reverse(facts.Owners.ReplicaSets)
	slices.Reverse(facts.Owners.Deployments)
	if diff := cmp.Diff(written(plan), written(drain.NewPlan(facts))); diff != "" {
		t.Errorf("the plan depends on the order of the input (-forwards +backwards)\n%s", diff)
	}
}

func checkVerdict(t *testing.T, f drain.Facts, v drain.Verdict) {
	t.Helper()
	if v.Reason == "" || utf8.RuneCountInString(v.Reason) > 512 || !utf8.ValidString(v.Reason) {
		t.Errorf("reason of %q: %q", v.Pod.Name, v.Reason)
	}
	if v.GraceSeconds != nil && *v.GraceSeconds < 2 && !f.InstanceGone {
		t.Errorf("%q gets %d s", v.Pod.Name, *v.GraceSeconds)
	}
	estimated := f.Deadline != nil && f.Deadline.Type == v1beta1.DeadlineEstimated
	firm := estimated || f.Deadline != nil && f.Deadline.Type == v1beta1.DeadlineHard
	if v.Step == drain.StepDelete && !firm && !f.InstanceGone {
		t.Errorf("deletes %q without a firm deadline: %s", v.Pod.Name, v.Reason)
	}
	if v.GraceSeconds != nil && estimated && !f.InstanceGone {
		t.Errorf("changes the grace of %q to %d s before an estimated deadline: %s", v.Pod.Name, *v.GraceSeconds, v.Reason)
	}
	if (v.Step == drain.StepSurge) != (v.Origin != nil) {
		t.Errorf("%s of %q has origin %v", v.Step, v.Pod.Name, v.Origin)
	}
	if v.Step == drain.StepWaits && !v.LastCall.IsZero() && !f.Now.Before(v.LastCall) {
		t.Errorf("%q waits past its last call at %s: %s", v.Pod.Name, v.LastCall, v.Reason)
	}
	if v.Overrides != "" && !firm {
		t.Errorf("overrides %s for %q without a firm deadline", v.Overrides, v.Pod.Name)
	}
}
