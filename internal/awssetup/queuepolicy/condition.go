package queuepolicy

import (
	"slices"
	"strconv"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/symbol"
)

// condition is one operator on one key. It holds if any of the values matches.
type condition struct {
	key      string
	values   []string
	compare  func(pattern, text string) symbol.Truth
	negated  bool
	ifExists bool
	forAll   bool
	forAny   bool
	null     bool
	// unknown is an operator that this package does not implement, so the result is
	// unknown.
	unknown string
}

// comparisons are the operators that have a Not form.
var comparisons = map[string]func(pattern, text string) symbol.Truth{
	"StringEquals":           symbol.Equal,
	"StringEqualsIgnoreCase": equalFold,
	"StringLike":             symbol.Glob,
	"ArnEquals":              symbol.ARNLike, // the same as ArnLike (IAM User Guide)
	"ArnLike":                symbol.ARNLike,
}

// equalFold compares without regard to case.
func equalFold(pattern, text string) symbol.Truth {
	if symbol.Within(pattern) || symbol.Within(text) {
		return max(symbol.Equal(pattern, text), symbol.Maybe)
	}
	return symbol.Of(strings.EqualFold(pattern, text))
}

func newCondition(operator, key string, values []string) condition {
	c := condition{key: key, values: values}
	name, forAll := strings.CutPrefix(operator, "ForAllValues:")
	name, c.forAny = strings.CutPrefix(name, "ForAnyValue:")
	c.forAll = forAll
	name, c.ifExists = strings.CutSuffix(name, "IfExists")
	switch name {
	case "Bool":
		c.compare = equalFold
		return c
	case "Null":
		c.null = true
		return c
	}
	positive := strings.Replace(name, "Not", "", 1)
	c.negated = positive != name
	if c.compare = comparisons[positive]; c.compare == nil || symbol.Within(key) || slices.ContainsFunc(values, hasVariable) {
		c.unknown = operator
	}
	return c
}

// hasVariable reports whether a value contains a policy variable such as
// ${aws:SourceAccount} (IAM User Guide, "Policy elements: Variables and tags").
func hasVariable(value string) bool { return strings.Contains(value, "${") }

// holds evaluates the condition. If the key is missing, negated operators without
// ForAnyValue hold. The others do not, unless they end in IfExists or begin with
// ForAllValues.
func (c condition) holds(context map[string]string) symbol.Truth {
	text, found := lookUp(context, c.key)
	switch {
	case c.null:
		return anyOf(c.values, func(v string) symbol.Truth { return equalFold(v, strconv.FormatBool(!found)) })
	case !found:
		return symbol.Of(c.negated && !c.forAny || c.ifExists || c.forAll)
	}
	result := anyOf(c.values, func(v string) symbol.Truth { return c.compare(v, text) })
	if c.negated {
		return result.Not()
	}
	return result
}

// anyOf reports whether one of the values holds.
func anyOf(values []string, holds func(string) symbol.Truth) symbol.Truth {
	result := symbol.No
	for _, v := range values {
		result = max(result, holds(v))
	}
	return result
}

func lookUp(context map[string]string, key string) (string, bool) {
	for name, value := range context {
		if strings.EqualFold(name, key) {
			return value, true
		}
	}
	return "", false
}
