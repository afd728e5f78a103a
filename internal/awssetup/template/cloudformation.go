package template

import (
	"maps"
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/symbol"
)

// cfnTemplate is a CloudFormation template.
type cfnTemplate struct {
	*builder

	file                            string
	root                            map[string]any
	resources, parameters, mappings map[string]any
	// passed are the parameters that a parent stack passes, resolved.
	passed map[string]any
	// stack is the name of the stack.
	stack string
	// unclear are the conditions that were reported as not understood.
	unclear map[string]bool
	work    int // number of resolved values, see resolve
}

// read reads the resources sorted by name, so that the same template always yields the
// same snapshot.
func (f *cfnTemplate) read() {
	for _, name := range slices.Sorted(maps.Keys(f.resources)) {
		if strings.HasPrefix(name, "Fn::ForEach") {
			f.reportUnread(f.file+", "+name, "the doctor does not expand Fn::ForEach: give the processed template (aws cloudformation get-template --template-stage Processed)")
			continue
		}
		if f.exists(name) {
			f.resource(name)
		}
	}
}

func (f *cfnTemplate) kind(name string) string { return str(object(f.resources[name])["Type"]) }

// exists reports whether the condition of a resource holds. It assumes so if that
// depends on values that the template does not define, and reports it.
func (f *cfnTemplate) exists(name string) bool {
	condition := str(object(f.resources[name])["Condition"])
	return condition == "" || f.assume(condition, 0)
}

// properties returns the resolved properties of a resource.
func (f *cfnTemplate) properties(name string) map[string]any {
	return object(f.resolve(object(f.resources[name])["Properties"], 0))
}

// property returns one resolved property of a resource.
func (f *cfnTemplate) property(name, property string, depth int) any {
	return f.resolve(object(object(f.resources[name])["Properties"])[property], depth)
}

func (f *cfnTemplate) resource(name string) { //nolint:gocyclo // one case for each type of resource
	switch f.kind(name) {
	case "AWS::SQS::Queue":
		f.queue(name)
	case "AWS::SQS::QueuePolicy":
		p := f.properties(name)
		for _, q := range items(p["Queues"]) {
			f.policies = append(f.policies, attached{str(q), jsonText(p["PolicyDocument"])})
		}
	case "AWS::SQS::QueueInlinePolicy":
		p := f.properties(name)
		f.policies = append(f.policies, attached{str(p["Queue"]), jsonText(p["PolicyDocument"])})
	case "AWS::Events::Rule":
		f.rule(name)
	case "AWS::Serverless::Function", "AWS::Serverless::StateMachine":
		f.serverless(name)
	case "AWS::Serverless::Connector":
		f.connector(name)
	case "AWS::CloudFormation::Stack", "AWS::Serverless::Application":
		if child := f.child(name); child != nil {
			child.read()
		}
	case "AWS::KMS::Key":
		f.setKey(jsonText(f.properties(name)["KeyPolicy"]), f.keyARN(name), keyID(name))
	case "AWS::KMS::Alias":
		p := f.properties(name)
		f.setKey(f.keys[str(p["TargetKeyId"])], str(p["AliasName"]))
	case "AWS::IAM::Policy", "AWS::IAM::ManagedPolicy", "AWS::IAM::RolePolicy":
		f.grants(name, f.properties(name)["PolicyDocument"])
	case "AWS::IAM::Role", "AWS::IAM::User", "AWS::IAM::Group":
		for _, p := range items(f.properties(name)["Policies"]) {
			f.grants(name, object(p)["PolicyDocument"])
		}
	default:
		f.autoScaling(name)
	}
}

func (b *builder) setKey(policy string, names ...string) {
	if b.keys == nil {
		b.keys = map[string]string{}
	}
	for _, n := range names {
		if n != "" {
			b.keys[n] = policy
		}
	}
}

// generated returns the name that CloudFormation generates for a resource without one:
// STACK-LOGICALID-RANDOM (CloudFormation User Guide, "Name type").
func (f *cfnTemplate) generated(name string) string {
	return f.stack + "-" + name + "-" + symbol.Random(name+f.scope())
}

// scope distinguishes the symbols of several stacks.
func (f *cfnTemplate) scope() string {
	if f.files == 1 {
		return ""
	}
	return " of " + f.file
}

func (f *cfnTemplate) queueName(name string, depth int) string {
	if given := str(f.property(name, "QueueName", depth)); given != "" {
		return given
	}
	if boolean(f.property(name, "FifoQueue", depth), false) {
		return f.generated(name) + ".fifo"
	}
	return f.generated(name)
}

// reference is the JSON by which the template refers to a resource's ARN.
func reference(name string) string {
	return toJSON(map[string]any{"Fn::GetAtt": []string{name, "Arn"}})
}

func (f *cfnTemplate) keyARN(name string) string { return f.arn("kms", "key/"+name) }

func keyID(name string) string { return "key-" + name }

func (f *cfnTemplate) queue(name string) {
	p := f.properties(name)
	q := snapshot.Queue{
		Name: f.queueName(name, 0), From: f.file + ", " + name, Reference: reference(name), Known: true, PolicyKnown: true,
		Retention:   seconds(p["MessageRetentionPeriod"], snapshot.DefaultRetention),
		Visibility:  seconds(p["VisibilityTimeout"], snapshot.DefaultVisibility),
		Delay:       seconds(p["DelaySeconds"], 0),
		MaximumSize: number(p["MaximumMessageSize"], snapshot.DefaultMaximumSize),
		KMSKey:      str(p["KmsMasterKeyId"]),
		FIFO:        boolean(p["FifoQueue"], false), ContentDeduplicated: boolean(p["ContentBasedDeduplication"], false),
		Tags: tags(p["Tags"]),
	}
	q.ARN = f.arn("sqs", q.Name)
	q.ManagedSSE = boolean(p["SqsManagedSseEnabled"], q.KMSKey == "")
	q.Redrive(jsonText(p["RedrivePolicy"]))
	f.addQueue(q, f.queueURL(q.Name))
}

func tags(v any) map[string]string {
	var all map[string]string
	for _, t := range items(v) {
		if key := str(object(t)["Key"]); key != "" {
			if all == nil {
				all = map[string]string{}
			}
			all[key] = str(object(t)["Value"])
		}
	}
	return all
}

func (f *cfnTemplate) ruleName(name string, depth int) string {
	if given := str(f.property(name, "Name", depth)); given != "" {
		return given
	}
	return f.generated(name)
}

// ruleARN returns the ARN of a rule. That of a rule on a custom bus contains the bus.
func (f *cfnTemplate) ruleARN(name string, depth int) string {
	bus := snapshot.BusName(str(f.property(name, "EventBusName", depth)))
	if bus == "" || bus == snapshot.DefaultBus {
		return f.arn("events", "rule/"+f.ruleName(name, depth))
	}
	return f.arn("events", "rule/"+bus+"/"+f.ruleName(name, depth))
}

func (f *cfnTemplate) rule(name string) {
	p := f.properties(name)
	r := snapshot.Rule{
		Name: f.ruleName(name, 0), ARN: f.ruleARN(name, 0), From: f.file + ", " + name, Reference: reference(name), Bus: str(p["EventBusName"]),
		Enabled: !strings.EqualFold(str(p["State"]), "DISABLED"), TargetsKnown: true,
		Scheduled: p["ScheduleExpression"] != nil && p["EventPattern"] == nil,
	}
	setPattern(&r, p["EventPattern"])
	for _, t := range items(p["Targets"]) {
		r.Targets = append(r.Targets, target(object(t)))
	}
	f.addRule(r)
}

// grants records the queues from which an IAM policy allows receiving.
func (b *builder) grants(grantor string, document any) {
	for _, s := range items(object(document)["Statement"]) {
		statement := object(s)
		if str(statement["Effect"]) != "Allow" || !receives(items(statement["Action"])) {
			continue
		}
		for _, resource := range items(statement["Resource"]) {
			reader := attached{str(resource), grantor}
			if reader.handle != "*" && !slices.Contains(b.readers, reader) {
				b.readers = append(b.readers, reader)
			}
		}
	}
}

func receives(actions []any) bool {
	return slices.ContainsFunc(actions, func(a any) bool {
		switch strings.ToLower(str(a)) {
		case "*", "sqs:*", "sqs:receive*", "sqs:receivemessage":
			return true
		}
		return false
	})
}
