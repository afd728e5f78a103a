package queuepolicy

import (
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/symbol"
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
	// its operator is not implemented (see ParseAny), or its key is in UnknownKeys. It
	// can also depend on the value of a symbol (package symbol).
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
		switch applies := s.applies(r); {
		case applies == symbol.No:
		case s.Effect == "Deny" && applies == symbol.Yes:
			return Deny
		case s.Effect == "Deny":
			mayDeny = true
		case applies == symbol.Yes:
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
		if p.statements[i].applies(r) != symbol.No && p.statements[i].Effect == effect {
			all = append(all, i)
		}
	}
	return all
}

// applies reports whether a statement applies to a request.
func (s *statement) applies(r Request) symbol.Truth {
	same := func(p string) string { return p }
	result := min(s.covers(r),
		matchesElement(s.Action, s.NotAction, strings.ToLower(r.Action), strings.ToLower),
		matchesElement(s.Resource, s.NotResource, r.Resource, same))
	for _, c := range s.conditions {
		if c.unknown != "" || slices.ContainsFunc(r.UnknownKeys, func(key string) bool { return strings.EqualFold(key, c.key) }) {
			result = min(result, symbol.Maybe)
		} else {
			result = min(result, c.holds(r.Context))
		}
	}
	return result
}

// covers reports whether the caller is one of the statement's principals.
func (s *statement) covers(r Request) symbol.Truth {
	if s.NotPrincipal != nil {
		return s.NotPrincipal.include(r).Not()
	}
	return s.Principal.include(r)
}

func (p principals) include(r Request) symbol.Truth {
	result := symbol.No
	for _, principal := range p["AWS"] {
		switch {
		case principal == "*":
			return symbol.Yes // all principals, including AWS services
		case r.Service != "":
		case isRoot(principal, r.Account):
			return symbol.Yes
		default:
			result = max(result, symbol.Equal(principal, r.ARN), symbol.Equal(principal, r.Account))
		}
	}
	if r.Service != "" {
		result = max(result, anyOf(p["Service"], func(v string) symbol.Truth { return symbol.Equal(v, r.Service) }))
	}
	return result
}

// isRoot reports whether an ARN stands for a whole account, for example
// "arn:aws:iam::123456789012:root".
func isRoot(arn, account string) bool {
	parts := strings.Split(arn, ":")
	return len(parts) == 6 && parts[2] == "iam" && parts[4] == account && parts[5] == "root"
}

// matchesElement reports whether text matches one of the patterns, or none of the
// patterns of the Not element.
func matchesElement(patterns, not oneOrMore, text string, fold func(string) string) symbol.Truth {
	matches := func(pattern string) symbol.Truth { return symbol.Glob(fold(pattern), text) }
	if not != nil {
		return anyOf(not, matches).Not()
	}
	return anyOf(patterns, matches)
}
