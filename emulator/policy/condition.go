package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// comparisons are the condition operators without their Not forms (IAM User Guide, "IAM JSON
// policy elements: Condition operators").
var comparisons = map[string]func(wanted string) func(got string) bool{
	"StringEquals":             func(wanted string) func(string) bool { return func(got string) bool { return got == wanted } },
	"StringEqualsIgnoreCase":   foldEquals,
	"StringLike":               func(wanted string) func(string) bool { return like(wanted).MatchString },
	"ArnEquals":                arnLike,
	"ArnLike":                  arnLike,
	"Bool":                     foldEquals,
	"NumericEquals":            numeric(func(got, wanted float64) bool { return got == wanted }),
	"NumericLessThan":          numeric(func(got, wanted float64) bool { return got < wanted }),
	"NumericLessThanEquals":    numeric(func(got, wanted float64) bool { return got <= wanted }),
	"NumericGreaterThan":       numeric(func(got, wanted float64) bool { return got > wanted }),
	"NumericGreaterThanEquals": numeric(func(got, wanted float64) bool { return got >= wanted }),
}

// negatable are the operators that have a Not form.
var negatable = []string{"StringEquals", "StringEqualsIgnoreCase", "StringLike", "ArnEquals", "ArnLike", "NumericEquals"}

func foldEquals(wanted string) func(string) bool {
	return func(got string) bool { return strings.EqualFold(got, wanted) }
}

// numeric compares numbers. Text that is no number does not match.
func numeric(holds func(got, wanted float64) bool) func(wanted string) func(got string) bool {
	return func(wanted string) func(string) bool {
		return func(got string) bool {
			g, gotErr := strconv.ParseFloat(got, 64)
			w, wantedErr := strconv.ParseFloat(wanted, 64)
			return gotErr == nil && wantedErr == nil && holds(g, w)
		}
	}
}

// arnLike compares the six parts of ARNs, so that an asterisk does not reach over a colon.
func arnLike(wanted string) func(string) bool {
	parts := strings.SplitN(wanted, ":", 6)
	return func(got string) bool {
		for i, part := range strings.SplitN(got, ":", 6) {
			if len(parts) != 6 || !like(parts[i]).MatchString(part) {
				return false
			}
		}
		return strings.Count(got, ":") >= 5
	}
}

// The set operators (IAM User Guide, "Set operators for multivalued context keys").
const (
	forAllValues = "ForAllValues"
	forAnyValue  = "ForAnyValue"
)

// operator is a condition operator in its parts.
type operator struct {
	set      string // forAllValues, forAnyValue or empty
	name     string // without Not and IfExists
	negated  bool
	optional bool // IfExists
}

// parseOperator rejects operators that this package cannot evaluate.
func parseOperator(text string) (operator, error) {
	var o operator
	name := text
	if set, rest, found := strings.Cut(text, ":"); found {
		if set != forAllValues && set != forAnyValue {
			return o, fmt.Errorf("the set operator %s is neither %s nor %s", set, forAllValues, forAnyValue)
		}
		o.set, name = set, rest
	}
	name, o.optional = strings.CutSuffix(name, "IfExists")
	o.name = strings.Replace(name, "Not", "", 1)
	o.negated = o.name != name
	known := comparisons[o.name] != nil || o.name == "Null" && !o.optional
	if !known || o.negated && !slices.Contains(negatable, o.name) {
		return o, fmt.Errorf("this emulator has no condition operator %s", text)
	}
	return o, nil
}

// condition compiles one operator with one key.
func condition(text, key string, values list[any]) (func(Request) bool, error) {
	o, err := parseOperator(text)
	if err != nil {
		return nil, err
	}
	wanted, err := wantedValues(o, key, values)
	if err != nil {
		return nil, err
	}
	matchesAny := func(got string) bool {
		return slices.ContainsFunc(wanted, func(matches func(string) bool) bool { return matches(got) })
	}
	return func(r Request) bool {
		got := valuesOf(r, key)
		if o.name == "Null" {
			return matchesAny(strconv.FormatBool(len(got) == 0))
		}
		return o.holds(got, matchesAny)
	}, nil
}

// wantedValues compiles the values of a condition.
func wantedValues(o operator, key string, values list[any]) ([]func(string) bool, error) {
	compare := comparisons[o.name]
	if o.name == "Null" {
		compare = foldEquals
	}
	var wanted []func(string) bool
	for _, v := range values {
		switch v := v.(type) {
		case string, bool: // {"Bool": {"aws:SecureTransport": false}} is valid
			wanted = append(wanted, compare(fmt.Sprint(v)))
		case float64:
			wanted = append(wanted, compare(strconv.FormatFloat(v, 'f', -1, 64)))
		default:
			return nil, fmt.Errorf("the value of %s is neither a string nor a list of strings", key)
		}
	}
	return wanted, nil
}

// holds applies the operator to the values of a key; none means that the request does not have the
// key.
func (o operator) holds(got []string, matchesAny func(string) bool) bool {
	if len(got) == 0 {
		return o.optional || o.set == forAllValues || o.negated && o.set != forAnyValue
	}
	fits := func(value string) bool { return matchesAny(value) != o.negated }
	if o.set == forAllValues || o.negated && o.set == "" {
		return !slices.ContainsFunc(got, func(value string) bool { return !fits(value) })
	}
	return slices.ContainsFunc(got, fits)
}

// valuesOf returns the values of a condition key; the case of its name does not matter.
func valuesOf(r Request, key string) []string {
	for name, values := range r.Keys {
		if strings.EqualFold(name, key) {
			return values
		}
	}
	return nil
}
