package template

import (
	"slices"
)

// policyDocument returns the JSON of the data source aws_iam_policy_document
// (Terraform AWS provider documentation).
func (m *module) policyDocument(address string, depth int) string {
	statements, ok := m.inherited(address, "source_policy_documents")
	overriding, okToo := m.inherited(address, "override_policy_documents")
	if !ok || !okToo || first(m.resources[address]["dynamic"])["statement"] != nil {
		return unresolved(address + ".json")
	}
	for _, s := range items(m.resolve(m.resources[address]["statement"], depth)) {
		from := object(s)
		to := map[string]any{"Effect": "Allow"}
		for _, pair := range [][2]string{{"effect", "Effect"}, {"actions", "Action"}, {"not_actions", "NotAction"},
			{"resources", "Resource"}, {"not_resources", "NotResource"}, {"sid", "Sid"}} {
			if v := from[pair[0]]; v != nil {
				to[pair[1]] = v
			}
		}
		if p := principals(from["principals"]); p != nil {
			to["Principal"] = p
		}
		if p := principals(from["not_principals"]); p != nil {
			to["NotPrincipal"] = p
		}
		if conditions := conditionsOf(from["condition"]); len(conditions) > 0 {
			to["Condition"] = conditions
		}
		statements = append(statements, to)
	}
	for _, o := range overriding {
		sid := str(object(o)["Sid"])
		statements = slices.DeleteFunc(statements, func(s any) bool { return sid != "" && str(object(s)["Sid"]) == sid })
		statements = append(statements, o)
	}
	return toJSON(map[string]any{"Version": "2012-10-17", "Statement": statements})
}

// conditionsOf returns the conditions of a statement.
func conditionsOf(v any) map[string]any {
	all := map[string]any{}
	for _, c := range items(v) {
		test := str(object(c)["test"])
		keys := object(all[test])
		if keys == nil {
			keys = map[string]any{}
		}
		keys[str(object(c)["variable"])] = object(c)["values"]
		all[test] = keys
	}
	return all
}

// inherited returns the statements of other policies that a document includes. It
// returns false if they are not in the files.
func (m *module) inherited(address, attribute string) ([]any, bool) {
	var all []any
	for _, text := range items(m.attribute(address, attribute)) {
		documents, err := decode([]byte(str(text)))
		if err != nil || len(documents) != 1 || object(documents[0])["Statement"] == nil {
			return nil, false
		}
		all = append(all, items(object(documents[0])["Statement"])...)
	}
	return all, true
}

func principals(v any) any {
	all := map[string]any{}
	for _, p := range items(v) {
		kind := str(object(p)["type"])
		if kind == "*" {
			return "*"
		}
		all[kind] = object(p)["identifiers"]
	}
	if len(all) == 0 {
		return nil
	}
	return all
}
