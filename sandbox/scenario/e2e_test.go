//go:build e2e

package scenario_test

import (
	"cmp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/testkit/program"
	"github.com/lifeboat-dev/lifeboat/sandbox/scenario"
	"github.com/lifeboat-dev/lifeboat/sandbox/scenarios"
)

// sideBySide is how many scenarios run concurrently. They mostly wait for their clocks, but many
// more would keep two cores busy and miss deadlines.
const sideBySide = 8

// TestScenarios runs every scenario on a real control plane with the real lifeboatd. They start one
// after the other, the longest first.
func TestScenarios(t *testing.T) {
	for name := range needsIdleMachine { // a misspelt one would leave out nothing
		read(t, name)
	}
	names, err := scenarios.Names()
	if err != nil {
		t.Fatal(err)
	}
	var all []*scenario.Scenario
	for _, name := range names {
		if needsIdleMachine[name] == "" {
			all = append(all, read(t, name))
		}
	}
	slices.SortStableFunc(all, func(a, b *scenario.Scenario) int { return cmp.Compare(lasts(b), lasts(a)) })
	lifeboatd := buildLifeboatd(t)
	replay, err := program.Replay(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m := &monitor{replay: replay, empty: map[string][]string{}}
	var playing sync.WaitGroup
	slots := make(chan struct{}, sideBySide)
	for _, sc := range all {
		slots <- struct{}{}
		up := make(chan struct{})
		isUp := sync.OnceFunc(func() { close(up) })
		playing.Go(func() { // not t.Parallel, which -parallel bounds by the number of cores
			defer func() { <-slots }()
			defer isUp() // also if -run excludes the scenario
			t.Run(sc.Name, func(t *testing.T) { play(t, sc, lifeboatd, isUp, m) })
		})
		<-up
	}
	playing.Wait()
	if len(m.empty) == len(all) {
		m.checkPanels(t)
	}
}

// needsIdleMachine are the scenarios that are only played by hand, on a machine without other load, and why.
var needsIdleMachine = map[string]string{
	"ordinary-spot-twenty": "20 instances boot in the 120 s of AWS's notice: beside other tests on two cores, pods become Ready after their last call",
	"ordinary-world":       "pods with a grace of 45 s have 20 s after the replacement is Ready: beside other tests it is Ready later",
}

// lasts is the approximate duration of a scenario after its notice.
func lasts(sc *scenario.Scenario) time.Duration {
	var deadline, longest time.Duration
	note := func(w scenario.When) {
		from := map[scenario.Anchor]time.Duration{scenario.FromDeadline: deadline, scenario.FromWindow: time.Minute}[w.From]
		longest = max(longest, from+w.Offset)
	}
	for _, step := range sc.Steps {
		switch do := step.Do.(type) {
		case scenario.InterruptStatement:
			deadline = do.Notice
		case scenario.UntilStatement:
			note(do.Until)
		case scenario.CheckStatement:
			note(do.When)
		}
	}
	return longest
}
