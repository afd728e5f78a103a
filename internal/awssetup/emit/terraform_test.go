package emit_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/emit"
)

// tfFile is the allowed content of a Terraform file; other keys are an error.
type tfFile struct {
	Comment string `json:"//"`
	Data    map[string]map[string]struct{}
	Output  map[string]struct{ Value, Description string }

	Resource struct {
		Queues map[string]struct {
			Name       string
			Tags       map[string]string
			Retention  json.Number `json:"message_retention_seconds"`
			Visibility json.Number `json:"visibility_timeout_seconds"`
			Wait       json.Number `json:"receive_wait_time_seconds"`
			Delay      json.Number `json:"delay_seconds"`
			SSE        bool        `json:"sqs_managed_sse_enabled"`
			Redrive    string      `json:"redrive_policy"`
		} `json:"aws_sqs_queue"`
		Policies map[string]struct {
			URL    string `json:"queue_url"`
			Policy string
		} `json:"aws_sqs_queue_policy"`
		Allow map[string]struct {
			URL    string `json:"queue_url"`
			Policy string `json:"redrive_allow_policy"`
		} `json:"aws_sqs_queue_redrive_allow_policy"`
		Rules map[string]struct {
			Name, Description string
			Tags              map[string]string
			Pattern           string `json:"event_pattern"`
		} `json:"aws_cloudwatch_event_rule"`
		Targets map[string]struct {
			Rule       string
			ID         string `json:"target_id"`
			ARN        string
			DeadLetter struct{ ARN string } `json:"dead_letter_config"`
			DependsOn  []string             `json:"depends_on"`
		} `json:"aws_cloudwatch_event_target"`
	}
}

func TestTerraformCreatesDesiredWiring(t *testing.T) {
	for _, p := range []emit.Place{{}, {Account: account, Region: region}} {
		// The provider would replace the references.
		text := strings.NewReplacer(
			"${data.aws_caller_identity.lifeboat_prod.account_id}", account,
			"${data.aws_region.lifeboat_prod.id}", region,
			"${data.aws_partition.lifeboat_prod.partition}", "aws",
			"${aws_sqs_queue.lifeboat_prod.arn}", "arn:aws:sqs:eu-west-1:210987654321:lifeboat-prod",
			"${aws_sqs_queue.lifeboat_prod_dead_letter.arn}", "arn:aws:sqs:eu-west-1:210987654321:lifeboat-prod-dead-letter",
		).Replace(string(emitted(t, emit.Terraform, p)))
		d := json.NewDecoder(strings.NewReader(text))
		d.DisallowUnknownFields()
		var file tfFile
		if err := d.Decode(&file); err != nil {
			t.Fatal(err)
		}
		if asks := len(file.Data); asks != map[bool]int{true: 3, false: 0}[p.Region == ""] {
			t.Errorf("%d data sources", asks)
		}
		checkDesired(t, fromTerraform(t, file))
	}
}

func fromTerraform(t *testing.T, file tfFile) awssetup.Observed {
	t.Helper()
	queue := func(label string) awssetup.ObservedQueue {
		q := file.Resource.Queues[label]
		if url := file.Resource.Policies[label].URL; url != "${aws_sqs_queue."+label+".id}" {
			t.Errorf("the policy of %s is put on %s", label, url)
		}
		return awssetup.ObservedQueue{URL: "https://" + q.Name, Tags: q.Tags, Attributes: map[string]string{
			"Policy": file.Resource.Policies[label].Policy, "RedrivePolicy": q.Redrive, "RedriveAllowPolicy": file.Resource.Allow[label].Policy,
			"MessageRetentionPeriod": string(q.Retention), "VisibilityTimeout": string(q.Visibility), "ReceiveMessageWaitTimeSeconds": string(q.Wait),
			"DelaySeconds": string(q.Delay), "SqsManagedSseEnabled": fmt.Sprint(q.SSE),
		}}
	}
	o := awssetup.Observed{Queue: queue("lifeboat_prod"), DeadLetter: queue("lifeboat_prod_dead_letter")}
	for label, r := range file.Resource.Rules {
		target := file.Resource.Targets[label]
		if target.Rule != "${aws_cloudwatch_event_rule."+label+".name}" || len(target.DependsOn) != 2 {
			t.Errorf("the target of %s is one of %s, after %v", label, target.Rule, target.DependsOn)
		}
		o.Rules = append(o.Rules, awssetup.ObservedRule{
			Name: r.Name, Description: r.Description, Pattern: r.Pattern, State: "ENABLED", Tags: r.Tags,
			Targets: []awssetup.Target{{ID: target.ID, ARN: target.ARN, DeadLetterARN: target.DeadLetter.ARN}},
		})
	}
	return o
}

func TestLabelsAreValidForAnyCluster(t *testing.T) {
	for _, cluster := range []string{"k8s.example.com", strings.Repeat("x", 90)} {
		text, err := emit.Terraform(cluster, emit.Place{})
		if err != nil {
			t.Fatal(err)
		}
		var file struct {
			Resource map[string]map[string]any
		}
		if err := json.Unmarshal(text, &file); err != nil {
			t.Fatal(err)
		}
		for kind, labels := range file.Resource {
			for label := range labels {
				if strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
					t.Errorf("cluster %s: %s has the label %q", cluster, kind, label)
				}
			}
		}
	}
}
