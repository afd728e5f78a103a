package view

import (
	"cmp"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// Millis is a time in milliseconds since 1970, as JavaScript has it; 0 is no time.
type Millis int64

// At converts a time.
func At(t time.Time) Millis {
	if t.IsZero() {
		return 0
	}
	return Millis(t.UnixMilli())
}

// Tone says how the page highlights something.
type Tone string

// The tones.
const (
	Plain Tone = ""
	Good  Tone = "good"
	Warn  Tone = "warn"
	Bad   Tone = "bad"
)

// Row is an interruption in a list.
type Row struct {
	Name     string `json:"name"`
	Node     string `json:"node"`
	Instance string `json:"instance"`
	Kind     string `json:"kind"`
	Action   string `json:"action"`
	Phase    string `json:"phase"`
	Policy   string `json:"policy,omitempty"`
	Tone     Tone   `json:"tone,omitempty"`
	// Over is true if nothing is left to do: the interruption is in the history.
	Over bool `json:"over,omitempty"`
	// Settled is true if no pod will move any more.
	Settled      bool              `json:"settled,omitempty"`
	Drill        bool              `json:"drill,omitempty"`
	Deadline     Millis            `json:"deadline,omitempty"`
	DeadlineType string            `json:"deadlineType,omitempty"`
	Pods         v1beta1.PodCounts `json:"pods"`
	WaitsFor     string            `json:"waitsFor,omitempty"`
	Noticed      Millis            `json:"noticed"`
	Ended        Millis            `json:"ended,omitempty"`
}

// NewRow returns the row of an interruption.
func NewRow(in *v1beta1.Interruption) Row {
	s := &in.Status
	r := Row{
		Name: in.Name, Node: record.NodeName(in), Instance: in.Spec.InstanceID,
		Kind: cmp.Or(s.Kind, record.NewestKind(in)), Phase: string(s.Phase), Tone: tone(in),
		Over: notice.Finished(in), Settled: record.IsSettled(in), Drill: record.IsDrill(in),
		Pods: record.Drain(s).PodCounts, WaitsFor: record.WaitsFor(in), Noticed: At(record.FirstNotice(in)),
	}
	if s.Decision != nil {
		r.Action, r.Policy = string(s.Decision.Action), cmp.Or(s.Decision.Policy, s.Decision.EffectivePolicy)
	}
	if d := s.Deadline; d != nil {
		r.Deadline, r.DeadlineType = At(d.Time.Time), string(d.Type)
	}
	if s.CompletionTime != nil {
		r.Ended = At(s.CompletionTime.Time)
	}
	return r
}

func tone(in *v1beta1.Interruption) Tone {
	switch {
	case record.Drain(&in.Status).PodCounts.Lost > 0:
		return Bad
	case record.IsSettled(in):
		return Good
	case in.Status.Phase == v1beta1.PhaseAwaitingApproval, in.Status.Phase == v1beta1.PhaseQueued:
		return Warn
	}
	return Plain
}

// Summary counts what is under way.
type Summary struct {
	Interruptions int            `json:"interruptions"`
	Phases        map[string]int `json:"phases"`
	// Nearest is the nearest deadline of a node with pods that must leave.
	Nearest             Millis `json:"nearest,omitempty"`
	NearestType         string `json:"nearestType,omitempty"`
	PodsWaiting         int    `json:"podsWaiting"`
	PodsLeaving         int    `json:"podsLeaving"`
	PodsLost            int    `json:"podsLost"`
	ReplacementsPending int    `json:"replacementsPending"`
	HooksRunning        int    `json:"hooksRunning"`
}

// Summarize counts what is under way.
func Summarize(all []*v1beta1.Interruption, now time.Time) Summary {
	var open []v1beta1.Interruption
	for _, in := range all {
		if !notice.Finished(in) {
			open = append(open, *in)
		}
	}
	sum := record.Summarize(open, func(*v1beta1.Interruption) string { return "" }, now)
	s := Summary{
		Phases: map[string]int{}, PodsWaiting: sum.PodsWaiting, PodsLeaving: sum.PodsLeaving,
		ReplacementsPending: sum.ReplacementsPending, HooksRunning: sum.HooksRunning,
	}
	for g, n := range sum.Groups {
		s.Interruptions += n
		s.Phases[string(g.Phase)] += n
	}
	for i := range open {
		s.PodsLost += int(record.Drain(&open[i].Status).PodCounts.Lost)
	}
	for _, typ := range []v1beta1.DeadlineType{v1beta1.DeadlineHard, v1beta1.DeadlineEstimated, v1beta1.DeadlineSoft} {
		if at, found := sum.NearestDeadlines[typ]; found {
			s.Nearest, s.NearestType = At(at), string(typ)
			break
		}
	}
	return s
}
