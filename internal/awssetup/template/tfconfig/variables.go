package tfconfig

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// local evaluates a local value.
func (m *module) local(name string) any {
	if v, ok := m.locals[name]; ok {
		return v
	}
	expression := m.dir.locals[name]
	if expression == nil || m.running["local."+name] {
		return unknown("local." + name)
	}
	m.running["local."+name] = true
	m.locals[name] = m.scope().value(expression)
	return m.locals[name]
}

// output evaluates an output.
func (m *module) output(name string) any {
	b := m.dir.outputs[name]
	if b == nil || b.Body.Attributes["value"] == nil {
		return failed(m.path + "." + name)
	}
	return m.attributeOf(b, "value")
}

// variable evaluates a variable.
func (m *module) variable(name string) any {
	if v, ok := m.locals["var."+name]; ok {
		return v
	}
	b := m.dir.variables[name]
	if m.running["var."+name] {
		return unknown("var." + name)
	}
	m.running["var."+name] = true
	v := m.variableValue(name, b)
	if b != nil && b.Body.Attributes["type"] != nil && v != nil {
		v = conform(v, b.Body.Attributes["type"].Expr, m.scope())
	}
	m.locals["var."+name] = v
	return v
}

func (m *module) variableValue(name string, b *hclsyntax.Block) any {
	if m.call != nil {
		if a := m.arguments.Body.Attributes[name]; a != nil {
			return m.call.value(a.Expr)
		}
	} else if given, ok := m.Variables[name]; ok {
		return parseVariable(given, b)
	} else {
		for _, values := range slices.Backward(m.dir.values) {
			if a := values[name]; a != nil {
				return m.scope().value(a.Expr)
			}
		}
	}
	if b != nil && b.Body.Attributes["default"] != nil {
		return m.attributeOf(b, "default")
	}
	return unknown(strings.TrimPrefix(m.path+".var."+name, "."))
}

// parseVariable reads a value of the command line: text for a string, and otherwise an
// expression.
func parseVariable(given string, b *hclsyntax.Block) any {
	if b == nil || b.Body.Attributes["type"] == nil || hcl.ExprAsKeyword(b.Body.Attributes["type"].Expr) == "string" {
		return given
	}
	expression, problems := hclsyntax.ParseExpression([]byte(given), "", hcl.InitialPos)
	if problems.HasErrors() {
		return given
	}
	return (&scope{module: &module{evaluator: &evaluator{}, dir: &directory{}}}).value(expression)
}
