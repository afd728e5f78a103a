package cli

import (
	"fmt"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/forecast"
)

// planned is what `plan` tells.
type planned struct {
	Node       string `json:"node"`
	InstanceID string `json:"instanceID,omitempty"`
	// Supposed is true where the node has no interruption and one was made up.
	Supposed bool               `json:"supposed"`
	Kind     string             `json:"kind,omitempty"`
	Decision v1alpha1.Decision  `json:"decision"`
	Deadline *v1alpha1.Deadline `json:"deadline,omitempty"`
	// Begins is when the drain begins, if a policy's window makes it wait.
	Begins *time.Time `json:"begins,omitempty"`
	// Fits is true where every pod leaves with its whole grace period before
	// the deadline.
	Fits bool         `json:"fits"`
	Pods []plannedPod `json:"pods"`
}

// plannedPod is what becomes of a pod. Times are relative to now.
type plannedPod struct {
	Namespace string     `json:"namespace"`
	Name      string     `json:"name"`
	Step      drain.Step `json:"step"`
	Reason    string     `json:"reason"`
	// Now is the planner's sentence at the beginning, if it differs.
	Now                string   `json:"now,omitempty"`
	AskedInSeconds     *float64 `json:"askedInSeconds,omitempty"`
	GoneInSeconds      *float64 `json:"goneInSeconds,omitempty"`
	LastCallInSeconds  *float64 `json:"lastCallInSeconds,omitempty"`
	GraceSeconds       float64  `json:"graceSeconds"`
	WantedGraceSeconds float64  `json:"wantedGraceSeconds"`
	Overrides          string   `json:"overrides,omitempty"`
	Fits               bool     `json:"fits"`
}

func (p *planned) add(f forecast.Fate, now time.Time) {
	pod := plannedPod{
		Namespace: f.Pod.Namespace, Name: f.Pod.Name, Step: f.Step, Reason: f.Reason,
		AskedInSeconds:     in(f.Asked, now),
		GoneInSeconds:      in(f.Gone, now),
		LastCallInSeconds:  in(f.LastCall, now),
		GraceSeconds:       f.Grace.Seconds(),
		WantedGraceSeconds: f.Wants.Seconds(),
		Overrides:          f.Overrides,
		Fits:               f.Fits,
	}
	if f.Now.Reason != f.Reason {
		pod.Now = f.Now.Reason
	}
	p.Pods = append(p.Pods, pod)
	p.Fits = p.Fits && f.Fits
}

// in is a moment in seconds from now; nil if there is none.
func in(t, now time.Time) *float64 {
	if t.IsZero() {
		return nil
	}
	seconds := t.Sub(now).Round(time.Millisecond).Seconds()
	return &seconds
}

// write writes the plan for people.
func (p planned) write(s terminal.Stream, now time.Time) {
	p.writeHead(s, now)
	if len(p.Pods) == 0 {
		s.Printf("no pod runs there\n")
		return
	}
	var blank terminal.Cell
	table := terminal.NewTable("POD", "STEP", "ASKED", "GONE BY", "GRACE", "LAST CALL", "WHY")
	for _, pod := range p.Pods {
		style := pod.style()
		table.Row(
			terminal.Cell{Text: pod.Namespace + "/" + pod.Name, Style: style},
			terminal.Cell{Text: string(pod.Step), Style: style},
			terminal.Cell{Text: moment(pod.AskedInSeconds)},
			terminal.Cell{Text: moment(pod.GoneInSeconds)},
			terminal.Cell{Text: pod.grace()},
			terminal.Cell{Text: moment(pod.LastCallInSeconds)},
			terminal.Cell{Text: pod.Reason},
		)
		if pod.Now != "" {
			table.Row(blank, blank, blank, blank, blank, blank, terminal.Cell{Text: "at first it " + pod.Now, Style: terminal.Dim})
		}
	}
	table.Write(s)
	s.Printf("\n")
	p.writeVerdict(s, now)
}

func (p planned) writeHead(s terminal.Stream, now time.Time) {
	name := p.Node
	if p.InstanceID != "" {
		name += " (" + p.InstanceID + ")"
	}
	if p.Supposed {
		s.Printf("%s, if a notice of kind %s came now\n", s.Paint(terminal.Bold, name), p.Kind)
	} else {
		s.Printf("%s, interrupted: %s\n", s.Paint(terminal.Bold, name), p.Kind)
	}
	s.Printf("decision  %s\n", p.Decision.Message)
	if p.Deadline != nil {
		kind := "hard: nobody can move it"
		if p.Deadline.Type == v1alpha1.DeadlineSoft {
			kind = "soft: nothing is forced"
		}
		s.Printf("deadline  %s (%s)\n", terminal.Relative(p.Deadline.Time.Time, now), kind)
	}
	if p.Begins != nil {
		s.Printf("begins    %s, when the window opens\n", terminal.Relative(*p.Begins, now))
	}
	s.Printf("\n")
}

func (p planned) writeVerdict(s terminal.Stream, now time.Time) {
	leaving, left, last := 0, 0, 0.0
	for _, pod := range p.Pods {
		if pod.Step == drain.StepStays && pod.Fits {
			continue
		}
		leaving++
		if !pod.Fits {
			left++
		}
		if pod.GoneInSeconds != nil {
			last = max(last, *pod.GoneInSeconds)
		}
	}
	switch {
	case left > 0 && p.Deadline != nil:
		s.Printf("%s\n", s.Paint(terminal.Bad, fmt.Sprintf("%d of %d pods cannot leave with their whole grace period before the deadline", left, leaving)))
	case left > 0:
		s.Printf("%s\n", s.Paint(terminal.Bad, fmt.Sprintf("%d of %d pods cannot leave as things are", left, leaving)))
	case leaving == 0:
		s.Printf("no pod has to leave\n")
	default:
		spare := ""
		if p.Deadline != nil {
			spare = fmt.Sprintf(", %s before the deadline", terminal.Duration(p.Deadline.Time.Sub(now)-seconds(last)))
		}
		s.Printf("%s\n", s.Paint(terminal.Good, fmt.Sprintf("%d of %d pods leave with their whole grace period%s", leaving, leaving, spare)))
	}
}

// grace is the time a pod gets, and the time it wants if that is more.
func (p plannedPod) grace() string {
	switch {
	case p.Step == drain.StepStays:
		return ""
	case p.GoneInSeconds == nil:
		return "none of " + terminal.Duration(seconds(p.WantedGraceSeconds))
	case p.GraceSeconds < p.WantedGraceSeconds:
		return terminal.Duration(seconds(p.GraceSeconds)) + " of " + terminal.Duration(seconds(p.WantedGraceSeconds))
	}
	return terminal.Duration(seconds(p.GraceSeconds))
}

func moment(at *float64) string {
	if at == nil {
		return ""
	}
	if d := seconds(*at); d < 0 {
		return "-" + terminal.Duration(-d)
	}
	return "+" + terminal.Duration(seconds(*at))
}

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second))
}
