package queuepolicy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Policy is a parsed resource policy.
type Policy struct {
	statements []statement
}

type statement struct {
	Sid          string         `json:"Sid"`
	Effect       string         `json:"Effect"`
	Principal    principals     `json:"Principal"`
	NotPrincipal principals     `json:"NotPrincipal"`
	Action       oneOrMore      `json:"Action"`
	NotAction    oneOrMore      `json:"NotAction"`
	Resource     oneOrMore      `json:"Resource"`
	NotResource  oneOrMore      `json:"NotResource"`
	Condition    conditionBlock `json:"Condition"`

	conditions []condition
}

// conditionBlock is operator → key → values.
type conditionBlock map[string]map[string]oneOrMore

// oneOrMore is a string or a list of strings. Booleans and numbers count as strings,
// for example in {"Bool": {"aws:SecureTransport": false}}.
type oneOrMore []string

// UnmarshalJSON implements json.Unmarshaler.
func (o *oneOrMore) UnmarshalJSON(b []byte) error {
	var list []json.RawMessage
	if b = bytes.TrimSpace(b); len(b) > 0 && b[0] == '[' {
		if err := json.Unmarshal(b, &list); err != nil {
			return err
		}
	} else {
		list = []json.RawMessage{b}
	}
	*o = make(oneOrMore, 0, len(list))
	for _, raw := range list {
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			return err
		}
		switch v := v.(type) {
		case string:
			*o = append(*o, v)
		case bool, float64:
			*o = append(*o, string(bytes.TrimSpace(raw)))
		default:
			return fmt.Errorf("%s is neither a string nor a list of strings", raw)
		}
	}
	return nil
}

// principals is "*", or a map from kind ("AWS", "Service") to principals.
type principals map[string]oneOrMore

// UnmarshalJSON implements json.Unmarshaler.
func (p *principals) UnmarshalJSON(b []byte) error {
	var all string
	if json.Unmarshal(b, &all) == nil {
		if all != "*" {
			return fmt.Errorf(`principal %q: use "*" or an object such as {"Service": "events.amazonaws.com"}`, all)
		}
		*p = principals{"AWS": {"*"}}
		return nil
	}
	var kinds map[string]oneOrMore
	if err := json.Unmarshal(b, &kinds); err != nil {
		return err
	}
	*p = kinds
	return nil
}

// Parse reads a policy document. It refuses documents that AWS would refuse, and
// condition operators that this package does not implement.
func Parse(document string) (*Policy, error) {
	p, err := ParseAny(document)
	if err != nil {
		return nil, err
	}
	for i, s := range p.statements {
		for _, c := range s.conditions {
			if c.unknown != "" {
				return nil, fmt.Errorf("reading policy statement %d: condition operator %s is not implemented", i+1, c.unknown)
			}
		}
	}
	return p, nil
}

// ParseAny reads a policy document like Parse, but accepts condition operators that
// this package does not implement. Statements with such an operator evaluate to
// Unknown.
func ParseAny(document string) (*Policy, error) {
	var doc struct {
		Version   string
		Statement json.RawMessage
	}
	if err := json.Unmarshal([]byte(document), &doc); err != nil {
		return nil, fmt.Errorf("reading policy: %w", err)
	}
	if !slices.Contains([]string{"", "2008-10-17", "2012-10-17"}, doc.Version) {
		return nil, fmt.Errorf("policy version %q: use 2012-10-17", doc.Version)
	}
	raw := bytes.TrimSpace(doc.Statement)
	if len(raw) == 0 {
		return nil, errors.New("policy has no Statement")
	}
	if raw[0] == '{' {
		raw = slices.Concat([]byte("["), raw, []byte("]"))
	}
	p := &Policy{}
	if err := json.Unmarshal(raw, &p.statements); err != nil {
		return nil, fmt.Errorf("reading policy statements: %w", err)
	}
	for i := range p.statements {
		if err := p.statements[i].check(); err != nil {
			return nil, fmt.Errorf("reading policy statement %d: %w", i+1, err)
		}
	}
	return p, nil
}

func (s *statement) check() error {
	switch {
	case s.Effect != "Allow" && s.Effect != "Deny":
		return fmt.Errorf("effect %q: use Allow or Deny", s.Effect)
	case (s.Principal == nil) == (s.NotPrincipal == nil):
		return errors.New("needs one of Principal and NotPrincipal")
	case (s.Action == nil) == (s.NotAction == nil):
		return errors.New("needs one of Action and NotAction")
	case (s.Resource == nil) == (s.NotResource == nil):
		return errors.New("needs one of Resource and NotResource")
	}
	for operator, keys := range s.Condition {
		for key, values := range keys {
			s.conditions = append(s.conditions, newCondition(operator, key, values))
		}
	}
	return nil
}
