package template

import (
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/wiring/snapshot"
)

// awsCLI reads what `aws events list-rules`, `describe-rule` and
// `list-targets-by-rule`, and `aws sqs get-queue-attributes` print.
func (b *builder) awsCLI(file string, root map[string]any) {
	switch {
	case root["Rules"] != nil:
		for _, r := range items(root["Rules"]) {
			b.cliRule(object(r))
		}
	case root["EventPattern"] != nil || root["EventBusName"] != nil:
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
			b.addQueue(q)
			b.learn(q.ARN)
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
	}
	b.addRule(rule)
	b.learn(rule.ARN)
}

// learn takes the place from an ARN that AWS printed, where it was not given.
func (b *builder) learn(arn string) {
	if account := snapshot.Part(arn, 4); b.place.Account == "" && account != "" {
		b.place.Account = account
	}
	if region := snapshot.Part(arn, 3); b.place.Region == "" && region != "" {
		b.place.Region = region
	}
}

// cliTargets reads targets. The AWS CLI does not print whose they are: they belong
// to the rule that describe-rule printed before them in the same file, or to the
// one that the file is named after, or to the only one there is.
func (b *builder) cliTargets(file string, root map[string]any) {
	b.pieces++
	rule := b.described
	for _, r := range b.out.Rules {
		if rule == "" && (strings.Contains(file, r.Name) || len(b.out.Rules) == 1) {
			rule = r.Name
		}
	}
	if rule == "" {
		b.unread(file, "the AWS CLI does not print whose targets these are: put what `aws events describe-rule` prints before them")
		return
	}
	for _, t := range items(root["Targets"]) {
		b.targets = append(b.targets, looseTarget{rule: rule, to: target(object(t))})
	}
	for i := range b.out.Rules {
		if b.out.Rules[i].Name == rule {
			b.out.Rules[i].TargetsKnown = true
		}
	}
}

// target reads a target as EventBridge's API and CloudFormation write it.
func target(t map[string]any) snapshot.Target {
	return snapshot.Target{
		ID: str(t["Id"]), ARN: str(t["Arn"]), RoleARN: str(t["RoleArn"]),
		Input: jsonText(t["Input"]), InputPath: str(t["InputPath"]), Transformed: t["InputTransformer"] != nil,
		GroupID:       str(object(t["SqsParameters"])["MessageGroupId"]),
		DeadLetterARN: str(object(t["DeadLetterConfig"])["Arn"]),
	}
}
