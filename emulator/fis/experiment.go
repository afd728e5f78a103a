package fis

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// The states of experiments and their actions (FIS API Reference, ExperimentState).
const (
	pending    = "pending"
	initiating = "initiating"
	running    = "running"
	completed  = "completed"
	stopping   = "stopping"
	stopped    = "stopped"
	failed     = "failed"
	skipped    = "skipped"
	cancelled  = "cancelled"
)

// Status is the state of an experiment or an action, and the reason.
type Status struct {
	Status string `json:"status"`
	Reason string `json:"reason"`
}

// Experiment is one run of a template. Its JSON is the API's.
type Experiment struct {
	ID             string                      `json:"id"`
	ARN            string                      `json:"arn"`
	TemplateID     string                      `json:"experimentTemplateId"`
	RoleARN        string                      `json:"roleArn"`
	State          Status                      `json:"state"`
	Targets        map[string]Target           `json:"targets"`
	Actions        map[string]ExperimentAction `json:"actions"`
	StopConditions []StopCondition             `json:"stopConditions"`
	Created        wire.Time                   `json:"creationTime"`
	Started        wire.Time                   `json:"startTime"`
	Ended          wire.Time                   `json:"endTime"`
	Tags           map[string]string           `json:"tags"`
	Options        ExperimentOptions           `json:"experimentOptions"`
}

// ExperimentAction is an action and its state.
type ExperimentAction struct {
	Action

	State   Status    `json:"state"`
	Started wire.Time `json:"startTime"`
	Ended   wire.Time `json:"endTime"`
}

// ExperimentOptions are the options of one run.
type ExperimentOptions struct {
	TemplateOptions

	// ActionsMode is run-all, or skip-all for a preview that only finds the targets.
	ActionsMode string `json:"actionsMode"`
}

// experiment is an Experiment with internal state.
type experiment struct {
	Experiment
	resolved map[string][]string // instance ids by target
}

func (e *experiment) clone() Experiment {
	out := e.Experiment
	out.Tags = maps.Clone(e.Tags)
	out.Actions = maps.Clone(e.Actions)
	return out
}

func (e *experiment) over() bool {
	return slices.Contains([]string{completed, stopped, failed, cancelled}, e.State.Status)
}

// StartInput is the input of StartExperiment.
type StartInput struct {
	TemplateID  string
	ActionsMode string // run-all, skip-all or empty
	Tags        map[string]string
	Token       string
}

// Start runs a template. A call that repeats a client token returns the experiment of
// the first one. Errors: ResourceNotFoundException, ValidationException,
// ConflictException.
func (s *State) Start(input StartInput) (Experiment, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id := s.tokens[input.Token]; id != "" && input.Token != "" {
		if s.experiments[id].TemplateID != input.TemplateID {
			return Experiment{}, tokenReused()
		}
		return s.experiments[id].clone(), nil
	}
	t := s.templates[input.TemplateID]
	if t == nil {
		return Experiment{}, notFound("Experiment template %s does not exist.", input.TemplateID)
	}
	mode := cmp.Or(input.ActionsMode, "run-all")
	if mode != "run-all" && mode != "skip-all" {
		return Experiment{}, validation("The actionsMode must be run-all or skip-all; it is %q.", mode)
	}
	e := &experiment{Experiment: Experiment{
		ID: newID("EXP"), TemplateID: t.ID, RoleARN: t.RoleARN,
		State:   Status{pending, "Experiment is pending."},
		Targets: t.Targets, Actions: map[string]ExperimentAction{}, StopConditions: t.StopConditions,
		Created: wire.Time{Time: time.Now()}, Tags: map[string]string{},
		Options: ExperimentOptions{t.Options, mode},
	}}
	maps.Copy(e.Tags, input.Tags)
	e.ARN = s.scope.ARN("fis", "experiment/"+e.ID)
	for name, a := range t.Actions {
		e.Actions[name] = ExperimentAction{Action: a, State: Status{pending, "Initial state"}}
	}
	s.experiments[e.ID] = e
	s.experimentOrder = append(s.experimentOrder, e.ID)
	if input.Token != "" {
		s.tokens[input.Token] = e.ID
	}
	s.clock.After(s.step, func() { s.initiate(e) })
	return e.clone(), nil
}

// Experiment returns one experiment. The error is ResourceNotFoundException.
func (s *State) Experiment(id string) (Experiment, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.experiments[id]
	if e == nil {
		return Experiment{}, notFound("Experiment %s does not exist.", id)
	}
	return e.clone(), nil
}

// Experiments lists the experiments of a template, or all if it is empty, oldest
// first.
func (s *State) Experiments(templateID string) []Experiment {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Experiment
	for _, id := range s.experimentOrder {
		if e := s.experiments[id]; templateID == "" || e.TemplateID == templateID {
			out = append(out, e.clone())
		}
	}
	return out
}

// Stop ends an experiment. Spot interruptions without a warning so far are cancelled; started
// actions continue. Errors: ResourceNotFoundException, ValidationException.
func (s *State) Stop(id string) (Experiment, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.experiments[id]
	switch {
	case e == nil:
		return Experiment{}, notFound("Experiment %s does not exist.", id)
	case e.over() || e.State.Status == stopping:
		return Experiment{}, validation("Experiment %s cannot be stopped: it is %s.", id, e.State.Status)
	}
	for name, a := range e.Actions {
		switch a.State.Status {
		case running:
			if a.ActionID == sendSpotInterruptions {
				s.ec2.Withdraw(e.resolved[a.Targets["SpotInstances"]])
			}
			s.endAction(e, name, Status{stopped, "Action was stopped by the user."})
		case pending:
			s.endAction(e, name, Status{cancelled, "Action was cancelled."})
		}
	}
	s.become(e, Status{stopping, "Experiment is stopping."})
	s.clock.After(s.step, func() {
		if e.State.Status == stopping {
			s.finish(e, Status{stopped, "Experiment stopped by user."})
		}
	})
	return e.clone(), nil
}
