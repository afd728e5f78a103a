//go:build e2e

package real

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// podJournal is what a server's journal records of one pod (modules/workload writes it). A zero
// time means that the event did not happen.
type podJournal struct {
	Pod                 string
	Started, Ready      time.Time
	HookBegin, HookEnd  time.Time
	SIGTERM, Exit       time.Time
	LastRequest         time.Time
	Requests            int64
	Starts, Hooks, Ends int // number of starts, hook starts and SIGTERMs
}

// parseJournal parses a journal. An incomplete last line is an error, because the server writes
// whole lines.
func parseJournal(text string) (podJournal, error) {
	var l podJournal
	for line := range strings.Lines(text) {
		var e struct {
			Time     time.Time `json:"time"`
			Pod      string    `json:"pod"`
			What     string    `json:"what"`
			Requests int64     `json:"requests"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return l, fmt.Errorf("reading the journal: line %q: %w", line, err)
		}
		l.Pod = e.Pod
		switch e.What {
		case "started":
			l.Started, l.Starts = e.Time, l.Starts+1
		case "ready":
			l.Ready = e.Time
		case "hook-begin":
			l.HookBegin, l.Hooks = e.Time, l.Hooks+1
		case "hook-end":
			l.HookEnd = e.Time
		case "sigterm":
			l.SIGTERM, l.Ends = e.Time, l.Ends+1
		case "last-request":
			l.LastRequest, l.Requests = e.Time, e.Requests
		case "exit":
			l.Exit = e.Time
		default:
			return l, fmt.Errorf("reading the journal: unknown event %q", e.What)
		}
	}
	if l.Starts == 0 {
		return l, errors.New("reading the journal: no start event")
	}
	return l, nil
}

// whole checks that the preStop hook ran once for its full duration, that SIGTERM came after it,
// and that both came before the power off.
func (l podJournal) whole(hook time.Duration, off time.Time) error {
	const slack = 20 * time.Millisecond // allowed clock difference between the two processes that write timestamps
	switch {
	case l.Starts != 1:
		return fmt.Errorf("%s started %d times", l.Pod, l.Starts)
	case l.Hooks != 1:
		return fmt.Errorf("%s: its hook began %d times", l.Pod, l.Hooks)
	case l.HookEnd.IsZero():
		return fmt.Errorf("%s: its hook began at %s and was cut", l.Pod, clock(l.HookBegin))
	case l.HookEnd.Sub(l.HookBegin) < hook-slack:
		return fmt.Errorf("%s: its hook took %s, not %s", l.Pod, l.HookEnd.Sub(l.HookBegin), hook)
	case l.Ends != 1:
		return fmt.Errorf("%s: SIGTERM came %d times", l.Pod, l.Ends)
	case l.SIGTERM.Before(l.HookEnd):
		return fmt.Errorf("%s: SIGTERM came at %s, before its hook ended at %s", l.Pod, clock(l.SIGTERM), clock(l.HookEnd))
	case !l.SIGTERM.Before(off):
		return fmt.Errorf("%s: SIGTERM came at %s, and the power went at %s", l.Pod, clock(l.SIGTERM), clock(off))
	default:
		return nil
	}
}

// unasked checks that the pod got neither its preStop hook nor SIGTERM.
func (l podJournal) unasked() error {
	if l.Hooks > 0 || l.Ends > 0 || !l.Exit.IsZero() {
		return fmt.Errorf("%s was asked to stop: %+v", l.Pod, l)
	}
	return nil
}

// cutHook checks that the power off interrupted the preStop hook: it started, did not finish, and
// SIGTERM never came.
func (l podJournal) cutHook() error {
	if l.Hooks != 1 || !l.HookEnd.IsZero() || l.Ends > 0 {
		return fmt.Errorf("%s: its hook was not cut by the power: %+v", l.Pod, l)
	}
	return nil
}

// shortened checks that the end of the grace period interrupted the preStop hook: it did not
// finish, and SIGTERM came before the power off.
func (l podJournal) shortened(off time.Time) error {
	switch {
	case l.Hooks != 1 || !l.HookEnd.IsZero():
		return fmt.Errorf("%s: its hook was not cut: %+v", l.Pod, l)
	case l.Ends != 1:
		return fmt.Errorf("%s: SIGTERM came %d times", l.Pod, l.Ends)
	case !l.SIGTERM.Before(off):
		return fmt.Errorf("%s: SIGTERM came at %s, and the power went at %s", l.Pod, clock(l.SIGTERM), clock(off))
	default:
		return nil
	}
}

// replacedFirst checks that the n-th old pod was asked to stop only after n new pods were ready.
func replacedFirst(old, fresh []podJournal) error {
	var asked, ready []time.Time
	for _, l := range old {
		if l.HookBegin.IsZero() {
			return fmt.Errorf("%s was not asked to stop", l.Pod)
		}
		asked = append(asked, l.HookBegin)
	}
	for _, l := range fresh {
		if !l.Ready.IsZero() {
			ready = append(ready, l.Ready)
		}
	}
	if len(ready) < len(asked) {
		return fmt.Errorf("%d pods were asked to stop, and %d others became ready", len(asked), len(ready))
	}
	slices.SortFunc(asked, time.Time.Compare)
	slices.SortFunc(ready, time.Time.Compare)
	for i := range asked {
		if asked[i].Before(ready[i]) {
			return fmt.Errorf("pod number %d was asked to stop at %s, and its replacement was ready at %s", i+1, clock(asked[i]), clock(ready[i]))
		}
	}
	return nil
}

// traffic is the result of a load (modules/workload writes it).
type traffic struct {
	Began, Ended time.Time
	Before       int64
	OK, Failed   int64
	OnReused     int64
	Kinds        map[string]int64
	Buckets      [][2]int64 // successes and failures of each 100 ms since Began
	Failures     []lostRequest
	Connections  int64
	Slowest      int64 // ms
	Done         bool
}

// lostRequest is one request that failed.
type lostRequest struct {
	Time        time.Time
	Kind, Error string
	Took        int64 // ms
	Reused      bool
}

const bucket = 100 * time.Millisecond

// rate returns successful requests per second between two times.
func (t traffic) rate(from, to time.Time) float64 {
	var n int64
	first, last := t.at(from), t.at(to)
	for i := max(first, 0); i < min(last, len(t.Buckets)); i++ {
		n += t.Buckets[i][0]
	}
	if last <= first {
		return 0
	}
	return float64(n) / (time.Duration(last-first) * bucket).Seconds()
}

func (t traffic) at(when time.Time) int { return int(when.Sub(t.Began) / bucket) }

// silence returns the longest time without a successful request, in steps of 100 ms, and when it
// began.
func (t traffic) silence() (time.Duration, time.Time) {
	longest, run, end := 0, 0, 0
	for i, b := range t.Buckets {
		run++
		if b[0] > 0 {
			run = 0
		}
		if run > longest {
			longest, end = run, i+1
		}
	}
	return time.Duration(longest) * bucket, t.Began.Add(time.Duration(end-longest) * bucket)
}

// String summarises the load for test logs: requests, failures and their kinds.
func (t traffic) String() string {
	text := fmt.Sprintf("%d of %d failed", t.Failed, t.OK+t.Failed)
	var kinds []string
	for kind, n := range t.Kinds {
		kinds = append(kinds, fmt.Sprintf("%d %s", n, kind))
	}
	if len(kinds) > 0 {
		slices.Sort(kinds)
		text += " (" + strings.Join(kinds, ", ") + ")"
	}
	gap, _ := t.silence()
	return fmt.Sprintf("%s, longest time without a success %s, slowest %d ms, %d connections", text, gap, t.Slowest, t.Connections)
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }
