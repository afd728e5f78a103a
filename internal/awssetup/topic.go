package awssetup

import (
	"encoding/json"
	"fmt"
	"regexp"
)

// topicTargetID identifies the shared topic among the targets of its rules.
const topicTargetID = "lifeboat-topic"

// longestTopic is the longest name of a shared topic: the names of its rules contain it.
const longestTopic = maxRuleName - len("-"+RoleAutoScaling)

var topicName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// CheckTopic returns an error if a shared topic cannot have this name.
func CheckTopic(name string) error {
	if !topicName.MatchString(name) || len(name) > longestTopic {
		return fmt.Errorf("%q is not a valid name of a shared topic: use at most %d letters, digits, hyphens and underscores", name, longestTopic)
	}
	return nil
}

// Shared returns the wiring with a topic that clusters share: three rules in all, which match the
// events of every Auto Scaling group.
func (w Wiring) Shared(topic string) (Wiring, error) {
	out, err := w.ForGroups(nil)
	if err != nil {
		return Wiring{}, err
	}
	if out, err = out.Merged(); err != nil {
		return Wiring{}, err
	}
	out.Topic, out.Groups, out.Replaces = topic, w.Groups, nil
	for i, r := range out.Rules {
		out.Rules[i].Name = topicRuleName(topic, r.Role)
	}
	return out, nil
}

func topicRuleName(topic, role string) string { return topic + "-" + role }

// TopicARN is the ARN of a topic.
func (w Wiring) TopicARN(topic string) string { return w.arn("sns", topic) }

// topicSenders are the ARNs of the topics that may send to the queue.
func (w Wiring) topicSenders() []string {
	var all []string
	for _, topic := range []string{w.Topic, w.Leaves} {
		if topic != "" {
			all = append(all, w.TopicARN(topic))
		}
	}
	return all
}

// allowTopics allows topics to send to a queue. SNS sends the ARN of the topic, which contains the
// account (Amazon SNS Developer Guide, "Subscribing an Amazon SQS queue to an Amazon SNS topic").
func allowTopics(topics []string, queueARN string) statement {
	return statement{
		Sid: "LifeboatTopic", Effect: "Allow", Principal: map[string]string{"Service": "sns.amazonaws.com"},
		Action: "sqs:SendMessage", Resource: queueARN, Condition: conditions{"ArnEquals": {"aws:SourceArn": topics}},
	}
}

// TopicAttributes returns the attributes of the topic in SNS's format.
//
// Its policy allows EventBridge, and no identity of the account. It cannot name the rules: "You can't
// use Condition blocks in Amazon SNS topic policies for EventBridge" (EventBridge User Guide, "Using
// resource-based policies"). A Bool condition without its key does not hold (IAM User Guide,
// "Condition operators"), so the Deny statements cannot refuse EventBridge.
func (w Wiring) TopicAttributes() (map[string]string, error) {
	arn := w.TopicARN(w.Topic)
	deny := func(sid, key string) statement {
		return statement{
			Sid: sid, Effect: "Deny", Principal: "*", Action: "sns:Publish", Resource: arn,
			Condition: conditions{"Bool": {key: "false"}},
		}
	}
	text, err := json.Marshal(policyDocument{Version: "2012-10-17", Statement: []statement{
		{Sid: "LifeboatRules", Effect: "Allow", Principal: map[string]string{"Service": "events.amazonaws.com"}, Action: "sns:Publish", Resource: arn},
		deny("DenyIdentities", "aws:PrincipalIsAWSService"),
		deny("DenyPlainHTTP", "aws:SecureTransport"),
	}})
	if err != nil {
		return nil, fmt.Errorf("encoding the topic policy: %w", err)
	}
	return map[string]string{attributePolicy: string(text)}, nil
}

// Names of SNS attributes (Amazon SNS API Reference, SetTopicAttributes and
// SetSubscriptionAttributes).
const (
	attributeRaw    = "RawMessageDelivery"
	attributeFilter = "FilterPolicy"
)

// SubscriptionAttributes returns the attributes of the queue's subscription in SNS's format. The
// dead-letter queue receives what the queue refuses.
func (w Wiring) SubscriptionAttributes() (map[string]string, error) {
	redrive, err := json.Marshal(struct {
		Target string `json:"deadLetterTargetArn"`
	}{w.DeadLetterARN()})
	if err != nil {
		return nil, fmt.Errorf("encoding the redrive policy: %w", err)
	}
	return map[string]string{attributeRaw: "true", attributeRedrive: string(redrive)}, nil
}

// isShared reports whether a rule with these tags is that of a shared topic.
func isShared(tags map[string]string) bool { return tags[TagTopic] != "" }

// topic plans the topic.
func (p *Plan) topic(o Observed, opts Options) error {
	desired, err := p.Wiring.TopicAttributes()
	if err != nil {
		return err
	}
	name := p.Wiring.Topic
	if !o.Topic.Exists() {
		fields := []Field{{Name: attributePolicy, WillBe: desired[attributePolicy]}}
		p.change(Create, TopicObject, name, "sends the notices to the queue of each cluster that shares it", append(fields, p.tagFields(TopicObject, nil)...))
		return nil
	}
	var fields []Field
	if key := o.Topic.Attributes[attributeKMSKey]; key != "" {
		fields = append(fields, Field{Name: attributeKMSKey, Was: key, Reason: "EventBridge can publish only if the key's policy allows it; the policy of alias/aws/sns does not"})
	}
	if was, want := o.Topic.Attributes[attributePolicy], desired[attributePolicy]; !samePolicy(was, want) {
		fields = append(fields, Field{Name: attributePolicy, Was: was, WillBe: want, Reason: "only EventBridge should be allowed to publish, with TLS"})
	}
	p.updateExisting(TopicObject, name, o.Topic.Tags, fields, opts)
	return nil
}

// subscription plans the subscription of the queue. It has no tags.
func (p *Plan) subscription(o Observed) error {
	desired, err := p.Wiring.SubscriptionAttributes()
	if err != nil {
		return err
	}
	name := p.subscriptionName(p.Wiring.Topic)
	found, exists := o.Topic.subscriptionOf(p.Wiring.QueueARN())
	if !exists {
		fields := []Field{{Name: attributeRaw, WillBe: desired[attributeRaw]}, {Name: attributeRedrive, WillBe: desired[attributeRedrive]}}
		p.change(Create, SubscriptionObject, name, "delivers the topic's messages to the queue", fields)
		return nil
	}
	var fields []Field
	if was := found.Attributes[attributeRaw]; was != desired[attributeRaw] {
		fields = append(fields, Field{Name: attributeRaw, Was: was, WillBe: desired[attributeRaw], Reason: "SNS would wrap each event in an envelope"})
	}
	if was := found.Attributes[attributeRedrive]; !samePolicy(was, desired[attributeRedrive]) {
		fields = append(fields, Field{Name: attributeRedrive, Was: was, WillBe: desired[attributeRedrive], Reason: "undeliverable events would be lost"})
	}
	if was := found.Attributes[attributeFilter]; was != "" {
		fields = append(fields, Field{Name: attributeFilter, Was: was, WillBe: "{}", Reason: "the filter drops notices"})
	}
	if len(fields) > 0 {
		p.change(Update, SubscriptionObject, name, "it differs from the desired configuration", fields)
	}
	return nil
}

// subscriptionName names the subscription of the queue for people: it has only an ARN.
func (p *Plan) subscriptionName(topic string) string {
	return p.Wiring.Queue.Name + " to " + topic
}

// leaveTopic ends the subscription of the queue. The last cluster also deletes the topic and its
// rules.
func (p *Plan) leaveTopic(o Observed, opts Options) {
	if !o.Topic.Exists() {
		return
	}
	others := 0
	_, subscribed := o.Topic.subscriptionOf(p.Wiring.QueueARN())
	for _, s := range o.Topic.Subscriptions {
		if s.Endpoint != p.Wiring.QueueARN() {
			others++
		}
	}
	last := others == 0
	if last {
		for _, r := range o.Rules {
			if isShared(r.Tags) {
				p.removeRule(r, opts, "no other cluster shares the topic")
			}
		}
	}
	if subscribed {
		p.change(Delete, SubscriptionObject, p.subscriptionName(o.Topic.Name), "the cluster no longer shares the topic", nil)
	}
	owner := p.Wiring.foreignOwner(TagTopic, o.Topic.Name, o.Topic.Tags)
	switch {
	case !last:
		p.note(fmt.Sprintf("topic %s and its rules stay: %s to it", o.Topic.Name, quantity(others, "other subscription")))
	case owner != "":
		p.note(fmt.Sprintf("topic %s stays: %s", o.Topic.Name, owner))
	default:
		p.change(Delete, TopicObject, o.Topic.Name, "no other cluster shares it", nil)
	}
}

// sharedBy is the topic of a queue with these tags, and empty without one.
func sharedBy(tags map[string]string) string {
	if name := tags[TagTopic]; CheckTopic(name) == nil {
		return name
	}
	return ""
}
