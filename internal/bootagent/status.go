package bootagent

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
)

// StatusFile is the name of the status in the state directory.
const StatusFile = "status.json"

// Status is the agent's report about itself, in a file.
type Status struct {
	// Time is when it was written; it is at most about a minute old while the agent runs.
	Time     time.Time `json:"time"`
	Instance string    `json:"instance,omitempty"`
	Goal     Goal      `json:"goal,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	// Target is the last value of instance metadata, and State that of Auto Scaling.
	Target string `json:"target,omitempty"`
	Group  string `json:"group,omitempty"`
	State  string `json:"state,omitempty"`
	// Gate is set if the kubelet may run.
	Gate bool   `json:"gate"`
	Node string `json:"node,omitempty"`
	// Prepared is how many of the Stages are completed.
	Prepared int `json:"prepared"`
	Stages   int `json:"stages"`
	Lives    int `json:"lives,omitempty"`
	// Doing is the current action, and Reason why.
	Doing  Do        `json:"doing"`
	Reason string    `json:"reason"`
	Next   time.Time `json:"next,omitzero"`
	// Denied is the missing permission, if known.
	Denied string `json:"denied,omitempty"`
}

// publish writes the status if it changed, and logs the changes.
func (a *Agent) publish(log logr.Logger, step Step, now time.Time) {
	f := a.facts
	s := Status{
		Time: now, Instance: f.Instance, Goal: f.Journal.Leg.Goal, Since: f.Journal.Leg.At, Target: f.Target.Value,
		Group: f.State.Group, State: f.State.Value, Gate: f.Gate, Node: f.Journal.Node, Stages: len(f.Stages),
		Lives: f.Journal.Lives, Doing: step.Do, Reason: step.Reason, Next: step.At, Denied: f.Talk.Denied,
	}
	for _, stage := range f.Stages {
		if stage.Done {
			s.Prepared++
		}
	}
	if text := string(step.Do) + ": " + step.Reason; text != a.logged {
		a.logged = text
		level := 0
		if step.Do == DoDescribe || step.Do == DoHooks || step.Do == DoAsk {
			level = 1 // a read changes nothing
		}
		log.V(level).Info(string(step.Do), "why", step.Reason, "instance", s.Instance, "goal", s.Goal, "target", s.Target, "state", s.State)
	}
	same := s
	same.Time, same.Next = a.status.Time, a.status.Next
	if same == a.status && now.Before(a.due.status) {
		return
	}
	a.status, a.due.status = s, now.Add(statusEvery)
	data, err := json.MarshalIndent(s, "", "  ")
	if err == nil {
		err = a.o.State.Write(StatusFile, data)
	}
	if err != nil {
		log.Error(err, "cannot write the status")
	}
}

// ReadStatus reads a status file.
func ReadStatus(data []byte) (Status, error) {
	var s Status
	if err := json.Unmarshal(data, &s); err != nil {
		return Status{}, fmt.Errorf("reading the status: %w", err)
	}
	return s, nil
}

// Text describes for people what the agent does and what it waits for.
func (s Status) Text(now time.Time) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	if age := now.Sub(s.Time); age > 2*statusEvery {
		line("warning", "this is from %s ago: does lifeboat-boot.service run?", age.Round(time.Second))
	}
	line("instance", "%s, life %d", orNothing(s.Instance), s.Lives)
	line("going", "%s since %s (metadata: %s)", orNothing(string(s.Goal)), clock(s.Since), orNothing(s.Target))
	if s.State != "" {
		line("state", "%s in group %s", s.State, s.Group)
	}
	gate := "closed: the kubelet must not run"
	if s.Gate {
		gate = "open: the kubelet may run"
	}
	line("gate", "%s", gate)
	if s.Stages > 0 {
		line("prepared", "%d of %d", s.Prepared, s.Stages)
	}
	if s.Node != "" {
		line("node", "%s", s.Node)
	}
	line("doing", "%s: %s", s.Doing, s.Reason)
	if s.Next.After(now) {
		line("next", "in %s", s.Next.Sub(now).Round(time.Second))
	}
	if s.Denied != "" {
		line("denied", "%s", s.Denied)
	}
	return b.String()
}

func orNothing(s string) string {
	if s == "" {
		return "nothing yet"
	}
	return s
}
