package doctor_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
)

func jsonText(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return strings.TrimSpace(b.String()), err
}

func yamlOf(v any) string {
	text, err := yaml.JSONToYAML([]byte(encode(v)))
	if err != nil {
		panic(fmt.Sprintf("writing a fixture: %v", err))
	}
	return string(text)
}

// value decodes JSON.
func value(text string) any {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return text
	}
	return v
}

// replaceARNs replaces the ARNs of a wiring in a JSON text by references.
func replaceARNs(s snapshot.Snapshot, text string, reference func(kind string, i int) string) string {
	for i, q := range s.Queues {
		text = strings.ReplaceAll(text, `"`+q.ARN+`"`, reference("queue", i))
	}
	for i, r := range s.Rules {
		text = strings.ReplaceAll(text, `"`+r.ARN+`"`, reference("rule", i))
	}
	return text
}

func set(m map[string]any, key string, v any) {
	if v != "" && v != nil && v != 0 {
		m[key] = v
	}
}

// cloudFormation writes a wiring as a template. reference is the reference to the ARN of
// a resource; nil leaves ARNs as they are.
func cloudFormation(s snapshot.Snapshot, reference func(id string) string) map[string]any {
	resources := map[string]any{}
	for i, q := range s.Queues {
		p := map[string]any{"QueueName": q.Name, "MessageRetentionPeriod": int(q.Retention.Seconds()), "VisibilityTimeout": int(q.Visibility.Seconds()), "SqsManagedSseEnabled": q.ManagedSSE}
		set(p, "DelaySeconds", int(q.Delay.Seconds()))
		set(p, "MaximumMessageSize", q.MaximumSize)
		if q.KMSKey != "" {
			p["KmsMasterKeyId"] = q.KMSKey
		}
		if q.KeyPolicy != "" {
			resources["Key"] = map[string]any{"Type": "AWS::KMS::Key", "Properties": map[string]any{"KeyPolicy": value(q.KeyPolicy)}}
			p["KmsMasterKeyId"] = map[string]any{"Ref": "Key"}
		}
		if q.DeadLetterARN != "" {
			p["RedrivePolicy"] = map[string]any{"deadLetterTargetArn": q.DeadLetterARN, "maxReceiveCount": q.MaxReceives}
		}
		id := "Queue" + strconv.Itoa(i)
		resources[id] = map[string]any{"Type": "AWS::SQS::Queue", "Properties": p}
		if q.Policy != "" {
			resources[id+"Policy"] = map[string]any{"Type": "AWS::SQS::QueuePolicy", "Properties": map[string]any{"Queues": []any{map[string]any{"Ref": id}}, "PolicyDocument": value(q.Policy)}}
		}
	}
	for i, r := range s.Rules {
		p := map[string]any{"Name": r.Name, "EventPattern": value(r.Pattern), "State": map[bool]string{true: "ENABLED", false: "DISABLED"}[r.Enabled], "Targets": apiTargets(r)}
		set(p, "EventBusName", r.Bus)
		resources["Rule"+strconv.Itoa(i)] = map[string]any{"Type": "AWS::Events::Rule", "Properties": p}
	}
	root := map[string]any{"Resources": resources}
	if reference == nil {
		return root
	}
	text := replaceARNs(s, encode(root), func(kind string, i int) string {
		return reference(strings.ToUpper(kind[:1]) + kind[1:] + strconv.Itoa(i))
	})
	out, _ := value(text).(map[string]any)
	return out
}

// apiTargets writes the targets of a rule as EventBridge's API has them.
func apiTargets(r snapshot.Rule) []any {
	all := []any{}
	for _, t := range r.Targets {
		to := map[string]any{"Id": t.ID, "Arn": t.ARN}
		set(to, "RoleArn", t.RoleARN)
		set(to, "Input", t.Input)
		set(to, "InputPath", t.InputPath)
		if t.Transformed {
			to["InputTransformer"] = map[string]any{"InputTemplate": "x"}
		}
		if t.DeadLetterARN != "" {
			to["DeadLetterConfig"] = map[string]any{"Arn": t.DeadLetterARN}
		}
		all = append(all, to)
	}
	return all
}

// terraformOf writes a wiring as resources of Terraform. With references, ARNs are
// references to attributes.
func terraformOf(s snapshot.Snapshot, references bool) map[string]any {
	queues, policies, rules, targets, keys := map[string]any{}, map[string]any{}, map[string]any{}, map[string]any{}, map[string]any{}
	for i, q := range s.Queues {
		id := "queue" + strconv.Itoa(i)
		p := map[string]any{"name": q.Name, "message_retention_seconds": int(q.Retention.Seconds()), "visibility_timeout_seconds": int(q.Visibility.Seconds()), "sqs_managed_sse_enabled": q.ManagedSSE}
		set(p, "delay_seconds", int(q.Delay.Seconds()))
		set(p, "max_message_size", q.MaximumSize)
		set(p, "kms_master_key_id", q.KMSKey)
		if q.KeyPolicy != "" {
			keys["key"] = map[string]any{"policy": q.KeyPolicy, "arn": q.KMSKey, "key_id": "1234"}
		}
		if q.DeadLetterARN != "" {
			p["redrive_policy"] = encode(map[string]any{"deadLetterTargetArn": q.DeadLetterARN, "maxReceiveCount": q.MaxReceives})
		}
		url := "https://sqs." + testRegion + ".amazonaws.com/" + testAccount + "/" + q.Name
		if references {
			url = "${aws_sqs_queue." + id + ".url}"
		} else {
			p["arn"], p["url"] = q.ARN, url
		}
		queues[id] = p
		if q.Policy != "" {
			policies[id] = map[string]any{"queue_url": url, "policy": q.Policy}
		}
	}
	for i, r := range s.Rules {
		id := "rule" + strconv.Itoa(i)
		p := map[string]any{"name": r.Name, "event_pattern": r.Pattern, "state": map[bool]string{true: "ENABLED", false: "DISABLED"}[r.Enabled]}
		set(p, "event_bus_name", r.Bus)
		if !references {
			p["arn"] = r.ARN
		}
		rules[id] = p
		for _, t := range r.Targets {
			to := map[string]any{"rule": r.Name, "target_id": t.ID, "arn": t.ARN}
			set(to, "role_arn", t.RoleARN)
			set(to, "input", t.Input)
			set(to, "input_path", t.InputPath)
			if t.Transformed {
				to["input_transformer"] = []any{map[string]any{"input_template": "x"}}
			}
			if t.DeadLetterARN != "" {
				to["dead_letter_config"] = []any{map[string]any{"arn": t.DeadLetterARN}}
			}
			targets[id] = to
		}
	}
	all := map[string]any{"aws_sqs_queue": queues, "aws_sqs_queue_policy": policies, "aws_cloudwatch_event_rule": rules, "aws_cloudwatch_event_target": targets, "aws_kms_key": keys}
	if !references {
		return all
	}
	text := replaceARNs(s, encode(all), func(kind string, i int) string {
		return `"${` + map[string]string{"queue": "aws_sqs_queue", "rule": "aws_cloudwatch_event_rule"}[kind] + "." + kind + strconv.Itoa(i) + `.arn}"`
	})
	out, _ := value(text).(map[string]any)
	return out
}

// hclOf writes resources as HCL. Lists of objects are blocks.
func hclOf(resources map[string]any) string {
	var b strings.Builder
	fmt.Fprintf(&b, "provider \"aws\" {\n  region = %q\n}\n", testRegion)
	for _, kind := range slices.Sorted(maps.Keys(resources)) {
		named, _ := resources[kind].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(named)) {
			attributes, _ := named[name].(map[string]any)
			fmt.Fprintf(&b, "\nresource %q %q {\n", kind, name)
			for _, attribute := range slices.Sorted(maps.Keys(attributes)) {
				if blocks, ok := attributes[attribute].([]any); ok {
					for _, block := range blocks {
						fmt.Fprintf(&b, "  %s {\n", attribute)
						inner, _ := block.(map[string]any)
						for key, v := range inner {
							fmt.Fprintf(&b, "    %s = %s\n", key, encode(v))
						}
						b.WriteString("  }\n")
					}
					continue
				}
				fmt.Fprintf(&b, "  %s = %s\n", attribute, encode(attributes[attribute]))
			}
			b.WriteString("}\n")
		}
	}
	return b.String()
}

// shown writes resources as terraform show -json does.
func shown(where string, resources map[string]any) string {
	var list []any
	for _, kind := range slices.Sorted(maps.Keys(resources)) {
		named, _ := resources[kind].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(named)) {
			list = append(list, map[string]any{"address": kind + "." + name, "type": kind, "name": name, "values": named[name]})
		}
	}
	return encode(map[string]any{"format_version": "1.2", where: map[string]any{"root_module": map[string]any{"resources": list}}})
}

// awsOutput writes a wiring as the AWS CLI prints it.
func awsOutput(s snapshot.Snapshot) string {
	var b strings.Builder
	for _, r := range s.Rules {
		b.WriteString(encode(map[string]any{"Name": r.Name, "Arn": r.ARN, "EventPattern": r.Pattern, "State": map[bool]string{true: "ENABLED", false: "DISABLED"}[r.Enabled], "EventBusName": r.Bus}) + "\n")
		b.WriteString(encode(map[string]any{"Targets": apiTargets(r)}) + "\n")
	}
	for _, q := range s.Queues {
		a := map[string]any{
			"QueueArn": q.ARN, "CreatedTimestamp": "1770000000", "MessageRetentionPeriod": strconv.Itoa(int(q.Retention.Seconds())), "VisibilityTimeout": strconv.Itoa(int(q.Visibility.Seconds())),
			"DelaySeconds": strconv.Itoa(int(q.Delay.Seconds())), "MaximumMessageSize": strconv.Itoa(q.MaximumSize), "SqsManagedSseEnabled": strconv.FormatBool(q.ManagedSSE),
		}
		set(a, "Policy", q.Policy)
		set(a, "KmsMasterKeyId", q.KMSKey)
		if q.DeadLetterARN != "" {
			a["RedrivePolicy"] = encode(map[string]any{"deadLetterTargetArn": q.DeadLetterARN, "maxReceiveCount": q.MaxReceives})
		}
		b.WriteString(encode(map[string]any{"Attributes": a}) + "\n")
	}
	return b.String()
}
