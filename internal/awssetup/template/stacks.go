package template

import (
	"path"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/symbol"
)

// maxStackDepth limits the nesting of stacks.
const maxStackDepth = 10

// collectStacks finds the CloudFormation templates, and which of them other templates
// include.
func (b *builder) collectStacks(all []document) {
	b.stacks, b.nested = map[string]*cfnTemplate{}, map[string]bool{}
	for _, d := range all {
		if isObject(d.root["Resources"]) && b.stacks[d.file] == nil {
			b.stacks[d.file] = b.newStack(d, nil, "")
		}
	}
	for _, f := range b.stacks {
		for name := range f.resources {
			if child := f.childFile(name); child != "" && child != f.file {
				b.nested[child] = true
			}
		}
	}
}

// newStack returns a stack of a template. passed are the parameters from its parent,
// nil without one.
func (b *builder) newStack(d document, passed map[string]any, stack string) *cfnTemplate {
	f := &cfnTemplate{
		builder: b, file: d.file, root: d.root, resources: object(d.root["Resources"]),
		parameters: object(d.root["Parameters"]), mappings: object(d.root["Mappings"]), passed: passed, stack: stack,
	}
	if stack == "" {
		f.stack = symbol.Open("AWS.StackName" + f.scope())
		if cdk, ok := b.cdk[d.file]; ok {
			f.stack = cdk.name
		}
		if given := b.given.Parameters["AWS::StackName"]; given != "" {
			f.stack = given
		}
	}
	return f
}

// childFile returns the file of a nested stack, or "" if it is not given. Only the
// last part of TemplateURL is compared: packaging changes the others.
func (f *cfnTemplate) childFile(name string) string {
	var location string
	switch f.kind(name) {
	case "AWS::CloudFormation::Stack":
		location = str(f.property(name, "TemplateURL", 0))
	case "AWS::Serverless::Application":
		location = str(f.property(name, "Location", 0))
	}
	if location == "" {
		return ""
	}
	// CDK records the file of a nested stack in the resource's metadata.
	asset := str(object(object(f.resources[name])["Metadata"])["aws:asset:path"])
	for file := range f.stacks {
		if base := path.Base(file); base == path.Base(location) || asset != "" && base == path.Base(asset) {
			return file
		}
	}
	return ""
}

// child returns a nested stack, or nil if its file is not given.
func (f *cfnTemplate) child(name string) *cfnTemplate {
	file := f.childFile(name)
	if file == "" || strings.Count(f.stack, "{~") > maxStackDepth {
		return nil
	}
	passed := map[string]any{}
	for parameter, value := range object(f.property(name, "Parameters", 0)) {
		passed[parameter] = value
	}
	from := f.stacks[file]
	return f.newStack(document{file, from.root}, passed, f.generated(name))
}

// output returns an output of a nested stack.
func (f *cfnTemplate) output(stack, output string, depth int) any {
	if child := f.child(stack); child != nil && depth < maxReferenceDepth {
		if o := object(object(child.root["Outputs"])[output]); o != nil {
			f.work++
			return child.resolve(o["Value"], depth+1)
		}
	}
	return unresolved(stack + ".Outputs." + output)
}

// importValue returns the value that another template exports.
func (f *cfnTemplate) importValue(name string, depth int) any {
	for _, other := range f.stacks {
		for _, o := range object(other.root["Outputs"]) {
			export := object(object(o)["Export"])
			if export == nil || depth > maxReferenceDepth || f.nested[other.file] {
				continue
			}
			if f.work++; symbol.Equal(str(other.resolve(export["Name"], depth+1)), name) == symbol.Yes {
				return other.resolve(object(o)["Value"], depth+1)
			}
		}
	}
	return unresolved("ImportValue " + name)
}

// serverless reads the events of a function of AWS SAM: each event of type
// EventBridgeRule is a rule, and each of type SQS a reader of a queue (AWS SAM
// Developer Guide, "EventSource").
func (f *cfnTemplate) serverless(name string) {
	for event, v := range object(f.properties(name)["Events"]) {
		p := object(object(v)["Properties"])
		switch str(object(v)["Type"]) {
		case "SQS":
			f.readers = append(f.readers, attached{str(p["Queue"]), name})
		case "EventBridgeRule", "CloudWatchEvent":
			r := snapshot.Rule{
				Name: f.generated(name + event), From: f.file + ", " + name + "." + event, Bus: str(p["EventBusName"]),
				Enabled:      !strings.EqualFold(str(p["State"]), "DISABLED"),
				TargetsKnown: true, Targets: []snapshot.Target{{ID: name, ARN: f.arn("lambda", "function:"+f.generated(name))}},
			}
			r.ARN = f.arn("events", "rule/"+r.Name)
			setPattern(&r, p["Pattern"])
			f.addRule(r)
		}
	}
}

// connector reads a connector of AWS SAM from a rule to a queue: it adds a queue
// policy (AWS SAM Developer Guide, "AWS::Serverless::Connector").
func (f *cfnTemplate) connector(name string) {
	p := f.properties(name)
	source, destination := str(object(p["Source"])["Id"]), str(object(p["Destination"])["Id"])
	if f.kind(source) != "AWS::Events::Rule" || f.kind(destination) != "AWS::SQS::Queue" {
		return
	}
	queue := f.arn("sqs", f.queueName(destination, 0))
	f.policies = append(f.policies, attached{queue, toJSON(map[string]any{"Statement": map[string]any{
		"Effect": "Allow", "Principal": map[string]any{"Service": "events.amazonaws.com"}, "Action": "sqs:SendMessage", "Resource": queue,
		"Condition": map[string]any{"ArnEquals": map[string]any{"aws:SourceArn": f.ruleARN(source, 0)}},
	}})})
}
