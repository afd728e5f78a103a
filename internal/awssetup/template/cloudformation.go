package template

import (
	"maps"
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
)

// cloudFormation reads a template. It reads resources sorted by name, so that the
// same template always yields the same snapshot.
func (b *builder) cloudFormation(file string, root map[string]any) {
	f := &cfnTemplate{
		builder: b, file: file, root: root, resources: object(root["Resources"]),
		parameters: object(root["Parameters"]), mappings: object(root["Mappings"]),
	}
	for _, name := range slices.Sorted(maps.Keys(f.resources)) {
		f.resource(name)
	}
}

// cfnTemplate is a CloudFormation template.
type cfnTemplate struct {
	*builder

	file                            string
	root                            map[string]any
	resources, parameters, mappings map[string]any
	work                            int // number of resolved values, see resolve
}

func (f *cfnTemplate) kind(name string) string { return str(object(f.resources[name])["Type"]) }

// properties returns the resolved properties of a resource.
func (f *cfnTemplate) properties(name string) map[string]any {
	return object(f.resolve(object(f.resources[name])["Properties"], 0))
}

// property returns one resolved property of a resource.
func (f *cfnTemplate) property(name, property string, depth int) any {
	return f.resolve(object(object(f.resources[name])["Properties"])[property], depth)
}

func (f *cfnTemplate) resource(name string) {
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

// queueName returns the name of a queue. CloudFormation generates a name for queues
// without one; the resource's name stands for it.
func (f *cfnTemplate) queueName(name string, depth int) string {
	if given := str(f.property(name, "QueueName", depth)); given != "" {
		return given
	}
	return name
}

func (f *cfnTemplate) queueURL(name string, depth int) string {
	return "https://sqs." + f.region() + ".amazonaws.com/" + f.account() + "/" + f.queueName(name, depth)
}

func (f *cfnTemplate) keyARN(name string) string { return f.arn("kms", "key/"+name) }

func keyID(name string) string { return "key-" + name }

func (f *cfnTemplate) queue(name string) {
	p := f.properties(name)
	q := snapshot.Queue{
		Name: f.queueName(name, 0), From: f.file + ", " + name, Known: true, PolicyKnown: true,
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
	f.addQueue(q, f.queueURL(name, 0))
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
	return name
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
	if p["ScheduleExpression"] != nil && p["EventPattern"] == nil {
		return
	}
	r := snapshot.Rule{
		Name: f.ruleName(name, 0), ARN: f.ruleARN(name, 0), From: f.file + ", " + name, Bus: str(p["EventBusName"]),
		Enabled: !strings.EqualFold(str(p["State"]), "DISABLED"), TargetsKnown: true,
	}
	f.setPattern(&r, p["EventPattern"])
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
