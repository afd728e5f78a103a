package template

import (
	"maps"
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/wiring/snapshot"
)

// Bounds on resolving: references may go round in circles, and a reference may
// stand for a large value many times over.
const (
	deepestReference = 40
	mostWork         = 200_000 // values, and pieces of text
)

// work is how much text is: long texts that are put together again and again count
// for more than short ones.
func work(text string) int { return len(text) / 16 }

// open marks a value that the template leaves open.
func open(name string) string {
	return snapshot.Open + strings.NewReplacer(":", ".", "{", "", "}", "").Replace(name) + "}"
}

// resolve replaces CloudFormation's intrinsic functions by what they come to
// (CloudFormation User Guide, "Intrinsic function reference").
func (f *formation) resolve(v any, depth int) any {
	if f.work++; depth > deepestReference || f.work > mostWork {
		return open("circular")
	}
	switch v := v.(type) {
	case []any:
		all := []any{}
		for _, item := range v {
			if r := f.resolve(item, depth+1); !isNoValue(r) {
				all = append(all, r)
			}
		}
		return all
	case map[string]any:
		if len(v) == 1 {
			for name, argument := range v {
				if name == "Ref" || strings.HasPrefix(name, "Fn::") {
					return f.intrinsic(name, argument, depth+1)
				}
			}
		}
		all := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if r := f.resolve(v[key], depth+1); !isNoValue(r) {
				all[key] = r
			}
		}
		return all
	}
	return v
}

// noValue stands for AWS::NoValue: the property is not there.
type noValue struct{}

func isNoValue(v any) bool {
	_, ok := v.(noValue)
	return ok
}

func (f *formation) intrinsic(name string, argument any, depth int) any {
	switch name {
	case "Ref":
		return f.ref(str(argument), depth)
	case "Fn::GetAtt":
		return f.getAtt(argument, depth)
	case "Fn::Sub":
		return f.sub(argument, depth)
	case "Fn::Join":
		return f.join(argument, depth)
	case "Fn::If":
		return f.choose(items(argument), depth)
	case "Fn::Select":
		return f.selectOne(items(argument), depth)
	case "Fn::Split":
		return f.split(items(argument), depth)
	case "Fn::FindInMap":
		return f.findInMap(items(argument), depth)
	}
	return open(strings.TrimPrefix(name, "Fn::"))
}

// pseudo are the parameters that every template has.
func (f *formation) pseudo(name string) (any, bool) {
	switch name {
	case "AWS::Region":
		return f.region(), true
	case "AWS::AccountId":
		return f.account(), true
	case "AWS::Partition":
		return partition(f.place.Region), true
	case "AWS::URLSuffix":
		return "amazonaws.com", true
	case "AWS::NoValue":
		return noValue{}, true
	case "AWS::StackName":
		return "stack", true
	}
	return nil, false
}

func (f *formation) ref(name string, depth int) any {
	if v, ok := f.pseudo(name); ok {
		return v
	}
	if p := object(f.parameters[name]); p != nil {
		if p["Default"] == nil {
			return open(name)
		}
		if strings.HasPrefix(str(p["Type"]), "List<") || str(p["Type"]) == "CommaDelimitedList" {
			all := []any{}
			for _, item := range strings.Split(str(p["Default"]), ",") {
				all = append(all, strings.TrimSpace(item))
			}
			return all
		}
		return str(p["Default"])
	}
	switch f.kind(name) {
	case "AWS::SQS::Queue":
		return f.queueURL(name, depth)
	case "AWS::Events::Rule":
		return f.ruleName(name, depth)
	case "AWS::AutoScaling::AutoScalingGroup":
		return f.groupName(name, depth)
	case "AWS::KMS::Key":
		return keyID(name)
	case "AWS::KMS::Alias":
		return str(f.property(name, "AliasName", depth))
	case "AWS::Events::EventBus":
		return str(f.property(name, "Name", depth))
	}
	return open(name)
}

func (f *formation) getAtt(argument any, depth int) any {
	if text, ok := argument.(string); ok {
		resource, attribute, _ := strings.Cut(text, ".")
		argument = []any{resource, attribute}
	}
	parts := items(argument)
	if len(parts) < 2 {
		return open("GetAtt")
	}
	name, attribute := str(parts[0]), str(parts[1])
	switch f.kind(name) + "." + attribute {
	case "AWS::SQS::Queue.Arn":
		return f.arn("sqs", f.queueName(name, depth))
	case "AWS::SQS::Queue.QueueName":
		return f.queueName(name, depth)
	case "AWS::SQS::Queue.QueueUrl":
		return f.queueURL(name, depth)
	case "AWS::Events::Rule.Arn":
		return f.ruleARN(name, depth)
	case "AWS::KMS::Key.Arn":
		return f.keyARN(name)
	case "AWS::KMS::Key.KeyId":
		return keyID(name)
	}
	return open(name + "." + attribute)
}

// sub replaces ${Name} and ${Name.Attribute} in a text; ${!Name} stays.
func (f *formation) sub(argument any, depth int) any {
	own := map[string]any{}
	if parts, ok := argument.([]any); ok {
		if len(parts) == 0 {
			return ""
		}
		argument = parts[0]
		if len(parts) > 1 {
			own = object(parts[1])
		}
	}
	var out strings.Builder
	rest := str(argument)
	for {
		before, after, ok := strings.Cut(rest, "${")
		out.WriteString(before)
		if !ok || f.work > mostWork {
			return out.String()
		}
		name, tail, closed := strings.Cut(after, "}")
		if !closed {
			return out.String() + "${" + after
		}
		text := f.subOne(strings.TrimSpace(name), own, depth)
		f.work += work(text)
		out.WriteString(text)
		rest = tail
	}
}

func (f *formation) subOne(name string, own map[string]any, depth int) string {
	if literal, ok := strings.CutPrefix(name, "!"); ok {
		return "${" + literal + "}"
	}
	if v, ok := own[name]; ok {
		return str(f.resolve(v, depth+1))
	}
	if strings.Contains(name, ".") {
		return str(f.getAtt(name, depth+1))
	}
	return str(f.ref(name, depth+1))
}

func (f *formation) join(argument any, depth int) any {
	parts := items(argument)
	if len(parts) < 2 {
		return open("Join")
	}
	list, ok := f.resolve(parts[1], depth).([]any)
	if !ok {
		return open("Join")
	}
	var texts []string
	for _, item := range list {
		texts = append(texts, str(item))
		f.work += work(str(item))
	}
	return strings.Join(texts, str(parts[0]))
}

// choose takes the branch of a condition that is true, and the other where that
// one is nothing.
func (f *formation) choose(parts []any, depth int) any {
	if len(parts) < 3 {
		return open("If")
	}
	if v := f.resolve(parts[1], depth); !isNoValue(v) {
		return v
	}
	return f.resolve(parts[2], depth)
}

func (f *formation) selectOne(parts []any, depth int) any {
	if len(parts) < 2 {
		return open("Select")
	}
	list, ok := f.resolve(parts[1], depth).([]any)
	i := number(f.resolve(parts[0], depth), -1)
	if !ok || i < 0 || i >= len(list) {
		return open("Select")
	}
	return list[i]
}

func (f *formation) split(parts []any, depth int) any {
	if len(parts) < 2 {
		return open("Split")
	}
	all := []any{}
	for _, part := range strings.Split(str(f.resolve(parts[1], depth)), str(parts[0])) {
		all = append(all, part)
	}
	return all
}

func (f *formation) findInMap(parts []any, depth int) any {
	if len(parts) < 3 {
		return open("FindInMap")
	}
	top := object(f.mappings[str(f.resolve(parts[0], depth))])
	if v, ok := object(top[str(f.resolve(parts[1], depth))])[str(f.resolve(parts[2], depth))]; ok {
		return v
	}
	return open("FindInMap")
}
