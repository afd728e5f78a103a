package events

import (
	"maps"
	"strings"

	"github.com/lifeboat-dev/lifeboat/emulator/events/pattern"
)

// maxRules is how many rules a bus takes (EventBridge User Guide, Quotas).
const maxRules = 300

// rule is one rule of one bus.
type rule struct {
	name, arn, bus string
	description    string
	roleARN        string
	enabled        bool
	pattern        *pattern.Pattern
	targets        []Target
	tags           map[string]string
	stats          Stats
}

// Stats counts the deliveries of a rule, under the names of EventBridge's CloudWatch metrics.
type Stats struct {
	MatchedEvents     int
	Invocations       int // delivery attempts
	FailedInvocations int // deliveries that failed permanently
	SentToDLQ         int
	FailedToDLQ       int
	// LastFailure says why the latest failed delivery failed; empty if none did.
	LastFailure string
}

// Rule describes a rule.
type Rule struct {
	Name, ARN, Bus string
	Pattern        string
	Description    string
	RoleARN        string
	Enabled        bool
	Stats          Stats
}

// RuleInput is what PutRule sets.
type RuleInput struct {
	Name, Bus   string
	Pattern     string
	Description string
	RoleARN     string
	Disabled    bool
	Tags        map[string]string // of a new rule only
}

// PutRule makes a rule or replaces the settings of one that exists; its targets, tags
// and counts stay. It returns the rule's ARN. Errors: InvalidEventPatternException,
// ResourceNotFoundException for the bus, LimitExceededException.
func (s *State) PutRule(input RuleInput) (string, error) {
	compiled, err := compile(input.Pattern)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.bus(input.Bus)
	if err != nil {
		return "", err
	}
	r := b.rules[input.Name]
	if r == nil {
		if len(b.rules) >= maxRules {
			return "", limitExceeded()
		}
		r = &rule{name: input.Name, bus: b.name, arn: s.ruleARN(b.name, input.Name), tags: map[string]string{}}
		maps.Copy(r.tags, input.Tags)
		b.rules[input.Name] = r
	}
	r.pattern, r.enabled = compiled, !input.Disabled
	r.description, r.roleARN = input.Description, input.RoleARN
	return r.arn, nil
}

// compile reads a pattern; its error has AWS's text.
func compile(text string) (*pattern.Pattern, error) {
	p, err := pattern.Compile(text)
	if err != nil {
		return nil, invalidPattern(err)
	}
	return p, nil
}

func (s *State) ruleARN(busName, name string) string {
	if busName == defaultBus {
		return s.scope.ARN("events", "rule/"+name)
	}
	return s.scope.ARN("events", "rule/"+busName+"/"+name)
}

// Rule describes one rule. The error is ResourceNotFoundException.
func (s *State) Rule(busName, name string) (Rule, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.rule(busName, name)
	if err != nil {
		return Rule{}, err
	}
	return r.describe(), nil
}

// Rules lists the rules of a bus whose names begin with prefix, sorted by name. The
// error is ResourceNotFoundException for the bus.
func (s *State) Rules(busName, prefix string) ([]Rule, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.bus(busName)
	if err != nil {
		return nil, err
	}
	var out []Rule
	for _, r := range b.sorted() {
		if strings.HasPrefix(r.name, prefix) {
			out = append(out, r.describe())
		}
	}
	return out, nil
}

// SetEnabled enables or disables a rule. The error is ResourceNotFoundException.
func (s *State) SetEnabled(busName, name string, enabled bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.rule(busName, name)
	if err != nil {
		return err
	}
	r.enabled = enabled
	return nil
}

// DeleteRule removes a rule, which must be without targets. A rule that does not
// exist is no error.
func (s *State) DeleteRule(busName, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.bus(busName)
	if err != nil {
		return err
	}
	if r := b.rules[name]; r != nil && len(r.targets) > 0 {
		return ruleHasTargets()
	}
	delete(b.rules, name)
	return nil
}

// rule needs the lock.
func (s *State) rule(busName, name string) (*rule, error) {
	b, err := s.bus(busName)
	if err != nil {
		return nil, err
	}
	r := b.rules[name]
	if r == nil {
		return nil, ruleNotFound(name, b.name)
	}
	return r, nil
}

func (r *rule) describe() Rule {
	return Rule{
		Name: r.name, ARN: r.arn, Bus: r.bus, Pattern: r.pattern.String(),
		Description: r.description, RoleARN: r.roleARN, Enabled: r.enabled, Stats: r.stats,
	}
}

// Tags returns a copy of the tags of a rule or bus. The error is
// ResourceNotFoundException.
func (s *State) Tags(arn string) (map[string]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tags, err := s.tagged(arn)
	return maps.Clone(tags), err
}

// SetTags adds tags to a rule or bus and removes the named ones. The error is
// ResourceNotFoundException.
func (s *State) SetTags(arn string, add map[string]string, remove []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	tags, err := s.tagged(arn)
	if err != nil {
		return err
	}
	for _, k := range remove {
		delete(tags, k)
	}
	maps.Copy(tags, add)
	return nil
}

// tagged needs the lock.
func (s *State) tagged(arn string) (map[string]string, error) {
	for _, b := range s.buses {
		if s.busARN(b.name) == arn {
			return b.tags, nil
		}
		for _, r := range b.rules {
			if r.arn == arn {
				return r.tags, nil
			}
		}
	}
	return nil, arnNotFound(arn)
}
