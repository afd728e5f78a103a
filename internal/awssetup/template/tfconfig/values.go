package tfconfig

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/symbol"
)

// Values are those of encoding/json with json.Number, and the types below.

// unknown is a value that the configuration does not define. Its text is its name.
type unknown string

// failed is the result of an expression that Terraform would refuse. The functions try
// and can recognize it.
type failed string

// instance is an instance of a resource or of a data source.
type instance struct {
	of  *resource
	key any // index or key; nil without count and for_each
}

// instances are all instances of a resource with count or for_each.
type instances struct{ of *resource }

// calls are all instances of a module call.
type calls struct{ all []*module }

// plain converts a value to the types of encoding/json.
func plain(v any) any {
	switch v := v.(type) {
	case unknown:
		return symbol.Open(string(v))
	case failed:
		return symbol.Open(string(v))
	case instance:
		return symbol.Open(v.address())
	case instances:
		return symbol.Open(v.of.address())
	case *module:
		return symbol.Open(v.path)
	case calls:
		return symbol.Open("module")
	case []any:
		all := make([]any, 0, len(v))
		for _, item := range v {
			all = append(all, plain(item))
		}
		return all
	case map[string]any:
		all := make(map[string]any, len(v))
		for key, item := range v {
			all[key] = plain(item)
		}
		return all
	}
	return v
}

// text returns a value as a part of a string.
func text(v any) (string, bool) {
	switch v := plain(v).(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}

// encode returns a value as JSON.
func encode(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(plain(v)) != nil {
		return ""
	}
	return strings.TrimSpace(b.String())
}

// name returns the name of what a value leaves open, or "".
func name(v any) string {
	if names := symbol.Undefined(encode(v)); len(names) > 0 {
		return names[0]
	}
	return ""
}

// truth returns the truth value of a condition.
func truth(v any) symbol.Truth {
	switch v := v.(type) {
	case bool:
		return symbol.Of(v)
	case string:
		if v == "true" || v == "false" {
			return symbol.Of(v == "true")
		}
	}
	return symbol.Maybe
}

// condition returns a truth value as a value. of is what it depends on.
func condition(t symbol.Truth, of ...any) any {
	if t == symbol.Maybe {
		return unknown("if(" + name(of) + ")")
	}
	return t == symbol.Yes
}

// equal compares two values.
func equal(a, b any) symbol.Truth {
	if a == nil || b == nil {
		return symbol.Of(a == nil && b == nil)
	}
	return symbol.Equal(encode(a), encode(b))
}

// isOpen reports whether a value is undefined as a whole.
func isOpen(v any) bool {
	switch v := v.(type) {
	case unknown, failed:
		return true
	case string:
		return strings.HasPrefix(v, "{?") && strings.IndexByte(v, '}') == len(v)-1
	}
	return false
}

// number returns a number, or false.
func number(v any) (float64, bool) {
	t, ok := text(v)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseFloat(t, 64)
	return n, err == nil
}

func ofNumber(n float64) json.Number { return json.Number(strconv.FormatFloat(n, 'f', -1, 64)) }

// elements returns the elements of a collection with their keys, in Terraform's order.
func elements(v any) (keys []any, values []any, ok bool) {
	switch v := v.(type) {
	case []any:
		for i := range v {
			keys = append(keys, ofNumber(float64(i)))
		}
		return keys, v, true
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			keys, values = append(keys, key), append(values, v[key])
		}
		return keys, values, true
	case instances:
		return elements(v.of.collection())
	case calls:
		return elements(v.collection())
	}
	return nil, nil, false
}
