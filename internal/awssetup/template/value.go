package template

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// object returns a value's fields, or nil.
func object(v any) map[string]any {
	o, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	return o
}

// items returns a list, or a list with the single value. Terraform's JSON allows a
// single block in place of a list.
func items(v any) []any {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		return v
	default:
		return []any{v}
	}
}

// first returns the first block of a list.
func first(v any) map[string]any {
	if all := items(v); len(all) > 0 {
		return object(all[0])
	}
	return nil
}

// str returns the text of a scalar, or "" for lists and objects.
func str(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}

// jsonText returns a document that is given as text or as a value.
func jsonText(v any) string {
	if v == nil {
		return ""
	}
	if text, ok := v.(string); ok {
		return text
	}
	return toJSON(v)
}

func number(v any, otherwise int) int {
	n, err := strconv.Atoi(str(v))
	if err != nil {
		return otherwise
	}
	return n
}

func seconds(v any, otherwise time.Duration) time.Duration {
	return time.Duration(number(v, int(otherwise/time.Second))) * time.Second
}

func boolean(v any, otherwise bool) bool {
	b, err := strconv.ParseBool(strings.ToLower(str(v)))
	if err != nil {
		return otherwise
	}
	return b
}
