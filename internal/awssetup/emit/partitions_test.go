package emit_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/emit"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/iam"
)

// Every ARN of a template and of a policy must be in the partition of the region, and a template
// without a region must leave the partition open.
func TestTemplatesFitPartitions(t *testing.T) {
	arn := regexp.MustCompile(`arn:(\$\{[^}]*\}|[^:"]*):`)
	for region, partition := range map[string]string{
		"eu-west-1": "aws", "cn-north-1": "aws-cn", "us-gov-west-1": "aws-us-gov", "us-iso-east-1": "aws-iso", "us-isob-east-1": "aws-iso-b",
		"eu-isoe-west-1": "aws-iso-e", "us-isof-south-1": "aws-iso-f", "eusc-de-east-1": "aws-eusc",
		"": "open",
	} {
		t.Run(partition, func(t *testing.T) {
			texts := map[string][]byte{}
			for _, topic := range []string{"", "shared"} {
				place := emit.Place{Topic: topic, Groups: twoGroups(), Role: emit.Role{Identity: emit.PodIdentity, Canary: true, KarpenterQueue: "karpenter"}}
				if region != "" {
					place.Account, place.Region = account, region
				}
				texts["CloudFormation "+topic] = emitted(t, emit.CloudFormation, place)
				texts["Terraform "+topic] = emitted(t, emit.Terraform, place)
			}
			if region != "" {
				w := awssetup.Desired("prod", account, region)
				for name, document := range map[string]iam.Document{"controller": iam.Controller(w, true), "trust": iam.PodIdentity(w)} {
					text, err := json.Marshal(document)
					if err != nil {
						t.Fatal(err)
					}
					texts[name] = text
				}
			}
			if text := string(texts["CloudFormation shared"]); strings.Count(text, `"DependsOn": [
        "Subscription"
      ]`) != 3 {
				t.Errorf("the three hooks do not wait for the subscription: %s", text)
			}
			if text := string(texts["Terraform shared"]); strings.Count(text, `"aws_sns_topic_subscription.lifeboat_prod"`) != 3 {
				t.Errorf("the three hooks do not wait for the subscription: %s", text)
			}
			for name, text := range texts {
				for _, match := range arn.FindAllSubmatch(text, -1) {
					got := string(match[1])
					switch open := got == "${AWS::Partition}" || got == "${data.aws_partition.lifeboat_prod.partition}"; {
					case region == "" && !open, region != "" && got != partition:
						t.Errorf("%s: %s, which is in the partition %q", name, match[0], got)
					}
				}
			}
		})
	}
}
