package tfconfig

import (
	"encoding/json"
	"maps"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/symbol"
)

// scope is where an expression is evaluated.
type scope struct {
	module *module
	key    any            // key of the instance
	names  map[string]any // iterators, each and count
	item   any            // the element of a splat expression
	depth  int
}

// with returns a scope with another name.
func (s *scope) with(name string, v any) *scope {
	inner := *s
	inner.names = maps.Clone(s.names)
	if inner.names == nil {
		inner.names = map[string]any{}
	}
	inner.names[name] = v
	return &inner
}

// instance returns the scope of an instance of a resource or a call.
func (s *scope) instance(key any, b *hclsyntax.Block) *scope {
	inner := s
	if b != nil && b.Body.Attributes["for_each"] != nil {
		value := key
		each := s.module.attributeOf(b, "for_each")
		if _, isSet := each.([]any); !isSet && !isOpen(each) {
			value = s.step(each, key)
		}
		inner = s.with("each", map[string]any{"key": key, "value": value})
	} else if b != nil && b.Body.Attributes["count"] != nil {
		inner = s.with("count", map[string]any{"index": key})
	}
	out := *inner
	out.key = key
	return &out
}

// value evaluates an expression.
func (s *scope) value(expression hclsyntax.Expression) any { //nolint:gocyclo // one case for each kind of expression
	s.module.work++
	if s.depth > maxDepth || s.module.work > maxWork {
		return unknown("circular")
	}
	inner := *s
	inner.depth++
	s = &inner
	switch e := expression.(type) {
	case *hclsyntax.LiteralValueExpr:
		return literal(e)
	case *hclsyntax.ParenthesesExpr:
		return s.value(e.Expression)
	case *hclsyntax.TemplateWrapExpr:
		return s.value(e.Wrapped)
	case *hclsyntax.TemplateExpr:
		return s.template(e.Parts)
	case *hclsyntax.TemplateJoinExpr:
		_, parts, _ := elements(s.value(e.Tuple))
		return concat(parts)
	case *hclsyntax.ScopeTraversalExpr:
		root, rest := s.root(e.Traversal)
		return s.traverse(root, rest)
	case *hclsyntax.RelativeTraversalExpr:
		return s.traverse(s.value(e.Source), e.Traversal)
	case *hclsyntax.IndexExpr:
		return s.step(s.value(e.Collection), s.value(e.Key))
	case *hclsyntax.SplatExpr:
		return s.splat(e)
	case *hclsyntax.AnonSymbolExpr:
		return s.item
	case *hclsyntax.TupleConsExpr:
		all := []any{}
		for _, item := range e.Exprs {
			all = append(all, s.value(item))
		}
		return all
	case *hclsyntax.ObjectConsExpr:
		return s.object(e)
	case *hclsyntax.ObjectConsKeyExpr:
		if keyword := hcl.ExprAsKeyword(e.Wrapped); keyword != "" && !e.ForceNonLiteral {
			return keyword
		}
		return s.value(e.Wrapped)
	case *hclsyntax.ConditionalExpr:
		return s.conditional(e)
	case *hclsyntax.BinaryOpExpr:
		return binary(e.Op, s.value(e.LHS), s.value(e.RHS))
	case *hclsyntax.UnaryOpExpr:
		return unary(e.Op, s.value(e.Val))
	case *hclsyntax.ForExpr:
		return s.loop(e)
	case *hclsyntax.FunctionCallExpr:
		return s.function(e)
	}
	return unknown("expression")
}

func literal(e *hclsyntax.LiteralValueExpr) any {
	switch {
	case e.Val.IsNull():
		return nil
	case e.Val.Type().FriendlyName() == "string":
		return e.Val.AsString()
	case e.Val.Type().FriendlyName() == "number":
		return json.Number(e.Val.AsBigFloat().Text('f', -1))
	case e.Val.Type().FriendlyName() == "bool":
		return e.Val.True()
	}
	return unknown("literal")
}

// template joins the parts of a template. A template of one part is a string too.
func (s *scope) template(parts []hclsyntax.Expression) any {
	var all []any
	for _, part := range parts {
		all = append(all, s.value(part))
	}
	return concat(all)
}

func concat(parts []any) any {
	out := ""
	for _, part := range parts {
		t, ok := text(part)
		if f, bad := part.(failed); bad {
			return f
		}
		if !ok {
			return failed("template")
		}
		out += t
	}
	return out
}

func (s *scope) object(e *hclsyntax.ObjectConsExpr) any {
	all := map[string]any{}
	for _, item := range e.Items {
		key, ok := text(s.value(item.KeyExpr))
		if !ok {
			return unknown("key")
		}
		all[key] = s.value(item.ValueExpr)
	}
	return all
}

func (s *scope) conditional(e *hclsyntax.ConditionalExpr) any {
	on := s.value(e.Condition)
	switch truth(on) {
	case symbol.Yes:
		return s.value(e.TrueResult)
	case symbol.No:
		return s.value(e.FalseResult)
	}
	yes, no := s.value(e.TrueResult), s.value(e.FalseResult)
	if encode(yes) == encode(no) {
		return yes
	}
	return unknown("if(" + name(on) + ")")
}

func (s *scope) splat(e *hclsyntax.SplatExpr) any {
	source := s.value(e.Source)
	if source == nil {
		return []any{}
	}
	if isOpen(source) {
		return source
	}
	_, values, ok := elements(source)
	if _, isMap := source.(map[string]any); !ok || isMap {
		values = []any{source} // a single value counts as a list of one
	}
	all := []any{}
	for _, v := range values {
		inner := *s
		inner.item = v
		all = append(all, inner.value(e.Each))
	}
	return all
}

// loop evaluates a for expression.
func (s *scope) loop(e *hclsyntax.ForExpr) any {
	source := s.value(e.CollExpr)
	keys, values, ok := elements(source)
	if !ok {
		return unknown("for(" + name(source) + ")")
	}
	list, object := []any{}, map[string]any{}
	for i, v := range values {
		inner := s.with(e.ValVar, v)
		if e.KeyVar != "" {
			inner = inner.with(e.KeyVar, keys[i])
		}
		if e.CondExpr != nil {
			on := inner.value(e.CondExpr)
			if t := truth(on); t == symbol.No {
				continue
			} else if t == symbol.Maybe {
				return unknown("for(" + name(on) + ")")
			}
		}
		value := inner.value(e.ValExpr)
		if e.KeyExpr == nil {
			list = append(list, value)
			continue
		}
		key, ok := text(inner.value(e.KeyExpr))
		if !ok {
			return unknown("for")
		}
		if group, _ := object[key].([]any); e.Group { // nil at first
			object[key] = append(group, value)
		} else {
			object[key] = value
		}
	}
	if e.KeyExpr == nil {
		return list
	}
	return object
}
