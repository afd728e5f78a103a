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
	"StringEquals":           func(wanted string) func(string) bool { return func(got string) bool { return got == wanted } },
	"StringEqualsIgnoreCase": foldEquals,
	"StringLike":             func(wanted string) func(string) bool { return like(wanted).MatchString },
	"ArnEquals":              arnLike,
	"ArnLike":                arnLike,
	"Bool":                   foldEquals,
}

func foldEquals(wanted string) func(string) bool {
	return func(got string) bool { return strings.EqualFold(got, wanted) }
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

// condition compiles one operator with one key. The keys of requests to queues have one value, so
// that ForAnyValue changes nothing, and ForAllValues only accepts a missing key.
func condition(operator, key string, values list[any]) (func(Request) bool, error) {
	name, all := strings.CutPrefix(operator, "ForAllValues:")
	name, _ = strings.CutPrefix(name, "ForAnyValue:")
	name, optional := strings.CutSuffix(name, "IfExists")
	positive := strings.Replace(name, "Not", "", 1)
	negated := positive != name
	compare := comparisons[positive]
	if name == "Null" {
		compare = foldEquals
	}
	if compare == nil || name == "NotBool" {
		return nil, fmt.Errorf("this emulator has no condition operator %s", operator)
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
	return func(r Request) bool {
		got, found := keyOf(r, key)
		if name == "Null" {
			got = fmt.Sprint(!found)
		} else if !found {
			return negated || optional || all
		}
		return negated != slices.ContainsFunc(wanted, func(matches func(string) bool) bool { return matches(got) })
	}, nil
}

// keyOf returns a condition key; the case of its name does not matter.
func keyOf(r Request, key string) (string, bool) {
	for name, value := range r.Keys {
		if strings.EqualFold(name, key) {
			return value, true
		}
	}
	return "", false
}
