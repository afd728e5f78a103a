package emit

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
)

// Terraform writes Terraform's JSON syntax, for a file *.tf.json and the provider
// hashicorp/aws, release 4 or later. Without account or region, the file asks the
// provider for them. All labels contain the cluster's name, so that one module can
// hold the files of several clusters.
func Terraform(cluster string, p Place) ([]byte, error) {
	w := awssetup.Desired(cluster, p.Account, p.Region)
	label := label(w.Queue.Name)
	ph := tfPlaceholders(label)
	w, err := p.wiring(cluster, ph)
	if err != nil {
		return nil, err
	}
	notices, deadLetter, err := queues(w)
	if err != nil {
		return nil, err
	}
	t := tf{w: w, label: label, deadLetter: label + "_dead_letter", tags: ph.tags(w)}
	resources, err := t.resources(notices, deadLetter)
	if err != nil {
		return nil, err
	}
	if w.Topic != "" {
		if err := t.tfSubscribe(resources); err != nil {
			return nil, err
		}
	}
	hooks := p.hooks()
	outputs := object{
		label + "_queue_url": object{"description": "for lifeboatd --queue-url", "value": "${aws_sqs_queue." + label + ".id}"},
		label + "_queue_arn": object{"value": t.queueARN()},
	}
	if p.Role.Identity != "" {
		if err := t.tfAddRole(p.Role, resources, outputs); err != nil {
			return nil, err
		}
	}
	document := object{
		"//":       "Resources that deliver EC2, Auto Scaling and Health notices to Lifeboat in cluster " + cluster + ". Printed by `lifeboat aws emit`.",
		"resource": resources,
		"output":   outputs,
	}
	if p.Role.Chart != "" {
		t.tfAddRelease(p.Role, document, resources)
	}
	if data := p.data(label); len(data) > 0 {
		document["data"] = data
	}
	if len(hooks) > 0 {
		byLabel := object{}
		for _, h := range hooks {
			name, resource, _ := t.tfHook(h)
			byLabel[name] = resource
		}
		resources["aws_autoscaling_lifecycle_hook"] = byLabel
		document["locals"] = object{label + "_initial_lifecycle_hooks": t.initialHooks(hooks)}
	}
	return render(document)
}

func tfPlaceholders(label string) placeholders {
	return placeholders{
		account:   "${data.aws_caller_identity." + label + ".account_id}",
		region:    "${data.aws_region." + label + ".id}",
		partition: "${data.aws_partition." + label + ".partition}",
		tool:      "terraform",
	}
}

// data returns the data sources that the placeholders name.
func (p Place) data(label string) object {
	data := object{}
	if p.Account == "" {
		data["aws_caller_identity"] = object{label: object{}}
	}
	if p.Region == "" {
		data["aws_region"] = object{label: object{}}
		data["aws_partition"] = object{label: object{}}
	}
	return data
}

// tf writes resources with a common label.
type tf struct {
	w                 awssetup.Wiring
	label, deadLetter string
	tags              map[string]string
}

func (t tf) queueARN() string      { return "${aws_sqs_queue." + t.label + ".arn}" }
func (t tf) deadLetterARN() string { return "${aws_sqs_queue." + t.deadLetter + ".arn}" }

// ref replaces ARNs of Terraform's own resources by references, so that Terraform
// knows the order.
func (t tf) ref(text string) any {
	switch text {
	case t.w.QueueARN():
		return t.queueARN()
	case t.w.DeadLetterARN():
		return t.deadLetterARN()
	}
	return text
}

func (t tf) resources(notices, deadLetter queue) (object, error) {
	queue, err := t.sqs(notices)
	if err != nil {
		return nil, err
	}
	dead, err := t.sqs(deadLetter)
	if err != nil {
		return nil, err
	}
	policies, texts := object{}, map[string]any{t.label: notices.policy, t.deadLetter: deadLetter.policy}
	for label, document := range texts {
		text, err := t.text(document)
		if err != nil {
			return nil, err
		}
		policies[label] = object{"queue_url": "${aws_sqs_queue." + label + ".id}", "policy": text}
	}
	allow, err := t.text(deadLetter.attributes["RedriveAllowPolicy"])
	if err != nil {
		return nil, err
	}
	rules, targets := object{}, object{}
	for _, r := range t.w.Rules {
		rules[label(r.Name)], targets[label(r.Name)] = t.rule(r)
	}
	return object{
		"aws_sqs_queue":        object{t.label: queue, t.deadLetter: dead},
		"aws_sqs_queue_policy": policies,
		// A separate resource, because the queues refer to each other.
		"aws_sqs_queue_redrive_allow_policy": object{t.deadLetter: object{
			"queue_url": "${aws_sqs_queue." + t.deadLetter + ".id}", "redrive_allow_policy": allow,
		}},
		"aws_cloudwatch_event_rule":   rules,
		"aws_cloudwatch_event_target": targets,
	}, nil
}

// arguments maps SQS's attributes to the names of the provider.
func arguments() map[string]string {
	return map[string]string{
		"MessageRetentionPeriod":        "message_retention_seconds",
		"VisibilityTimeout":             "visibility_timeout_seconds",
		"ReceiveMessageWaitTimeSeconds": "receive_wait_time_seconds",
		"DelaySeconds":                  "delay_seconds",
		"SqsManagedSseEnabled":          "sqs_managed_sse_enabled",
		"RedrivePolicy":                 "redrive_policy",
	}
}

func (t tf) sqs(q queue) (object, error) {
	out := object{"name": q.name, "tags": t.tags}
	for key, value := range q.attributes {
		argument, known := arguments()[key]
		switch {
		case key == "RedriveAllowPolicy": // is a separate resource
		case !known:
			return nil, fmt.Errorf("queue %s: Terraform has no argument for the attribute %s", q.name, key)
		case key == "RedrivePolicy":
			text, err := t.text(value)
			if err != nil {
				return nil, err
			}
			out[argument] = text
		default:
			out[argument] = value
		}
	}
	return out, nil
}

// rule returns a rule and its target. The target depends on the queue policies, so
// that it can deliver as soon as it exists.
func (t tf) rule(r awssetup.Rule) (rule, target object) {
	desired := t.w.Target()
	return object{
			"name": r.Name, "description": r.Description, "event_pattern": r.Pattern, "tags": t.tags,
		}, object{
			"rule": "${aws_cloudwatch_event_rule." + label(r.Name) + ".name}", "target_id": desired.ID,
			"arn": t.ref(desired.ARN), "dead_letter_config": object{"arn": t.ref(desired.DeadLetterARN)},
			"depends_on": []string{"aws_sqs_queue_policy." + t.label, "aws_sqs_queue_policy." + t.deadLetter},
		}
}

// text encodes a document as the string that the provider expects. Terraform still
// resolves the references in it, because every string is a template.
func (t tf) text(document any) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(replace(document, t.ref)); err != nil {
		return "", fmt.Errorf("encoding a policy: %w", err)
	}
	return strings.TrimSpace(b.String()), nil
}

func label(name string) string { return strings.ReplaceAll(name, "-", "_") }
