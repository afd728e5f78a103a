package fis

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/events"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// become moves an experiment to a state and notifies EventBridge. It needs the lock.
func (s *State) become(e *experiment, to Status) {
	was := e.State
	e.State = to
	s.emit(events.Event{
		Source: "aws.fis", DetailType: "FIS Experiment State Change", Resources: []string{e.ARN},
		Detail: events.Detail(struct {
			ID       string `json:"experiment-id"`
			Template string `json:"experiment-template-id"`
			New      Status `json:"new-state"`
			Old      Status `json:"old-state"`
		}{e.ID, e.TemplateID, to, was}),
	})
}

// finish needs the lock.
func (s *State) finish(e *experiment, to Status) {
	e.Ended = wire.Time{Time: time.Now()}
	s.become(e, to)
}

// initiate finds the targets. It needs the lock.
func (s *State) initiate(e *experiment) {
	if e.State.Status != pending {
		return
	}
	e.Started = wire.Time{Time: time.Now()}
	s.become(e, Status{initiating, "Experiment is initiating."})
	e.resolved = map[string][]string{}
	instances := s.ec2.Instances()
	for _, a := range e.Actions {
		k, _ := findKind(a.ActionID) // known: the template was checked
		target := a.Targets[k.targetKey]
		if _, done := e.resolved[target]; done {
			continue
		}
		ids, err := resolve(e.Targets[target], k, instances)
		if err != nil {
			s.abort(e, Status{failed, err.Error()})
			return
		}
		if len(ids) == 0 && e.Options.EmptyTargets == "fail" {
			s.abort(e, Status{failed, "Target resolution returned empty set."})
			return
		}
		e.resolved[target] = ids
	}
	s.clock.After(s.step, func() { s.run(e) })
}

// abort fails an experiment; its pending actions never start. It needs the lock.
func (s *State) abort(e *experiment, why Status) {
	for name, a := range e.Actions {
		if a.State.Status == pending {
			s.endAction(e, name, Status{cancelled, "Action was cancelled."})
		}
	}
	s.finish(e, why)
}

// run needs the lock.
func (s *State) run(e *experiment) {
	if e.State.Status != initiating {
		return
	}
	s.become(e, Status{running, "Experiment is running."})
	s.advance(e)
}

// advance starts the actions that are due, and ends the experiment when none is left. It needs the
// lock.
func (s *State) advance(e *experiment) {
	for e.State.Status == running {
		name, ok := nextAction(e)
		if !ok {
			break
		}
		s.begin(e, name)
	}
	if e.State.Status != running {
		return
	}
	for _, a := range e.Actions {
		if a.State.Status == pending || a.State.Status == running {
			return
		}
	}
	s.finish(e, Status{completed, "Experiment completed."})
}

// nextAction is a pending action whose predecessors have ended, in order of name.
func nextAction(e *experiment) (string, bool) {
	over := map[string]bool{}
	for name, a := range e.Actions {
		over[name] = a.State.Status == completed || a.State.Status == skipped
	}
	for _, name := range slices.Sorted(maps.Keys(e.Actions)) {
		if a := e.Actions[name]; a.State.Status == pending && all(a.StartAfter, over) {
			return name, true
		}
	}
	return "", false
}

// begin needs the lock.
func (s *State) begin(e *experiment, name string) {
	a := e.Actions[name]
	k, _ := findKind(a.ActionID)
	ids := e.resolved[a.Targets[k.targetKey]]
	if e.Options.ActionsMode == "skip-all" || len(ids) == 0 {
		s.endAction(e, name, Status{skipped, "Action was skipped."})
		return
	}
	a.State, a.Started = Status{running, "Action is running."}, wire.Time{Time: time.Now()}
	e.Actions[name] = a
	err := s.authorize(e.RoleARN, k.permission, ids)
	var lasts time.Duration
	if err == nil {
		lasts, err = k.begin(s.ec2, ids, a.Parameters)
	}
	if err != nil {
		s.endAction(e, name, Status{failed, err.Error()})
		s.abort(e, Status{failed, "Action " + name + " failed: " + err.Error()})
		return
	}
	s.clock.After(lasts, func() {
		if e.Actions[name].State.Status != running {
			return
		}
		if k.end != nil {
			k.end(s.ec2, ids, a.Parameters)
		}
		s.endAction(e, name, Status{completed, "Action was completed."})
		s.advance(e)
	})
}

// authorize returns an error unless the role may act on all instances. The permissions are those
// that the FIS User Guide lists for each action (Actions reference).
func (s *State) authorize(role, permission string, ids []string) error {
	for _, id := range ids {
		in, ok := s.ec2.Instance(id)
		arn := s.scope.ARN("ec2", "instance/"+id)
		if ok && !s.allowed(role, permission, arn, in.Tags) {
			return fmt.Errorf("the role %s is not authorized to perform: %s on resource: %s", role, permission, arn)
		}
	}
	return nil
}

// endAction needs the lock.
func (s *State) endAction(e *experiment, name string, to Status) {
	a := e.Actions[name]
	a.State, a.Ended = to, wire.Time{Time: time.Now()}
	e.Actions[name] = a
}
