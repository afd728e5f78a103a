package history

import (
	"fmt"
	"strings"
	"time"
)

// Result is what became of one history.
type Result struct {
	Seed    uint64    `json:"seed"`
	Setting string    `json:"setting"`
	Time    time.Time `json:"time"` // of its end
	Seconds float64   `json:"seconds"`
	Judged
	Violations []string `json:"violations,omitempty"`
	// Error: it could not be played to its end.
	Error string `json:"error,omitempty"`
}

// plus adds up what was judged.
func (j Judged) plus(k Judged) Judged {
	return Judged{j.Writes + k.Writes, j.Pods + k.Pods, j.Asks + k.Asks, j.Records + k.Records}
}

// ReadResults reads the results of earlier runs; none if there is no file.
func ReadResults(path string) ([]Result, error) { return readLines[Result](path) }

// Append adds a result to the file.
func (r Result) Append(path string) error { return appendLine(path, r) }

// Tally is the sum of results.
type Tally struct {
	Judged
	Histories, Violations, Errors int
	// Stopped is in how many a pod was asked to stop.
	Stopped int
	// First and Last are the lowest and the highest seed.
	First, Last uint64
	failed      []string
}

// TallyOf sums up results.
func TallyOf(results []Result) (t Tally) {
	for i, r := range results {
		t.Judged = t.plus(r.Judged)
		t.Histories++
		t.Violations += len(r.Violations)
		if r.Asks > 0 {
			t.Stopped++
		}
		if r.Error != "" {
			t.Errors++
			t.failed = append(t.failed, fmt.Sprintf("seed %d (%s): %s", r.Seed, r.Setting, r.Error))
		}
		for _, v := range r.Violations {
			t.failed = append(t.failed, fmt.Sprintf("seed %d (%s): %s", r.Seed, r.Setting, v))
		}
		if i == 0 || r.Seed < t.First {
			t.First = r.Seed
		}
		t.Last = max(t.Last, r.Seed)
	}
	return t
}

func (t Tally) String() string {
	text := fmt.Sprintf("%d histories, seeds %d to %d, with %d Interruptions, %d pods, %d writes and %d requests to stop. Pods were stopped in %d. %d broken promises, %d errors.\n",
		t.Histories, t.First, t.Last, t.Records, t.Pods, t.Writes, t.Asks, t.Stopped, t.Violations, t.Errors)
	if len(t.failed) > 0 {
		text += "\n- " + strings.Join(t.failed, "\n- ") + "\n"
	}
	return text
}
