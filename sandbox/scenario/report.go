package scenario

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Report is the result of a scenario.
type Report struct {
	Scenario string `json:"scenario"`
	Title    string `json:"title"`
	// Notices counts Lifeboat's recorded notices, for all interrupted nodes together.
	Notices int `json:"notices"`
	// PodsMoved counts pods of the interrupted nodes that ended with their stop work done, and
	// PodsCut those killed during it. PodsLost counts those whose machine lost power before they
	// were asked to stop, and PodsKept those that still run.
	PodsMoved int `json:"podsMoved"`
	PodsCut   int `json:"podsCut"`
	PodsLost  int `json:"podsLost"`
	PodsKept  int `json:"podsKept"`
	// SecondsToCordon is the time from the notice until the last interrupted node was cordoned. It
	// is absent if one never was.
	SecondsToCordon *float64 `json:"secondsToCordon,omitempty"`
	// SecondsToSpare is the time from the end of the last pod to the deadline. It is absent without
	// pods or deadline.
	SecondsToSpare *float64 `json:"secondsToSpare,omitempty"`
	// Provisioner launches nodes, with its version, such as "karpenter v1.14.1". It is absent if
	// only the script launches nodes. LowestReady and SecondsBelowWanted need it, and nodes with
	// pods of a Deployment or StatefulSet. LowestReady is the lowest number of Ready pods of those
	// workloads. SecondsBelowWanted is the time with fewer Ready pods than wanted, from the first
	// notice to the end.
	Provisioner        string   `json:"provisioner,omitempty"`
	LowestReady        *int     `json:"lowestReady,omitempty"`
	SecondsBelowWanted *float64 `json:"secondsBelowWanted,omitempty"`
	// Hooks counts the times that lifecycle hooks held instances; absent if none did.
	Hooks *HookReport `json:"hooks,omitempty"`
	// Capacity is what they were made from, for the chart.
	Capacity []Level `json:"-"`
	end      float64 // seconds from the first notice to the end

	// Passed is true if every expectation held; Failures are the others.
	Passed   bool        `json:"passed"`
	Failures []string    `json:"failures,omitempty"`
	Pods     []PodReport `json:"pods"`
}

// HookReport counts the executions of lifecycle hooks by result. The rest of Held ended with the
// instance, or is not over.
type HookReport struct {
	Held     int `json:"held"`
	Answered int `json:"answered"`
	TimedOut int `json:"timedOut"`
	// Abandoned are those of both that ended a launch, or a return to a warm pool.
	Abandoned int `json:"abandoned"`
}

// PodReport is the result for one pod. Times are seconds since the notice.
type PodReport struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Owner     string `json:"owner,omitempty"`
	Node      string `json:"node"`
	// StopSeconds is what it needs to stop, GraceSeconds its grace period.
	StopSeconds  float64  `json:"stopSeconds"`
	GraceSeconds *float64 `json:"graceSeconds,omitempty"`
	// Asked is when it was asked to stop, Over when it ended.
	Asked *float64 `json:"askedAt,omitempty"`
	Over  *float64 `json:"overAt,omitempty"`
	// SecondsToSpare is the time from then to the deadline.
	SecondsToSpare *float64 `json:"secondsToSpare,omitempty"`
	Verdict        Verdict  `json:"verdict"`
	Description    string   `json:"description"`
}

// FailedError says which expectations of a scenario did not hold.
type FailedError struct {
	Scenario string
	Failures []string
}

func (e *FailedError) Error() string {
	return fmt.Sprintf("scenario %s failed: %s", e.Scenario, strings.Join(e.Failures, "; "))
}

// report summarizes the world at the end of the scenario.
func (w *World) report(sc *Scenario, end time.Time, failures []string) *Report {
	r := &Report{
		Scenario: sc.Name, Title: sc.Title, Passed: len(failures) == 0, Failures: failures, Pods: []PodReport{},
		PodsMoved: w.count(Whole), PodsCut: w.count(Cut), PodsLost: w.count(Lost), PodsKept: w.count(Kept) + w.count(Leaving),
		SecondsToCordon: w.toCordon(),
	}
	for _, n := range w.nodes {
		if n.interrupted {
			r.Notices += len(n.recordedIDs)
		}
	}
	for _, p := range w.affected() {
		one := w.podReport(p)
		r.Pods = append(r.Pods, one)
		if s := one.SecondsToSpare; s != nil && (r.SecondsToSpare == nil || *s < *r.SecondsToSpare) {
			r.SecondsToSpare = s
		}
	}
	if w.provisioner != "" && w.Started() {
		w.reportCapacity(r, end)
	}
	r.Hooks = w.reportHooks()
	return r
}

func (w *World) reportHooks() *HookReport {
	if len(w.hookExecutions) == 0 {
		return nil
	}
	r := &HookReport{Held: len(w.hookExecutions)}
	for _, f := range w.hookExecutions {
		for _, one := range []struct {
			what groupKind
			n    *int
		}{{hooksAnswered, &r.Answered}, {timedOut, &r.TimedOut}, {abandoned, &r.Abandoned}} {
			if f.counts(one.what) {
				*one.n++
			}
		}
	}
	return r
}

func (w *World) reportCapacity(r *Report, end time.Time) {
	r.Provisioner, r.Capacity, r.end = w.provisioner, w.capacity(), end.Sub(w.began).Seconds()
	if len(r.Capacity) == 0 {
		return
	}
	lowest, below := shortfall(r.Capacity, r.end)
	r.LowestReady, r.SecondsBelowWanted = &lowest, hundredths(below)
}

func (w *World) toCordon() *float64 {
	var last time.Time
	for _, n := range w.nodes {
		if !n.interrupted {
			continue
		}
		if n.wasCordoned.IsZero() {
			return nil
		}
		if n.wasCordoned.After(last) {
			last = n.wasCordoned
		}
	}
	if last.IsZero() || last.Before(w.notice) {
		return nil
	}
	return between(w.notice, last)
}

func (w *World) podReport(p *podTrack) PodReport {
	r := PodReport{
		Namespace: p.namespace, Name: p.name, Owner: p.owner, Node: w.byNode[p.node].name,
		StopSeconds: p.need.Seconds(), Verdict: p.verdict(), Description: p.describe(),
	}
	if !p.asked.IsZero() {
		r.Asked = between(w.notice, p.asked)
		grace := p.grace.Seconds()
		r.GraceSeconds = &grace
	}
	if over := p.over(); !over.IsZero() {
		r.Over = between(w.notice, over)
		if !w.deadline.IsZero() {
			r.SecondsToSpare = between(over, w.deadline)
		}
	}
	return r
}

// between is the time from a to b in seconds, to a hundredth.
func between(a, b time.Time) *float64 {
	return hundredths(b.Sub(a).Seconds())
}

func hundredths(s float64) *float64 {
	s = math.Round(s*100) / 100
	return &s
}
