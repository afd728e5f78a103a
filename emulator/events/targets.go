package events

import (
	"slices"
	"strings"
)

// Limits of targets (EventBridge User Guide, Quotas; EventBridge API Reference,
// PutTargets).
const (
	maxTargets   = 5 // per rule
	maxPerCall   = 10
	maxInput     = 8192
	maxInputPath = 256
)

// Target is where a rule sends what it matches.
type Target struct {
	ID  string
	ARN string // of a standard SQS queue or SNS topic
	// At most one of Input, InputPath and Transformer is set; none sends the event.
	Input       string
	InputPath   string
	Transformer *Transformer
	// DeadLetterARN is the queue for what cannot be delivered; empty: none.
	DeadLetterARN string
	// Retry is kept and shown; the emulator's failures are all final.
	Retry *RetryPolicy
}

// RetryPolicy bounds EventBridge's retries.
type RetryPolicy struct {
	MaximumRetryAttempts     *int `json:",omitempty"` // 0 to 185
	MaximumEventAgeInSeconds *int `json:",omitempty"` // 60 to 86,400
}

// PutTargets adds targets to a rule, or replaces those with the same id. Errors:
// ResourceNotFoundException, LimitExceededException, ValidationException.
func (s *State) PutTargets(busName, ruleName string, targets []Target) error {
	for _, t := range targets {
		if err := t.check(); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.rule(busName, ruleName)
	if err != nil {
		return err
	}
	merged := slices.Clone(r.targets)
	for _, t := range targets {
		if i := slices.IndexFunc(merged, func(o Target) bool { return o.ID == t.ID }); i >= 0 {
			merged[i] = t
		} else {
			merged = append(merged, t)
		}
	}
	if len(merged) > maxTargets {
		return limitExceeded()
	}
	r.targets = merged
	return nil
}

// RemoveTargets removes targets and returns the ids that the rule does not have. The
// error is ResourceNotFoundException.
func (s *State) RemoveTargets(busName, ruleName string, ids []string) (unknown []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.rule(busName, ruleName)
	if err != nil {
		return nil, err
	}
	var rest []Target // a new slice: deliveries may share the old one
	for _, t := range r.targets {
		if !slices.Contains(ids, t.ID) {
			rest = append(rest, t)
		}
	}
	for _, id := range ids {
		if !slices.ContainsFunc(r.targets, func(t Target) bool { return t.ID == id }) {
			unknown = append(unknown, id)
		}
	}
	r.targets = rest
	return unknown, nil
}

// Targets lists the targets of a rule in the order in which they were put. The error
// is ResourceNotFoundException.
func (s *State) Targets(busName, ruleName string) ([]Target, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.rule(busName, ruleName)
	if err != nil {
		return nil, err
	}
	return slices.Clone(r.targets), nil
}

// RulesOf lists the names of the rules of a bus that have a target, sorted. The error
// is ResourceNotFoundException for the bus.
func (s *State) RulesOf(busName, targetARN string) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.bus(busName)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, r := range b.sorted() {
		if slices.ContainsFunc(r.targets, func(t Target) bool { return t.ARN == targetARN }) {
			out = append(out, r.name)
		}
	}
	return out, nil
}

// check refuses what EventBridge refuses, and what this emulator cannot do.
func (t Target) check() error {
	if !namePattern.MatchString(t.ID) {
		return notValid(t.ID, "a target id is 1 to 64 letters, digits, dots, hyphens or underscores")
	}
	if err := checkTarget(t.ARN, "sqs", "sns"); err != nil {
		return err
	}
	if t.DeadLetterARN != "" {
		if err := checkTarget(t.DeadLetterARN, "sqs"); err != nil {
			return err
		}
	}
	if err := t.checkInput(); err != nil {
		return err
	}
	return t.Retry.check(t.ID)
}

func (t Target) checkInput() error {
	set := 0
	for _, is := range []bool{t.Input != "", t.InputPath != "", t.Transformer != nil} {
		if is {
			set++
		}
	}
	switch {
	case set > 1:
		return validation("Only one of Input, InputPath, or InputTransformer must be provided for target %s.", t.ID)
	case len(t.Input) > maxInput:
		return notValid("Input", "it is longer than 8192 characters")
	case len(t.InputPath) > maxInputPath:
		return notValid("InputPath", "it is longer than 256 characters")
	}
	if err := checkInputJSON(t); err != nil {
		return err
	}
	if t.InputPath != "" {
		if _, err := parsePath(t.InputPath); err != nil {
			return notValid("InputPath", err.Error())
		}
	}
	if t.Transformer != nil {
		return t.Transformer.check(t.ID)
	}
	return nil
}

func (p *RetryPolicy) check(id string) error {
	if p == nil {
		return nil
	}
	if n := p.MaximumRetryAttempts; n != nil && (*n < 0 || *n > 185) {
		return notValid("MaximumRetryAttempts", "it must be 0 to 185 for target "+id)
	}
	if n := p.MaximumEventAgeInSeconds; n != nil && (*n < 60 || *n > 86400) {
		return notValid("MaximumEventAgeInSeconds", "it must be 60 to 86400 for target "+id)
	}
	return nil
}

// checkTarget wants the ARN of a standard queue, or of a standard topic if services has "sns".
func checkTarget(arn string, services ...string) error {
	parts := strings.Split(arn, ":")
	switch {
	case len(parts) < 6 || parts[0] != "arn":
		return notValid(arn, "Provided Arn is not in correct format.")
	case !slices.Contains(services, parts[2]):
		return notValid(arn, "this emulator delivers here to "+strings.Join(services, " and ")+" only.")
	case strings.HasSuffix(arn, ".fifo"):
		return notValid(arn, "this emulator does not deliver to FIFO queues and topics.")
	}
	return nil
}
