package emit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
)

const (
	cfnTopic        = "Topic"
	cfnTopicPolicy  = "TopicPolicy"
	cfnSubscription = "Subscription"
)

// subscription returns the decoded redrive policy of the queue's subscription.
func subscription(w awssetup.Wiring) (redrive any, err error) {
	attributes, err := w.SubscriptionAttributes()
	if err != nil {
		return nil, err
	}
	return valueOf(attributes["RedrivePolicy"])
}

// subscribed is the subscription of the queue, for custom tools.
type subscribed struct {
	TopicARN string `json:"topicARN"`
	Protocol string `json:"protocol"`
	Endpoint string `json:"endpoint"`
	// Attributes have the format of SNS's Subscribe.
	Attributes map[string]string `json:"attributes"`
}

// jsonSubscription returns nil without a shared topic.
func jsonSubscription(w awssetup.Wiring) (*subscribed, error) {
	if w.Topic == "" {
		return nil, nil
	}
	attributes, err := w.SubscriptionAttributes()
	return &subscribed{w.TopicARN(w.Topic), "sqs", w.QueueARN(), attributes}, err
}

// cfnSubscribe adds the queue's subscription to a shared topic. It depends on the queue's policies, so
// that the topic can deliver at once.
func cfnSubscribe(w awssetup.Wiring, resources object, text func(string) any) error {
	if w.Topic == "" {
		return nil
	}
	redrive, err := subscription(w)
	if err != nil {
		return err
	}
	resources[cfnSubscription] = object{
		"Type": "AWS::SNS::Subscription", "DependsOn": []string{cfnDeadLetterPolicy, cfnQueuePolicy},
		"Properties": object{
			"TopicArn": text(w.TopicARN(w.Topic)), "Protocol": "sqs", "Endpoint": text(w.QueueARN()),
			"RawMessageDelivery": true, "RedrivePolicy": replace(redrive, text),
		},
	}
	return nil
}

// tfSubscribe adds the queue's subscription to the resources of a file.
func (t tf) tfSubscribe(resources object) error {
	redrive, err := subscription(t.w)
	if err != nil {
		return err
	}
	text, err := t.text(redrive)
	if err != nil {
		return err
	}
	delete(resources, "aws_cloudwatch_event_rule") // of the shared file
	delete(resources, "aws_cloudwatch_event_target")
	resources["aws_sns_topic_subscription"] = object{t.label: object{
		"topic_arn": t.w.TopicARN(t.w.Topic), "protocol": "sqs", "endpoint": t.queueARN(), "raw_message_delivery": true, "redrive_policy": text,
		"depends_on": []string{"aws_sqs_queue_policy." + t.label, "aws_sqs_queue_policy." + t.deadLetter},
	}}
	return nil
}

// sharedWiring returns the wiring whose topic and rules clusters share, and the policy of the topic.
func (p Place) sharedWiring(ph placeholders) (w awssetup.Wiring, policy any, err error) {
	w = awssetup.Desired("", cmp.Or(p.Account, ph.account), cmp.Or(p.Region, ph.region))
	if p.Region == "" {
		w.Partition = ph.partition
	}
	if w, err = w.Shared(p.Topic); err != nil {
		return w, nil, err
	}
	attributes, err := w.TopicAttributes()
	if err != nil {
		return w, nil, err
	}
	policy, err = valueOf(attributes["Policy"])
	return w, policy, err
}

// sharedTags are the tags of what clusters share.
func (ph placeholders) sharedTags(w awssetup.Wiring) map[string]string {
	tags := maps.Clone(w.RuleTags())
	tags[awssetup.TagManagedBy] = ph.tool
	return tags
}

const sharedDescription = "The topic %s and its rules, which deliver EC2, Auto Scaling and Health notices to the clusters that share it. Printed by `lifeboat aws emit`. One for each account and region."

// SharedCloudFormation returns a template of a topic that clusters share, and of its rules.
func SharedCloudFormation(p Place) ([]byte, error) {
	ph := cfnPlaceholders()
	w, policy, err := p.sharedWiring(ph)
	if err != nil {
		return nil, err
	}
	ref := func(text string) any {
		if text == w.TopicARN(w.Topic) {
			return object{"Ref": cfnTopic}
		}
		return cfnSub(text)
	}
	tags := cfnTags(ph.sharedTags(w))
	resources := object{
		cfnTopic: object{"Type": "AWS::SNS::Topic", "Properties": object{"TopicName": w.Topic, "Tags": tags}},
		cfnTopicPolicy: object{"Type": "AWS::SNS::TopicPolicy", "Properties": object{
			"Topics": []any{object{"Ref": cfnTopic}}, "PolicyDocument": replace(policy, ref),
		}},
	}
	for _, r := range w.Rules {
		if resources[cfnName(r.Role)], err = cfnRule(w, r, tags, ref); err != nil {
			return nil, err
		}
	}
	return render(object{
		"AWSTemplateFormatVersion": "2010-09-09", "Description": fmt.Sprintf(sharedDescription, w.Topic),
		"Resources": resources, "Outputs": object{"TopicARN": object{"Value": object{"Ref": cfnTopic}}},
	})
}

// SharedTerraform writes what [SharedCloudFormation] returns, in Terraform's JSON syntax.
func SharedTerraform(p Place) ([]byte, error) {
	name := label(p.Topic)
	ph := tfPlaceholders(name)
	w, policy, err := p.sharedWiring(ph)
	if err != nil {
		return nil, err
	}
	own := w.TopicARN(w.Topic)
	arn := "${aws_sns_topic." + name + ".arn}"
	text, err := json.Marshal(replace(policy, func(text string) any {
		if text == own {
			return arn
		}
		return text
	}))
	if err != nil {
		return nil, fmt.Errorf("encoding a policy: %w", err)
	}
	tags := ph.sharedTags(w)
	rules, targets := object{}, object{}
	for _, r := range w.Rules {
		rules[label(r.Name)] = object{"name": r.Name, "description": r.Description, "event_pattern": r.Pattern, "tags": tags}
		targets[label(r.Name)] = object{
			"rule": "${aws_cloudwatch_event_rule." + label(r.Name) + ".name}", "target_id": w.Target().ID, "arn": arn,
			"depends_on": []string{"aws_sns_topic_policy." + name},
		}
	}
	document := object{
		"//": fmt.Sprintf(sharedDescription, w.Topic),
		"resource": object{
			"aws_sns_topic":               object{name: object{"name": w.Topic, "tags": tags}},
			"aws_sns_topic_policy":        object{name: object{"arn": arn, "policy": string(text)}},
			"aws_cloudwatch_event_rule":   rules,
			"aws_cloudwatch_event_target": targets,
		},
		"output": object{name + "_topic_arn": object{"value": arn}},
	}
	return render(document)
}
