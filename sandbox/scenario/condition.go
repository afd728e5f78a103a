package scenario

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// Condition is a condition that a script checks.
type Condition interface {
	// Holds reports whether the condition holds, and otherwise the actual state in words.
	Holds(w *World) (bool, string)
}

// podsReady: every applied workload has all its replicas Ready, by its own status and by the
// observed pods. Either may come first.
type podsReady struct{}

func (podsReady) Holds(w *World) (bool, string) {
	var missing []string
	for key, ready := range w.workloads {
		if s := w.services[key]; !ready || s != nil && w.serving(s.has) < s.wanted {
			missing = append(missing, key)
		}
	}
	slices.Sort(missing)
	if len(missing) > 0 {
		return false, "not ready: " + strings.Join(missing, ", ")
	}
	return true, ""
}

// count is a bound on the number of judged pods with a verdict.
type count struct {
	Verdict Verdict
	Op      string
	N       int
}

// counts bounds the numbers of judged pods by verdict, of all of them or of those whose names
// match. With a pattern, it can bound the number of Ready pods too, on any node: those that serve.
type counts struct {
	Glob   string // "": all
	Bounds []count
}

// podReadyNow counts pods that are Ready, not stopping, and on a node with power.
const podReadyNow Verdict = "ready"

func (c counts) Holds(w *World) (bool, string) {
	var wrong []string
	var affected []*podTrack
	for _, p := range w.affected() {
		if c.matches(p) {
			affected = append(affected, p)
		}
	}
	for _, one := range c.Bounds {
		n := countOf(affected, one.Verdict)
		if one.Verdict == podReadyNow {
			n = w.serving(c.matches)
		}
		if !compare(n, one.Op, one.N) {
			wrong = append(wrong, fmt.Sprintf("%s=%d", one.Verdict, n))
		}
	}
	return len(wrong) == 0, strings.Join(wrong, " ") + pods(affected)
}

func (c counts) matches(p *podTrack) bool { return c.Glob == "" || matches(c.Glob, p.name) }

// matches compares a name with a pattern that was checked when it was read.
func matches(glob, name string) bool {
	ok, _ := path.Match(glob, name)
	return ok
}

func countOf(all []*podTrack, v Verdict) int {
	n := 0
	for _, p := range all {
		if p.is(v) {
			n++
		}
	}
	return n
}

func (w *World) count(v Verdict) int { return countOf(w.affected(), v) }

// serving counts the pods of the cluster that are Ready.
func (w *World) serving(which func(*podTrack) bool) int {
	n := 0
	for _, p := range w.pods {
		if p.ready && p.powerLost.IsZero() && which(p) {
			n++
		}
	}
	return n
}

func (p *podTrack) is(v Verdict) bool {
	if v == asked {
		return !p.asked.IsZero()
	}
	return p.verdict() == v
}

func compare(n int, op string, bound int) bool {
	switch op {
	case ">=":
		return n >= bound
	case "<=":
		return n <= bound
	default:
		return n == bound
	}
}

// quantified: every, some or no judged pod has a verdict. There must be pods for
// every to hold.
type quantified struct {
	Quantity string
	Verdict  Verdict
}

func (q quantified) Holds(w *World) (bool, string) {
	all := w.affected()
	if len(all) == 0 {
		return false, "there was no pod on the interrupted nodes"
	}
	n := w.count(q.Verdict)
	holds := n > 0
	switch q.Quantity {
	case "every":
		holds = n == len(all)
	case "no":
		holds = n == 0
	}
	return holds, fmt.Sprintf("%d of %d are %s", n, len(all), q.Verdict) + pods(all)
}

// pods lists the verdicts of pods, for a message.
func pods(all []*podTrack) string {
	var b strings.Builder
	for _, p := range all {
		fmt.Fprintf(&b, "; %s: %s", p.name, p.describe())
	}
	return b.String()
}

// podIs: every judged pod whose name matches, and at least one, has a verdict.
type podIs struct {
	Glob     string
	Verdict  Verdict
	Relation string // before or after, for asked; "": whenever
	When     When
}

func (c podIs) Holds(w *World) (bool, string) {
	limit, ok := c.limit(w)
	if !ok {
		return false, fmt.Sprintf("%s has not happened", c.When)
	}
	return w.all(c.Glob, func(p *podTrack) (bool, string) {
		switch {
		case !p.is(c.Verdict):
			return false, p.describe()
		case c.Relation == "before" && !p.asked.Before(limit), c.Relation == "after" && !p.asked.After(limit):
			return false, fmt.Sprintf("it was asked %s after the notice, and %s was %s after it",
				seconds(p.asked.Sub(w.notice)), c.When, seconds(limit.Sub(w.notice)))
		}
		return true, ""
	})
}

func (c podIs) limit(w *World) (time.Time, bool) {
	if c.Relation == "" {
		return time.Time{}, true
	}
	return w.when(c.When)
}

// all reports whether a condition holds for every judged pod whose name matches, and that there is
// one.
func (w *World) all(glob string, holds func(*podTrack) (bool, string)) (bool, string) {
	found := false
	for _, p := range w.affected() {
		if !matches(glob, p.name) {
			continue
		}
		found = true
		if ok, why := holds(p); !ok {
			return false, p.name + ": " + why
		}
	}
	if !found {
		return false, "no pod of the interrupted nodes is called " + glob
	}
	return true, ""
}

// podGrace: every judged pod whose name matches was asked to stop, and its shortest grace period,
// in seconds, is within bounds.
type podGrace struct {
	Glob string
	Op   string
	N    int
}

func (c podGrace) Holds(w *World) (bool, string) {
	return w.all(c.Glob, func(p *podTrack) (bool, string) {
		if p.asked.IsZero() {
			return false, "it was not asked to stop"
		}
		return compare(int(p.grace/time.Second), c.Op, c.N), "it was given " + seconds(p.grace)
	})
}

// podOwned: every judged pod whose name matches has something that controls it,
// or has nothing.
type podOwned struct {
	Glob  string
	Owned bool
}

func (c podOwned) Holds(w *World) (bool, string) {
	return w.all(c.Glob, func(p *podTrack) (bool, string) {
		if p.owner == "" {
			return !c.Owned, "nothing controls it"
		}
		return c.Owned, p.owner + " controls it"
	})
}
