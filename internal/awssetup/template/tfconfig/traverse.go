package tfconfig

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// root returns the value to which the first names of a reference lead, and the rest.
func (s *scope) root(t hcl.Traversal) (any, hcl.Traversal) {
	m, first, second := s.module, t.RootName(), ""
	if len(t) > 1 {
		second = stepName(t[1])
	}
	if v, ok := s.names[first]; ok {
		return v, t[1:]
	}
	switch first {
	case "var":
		return m.variable(second), t[min(2, len(t)):]
	case "local":
		return m.local(second), t[min(2, len(t)):]
	case "module":
		return m.child(second), t[min(2, len(t)):]
	case "path":
		return map[string]any{"module": m.dir.path, "root": m.root, "cwd": m.root}, t[1:]
	case "each", "count", "self", "terraform":
		return unknown(first), t[1:]
	case "data":
		if len(t) < 3 {
			return failed("data"), nil
		}
		return m.reference("data."+second+"."+stepName(t[2]), t[3:])
	}
	if len(t) < 2 {
		return failed(first), nil
	}
	return m.reference(first+"."+second, t[2:])
}

// reference returns a resource or a data source of the module.
func (m *module) reference(address string, rest hcl.Traversal) (any, hcl.Traversal) {
	if m.dir.resources[address] == nil {
		return failed(m.prefixed(address)), rest
	}
	return m.resource(address).value(), rest
}

// stepName returns the name of a step of a reference.
func stepName(t hcl.Traverser) string {
	switch t := t.(type) {
	case hcl.TraverseAttr:
		return t.Name
	case hcl.TraverseRoot:
		return t.Name
	}
	return ""
}

// traverse follows the steps of a reference.
func (s *scope) traverse(v any, rest hcl.Traversal) any {
	for _, t := range rest {
		switch t := t.(type) {
		case hcl.TraverseAttr:
			v = s.step(v, t.Name)
		case hcl.TraverseIndex:
			if t.Key.Type().FriendlyName() == "string" {
				v = s.step(v, t.Key.AsString())
			} else {
				v = s.step(v, json.Number(t.Key.AsBigFloat().Text('f', -1)))
			}
		default:
			return unknown("reference")
		}
	}
	return v
}

// step returns an attribute or an element of a value.
func (s *scope) step(v, key any) any { //nolint:gocyclo // one case for each kind of value
	name, ok := text(key)
	if !ok || isOpen(key) {
		return unknown("index(" + encode(key) + ")")
	}
	switch v := v.(type) {
	case unknown:
		return unknown(string(v) + "." + name)
	case instance:
		if i, err := strconv.Atoi(name); err == nil && i == 0 && v.of.single {
			return v // x[0] of a resource that lost its count
		}
		return v.attribute(name)
	case *module:
		return v.output(name)
	case instances:
		return s.step(v.of.collection(), key)
	case calls:
		return s.step(v.collection(), key)
	case map[string]any:
		if inner, ok := v[name]; ok {
			return inner
		}
		return failed(name)
	case []any:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(v) {
			return v[i]
		}
		return failed("index " + name)
	case string:
		if isOpen(v) {
			return unknown(strings.Trim(v, "{?}") + "." + name)
		}
	case failed:
		return v
	}
	return failed(name)
}
