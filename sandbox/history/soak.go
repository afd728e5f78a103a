package history

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// soakSize makes histories of about 270 nodes. All have the same size: memory and CPU follow it, and
// would hide slopes.
const soakSize = 60

// Round is one history of a soak, and the state of lifeboatd and the control plane after it. No node
// is left then.
type Round struct {
	// Run is the process of lifeboatd. Slopes are within one run.
	Run  string    `json:"run"`
	Time time.Time `json:"time"`
	Seed uint64    `json:"seed"`
	Judged
	Violations []string `json:"violations,omitempty"`
	// Values are by the names of Measures.
	Values map[string]float64 `json:"values"`
}

// Measure is a value that must not grow.
type Measure struct {
	Name, Unit string
	// PerHour is the growth that fails a soak.
	PerHour float64
}

// Measures are the values of a soak.
func Measures() []Measure {
	return []Measure{
		{"goroutines", "", 20},
		{"RssAnon", "MiB", 5},
		{"open files", "", 10},
		{"watches", "", 10},
		{"Interruptions", "", 60},
		{"objects", "", 300},
		{"etcd", "MiB", 60},
	}
}

// warmup is the share of a run, in per cent, that is left out: caches and pools fill.
const warmup = 20

// ReadRounds reads the rounds of earlier runs; none if there is no file.
func ReadRounds(path string) ([]Round, error) { return readLines[Round](path) }

// Append adds a round to the file.
func (r Round) Append(path string) error { return appendLine(path, r) }

// Runs are the rounds of each process of lifeboatd, in order, without its warm-up.
func Runs(rounds []Round) [][]Round {
	var all [][]Round
	for len(rounds) > 0 {
		n := slices.IndexFunc(rounds, func(r Round) bool { return r.Run != rounds[0].Run })
		if n < 0 {
			n = len(rounds)
		}
		all = append(all, rounds[n*warmup/100:n])
		rounds = rounds[n:]
	}
	return all
}

// SlopeOf is the slope of a measure in one run.
func SlopeOf(run []Round, m Measure) Slope {
	var hours, values []float64
	for _, r := range run {
		if v, ok := r.Values[m.Name]; ok {
			hours = append(hours, r.Time.Sub(run[0].Time).Hours())
			values = append(values, v)
		}
	}
	return Regress(hours, values)
}

// longRun is how long a run must be for a verdict: a shorter one mostly measures caches.
const longRun = time.Hour

// Summary writes the page of a soak, and lists what failed.
func Summary(rounds []Round) (page string, failures []string) {
	var b strings.Builder
	var all Judged
	for _, r := range rounds {
		all = all.plus(r.Judged)
		for _, v := range r.Violations {
			failures = append(failures, fmt.Sprintf("seed %d: %s", r.Seed, v))
		}
	}
	broken := len(failures)
	runs := Runs(rounds)
	fmt.Fprintf(&b, "# Soak\n\n%d histories in %d runs, with %d Interruptions, %d pods and %d requests to stop. %d broken promises.\n",
		len(rounds), len(runs), all.Records, all.Pods, all.Asks, broken)
	for _, run := range runs {
		length := run[len(run)-1].Time.Sub(run[0].Time)
		fmt.Fprintf(&b, "\n## Run of %s\n\n%s, %d histories after the warm-up.\n\n", run[0].Time.UTC().Format("2006-01-02 15:04 UTC"), length.Round(time.Minute), len(run))
		b.WriteString("| value | first | last | slope an hour, 95 % confidence |\n|---|---|---|---|\n")
		for _, m := range Measures() {
			s := SlopeOf(run, m)
			fmt.Fprintf(&b, "| %s | %s | %s | %+.1f ± %.1f |\n", m.Name, quantity(s.First, m), quantity(s.Last, m), s.PerHour, s.Within)
			if length >= longRun && s.Rises(m.PerHour) {
				failures = append(failures, fmt.Sprintf("%s grow by %.1f ± %.1f an hour", m.Name, s.PerHour, s.Within))
			}
		}
	}
	if len(failures) > 0 {
		fmt.Fprintf(&b, "\n## Failures\n\n- %s\n", strings.Join(failures, "\n- "))
	}
	return b.String(), failures
}

func quantity(v float64, m Measure) string {
	return strings.TrimSpace(fmt.Sprintf("%.4g %s", v, m.Unit))
}
