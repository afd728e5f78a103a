package template

import (
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/symbol"
)

// parameter returns the value of a parameter. The default of a parameter of an SSM
// type is the name of a value, and not the value (CloudFormation User Guide,
// "CloudFormation-supplied parameter types").
func (f *cfnTemplate) parameter(name string, p map[string]any) any {
	kind := str(p["Type"])
	value, known := f.passed[name]
	if given, ok := f.given.Parameters[name]; ok && f.passed == nil {
		value, known = given, true
	}
	switch allowed := items(p["AllowedValues"]); {
	case known:
	case strings.HasPrefix(kind, "AWS::SSM::Parameter::Value"):
		return unresolved(name)
	case p["Default"] != nil:
		value = p["Default"]
	case len(allowed) == 1:
		value = allowed[0]
	default:
		return unresolved(name + f.nestedScope())
	}
	if strings.HasPrefix(kind, "List<") || kind == "CommaDelimitedList" {
		if _, ok := value.([]any); ok {
			return value
		}
		all := []any{}
		for _, item := range strings.Split(str(value), ",") {
			all = append(all, strings.TrimSpace(item))
		}
		return all
	}
	return str(value)
}

// nestedScope distinguishes the parameters of nested stacks from those of the user.
func (f *cfnTemplate) nestedScope() string {
	if f.passed == nil {
		return ""
	}
	return f.scope()
}

// assume reports whether a condition holds. If that depends on values that the
// template does not define, it assumes so and reports it once.
func (f *cfnTemplate) assume(name string, depth int) bool {
	truth := f.condition(name, depth)
	if truth == symbol.Maybe && !f.unclear[name] {
		if f.unclear == nil {
			f.unclear = map[string]bool{}
		}
		f.unclear[name] = true
		on := jsonText(f.openIn(object(f.root["Conditions"])[name], depth))
		f.out.Unread = append(f.out.Unread, snapshot.Unread{
			From: f.file + ", condition " + name,
			What: "it depends on values that the template does not define, and was assumed to hold: " + strings.Join(symbol.Undefined(on), ", "),
			Fix:  symbol.Supply(on),
		})
	}
	return truth != symbol.No
}

// condition evaluates a condition by name.
func (f *cfnTemplate) condition(name string, depth int) symbol.Truth {
	v, ok := object(f.root["Conditions"])[name]
	if !ok || depth > maxReferenceDepth {
		return symbol.Maybe
	}
	return f.evaluate(v, depth+1)
}

// evaluate evaluates a condition function (CloudFormation User Guide, "Condition
// functions").
func (f *cfnTemplate) evaluate(v any, depth int) symbol.Truth {
	if f.work++; depth > maxReferenceDepth || f.work > maxWork {
		return symbol.Maybe
	}
	for name, argument := range object(v) {
		parts := items(argument)
		switch name {
		case "Condition":
			return f.condition(str(argument), depth+1)
		case "Fn::Equals":
			if len(parts) != 2 {
				return symbol.Maybe
			}
			return symbol.Equal(jsonText(f.resolve(parts[0], depth)), jsonText(f.resolve(parts[1], depth)))
		case "Fn::Not":
			if len(parts) != 1 {
				return symbol.Maybe
			}
			return f.evaluate(parts[0], depth+1).Not()
		case "Fn::And", "Fn::Or":
			result := symbol.Of(name == "Fn::And")
			for _, p := range parts {
				if one := f.evaluate(p, depth+1); name == "Fn::And" {
					result = min(result, one)
				} else {
					result = max(result, one)
				}
			}
			return result
		}
	}
	return symbol.Maybe
}

// conditionText returns a condition as a text, for a condition within a value.
func (f *cfnTemplate) conditionText(v any, depth int) any {
	switch f.evaluate(v, depth) {
	case symbol.Yes:
		return "true"
	case symbol.No:
		return "false"
	default:
		return unresolved("condition " + toJSON(v))
	}
}

// openIn returns the values of the operands of a condition.
func (f *cfnTemplate) openIn(v any, depth int) []any {
	var all []any
	for name, argument := range object(v) {
		for _, p := range items(argument) {
			switch {
			case depth > maxReferenceDepth:
			case name == "Condition":
				all = append(all, f.openIn(object(f.root["Conditions"])[str(p)], depth+1)...)
			case name == "Fn::Equals":
				all = append(all, f.resolve(p, depth))
			default:
				all = append(all, f.openIn(p, depth+1)...)
			}
		}
	}
	return all
}

func isText(v any) bool {
	_, ok := v.(string)
	return ok
}
