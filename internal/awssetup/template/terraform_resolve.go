package template

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/symbol"
)

// resolve replaces references in Terraform's ${…} by their values. It does not
// evaluate functions: their results stay undefined.
func (m *module) resolve(v any, depth int) any {
	if m.work++; depth > maxReferenceDepth || m.work > maxWork {
		return unresolved("circular")
	}
	switch v := v.(type) {
	case string:
		if m.evaluated {
			return v
		}
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
	if inner, ok := soleInterpolation(text); ok {
		return m.reference(inner, depth+1)
	}
	var out strings.Builder
	for rest := text; ; {
		before, after, ok := strings.Cut(rest, "${")
		if !ok || m.work > maxWork {
			out.WriteString(rest)
			return out.String()
		}
		if strings.HasSuffix(before, "$") { // $${ is a literal ${
			out.WriteString(before[:len(before)-1] + "${")
			rest = after
			continue
		}
		out.WriteString(before)
		end := closingBrace(after)
		if end < 0 {
			return out.String() + "${" + after
		}
		value := jsonText(m.reference(after[:end], depth+1))
		m.work += work(value)
		out.WriteString(value)
		rest = after[end+1:]
	}
}

// soleInterpolation returns the expression of a text that is a single ${…} and
// nothing else.
func soleInterpolation(text string) (string, bool) {
	inner, ok := strings.CutPrefix(text, "${")
	if !ok {
		return "", false
	}
	end := closingBrace(inner)
	return inner[:max(end, 0)], end >= 0 && end == len(inner)-1
}

// closingBrace returns the index of the brace that closes the one before the text, or
// -1.
func closingBrace(text string) int {
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

// reference returns the value of an expression.
func (m *module) reference(expression string, depth int) any {
	expression = strings.TrimSpace(expression)
	if v, ok := m.values[expression]; ok {
		return m.resolve(v, depth+1)
	}
	if v, ok := m.placeData(withoutIndexes(expression)); ok {
		return v
	}
	if v, ok := m.exactly(expression, depth); ok {
		return v
	}
	plain := strings.NewReplacer("[0]", "", "[count.index]", "", "[*]", "").Replace(expression)
	if strings.ContainsAny(plain, "()[]{}\"? ") {
		name, _, _ := strings.Cut(plain, "(")
		return unresolved(strings.TrimSpace(name))
	}
	for _, address := range []string{plain, expression} {
		resource, attribute := address, "id" // a plan's reference can name only the resource
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
	return unresolved(expression)
}

// exactly returns an attribute of a resource whose complete address, with its module
// and its index, the expression contains.
func (m *module) exactly(expression string, depth int) (any, bool) {
	if m.resources[expression] != nil {
		return m.computed(expression, "id", depth+1), true
	}
	i := strings.LastIndex(expression, ".")
	if i < 0 || m.resources[expression[:i]] == nil {
		return nil, false
	}
	return m.computed(expression[:i], expression[i+1:], depth+1), true
}

// find returns the address of a resource, which can have an index.
func (m *module) find(address string) string {
	for _, a := range []string{address, address + "[0]"} {
		if m.resources[a] != nil {
			return a
		}
	}
	return ""
}

// placeData returns the account, region or partition that a data source provides.
func (m *module) placeData(expression string) (any, bool) {
	_, local := splitModule(expression)
	parts := strings.Split(local, ".")
	if len(parts) != 4 || parts[0] != "data" {
		return nil, false
	}
	switch parts[1] + "." + parts[3] {
	case "aws_caller_identity.account_id", "aws_caller_identity.id":
		return m.account(), true
	case "aws_region.name", "aws_region.id", "aws_region.region":
		return m.region(), true
	case "aws_partition.partition", "aws_partition.id":
		return m.partition, true
	case "aws_partition.dns_suffix":
		return snapshot.URLSuffix(m.partition), true
	}
	return nil, false
}

// computed returns an attribute of a resource, as written or as AWS would generate
// it.
func (m *module) computed(address, attribute string, depth int) any {
	if v, ok := m.resources[address][attribute]; ok && v != nil {
		return m.resolve(v, depth+1)
	}
	name := m.generated(address, depth)
	switch kindOf(address) {
	case "aws_sqs_queue", "data.aws_sqs_queue":
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
	return unresolved(address + "." + attribute)
}

// generated returns the name of a resource. Terraform generates one for resources
// without: a prefix and a random text (Terraform AWS provider, name_prefix).
func (m *module) generated(address string, depth int) string {
	if name := str(m.resolve(m.resources[address]["name"], depth+1)); name != "" {
		return name
	}
	switch kindOf(address) {
	case "aws_sqs_queue", "aws_cloudwatch_event_rule":
		prefix := str(m.resolve(m.resources[address]["name_prefix"], depth+1))
		if m.configured["plan"] != nil && prefix == "" {
			return unresolved(address + ".name") // the name itself is known after the apply
		}
		name := cmp.Or(prefix, "terraform-") + symbol.Random(address)
		if boolean(m.resources[address]["fifo_queue"], false) {
			name += ".fifo"
		}
		return name
	}
	return address[strings.LastIndex(address, ".")+1:]
}

func (m *module) ofQueue(address, attribute, name string) string {
	switch attribute {
	case "name":
		return name
	case "arn":
		return m.regional(address, m.arn("sqs", name))
	case "url", "id":
		return m.regional(address, m.queueURL(name))
	}
	return unresolved(address + "." + attribute)
}

func (m *module) ofRule(address, attribute, name string, depth int) string {
	if attribute != "arn" {
		return name
	}
	if bus := snapshot.BusName(str(m.resolve(m.resources[address]["event_bus_name"], depth+1))); bus != "" && bus != snapshot.DefaultBus {
		return m.regional(address, m.arn("events", "rule/"+bus+"/"+name))
	}
	return m.regional(address, m.arn("events", "rule/"+name))
}

// regional puts the region of a resource into an ARN or a URL, if the resource names one.
func (m *module) regional(address, text string) string {
	if region := str(m.attribute(address, "region")); region != "" {
		return strings.Replace(text, m.region(), region, 1)
	}
	return text
}
