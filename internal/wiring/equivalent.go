package wiring

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// samePattern reports whether two event patterns mean the same: keys and
// alternatives have no order. What cannot be read is only like itself.
func samePattern(a, b string) bool {
	return a == b || sameJSON(a, b, ordered)
}

// samePolicy reports whether two policy documents of IAM's or SQS' mean the same.
// AWS stores them as they came, and consoles and templates write them in their own
// ways: a list of one is a plain value, lists and statements have no order,
// statement ids mean nothing, and the case of actions and condition keys neither
// (IAM User Guide, "IAM JSON policy elements reference").
func samePolicy(a, b string) bool {
	return a == b || sameJSON(a, b, plain)
}

// sameJSON compares two documents after making both canonical.
func sameJSON(a, b string, canonical func(any) any) bool {
	left, err := decode(a)
	if err != nil {
		return false
	}
	right, err := decode(b)
	if err != nil {
		return false
	}
	return text(canonical(left)) == text(canonical(right))
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
		return nil, fmt.Errorf("reading JSON: text after its end")
	}
	return v, nil
}

// ordered puts arrays into an order, but for those of a numeric comparison, whose
// order has a meaning.
func ordered(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			if key == "numeric" {
				out[key] = value
				continue
			}
			out[key] = ordered(value)
		}
		return out
	case []any:
		return sorted(v, ordered)
	}
	return v
}

// plain makes what a policy may write in several ways be written in one.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			switch key {
			case "Sid", "Id":
				continue
			case "Action", "NotAction", "Condition":
				value = lower(value)
			case "Principal", "NotPrincipal":
				if value == "*" {
					value = map[string]any{"AWS": "*"}
				}
			}
			out[key] = plain(list(value))
		}
		return out
	case []any:
		return sorted(v, plain)
	case nil:
		return nil
	}
	return fmt.Sprint(v) // true and "true", 30 and "30" are the same to IAM and SQS
}

// list makes a list of a single value. Objects below a statement stay what they
// are: there is only one of each.
func list(v any) any {
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

// lower makes actions lower-case and, in a condition, the operators and keys; the
// values that keys are compared with stay.
func lower(v any) any {
	switch v := v.(type) {
	case string:
		return strings.ToLower(v)
	case []any:
		out := make([]any, 0, len(v))
		for _, one := range v {
			out = append(out, lower(one))
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			if inner, ok := value.(map[string]any); ok {
				value = lower(inner)
			}
			out[strings.ToLower(key)] = value
		}
		return out
	}
	return v
}

func sorted(items []any, canonical func(any) any) []any {
	out := make([]any, 0, len(items))
	for _, item := range items {
		out = append(out, canonical(item))
	}
	slices.SortFunc(out, func(a, b any) int { return strings.Compare(text(a), text(b)) })
	return slices.CompactFunc(out, func(a, b any) bool { return text(a) == text(b) })
}

// text is a decoded value as JSON again, its keys sorted.
func text(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Sprintf("%#v", v) // cannot be: it was decoded
	}
	return strings.TrimSpace(b.String())
}
