// Package policy decides what a policy of a resource or of an identity allows, as AWS does.
//
// It follows the IAM User Guide, "Policy evaluation logic" and "IAM JSON policy elements
// reference". It shares no code with the product, so that a mistake there does not hide itself.
package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Decision is the result of a policy for one request.
type Decision int

// The decisions.
const (
	// Silent means that no statement applies.
	Silent Decision = iota
	Allowed
	Denied
)

// Request is a request to authorize.
type Request struct {
	// Service is the calling service, such as events.amazonaws.com; empty for an identity.
	Service string
	// ARN and Account are the calling identity. RoleARN is the role of a role session.
	ARN, RoleARN, Account string
	Action                string
	Resource              string
	// Keys are the condition keys of the request, with their values.
	Keys map[string][]string
}

// Policy is a parsed policy.
type Policy struct{ statements []statement }

// statement applies to a request if all its elements match.
type statement struct {
	deny     bool
	elements []func(Request) bool
}

// document is a policy as JSON.
type document struct {
	Version   string
	Statement list[statementDocument]
}

// statementDocument is a statement as JSON. A nil element is missing.
type statementDocument struct {
	Effect                  string
	Principal, NotPrincipal any
	Action, NotAction       list[string]
	Resource, NotResource   list[string]
	Condition               map[string]map[string]list[any]
}

// list is one value, or a list of values.
type list[T any] []T

// UnmarshalJSON implements json.Unmarshaler.
func (l *list[T]) UnmarshalJSON(text []byte) error {
	if text[0] == '[' {
		return json.Unmarshal(text, (*[]T)(l))
	}
	*l = make([]T, 1)
	return json.Unmarshal(text, &(*l)[0])
}

// Parse reads the policy of a resource. It refuses condition operators that it cannot evaluate.
func Parse(text string) (*Policy, error) { return parse(text, statementDocument.compileForResource) }

// ParseIdentity reads the policy of a user or role, whose statements name no principal.
func ParseIdentity(text string) (*Policy, error) {
	return parse(text, statementDocument.compileForIdentity)
}

func parse(text string, compile func(statementDocument) (statement, error)) (*Policy, error) {
	var d document
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return nil, fmt.Errorf("reading the policy: %w", err)
	}
	switch {
	case d.Version != "" && d.Version != "2008-10-17" && d.Version != "2012-10-17":
		return nil, fmt.Errorf("the policy has the unknown version %q", d.Version)
	case d.Statement == nil:
		return nil, errors.New("the policy has no Statement")
	}
	p := &Policy{}
	for i, s := range d.Statement {
		compiled, err := compile(s)
		if err != nil {
			return nil, fmt.Errorf("statement %d: %w", i+1, err)
		}
		p.statements = append(p.statements, compiled)
	}
	return p, nil
}

func (s statementDocument) compileForResource() (statement, error) {
	who, err := principals(s.Principal, s.NotPrincipal)
	if err != nil {
		return statement{}, err
	}
	return s.compile(who)
}

func (s statementDocument) compileForIdentity() (statement, error) {
	if s.Principal != nil || s.NotPrincipal != nil {
		return statement{}, errors.New("a policy of an identity has no Principal")
	}
	return s.compile(func(Request) bool { return true })
}

func (s statementDocument) compile(who func(Request) bool) (statement, error) {
	out := statement{deny: s.Effect == "Deny"}
	if s.Effect != "Allow" && s.Effect != "Deny" {
		return out, fmt.Errorf("the effect %q is neither Allow nor Deny", s.Effect)
	}
	action, err := names("Action", s.Action, s.NotAction, func(r Request) string { return strings.ToLower(r.Action) }, strings.ToLower)
	if err != nil {
		return out, err
	}
	resource, err := names("Resource", s.Resource, s.NotResource, func(r Request) string { return r.Resource }, strings.Clone)
	if err != nil {
		return out, err
	}
	out.elements = []func(Request) bool{who, action, resource}
	for operator, keys := range s.Condition {
		for key, values := range keys {
			holds, err := condition(operator, key, values)
			if err != nil {
				return out, err
			}
			out.elements = append(out.elements, holds)
		}
	}
	return out, nil
}

// Decide evaluates a request: a Deny wins. A nil policy is silent.
func (p *Policy) Decide(r Request) Decision {
	decision := Silent
	if p == nil {
		return decision
	}
	for _, s := range p.statements {
		applies := !slices.ContainsFunc(s.elements, func(matches func(Request) bool) bool { return !matches(r) })
		switch {
		case applies && s.deny:
			return Denied
		case applies:
			decision = Allowed
		}
	}
	return decision
}
