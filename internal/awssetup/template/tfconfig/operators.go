package tfconfig

import (
	"encoding/json"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/symbol"
)

// binary evaluates an operator with two operands.
func binary(op *hclsyntax.Operation, a, b any) any {
	switch op {
	case hclsyntax.OpEqual:
		return condition(equal(a, b), a, b)
	case hclsyntax.OpNotEqual:
		return condition(equal(a, b).Not(), a, b)
	case hclsyntax.OpLogicalAnd:
		return condition(min(truth(a), truth(b)), a, b)
	case hclsyntax.OpLogicalOr:
		return condition(max(truth(a), truth(b)), a, b)
	}
	x, okX := number(a)
	y, okY := number(b)
	if !okX || !okY {
		return unknown("number(" + name([]any{a, b}) + ")")
	}
	return arithmetic(op, x, y)
}

func arithmetic(op *hclsyntax.Operation, x, y float64) any {
	switch op {
	case hclsyntax.OpGreaterThan:
		return x > y
	case hclsyntax.OpGreaterThanOrEqual:
		return x >= y
	case hclsyntax.OpLessThan:
		return x < y
	case hclsyntax.OpLessThanOrEqual:
		return x <= y
	case hclsyntax.OpAdd:
		return ofNumber(x + y)
	case hclsyntax.OpSubtract:
		return ofNumber(x - y)
	case hclsyntax.OpMultiply:
		return ofNumber(x * y)
	case hclsyntax.OpDivide:
		if y != 0 {
			return ofNumber(x / y)
		}
	case hclsyntax.OpModulo:
		if int(y) != 0 {
			return ofNumber(float64(int(x) % int(y)))
		}
	}
	return failed("arithmetic")
}

func unary(op *hclsyntax.Operation, v any) any {
	if op == hclsyntax.OpLogicalNot {
		return condition(truth(v).Not(), v)
	}
	if n, ok := number(v); ok {
		return ofNumber(-n)
	}
	return unknown("number(" + name(v) + ")")
}

// conform converts a value to a type constraint: it adds the optional attributes of
// objects, and converts text to numbers and booleans.
func conform(v any, kind hclsyntax.Expression, s *scope) any {
	call, ok := kind.(*hclsyntax.FunctionCallExpr)
	if !ok || len(call.Args) == 0 {
		return primitive(v, hcl.ExprAsKeyword(kind))
	}
	switch v := v.(type) {
	case []any:
		if slices.Contains([]string{"list", "set"}, call.Name) {
			all := []any{}
			for _, item := range v {
				all = append(all, conform(item, call.Args[0], s))
			}
			return all
		}
	case map[string]any:
		if call.Name == "map" {
			all := map[string]any{}
			for key, item := range v {
				all[key] = conform(item, call.Args[0], s)
			}
			return all
		}
		if fields, ok := call.Args[0].(*hclsyntax.ObjectConsExpr); ok && call.Name == "object" {
			return s.conformObject(v, fields)
		}
	}
	return v
}

func (s *scope) conformObject(v map[string]any, fields *hclsyntax.ObjectConsExpr) map[string]any {
	all := map[string]any{}
	for _, field := range fields.Items {
		key, ok := text(s.value(field.KeyExpr))
		if !ok {
			continue
		}
		kind, value := field.ValueExpr, v[key]
		if optional, ok := kind.(*hclsyntax.FunctionCallExpr); ok && optional.Name == "optional" && len(optional.Args) > 0 {
			kind = optional.Args[0]
			if value == nil && len(optional.Args) > 1 {
				value = s.value(optional.Args[1])
			}
		}
		if all[key] = value; value != nil {
			all[key] = conform(value, kind, s)
		}
	}
	return all
}

func primitive(v any, kind string) any {
	t, ok := text(v)
	if !ok || symbol.Within(t) {
		return v
	}
	switch kind {
	case "string":
		return t
	case "number":
		if _, ok := number(t); ok {
			return json.Number(t)
		}
	case "bool":
		if t == "true" || t == "false" {
			return t == "true"
		}
	}
	return v
}
