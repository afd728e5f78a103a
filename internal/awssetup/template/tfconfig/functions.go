package tfconfig

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/symbol"
)

// function evaluates a call. The functions are those of the Terraform language
// (Terraform documentation, "Built-in Functions").
func (s *scope) function(e *hclsyntax.FunctionCallExpr) any {
	arguments := []any{}
	for _, a := range e.Args {
		arguments = append(arguments, s.value(a))
	}
	if e.ExpandFinal && len(arguments) > 0 {
		_, last, ok := elements(arguments[len(arguments)-1])
		if !ok {
			return unknown(e.Name + "(" + name(arguments) + ")")
		}
		arguments = append(arguments[:len(arguments)-1], last...)
	}
	if v, done := s.lazy(e.Name, arguments); done {
		return v
	}
	for _, a := range arguments {
		if f, ok := a.(failed); ok {
			return f
		}
	}
	for _, known := range []map[string]func([]any) (any, bool){collectionFunctions(), textFunctions()} {
		if f := known[e.Name]; f != nil {
			if v, ok := f(arguments); ok {
				return v
			}
			break
		}
	}
	return unknown(e.Name + "(" + name(arguments) + ")")
}

// lazy evaluates the functions that accept failed or undefined arguments, and those that
// read files.
func (s *scope) lazy(function string, arguments []any) (any, bool) { //nolint:gocyclo // one case for each function
	first := any(nil)
	if len(arguments) > 0 {
		first = arguments[0]
	}
	switch function {
	case "try":
		for _, a := range arguments {
			if _, bad := a.(failed); !bad {
				return a, true
			}
		}
		return failed("try"), true
	case "can":
		_, bad := first.(failed)
		return !bad, true
	case "coalesce":
		for _, a := range arguments {
			if t, isText := a.(string); a != nil && (!isText || t != "") {
				return a, true
			}
		}
		return failed("coalesce"), true
	case "nonsensitive", "sensitive", "ephemeralasnull":
		return first, true
	case "file":
		name, _ := text(first)
		data, ok := s.module.readFile(s.module, name)
		if !ok {
			return unknown("file " + name), true
		}
		return data, true
	case "fileexists":
		name, _ := text(first)
		_, ok := s.module.readFile(s.module, name)
		return ok, true
	case "templatefile":
		return s.templateFile(arguments), true
	}
	return nil, false
}

// templateFile evaluates a template in a file with the given values.
func (s *scope) templateFile(arguments []any) any {
	if len(arguments) != 2 {
		return failed("templatefile")
	}
	name, _ := text(arguments[0])
	data, ok := s.module.readFile(s.module, name)
	values, isObject := arguments[1].(map[string]any)
	if !ok || !isObject {
		return unknown("templatefile " + name)
	}
	expression, problems := hclsyntax.ParseTemplate([]byte(data), name, start)
	if problems.HasErrors() {
		return unknown("templatefile " + name)
	}
	inner := &scope{module: s.module, names: values, depth: s.depth + 1}
	return inner.value(expression)
}

// mapText applies a function to the literal parts of a text. Other symbols than account
// and region become other symbols.
func mapText(function, t string, apply func(string) string) string {
	if !symbol.Within(t) {
		return apply(t)
	}
	return symbol.Map(t, apply, func(one string) string {
		if one == symbol.Account || one == symbol.Region {
			return one
		}
		return symbol.Open(function + "(" + strings.Trim(one, "{?~}") + ")")
	})
}

// textsOf returns the texts of a list, or false.
func textsOf(v any) ([]string, bool) {
	_, values, ok := elements(v)
	if !ok {
		return nil, false
	}
	var all []string
	for _, item := range values {
		t, ok := text(item)
		if !ok {
			return nil, false
		}
		all = append(all, t)
	}
	return all, true
}

// literals returns the arguments as texts without symbols, or false.
func literals(arguments []any, n int) ([]string, bool) {
	all, ok := textsOf(arguments)
	return all, ok && len(all) == n && !slices.ContainsFunc(all, symbol.Within)
}

// list returns texts as a value.
func list(all []string) []any {
	out := make([]any, 0, len(all))
	for _, t := range all {
		out = append(out, t)
	}
	return out
}
