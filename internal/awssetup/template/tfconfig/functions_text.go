package tfconfig

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/hashicorp/hcl/v2"
	yaml "go.yaml.in/yaml/v3"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/symbol"
)

var start = hcl.InitialPos

// simple returns a function of one text.
func simple(function string, apply func(string) string) func([]any) (any, bool) {
	return func(a []any) (any, bool) {
		if len(a) != 1 {
			return nil, false
		}
		t, ok := text(a[0])
		return mapText(function, t, apply), ok
	}
}

// affixed returns a function of a text and a literal.
func affixed(apply func(t, affix string) any) func([]any) (any, bool) {
	return func(a []any) (any, bool) {
		all, ok := literals(a, 2)
		if !ok {
			return nil, false
		}
		return apply(all[0], all[1]), true
	}
}

// textFunctions returns the functions of texts.
func textFunctions() map[string]func([]any) (any, bool) {
	return map[string]func([]any) (any, bool){
		"lower":       simple("lower", strings.ToLower),
		"upper":       simple("upper", strings.ToUpper),
		"trimspace":   simple("trimspace", strings.TrimSpace),
		"trimprefix":  affixed(func(t, affix string) any { return strings.TrimPrefix(t, affix) }),
		"trimsuffix":  affixed(func(t, affix string) any { return strings.TrimSuffix(t, affix) }),
		"trim":        affixed(func(t, affix string) any { return strings.Trim(t, affix) }),
		"startswith":  affixed(func(t, affix string) any { return strings.HasPrefix(t, affix) }),
		"endswith":    affixed(func(t, affix string) any { return strings.HasSuffix(t, affix) }),
		"strcontains": affixed(func(t, affix string) any { return strings.Contains(t, affix) }),
		"split":       affixed(func(by, t string) any { return list(strings.Split(t, by)) }),
		"replace":     replace,
		"substr":      substr,
		"format":      format,
		"join":        join,
		"jsonencode": func(a []any) (any, bool) {
			if len(a) != 1 {
				return nil, false
			}
			if isOpen(a[0]) {
				return nil, false
			}
			return encode(a[0]), true
		},
		"jsondecode": func(a []any) (any, bool) {
			t, ok := one(a)
			if !ok {
				return nil, false
			}
			return decodeJSON(t)
		},
		"yamldecode": func(a []any) (any, bool) {
			t, ok := one(a)
			var v any
			if !ok || yaml.Unmarshal([]byte(t), &v) != nil {
				return nil, false
			}
			encoded, err := json.Marshal(v)
			if err != nil {
				return nil, false
			}
			return decodeJSON(string(encoded))
		},
		"tostring": func(a []any) (any, bool) {
			if len(a) == 1 && a[0] == nil {
				return nil, true
			}
			t, ok := one(a)
			return t, ok
		},
		"basename": simple("basename", func(t string) string { return t[strings.LastIndex(t, "/")+1:] }),
	}
}

// one returns the only argument as a text.
func one(a []any) (string, bool) {
	if len(a) != 1 {
		return "", false
	}
	return text(a[0])
}

func decodeJSON(t string) (any, bool) {
	var v any
	d := json.NewDecoder(strings.NewReader(t))
	d.UseNumber()
	err := d.Decode(&v)
	return v, err == nil
}

// replace replaces a text, or a regular expression in slashes.
func replace(a []any) (any, bool) {
	if len(a) != 3 {
		return nil, false
	}
	in, okIn := text(a[0])
	rest, ok := literals(a[1:], 2)
	if !okIn || !ok {
		return nil, false
	}
	from, to := rest[0], rest[1]
	if len(from) > 1 && strings.HasPrefix(from, "/") && strings.HasSuffix(from, "/") {
		r, err := regexp.Compile(from[1 : len(from)-1])
		if err != nil || symbol.Within(in) {
			return nil, false
		}
		return r.ReplaceAllString(in, to), true
	}
	return mapText("replace", in, func(t string) string { return strings.ReplaceAll(t, from, to) }), true
}

func substr(a []any) (any, bool) {
	all, ok := literals(a, 3)
	if !ok {
		return nil, false
	}
	from, okFrom := number(all[1])
	length, okLength := number(all[2])
	runes := []rune(all[0])
	if !okFrom || !okLength || from < 0 || int(from) > len(runes) {
		return nil, false
	}
	runes = runes[int(from):]
	if length >= 0 && int(length) < len(runes) {
		runes = runes[:int(length)]
	}
	return string(runes), true
}

// verbs are the verbs of format that this package knows.
var verbs = regexp.MustCompile(`%[^a-zA-Z%]*[a-zA-Z%]`)

func format(a []any) (any, bool) {
	if len(a) == 0 {
		return nil, false
	}
	layout, ok := text(a[0])
	rest := a[1:]
	out := verbs.ReplaceAllStringFunc(layout, func(verb string) string {
		if verb == "%%" {
			return "%"
		}
		if len(rest) == 0 {
			ok = false
			return ""
		}
		v := rest[0]
		rest = rest[1:]
		t, isText := text(v)
		switch n, isNumber := number(v); {
		case (verb == "%s" || verb == "%v") && isText:
			return t
		case verb == "%q" && isText:
			return encode(t)
		case verb == "%v":
			return encode(v)
		case strings.HasSuffix(verb, "d") && isNumber:
			return fmt.Sprintf(verb, int(n))
		}
		ok = false
		return ""
	})
	return out, ok && len(rest) == 0
}

func join(a []any) (any, bool) {
	if len(a) < 2 {
		return nil, false
	}
	by, ok := text(a[0])
	var all []string
	for _, v := range a[1:] {
		texts, okList := textsOf(v)
		ok = ok && okList
		all = append(all, texts...)
	}
	return strings.Join(all, by), ok
}
