package emit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
)

type object = map[string]any

// Names of the template's resources.
const (
	cfnQueue            = "Queue"
	cfnQueuePolicy      = "QueuePolicy"
	cfnDeadLetter       = "DeadLetterQueue"
	cfnDeadLetterPolicy = "DeadLetterQueuePolicy"
)

// CloudFormation returns a CloudFormation template in JSON. Without account and
// region, the template works in any of them.
func CloudFormation(cluster string, p Place) ([]byte, error) {
	ph := cfnPlaceholders()
	w, err := p.wiring(cluster, ph)
	if err != nil {
		return nil, err
	}
	notices, deadLetter, err := queues(w)
	if err != nil {
		return nil, err
	}
	ref := func(text string) any {
		switch text {
		case w.QueueARN():
			return object{"Fn::GetAtt": []string{cfnQueue, "Arn"}}
		case w.DeadLetterARN():
			return object{"Fn::GetAtt": []string{cfnDeadLetter, "Arn"}}
		}
		return cfnSub(text)
	}
	// The queues refer to each other. The second one refers to the first by name,
	// which avoids a circular dependency.
	tags := cfnTags(ph.tags(w))
	resources := object{
		cfnDeadLetter:       cfnSQS(deadLetter, tags, cfnSub),
		cfnDeadLetterPolicy: cfnPolicy(deadLetter, cfnDeadLetter, ref),
		cfnQueue:            cfnSQS(notices, tags, ref),
		cfnQueuePolicy:      cfnPolicy(notices, cfnQueue, ref),
	}
	if err := cfnSubscribe(w, resources, ref); err != nil {
		return nil, err
	}
	for _, r := range w.Rules {
		resource, err := cfnRule(w, r, tags, ref)
		if err != nil {
			return nil, err
		}
		resources[cfnName(r.Role)] = resource
	}
	for _, h := range p.hooks() {
		name, resource := cfnHook(w, h)
		resources[name] = resource
	}
	outputs := cfnOutputs()
	if p.Role.Identity != "" {
		if err := p.Role.cfnAddRole(w, resources, outputs, tags, ref); err != nil {
			return nil, err
		}
	}
	return render(object{
		"AWSTemplateFormatVersion": "2010-09-09",
		"Description": fmt.Sprintf("Resources that deliver EC2, Auto Scaling and Health notices to Lifeboat in cluster %s. "+
			"Printed by `lifeboat aws emit`. One stack per cluster and region.", cluster),
		"Resources": resources,
		"Outputs":   outputs,
	})
}

// cfnSub lets CloudFormation fill in the placeholders of a text.
func cfnSub(text string) any {
	if strings.Contains(text, "${AWS::") {
		return object{"Fn::Sub": text}
	}
	return text
}

func cfnOutputs() object {
	return object{
		"QueueURL":           object{"Description": "for lifeboatd --queue-url", "Value": object{"Ref": cfnQueue}},
		"QueueARN":           object{"Value": object{"Fn::GetAtt": []string{cfnQueue, "Arn"}}},
		"DeadLetterQueueURL": object{"Value": object{"Ref": cfnDeadLetter}},
	}
}

// YAML converts a JSON template to YAML, which CloudFormation also reads.
func YAML(template []byte) ([]byte, error) {
	out, err := yaml.JSONToYAML(template)
	if err != nil {
		return nil, fmt.Errorf("writing the template as YAML: %w", err)
	}
	return out, nil
}

func cfnSQS(q queue, tags any, text func(string) any) object {
	properties := object{"QueueName": q.name, "Tags": tags}
	for key, value := range q.attributes {
		properties[key] = replace(value, text)
	}
	return object{"Type": "AWS::SQS::Queue", "Properties": properties}
}

func cfnPolicy(q queue, name string, text func(string) any) object {
	return object{"Type": "AWS::SQS::QueuePolicy", "Properties": object{
		"Queues": []any{object{"Ref": name}}, "PolicyDocument": replace(q.policy, text),
	}}
}

// cfnRule depends on the policies of its target, so that the rule can deliver as soon as it
// exists.
func cfnRule(w awssetup.Wiring, r awssetup.Rule, tags any, text func(string) any) (object, error) {
	pattern, err := valueOf(r.Pattern)
	if err != nil {
		return nil, fmt.Errorf("rule %s: %w", r.Name, err)
	}
	t := w.Target()
	after, target := []string{cfnTopicPolicy}, object{"Id": t.ID, "Arn": text(t.ARN)}
	if t.DeadLetterARN != "" {
		after, target["DeadLetterConfig"] = []string{cfnDeadLetterPolicy, cfnQueuePolicy}, object{"Arn": text(t.DeadLetterARN)}
	}
	return object{
		"Type": "AWS::Events::Rule", "DependsOn": after,
		"Properties": object{
			"Name": r.Name, "Description": r.Description, "EventPattern": pattern, "State": "ENABLED", "Tags": tags,
			"Targets": []any{target},
		},
	}, nil
}

func cfnPlaceholders() placeholders {
	return placeholders{account: "${AWS::AccountId}", region: "${AWS::Region}", partition: "${AWS::Partition}", tool: "cloudformation"}
}

func cfnTags(tags map[string]string) []any {
	var out []any
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, object{"Key": key, "Value": tags[key]})
	}
	return out
}

// cfnName converts spot-interruption to SpotInterruptionRule.
func cfnName(role string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(role, "-") {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String() + "Rule"
}
