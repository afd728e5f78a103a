package template

import (
	"maps"
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/wiring/snapshot"
)

// resolve replaces references in Terraform's ${…} by what they come to. Functions
// are not worked out: their results are left open.
func (m *module) resolve(v any, depth int) any {
	if m.work++; depth > deepestReference || m.work > mostWork {
		return open("circular")
	}
	switch v := v.(type) {
	case string:
		return m.interpolate(v, depth)
	case []any:
		all := []any{}
		for _, item := range v {
			all = append(all, m.resolve(item, depth+1))
		}
		return all
	case map[string]any:
		all := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			all[key] = m.resolve(v[key], depth+1)
		}
		return all
	}
	return v
}

func (m *module) interpolate(text string, depth int) any {
	if inner, ok := whole(text); ok {
		return m.reference(inner, depth+1)
	}
	var out strings.Builder
	for rest := text; ; {
		before, after, ok := strings.Cut(rest, "${")
		if !ok || m.work > mostWork {
			out.WriteString(rest)
			return out.String()
		}
		if strings.HasSuffix(before, "$") { // $${ is a literal ${
			out.WriteString(before[:len(before)-1] + "${")
			rest = after
			continue
		}
		out.WriteString(before)
		end := closing(after)
		if end < 0 {
			return out.String() + "${" + after
		}
		value := jsonText(m.reference(after[:end], depth+1))
		m.work += work(value)
		out.WriteString(value)
		rest = after[end+1:]
	}
}

// whole returns what is inside of a text that is one ${…} and nothing else.
func whole(text string) (string, bool) {
	inner, ok := strings.CutPrefix(text, "${")
	if !ok {
		return "", false
	}
	end := closing(inner)
	return inner[:max(end, 0)], end >= 0 && end == len(inner)-1
}

// closing is where the brace closes that was opened before the text, or -1.
func closing(text string) int {
	depth := 0
	for i, r := range text {
		switch r {
		case '{':
			depth++
		case '}':
			if depth == 0 {
				return i
			}
			depth--
		}
	}
	return -1
}

// reference is what an expression comes to.
func (m *module) reference(expression string, depth int) any {
	expression = strings.TrimSpace(expression)
	if v, ok := m.values[expression]; ok {
		return m.resolve(v, depth+1)
	}
	plain := strings.NewReplacer("[0]", "", "[count.index]", "", "[*]", "").Replace(expression)
	if strings.ContainsAny(plain, "()[]{}\"? ") {
		name, _, _ := strings.Cut(plain, "(")
		return open(strings.TrimSpace(name))
	}
	if v, ok := m.placeOf(plain); ok {
		return v
	}
	for _, address := range []string{plain, expression} {
		resource, attribute := address, "id" // a plan's reference may name the resource alone
		if m.find(address) == "" {
			i := strings.LastIndex(address, ".")
			if i < 0 {
				continue
			}
			resource, attribute = address[:i], address[i+1:]
		}
		if found := m.find(resource); found != "" {
			return m.computed(found, attribute, depth+1)
		}
	}
	return open(expression)
}

// find is the address of a resource, which may be counted.
func (m *module) find(address string) string {
	for _, a := range []string{address, address + "[0]"} {
		if m.resources[a] != nil {
			return a
		}
	}
	return ""
}

// placeOf is what data sources say of the account and the region.
func (m *module) placeOf(expression string) (any, bool) {
	parts := strings.Split(expression, ".")
	if len(parts) != 4 || parts[0] != "data" {
		return nil, false
	}
	switch parts[1] + "." + parts[3] {
	case "aws_caller_identity.account_id", "aws_caller_identity.id":
		return m.account(), true
	case "aws_region.name", "aws_region.id", "aws_region.region":
		return m.region(), true
	case "aws_partition.partition", "aws_partition.id":
		return partition(m.place.Region), true
	case "aws_partition.dns_suffix":
		return "amazonaws.com", true
	}
	return nil, false
}

// computed is an attribute of a resource: as written, or as AWS would make it.
func (m *module) computed(address, attribute string, depth int) any {
	if v, ok := m.resources[address][attribute]; ok && v != nil {
		return m.resolve(v, depth+1)
	}
	name := str(m.resolve(m.resources[address]["name"], depth+1))
	if name == "" {
		name = address[strings.LastIndex(address, ".")+1:]
	}
	switch kindOf(address) {
	case "aws_sqs_queue":
		return m.ofQueue(address, attribute, name)
	case "aws_cloudwatch_event_rule":
		return m.ofRule(address, attribute, name, depth)
	case "aws_kms_key":
		if attribute == "arn" {
			return m.arn("kms", "key/"+name)
		}
		return keyID(name)
	case "aws_cloudwatch_event_bus":
		return name
	case "aws_autoscaling_group":
		if attribute == "name" || attribute == "id" {
			return name
		}
	case "data.aws_iam_policy_document":
		return m.policyDocument(address, depth+1)
	}
	return open(address + "." + attribute)
}

func (m *module) ofQueue(address, attribute, name string) string {
	switch attribute {
	case "name":
		return name
	case "arn":
		return m.arn("sqs", name)
	case "url", "id":
		return "https://sqs." + m.region() + ".amazonaws.com/" + m.account() + "/" + name
	}
	return open(address + "." + attribute)
}

func (m *module) ofRule(address, attribute, name string, depth int) string {
	if attribute != "arn" {
		return name
	}
	if bus := snapshot.BusName(str(m.resolve(m.resources[address]["event_bus_name"], depth+1))); bus != "" && bus != snapshot.DefaultBus {
		return m.arn("events", "rule/"+bus+"/"+name)
	}
	return m.arn("events", "rule/"+name)
}

// policyDocument is the JSON that the data source aws_iam_policy_document makes
// (its documentation in Terraform's AWS provider).
func (m *module) policyDocument(address string, depth int) string {
	var statements []any
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
		conditions := map[string]any{}
		for _, c := range items(from["condition"]) {
			test := str(object(c)["test"])
			keys := object(conditions[test])
			if keys == nil {
				keys = map[string]any{}
			}
			keys[str(object(c)["variable"])] = object(c)["values"]
			conditions[test] = keys
		}
		if len(conditions) > 0 {
			to["Condition"] = conditions
		}
		statements = append(statements, to)
	}
	return toJSON(map[string]any{"Version": "2012-10-17", "Statement": statements})
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
