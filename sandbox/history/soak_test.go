package history

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/sandbox/scenario"
)

// TestHistoriesOfSoakAreAlike makes many histories.
func TestHistoriesOfSoakAreAlike(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		h := random(seed, Settings()[0], Settings()[0].faults(skipped), soakSize)
		if _, err := scenario.Parse("soak", h.Scenario()); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		noticed, end := map[string]bool{}, time.Duration(0)
		for _, e := range h.Events {
			if e.interrupts() {
				end = max(end, e.At)
				for _, n := range e.Nodes {
					noticed[n] = true
				}
			}
		}
		if len(h.Nodes) < 230 || len(h.Nodes) > 310 || 10*len(noticed) < 7*len(h.Nodes) || end > 2*lastEvent {
			t.Errorf("seed %d: %d of %d nodes have a notice, the last after %s", seed, len(noticed), len(h.Nodes), end)
		}
	}
}

func TestSlopeHasItsConfidence(t *testing.T) {
	t.Parallel()
	// Anscombe's first data set: slope 0.5, standard error 0.1179, nine degrees of freedom.
	x := []float64{10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5}
	y := []float64{8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68}
	s := Regress(x, y)
	if math.Abs(s.PerHour-0.5001) > 1e-4 || math.Abs(s.Within-2.262*0.1179) > 1e-3 {
		t.Errorf("slope %+v", s)
	}
	if !s.Rises(0.2) || s.Rises(0.3) {
		t.Error("the interval is from 0.23 to 0.77")
	}
	for _, few := range []Slope{Regress(nil, nil), Regress([]float64{1}, []float64{5}), Regress([]float64{1, 2}, []float64{5, 500})} {
		if few.Rises(0) {
			t.Errorf("%+v rises", few)
		}
	}
}

// rounds are those of a run of two hours, with a value that grows.
func rounds(run string, perHour float64) (all []Round) {
	for i := range 40 {
		at := time.Date(2026, 11, 1, 0, 3*i, 0, 0, time.UTC)
		all = append(all, Round{Run: run, Time: at, Seed: uint64(i), Judged: Judged{Records: 3}, Values: map[string]float64{
			"goroutines": 300 + float64(i%2) + perHour*float64(3*i)/60, "RssAnon": 40 - float64(i%3),
		}})
	}
	return all
}

func TestLeakFailsSoak(t *testing.T) {
	t.Parallel()
	if page, failures := Summary(rounds("a", 1)); len(failures) > 0 || !strings.Contains(page, "40 histories in 1 runs, with 120 Interruptions") {
		t.Errorf("failures %q of\n%s", failures, page)
	}
	// A new process begins with other values: slopes are within one run.
	two := append(rounds("a", 0), rounds("b", 0)...)
	for i := range two[40:] {
		two[40+i].Time = two[40+i].Time.Add(3 * time.Hour)
		two[40+i].Values["goroutines"] += 500
	}
	if page, failures := Summary(two); len(failures) > 0 || strings.Count(page, "## Run") != 2 {
		t.Errorf("failures %q of\n%s", failures, page)
	}
	if _, failures := Summary(rounds("a", 60)); len(failures) != 1 || !strings.Contains(failures[0], "goroutines") {
		t.Errorf("failures %q", failures)
	}
	broken := rounds("a", 0)
	broken[7].Violations = []string{"grace-kept"}
	if _, failures := Summary(broken); len(failures) != 1 || !strings.Contains(failures[0], "seed 7: grace-kept") {
		t.Errorf("failures %q", failures)
	}
}

func TestRoundsSurviveAKill(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "rounds.jsonl")
	if all, err := ReadRounds(path); err != nil || len(all) != 0 {
		t.Fatal(all, err)
	}
	want := rounds("a", 0)[:2]
	if err := want[0].Append(path); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString("\n{\"run\":\"cut o"); err != nil {
		t.Fatal(err)
	}
	file.Close()
	if err := want[1].Append(path); err != nil {
		t.Fatal(err)
	}
	got, err := ReadRounds(path)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("read %v, %v", got, err)
	}
}
