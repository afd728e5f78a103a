package template

import (
	"maps"
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/symbol"
)

// Limits for resolving: references can be circular, and can repeat a large value.
const (
	maxReferenceDepth = 40
	maxWork           = 200_000 // values and parts of texts
)

// work returns the cost of a text, so that repeated concatenation of long texts
// reaches the limit.
func work(text string) int { return len(text) / 16 }

// unresolved marks a value that the template does not define.
func unresolved(name string) string { return symbol.Open(name) }

// resolve replaces CloudFormation's intrinsic functions by their results
// (CloudFormation User Guide, "Intrinsic function reference").
func (f *cfnTemplate) resolve(v any, depth int) any { //nolint:gocyclo // one case for each intrinsic function
	if f.work++; depth > maxReferenceDepth || f.work > maxWork {
		return unresolved("circular")
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
				if name == "Ref" || name == "Condition" && isText(argument) || strings.HasPrefix(name, "Fn::") {
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

// noValue stands for AWS::NoValue: the property does not exist.
type noValue struct{}

func isNoValue(v any) bool {
	_, ok := v.(noValue)
	return ok
}

func (f *cfnTemplate) intrinsic(name string, argument any, depth int) any {
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
		return f.resolveIf(items(argument), depth)
	case "Fn::Select":
		return f.selectOne(items(argument), depth)
	case "Fn::Split":
		return f.split(items(argument), depth)
	case "Fn::FindInMap":
		return f.findInMap(items(argument), depth)
	case "Fn::ImportValue":
		return f.importValue(str(f.resolve(argument, depth)), depth)
	case "Fn::ToJsonString":
		return toJSON(f.resolve(argument, depth))
	case "Condition", "Fn::Equals", "Fn::And", "Fn::Or", "Fn::Not":
		return f.conditionText(map[string]any{name: argument}, depth)
	}
	return unresolved(strings.TrimPrefix(name, "Fn::") + " " + toJSON(argument))
}

// pseudo returns the value of a pseudo parameter.
func (f *cfnTemplate) pseudo(name string) (any, bool) {
	switch name {
	case "AWS::Region":
		return f.region(), true
	case "AWS::AccountId":
		return f.account(), true
	case "AWS::Partition":
		return f.partition, true
	case "AWS::URLSuffix":
		return snapshot.URLSuffix(f.partition), true
	case "AWS::NoValue":
		return noValue{}, true
	case "AWS::StackName":
		return f.stack, true
	case "AWS::StackId":
		return f.arn("cloudformation", "stack/"+f.stack+"/"+symbol.Random("AWS.StackId")), true
	}
	return nil, false
}

func (f *cfnTemplate) ref(name string, depth int) any {
	if v, ok := f.pseudo(name); ok {
		return v
	}
	if p := object(f.parameters[name]); p != nil {
		return f.parameter(name, p)
	}
	switch f.kind(name) {
	case "AWS::SQS::Queue":
		return f.queueURL(f.queueName(name, depth))
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
	return unresolved(name)
}

func (f *cfnTemplate) getAtt(argument any, depth int) any {
	if text, ok := argument.(string); ok {
		resource, attribute, _ := strings.Cut(text, ".")
		argument = []any{resource, attribute}
	}
	parts := items(argument)
	if len(parts) < 2 {
		return unresolved("GetAtt")
	}
	name, attribute := str(parts[0]), str(f.resolve(parts[1], depth))
	if output, ok := strings.CutPrefix(attribute, "Outputs."); ok {
		return f.output(name, output, depth)
	}
	switch f.kind(name) + "." + attribute {
	case "AWS::SQS::Queue.Arn":
		return f.arn("sqs", f.queueName(name, depth))
	case "AWS::SQS::Queue.QueueName":
		return f.queueName(name, depth)
	case "AWS::SQS::Queue.QueueUrl":
		return f.queueURL(f.queueName(name, depth))
	case "AWS::Events::Rule.Arn":
		return f.ruleARN(name, depth)
	case "AWS::KMS::Key.Arn":
		return f.keyARN(name)
	case "AWS::KMS::Key.KeyId":
		return keyID(name)
	}
	return unresolved(name + "." + attribute)
}

// sub replaces ${Name} and ${Name.Attribute} in a text. It does not replace ${!Name}.
func (f *cfnTemplate) sub(argument any, depth int) any {
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
		if !ok || f.work > maxWork {
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

func (f *cfnTemplate) subOne(name string, own map[string]any, depth int) string {
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

func (f *cfnTemplate) join(argument any, depth int) any {
	parts := items(argument)
	if len(parts) < 2 {
		return unresolved("Join")
	}
	list, ok := f.resolve(parts[1], depth).([]any)
	if !ok {
		return unresolved("Join")
	}
	var texts []string
	for _, item := range list {
		texts = append(texts, str(item))
		f.work += work(str(item))
	}
	return strings.Join(texts, str(parts[0]))
}

// resolveIf returns the value of the branch that the condition selects.
func (f *cfnTemplate) resolveIf(parts []any, depth int) any {
	if len(parts) < 3 {
		return unresolved("If")
	}
	if f.condition(str(parts[0]), depth) == symbol.Maybe {
		yes, no := f.resolve(parts[1], depth), f.resolve(parts[2], depth)
		if jsonText(yes) == jsonText(no) {
			return yes
		}
	}
	if f.assume(str(parts[0]), depth) {
		return f.resolve(parts[1], depth)
	}
	return f.resolve(parts[2], depth)
}

func (f *cfnTemplate) selectOne(parts []any, depth int) any {
	if len(parts) < 2 {
		return unresolved("Select")
	}
	list, ok := f.resolve(parts[1], depth).([]any)
	i := number(f.resolve(parts[0], depth), -1)
	if !ok || i < 0 || i >= len(list) {
		return unresolved("Select")
	}
	return list[i]
}

func (f *cfnTemplate) split(parts []any, depth int) any {
	if len(parts) < 2 {
		return unresolved("Split")
	}
	all := []any{}
	for _, part := range strings.Split(str(f.resolve(parts[1], depth)), str(parts[0])) {
		all = append(all, part)
	}
	return all
}

func (f *cfnTemplate) findInMap(parts []any, depth int) any {
	if len(parts) < 3 {
		return unresolved("FindInMap")
	}
	var keys []string
	for _, p := range parts[:3] {
		keys = append(keys, str(f.resolve(p, depth)))
	}
	if v, ok := object(object(f.mappings[keys[0]])[keys[1]])[keys[2]]; ok {
		return v
	}
	if len(parts) > 3 {
		if v, ok := object(parts[3])["DefaultValue"]; ok {
			return f.resolve(v, depth)
		}
	}
	return unresolved("FindInMap " + strings.Join(keys, " "))
}
