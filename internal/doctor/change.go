package doctor

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
)

// change applies a fix to a wiring in memory. See [Run].
type change func(*snapshot.Snapshot)

// onRule returns a change of a rule.
func onRule(r *rule, edit func(*snapshot.Rule)) change {
	is := sameRule(r.Rule)
	return func(s *snapshot.Snapshot) {
		for i := range s.Rules {
			if is(s.Rules[i]) {
				edit(&s.Rules[i])
			}
		}
	}
}

func sameRule(r snapshot.Rule) func(snapshot.Rule) bool {
	return func(o snapshot.Rule) bool { return o.Name == r.Name && o.ARN == r.ARN && o.From == r.From }
}

// onTargets returns a change of the targets of a rule that send to a queue.
func onTargets(r *rule, queueARN string, edit func(*snapshot.Target)) change {
	return onRule(r, func(r *snapshot.Rule) {
		for i := range r.Targets {
			if r.Targets[i].ARN == queueARN {
				edit(&r.Targets[i])
			}
		}
	})
}

// onQueue returns a change of a queue.
func onQueue(arn string, edit func(*snapshot.Queue)) change {
	return func(s *snapshot.Snapshot) {
		for i := range s.Queues {
			if s.Queues[i].ARN == arn {
				edit(&s.Queues[i])
			}
		}
	}
}

// together returns a change that makes several changes.
func together(changes ...change) change {
	return func(s *snapshot.Snapshot) {
		for _, c := range changes {
			if c != nil {
				c(s)
			}
		}
	}
}

// addTarget adds the queue as a target of a rule.
func (e *diagnosis) addTarget(r *rule) change {
	if e.queue.ARN == "" {
		return nil
	}
	t := snapshot.Target{ID: setupTarget, ARN: e.queue.ARN, DeadLetterARN: e.queue.DeadLetterARN}
	return onRule(r, func(r *snapshot.Rule) { r.Targets = append(r.Targets, t) })
}

// toDefaultBus moves a rule to the default bus.
func toDefaultBus(r *rule) change {
	bus := snapshot.BusName(r.Bus)
	return onRule(r, func(r *snapshot.Rule) {
		r.Bus, r.ARN = "", strings.Replace(r.ARN, ":rule/"+bus+"/", ":rule/", 1)
	})
}

// addRule adds the rule that Lifeboat would create for a kind, with the queue as its
// target. In an account, the fix is lifeboat aws setup, which writes all rules.
func (e *diagnosis) addRule(kind string) change {
	desired, ok := e.desiredRule(kind)
	if !ok || e.queue.ARN == "" {
		return nil
	}
	if !e.Offline {
		return e.setupRules()
	}
	return putRule(e.ownRule(desired))
}

// ownRule is a rule as Lifeboat creates it.
func (e *diagnosis) ownRule(desired awssetup.Rule) snapshot.Rule {
	return snapshot.Rule{
		Name: desired.Name, Enabled: true, Pattern: desired.Pattern, TargetsKnown: true,
		ARN: strings.Join([]string{
			"arn", snapshot.Part(e.queue.ARN, 1), "events", snapshot.Part(e.queue.ARN, 3), snapshot.Part(e.queue.ARN, 4), "rule/" + desired.Name,
		}, ":"),
		Targets: []snapshot.Target{{ID: setupTarget, ARN: e.queue.ARN, DeadLetterARN: e.queue.DeadLetterARN}},
	}
}

// putRule writes a rule.
func putRule(r snapshot.Rule) change {
	return func(s *snapshot.Snapshot) {
		if i := slices.IndexFunc(s.Rules, sameRule(r)); i >= 0 {
			s.Rules[i] = r // the same rule brings several kinds
			return
		}
		s.Rules = append(s.Rules, r)
	}
}

// setupRules writes all of Lifeboat's rules, and lets them send.
func (e *diagnosis) setupRules() change {
	var changes []change
	var own []*rule
	for _, desired := range e.desired.Rules {
		r := e.ownRule(desired)
		changes, own = append(changes, putRule(r)), append(own, &rule{Rule: r})
	}
	if e.queue.ARN == "" {
		return nil
	}
	if e.queue.PolicyKnown {
		changes = append(changes, allowRules(own, e.account(), e.queue.ARN))
	}
	return together(changes...)
}

// standardQueue replaces a FIFO queue by a standard queue everywhere.
func standardQueue(q snapshot.Queue) change {
	name := strings.TrimSuffix(q.ARN, ".fifo")
	return func(s *snapshot.Snapshot) {
		text, err := json.Marshal(s)
		if err != nil {
			return
		}
		var out snapshot.Snapshot
		if json.Unmarshal([]byte(strings.ReplaceAll(string(text), q.ARN, name)), &out) != nil {
			return
		}
		*s = out
		onQueue(name, func(q *snapshot.Queue) {
			q.FIFO, q.ContentDeduplicated, q.Name = false, false, snapshot.Name(name)
		})(s)
		for i := range s.Rules {
			for j := range s.Rules[i].Targets {
				if t := &s.Rules[i].Targets[j]; t.ARN == name {
					t.GroupID = ""
				}
			}
		}
	}
}

// The settings of a dead-letter queue that the fixes create.
const (
	fixReceives  = 30
	fixRetention = 14 * 24 * time.Hour
)

// addDeadLetterQueue creates a dead-letter queue for the queue.
func addDeadLetterQueue(q snapshot.Queue) change {
	dead := snapshot.Queue{
		ARN: q.ARN + "-dead-letter", Name: q.Name + "-dead-letter", Known: true, PolicyKnown: true,
		Retention: fixRetention, ManagedSSE: true, From: q.From,
	}
	return func(s *snapshot.Snapshot) {
		if !slices.ContainsFunc(s.Queues, func(o snapshot.Queue) bool { return o.ARN == dead.ARN }) {
			s.Queues = append(s.Queues, dead)
		}
		onQueue(q.ARN, func(q *snapshot.Queue) { q.DeadLetterARN, q.MaxReceives = dead.ARN, fixReceives })(s)
	}
}

// addTargetDeadLetters gives each target of the queue the queue's dead-letter queue.
func (e *diagnosis) addTargetDeadLetters() change {
	dead := e.queue.DeadLetterARN
	if dead == "" {
		return nil
	}
	return func(s *snapshot.Snapshot) {
		for _, r := range e.rules {
			onTargets(r, e.queue.ARN, func(t *snapshot.Target) {
				if t.DeadLetterARN == "" {
					t.DeadLetterARN = dead
				}
			})(s)
		}
	}
}
