package scenario_test

import (
	"slices"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/sandbox/observer"
)

// exempt are the rules that a scenario breaks on purpose.
var exempt = map[string][]string{
	// The queue receives no warning, and no agent runs.
	"misspelt-rule-alone": {"notice-recorded", "pods-not-cut"},
	// Lifeboat does not run.
	"karpenter-deadline-alone": {"notice-recorded", "pods-not-cut"},
}

// judgeRun reports each broken promise.
func judgeRun(t *testing.T, seen *observer.Observer, scenario string, factor float64) {
	t.Helper()
	history, err := seen.History(time.Duration(factor * float64(10*time.Second)))
	if err != nil {
		t.Fatal(err)
	}
	writes, pods, asks, records := history.Size()
	t.Logf("judged %d writes: %d pods, %d requests to stop, %d Interruptions", writes, pods, asks, records)
	for _, v := range history.Judge() {
		if !slices.Contains(exempt[scenario], v.Rule) {
			t.Errorf("broken promise: %s", v)
		}
	}
}
