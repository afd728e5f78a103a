package queuepolicy

import (
	"slices"
	"strings"
)

// condition is one operator on one key. It holds if any of the values matches.
type condition struct {
	key      string
	values   []string
	compare  func(pattern, text string) bool
	negated  bool
	ifExists bool
	forAll   bool
	null     bool
	// unknown is an operator that this package does not implement, so the result is
	// unknown.
	unknown string
}

// comparisons are the operators that have a Not form.
var comparisons = map[string]func(pattern, text string) bool{
	"StringEquals":           func(pattern, text string) bool { return pattern == text },
	"StringEqualsIgnoreCase": strings.EqualFold,
	"StringLike":             glob,
	"ArnEquals":              arnLike, // the same as ArnLike (IAM User Guide)
	"ArnLike":                arnLike,
}

func newCondition(operator, key string, values []string) condition {
	c := condition{key: key, values: values}
	name, forAll := strings.CutPrefix(operator, "ForAllValues:")
	name, c.forAll = strings.TrimPrefix(name, "ForAnyValue:"), forAll
	name, c.ifExists = strings.CutSuffix(name, "IfExists")
	switch name {
	case "Bool":
		c.compare = strings.EqualFold
		return c
	case "Null":
		c.null = true
		return c
	}
	positive := strings.Replace(name, "Not", "", 1)
	c.negated = positive != name
	if c.compare = comparisons[positive]; c.compare == nil {
		c.unknown = operator
	}
	return c
}

// holds evaluates the condition. If the key is missing, negated operators hold. The
// others do not, unless they end in IfExists or begin with ForAllValues.
func (c condition) holds(context map[string]string) bool {
	text, found := lookUp(context, c.key)
	switch {
	case c.null:
		return slices.ContainsFunc(c.values, func(v string) bool { return strings.EqualFold(v, "true") != found })
	case !found:
		return c.negated || c.ifExists || c.forAll
	}
	return c.negated != slices.ContainsFunc(c.values, func(v string) bool { return c.compare(v, text) })
}

func lookUp(context map[string]string, key string) (string, bool) {
	for name, value := range context {
		if strings.EqualFold(name, key) {
			return value, true
		}
	}
	return "", false
}

// arnLike matches ARNs part by part, so that * does not match a colon in the first
// five parts.
func arnLike(pattern, text string) bool {
	patterns, texts := strings.SplitN(pattern, ":", 6), strings.SplitN(text, ":", 6)
	if len(patterns) != 6 || len(texts) != 6 {
		return false
	}
	for i := range patterns {
		if !glob(patterns[i], texts[i]) {
			return false
		}
	}
	return true
}
