package awssetup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// samePattern reports whether two event patterns are equivalent: the order of keys
// and alternatives does not matter. An unreadable pattern is equal only to the same
// text.
func samePattern(a, b string) bool {
	return a == b || sameJSON(a, b, canonicalPattern)
}

// samePolicy reports whether two IAM or SQS policy documents are equivalent. AWS
// stores them as written, and tools write them differently. A list of one equals a
// plain value, lists and statements have no order, and statement ids do not matter.
// Actions and condition keys are not case-sensitive (IAM User Guide, "IAM JSON policy
// elements reference").
func samePolicy(a, b string) bool {
	return a == b || sameJSON(a, b, canonicalPolicy)
}

// sameJSON compares two documents in canonical form.
func sameJSON(a, b string, canonical func(any) any) bool {
	left, err := decode(a)
	if err != nil {
		return false
	}
	right, err := decode(b)
	if err != nil {
		return false
	}
	return encodeCanonical(canonical(left)) == encodeCanonical(canonical(right))
}

// decode reads exactly one JSON value.
func decode(document string) (any, error) {
	d := json.NewDecoder(strings.NewReader(document))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("reading JSON: %w", err)
	}
	if d.More() {
		return nil, errors.New("reading JSON: text after the value")
	}
	return v, nil
}

// canonicalPattern sorts arrays, except those of a numeric comparison, whose order
// matters.
func canonicalPattern(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			if key == "numeric" {
				out[key] = value
				continue
			}
			out[key] = canonicalPattern(value)
		}
		return out
	case []any:
		return sortCanonical(v, canonicalPattern)
	}
	return v
}

// canonicalPolicy replaces equivalent notations of a policy by one.
func canonicalPolicy(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			switch key {
			case "Sid", "Id":
				continue
			case "Action", "NotAction", "Condition":
				value = lowerKeys(value)
			case "Principal", "NotPrincipal":
				if value == "*" {
					value = map[string]any{"AWS": "*"}
				}
			}
			out[key] = canonicalPolicy(asList(value))
		}
		return out
	case []any:
		return sortCanonical(v, canonicalPolicy)
	case nil:
		return nil
	}
	return fmt.Sprint(v) // IAM and SQS treat true and "true", 30 and "30" the same
}

// asList wraps a single value in a list. It does not wrap objects inside a statement,
// which occur only once.
func asList(v any) any {
	switch v := v.(type) {
	case []any:
		return v
	case map[string]any:
		if _, isStatement := v["Effect"]; !isStatement {
			return v
		}
	}
	return []any{v}
}

// lowerKeys converts actions to lower case and, in a condition, the operators and
// keys. It does not change the values of conditions.
func lowerKeys(v any) any {
	switch v := v.(type) {
	case string:
		return strings.ToLower(v)
	case []any:
		out := make([]any, 0, len(v))
		for _, one := range v {
			out = append(out, lowerKeys(one))
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			if inner, ok := value.(map[string]any); ok {
				value = lowerKeys(inner)
			}
			out[strings.ToLower(key)] = value
		}
		return out
	}
	return v
}

func sortCanonical(items []any, canonical func(any) any) []any {
	out := make([]any, 0, len(items))
	for _, item := range items {
		out = append(out, canonical(item))
	}
	slices.SortFunc(out, func(a, b any) int { return strings.Compare(encodeCanonical(a), encodeCanonical(b)) })
	return slices.CompactFunc(out, func(a, b any) bool { return encodeCanonical(a) == encodeCanonical(b) })
}

// encodeCanonical encodes a decoded value as JSON with sorted keys.
func encodeCanonical(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Sprintf("%#v", v) // unreachable: v was decoded from JSON
	}
	return strings.TrimSpace(b.String())
}
