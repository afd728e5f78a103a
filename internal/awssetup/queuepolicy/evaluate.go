package queuepolicy

import (
	"slices"
	"strings"
)

// Verdict is the result of the evaluation of a policy.
type Verdict int

// The verdicts.
const (
	// NoOpinion means that no statement applies. The owner's account still has
	// access; others have not.
	NoOpinion Verdict = iota
	// Allow means that a statement allows the request and none denies it.
	Allow
	// Deny means that a statement denies the request.
	Deny
	// Unknown means that the result depends on a condition that cannot be evaluated:
	// its operator is not implemented (see ParseAny), or its key is in UnknownKeys.
	Unknown
)

// Request is the request to evaluate.
type Request struct {
	// Service is the calling AWS service, for example "events.amazonaws.com"; empty
	// for callers with an identity.
	Service string
	// ARN and Account are the calling identity; empty for services.
	ARN, Account string
	// Action is for example "sqs:SendMessage".
	Action string
	// Resource is the ARN of the resource.
	Resource string
	// Context holds condition keys, for example "aws:SourceArn". Key names are not
	// case-sensitive.
	Context map[string]string
	// UnknownKeys are condition keys of the request whose values are not known, for
	// example "aws:SourceOrgID".
	UnknownKeys []string
}

// Evaluate evaluates a request. A nil policy has no opinion.
func (p *Policy) Evaluate(r Request) Verdict {
	if p == nil {
		return NoOpinion
	}
	allowed, mayAllow, mayDeny := false, false, false
	for i := range p.statements {
		s := &p.statements[i]
		applies, certain := s.applies(r)
		switch {
		case !applies:
		case s.Effect == "Deny" && certain:
			return Deny
		case s.Effect == "Deny":
			mayDeny = true
		case certain:
			allowed = true
		default:
			mayAllow = true
		}
	}
	switch {
	case allowed && !mayDeny:
		return Allow
	case allowed || mayAllow:
		return Unknown
	}
	return NoOpinion
}

// Applying returns the indexes of the statements with an effect that apply to a
// request, or may apply.
func (p *Policy) Applying(effect string, r Request) []int {
	if p == nil {
		return nil
	}
	var all []int
	for i := range p.statements {
		if applies, _ := p.statements[i].applies(r); applies && p.statements[i].Effect == effect {
			all = append(all, i)
		}
	}
	return all
}

// applies reports whether a statement applies to a request, and whether that is
// certain.
func (s *statement) applies(r Request) (applies, certain bool) {
	if !s.covers(r) ||
		!matchesElement(s.Action, s.NotAction, strings.ToLower(r.Action), strings.ToLower) ||
		!matchesElement(s.Resource, s.NotResource, r.Resource, func(p string) string { return p }) {
		return false, true
	}
	certain = true
	for _, c := range s.conditions {
		if c.unknown != "" || slices.ContainsFunc(r.UnknownKeys, func(key string) bool { return strings.EqualFold(key, c.key) }) {
			certain = false
		} else if !c.holds(r.Context) {
			return false, true
		}
	}
	return true, certain
}

// covers reports whether the caller is one of the statement's principals.
func (s *statement) covers(r Request) bool {
	if s.NotPrincipal != nil {
		return !s.NotPrincipal.include(r)
	}
	return s.Principal.include(r)
}

func (p principals) include(r Request) bool {
	for _, principal := range p["AWS"] {
		if principal == "*" {
			return true // all principals, including AWS services
		}
		if r.Service == "" && (principal == r.ARN || principal == r.Account || isRoot(principal, r.Account)) {
			return true
		}
	}
	return r.Service != "" && slices.Contains(p["Service"], r.Service)
}

// isRoot reports whether an ARN stands for a whole account, for example
// "arn:aws:iam::123456789012:root".
func isRoot(arn, account string) bool {
	parts := strings.Split(arn, ":")
	return len(parts) == 6 && parts[2] == "iam" && parts[4] == account && parts[5] == "root"
}

// matchesElement reports whether text matches one of the patterns, or none of the
// patterns of the Not element.
func matchesElement(patterns, not oneOrMore, text string, fold func(string) string) bool {
	matches := func(pattern string) bool { return glob(fold(pattern), text) }
	if not != nil {
		return !slices.ContainsFunc(not, matches)
	}
	return slices.ContainsFunc(patterns, matches)
}

// glob matches text with * (any characters) and ? (one character).
func glob(pattern, text string) bool {
	p, t := 0, 0
	star, mark := -1, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p++
			t++
		case star >= 0:
			mark++
			p, t = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
