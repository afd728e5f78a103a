package template

import (
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
)

// awsCLI reads the output of `aws events list-rules`, `describe-rule` and
// `list-targets-by-rule`, and of `aws sqs get-queue-attributes`.
func (b *builder) awsCLI(file string, root map[string]any) {
	switch {
	case root["Rules"] != nil:
		for _, r := range items(root["Rules"]) {
			b.cliRule(object(r))
		}
	case root["EventPattern"] != nil || root["EventBusName"] != nil || root["ScheduleExpression"] != nil:
		b.cliRule(root)
		b.described = str(root["Name"])
	case root["Targets"] != nil:
		b.cliTargets(file, root)
	case isObject(root["Attributes"]):
		attributes := map[string]string{}
		for name, value := range object(root["Attributes"]) {
			attributes[name] = str(value)
		}
		if q := snapshot.FromAttributes(attributes); q.ARN != "" {
			// Without All the output has only the attributes that were asked for.
			_, all := attributes["CreatedTimestamp"]
			q.Known, q.PolicyKnown = all, all || q.Policy != ""
			b.addQueue(q)
			b.inferPlace(q.ARN)
		}
	}
}

func (b *builder) cliRule(r map[string]any) {
	if str(r["Name"]) == "" {
		return
	}
	rule := snapshot.Rule{
		Name: str(r["Name"]), ARN: str(r["Arn"]), Bus: str(r["EventBusName"]),
		Enabled: !strings.EqualFold(str(r["State"]), "DISABLED"), Pattern: jsonText(r["EventPattern"]),
		Scheduled: r["ScheduleExpression"] != nil && r["EventPattern"] == nil,
	}
	b.addRule(rule)
	b.inferPlace(rule.ARN)
}

// inferPlace takes account and region from an ARN, if they were not given.
func (b *builder) inferPlace(arn string) {
	if account := snapshot.Part(arn, 4); b.given.Account == "" && account != "" {
		b.given.Account = account
	}
	if region := snapshot.Part(arn, 3); b.given.Region == "" && region != "" {
		b.given.Region, b.partition = region, snapshot.Part(arn, 1)
	}
}

// cliTargets reads targets. The AWS CLI does not print their rule. It is the rule
// that describe-rule printed before them in the same file, or the one in the file's
// name, or the only one.
func (b *builder) cliTargets(file string, root map[string]any) {
	b.objects++
	rule := b.described
	for _, r := range b.out.Rules {
		if rule == "" && (strings.Contains(file, r.Name) || len(b.out.Rules) == 1) {
			rule = r.Name
		}
	}
	if rule == "" {
		b.reportUnread(file, "the AWS CLI does not print the rule of these targets: put the output of `aws events describe-rule` before them")
		return
	}
	for _, t := range items(root["Targets"]) {
		b.targets = append(b.targets, separateTarget{rule: rule, to: target(object(t))})
	}
	for i := range b.out.Rules {
		if b.out.Rules[i].Name == rule {
			b.out.Rules[i].TargetsKnown = true
		}
	}
}

// target reads a target in the format of EventBridge's API and of CloudFormation.
func target(t map[string]any) snapshot.Target {
	return snapshot.Target{
		ID: str(t["Id"]), ARN: str(t["Arn"]), RoleARN: str(t["RoleArn"]),
		Input: jsonText(t["Input"]), InputPath: str(t["InputPath"]), Transformed: t["InputTransformer"] != nil,
		GroupID:       str(object(t["SqsParameters"])["MessageGroupId"]),
		DeadLetterARN: str(object(t["DeadLetterConfig"])["Arn"]),
	}
}
