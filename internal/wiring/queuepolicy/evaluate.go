package queuepolicy

import (
	"slices"
	"strings"
)

// Verdict is what a policy says to a request.
type Verdict int

// The verdicts.
const (
	// NoOpinion means that no statement applies. The owner's account is let in
	// all the same; everyone else is not.
	NoOpinion Verdict = iota
	// Allow means that a statement allows the request and none denies it.
	Allow
	// Deny means that a statement denies the request.
	Deny
	// Unknown means that it hangs on a condition that cannot be judged: its
	// operator is not implemented (see ParseAny), or its key is among Unsure.
	Unknown
)

// Request is what is to be judged.
type Request struct {
	// Service is the calling AWS service, such as "events.amazonaws.com";
	// empty for callers with an identity.
	Service string
	// ARN and Account are the calling identity; empty for services.
	ARN, Account string
	// Action is such as "sqs:SendMessage".
	Action string
	// Resource is the ARN of what is acted upon.
	Resource string
	// Context holds condition keys, such as "aws:SourceArn". Their names are
	// matched without regard to case.
	Context map[string]string
	// Unsure are condition keys that the request has, with values that are not
	// known, such as "aws:SourceOrgID".
	Unsure []string
}

// Evaluate judges a request. A nil policy has no opinion.
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

// applies tells whether a statement speaks of a request, and whether that is
// certain.
func (s *statement) applies(r Request) (applies, certain bool) {
	if !s.covers(r) ||
		!named(s.Action, s.NotAction, strings.ToLower(r.Action), strings.ToLower) ||
		!named(s.Resource, s.NotResource, r.Resource, func(p string) string { return p }) {
		return false, true
	}
	certain = true
	for _, c := range s.conditions {
		if c.unknown != "" || slices.ContainsFunc(r.Unsure, func(key string) bool { return strings.EqualFold(key, c.key) }) {
			certain = false
		} else if !c.holds(r.Context) {
			return false, true
		}
	}
	return true, certain
}

// covers tells whether the caller is among the statement's principals.
func (s *statement) covers(r Request) bool {
	if s.NotPrincipal != nil {
		return !s.NotPrincipal.include(r)
	}
	return s.Principal.include(r)
}

func (p principals) include(r Request) bool {
	for _, who := range p["AWS"] {
		if who == "*" {
			return true // everybody, AWS's services too
		}
		if r.Service == "" && (who == r.ARN || who == r.Account || isRoot(who, r.Account)) {
			return true
		}
	}
	return r.Service != "" && slices.Contains(p["Service"], r.Service)
}

// isRoot tells whether an ARN stands for a whole account, as
// "arn:aws:iam::123456789012:root" does.
func isRoot(arn, account string) bool {
	parts := strings.Split(arn, ":")
	return len(parts) == 6 && parts[2] == "iam" && parts[4] == account && parts[5] == "root"
}

// named tells whether text matches one of the patterns, or none of the
// opposite element's.
func named(patterns, not oneOrMore, text string, fold func(string) string) bool {
	matches := func(pattern string) bool { return glob(fold(pattern), text) }
	if not != nil {
		return !slices.ContainsFunc(not, matches)
	}
	return slices.ContainsFunc(patterns, matches)
}

// glob matches text with * (any run) and ? (any one character).
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
