package emit_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/emit"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const (
	account = "210987654321"
	region  = "eu-west-1"
)

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("differs from %s; go test -update rewrites it (-want +got):\n%s", path, diff)
	}
}

func emitted(t *testing.T, write func(string, emit.Place) ([]byte, error), p emit.Place) []byte {
	t.Helper()
	out, err := write("prod", p)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestGolden(t *testing.T) {
	anywhere, here := emit.Place{}, emit.Place{Account: account, Region: region}
	template := emitted(t, emit.CloudFormation, anywhere)
	asYAML, err := emit.YAML(template)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "cloudformation.yaml", asYAML)
	golden(t, "cloudformation-here.json", emitted(t, emit.CloudFormation, here))
	golden(t, "terraform.tf.json", emitted(t, emit.Terraform, anywhere))
	golden(t, "terraform-here.tf.json", emitted(t, emit.Terraform, here))
	golden(t, "wiring.json", emitted(t, emit.JSON, anywhere))
	podIdentity, irsa := anywhere, here
	podIdentity.Role = emit.Role{Identity: emit.PodIdentity, Canary: true}
	irsa.Role = emit.Role{Identity: emit.IRSA, Issuer: "https://oidc.eks.eu-west-1.amazonaws.com/id/EXAMPLE", KarpenterQueue: "karpenter-prod"}
	golden(t, "role-cloudformation.json", emitted(t, emit.CloudFormation, podIdentity))
	golden(t, "role-cloudformation-here.json", emitted(t, emit.CloudFormation, irsa))
	golden(t, "role-terraform.tf.json", emitted(t, emit.Terraform, podIdentity))
	golden(t, "role-terraform-here.tf.json", emitted(t, emit.Terraform, irsa))
	few := here
	few.FewRules = true
	golden(t, "few-rules-cloudformation.json", emitted(t, emit.CloudFormation, few))
	few.Groups = twoGroups()
	golden(t, "few-rules-terraform.tf.json", emitted(t, emit.Terraform, few))
	shared, sharedHere := anywhere, here
	shared.Topic, sharedHere.Topic = "lifeboat-shared", "lifeboat-shared"
	shared.Role = emit.Role{Identity: emit.PodIdentity}
	golden(t, "shared-cluster-cloudformation.json", emitted(t, emit.CloudFormation, shared))
	golden(t, "shared-cluster-terraform.tf.json", emitted(t, emit.Terraform, shared))
	golden(t, "shared-cluster-wiring.json", emitted(t, emit.JSON, sharedHere))
	alone := func(write func(emit.Place) ([]byte, error)) func(string, emit.Place) ([]byte, error) {
		return func(_ string, p emit.Place) ([]byte, error) { return write(p) }
	}
	golden(t, "shared-cloudformation.json", emitted(t, alone(emit.SharedCloudFormation), shared))
	golden(t, "shared-terraform.tf.json", emitted(t, alone(emit.SharedTerraform), sharedHere))
	groups := emit.Place{Account: account, Region: region, Groups: twoGroups()}
	golden(t, "groups-cloudformation.json", emitted(t, emit.CloudFormation, groups))
	golden(t, "groups-terraform.tf.json", emitted(t, emit.Terraform, groups))
	golden(t, "groups-wiring.json", emitted(t, emit.JSON, groups))
}

// twoGroups are groups with the usual hooks, and with others.
func twoGroups() []emit.Group {
	return []emit.Group{
		{Name: "nodes-a", Hooks: []emit.Hook{
			{Name: "lifeboat-launch", Timeout: 10 * time.Minute, Abandons: true}, {Name: "lifeboat-terminate", Terminating: true, Timeout: 5 * time.Minute},
		}},
		{Name: "nodes b/c", Hooks: []emit.Hook{{Name: "drain", Terminating: true, Timeout: time.Hour, Abandons: true}}},
	}
}

// Too many groups are an error, not a rule that EventBridge refuses.
func TestTooManyGroups(t *testing.T) {
	var p emit.Place
	for i := range 100 {
		p.Groups = append(p.Groups, emit.Group{Name: fmt.Sprintf("an-auto-scaling-group-%d", i)})
	}
	for name, write := range map[string]func(string, emit.Place) ([]byte, error){"CloudFormation": emit.CloudFormation, "Terraform": emit.Terraform, "JSON": emit.JSON} {
		var many *awssetup.TooManyGroupsError
		if _, err := write("prod", p); !errors.As(err, &many) || many.Groups != 100 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A hook in initial_lifecycle_hook and its separate resource must be equal, so that
// their order does not matter.
func TestTerraformHooksAreEqualInGroupAndResource(t *testing.T) {
	var file struct {
		Locals   map[string]map[string][]map[string]any
		Resource struct {
			Hooks map[string]map[string]any `json:"aws_autoscaling_lifecycle_hook"`
		}
	}
	if err := json.Unmarshal(emitted(t, emit.Terraform, emit.Place{Groups: twoGroups()}), &file); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, hook := range file.Resource.Hooks {
		group, _ := hook["autoscaling_group_name"].(string)
		delete(hook, "autoscaling_group_name")
		delete(hook, "depends_on")
		initial := file.Locals["lifeboat_prod_initial_lifecycle_hooks"][group]
		if !slices.ContainsFunc(initial, func(h map[string]any) bool { return cmp.Equal(h, hook) }) {
			t.Errorf("%v of %s is not among %v", hook, group, initial)
		}
		seen++
	}
	if seen != 3 {
		t.Errorf("%d hooks", seen)
	}
}

// checkDesired checks that `lifeboat aws` finds nothing to change in the resources
// of a template, although it does not manage them.
func checkDesired(t *testing.T, o awssetup.Observed) {
	t.Helper()
	w := awssetup.Desired("prod", account, region)
	slices.SortFunc(o.Rules, func(a, b awssetup.ObservedRule) int { return strings.Compare(a.Name, b.Name) })
	plan, err := awssetup.Diff(w, o, awssetup.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !plan.Empty() {
		t.Errorf("unexpected differences: changes %+v, conflicts %+v", plan.Changes, plan.Conflicts)
	}
	if len(o.Rules) != len(w.Rules) || len(plan.Notes) != len(w.Rules)+2 {
		t.Errorf("%d rules, notes %v", len(o.Rules), plan.Notes)
	}
	if plan := awssetup.Teardown(w, o, awssetup.Options{}); !plan.Empty() {
		t.Errorf("`lifeboat aws destroy` would delete resources of the template: %+v", plan.Changes)
	}
}

// resource is a resource of a CloudFormation template.
type resource struct {
	Type       string
	Properties struct {
		QueueName, Name, Description, State string
		EventPattern, PolicyDocument        json.RawMessage
		RedrivePolicy, RedriveAllowPolicy   json.RawMessage
		MessageRetentionPeriod              json.Number
		VisibilityTimeout                   json.Number
		ReceiveMessageWaitTimeSeconds       json.Number
		DelaySeconds                        json.Number
		SqsManagedSseEnabled                bool
		Queues                              []string
		Tags                                []struct{ Key, Value string }
		Targets                             []struct {
			ID               string `json:"Id"`
			ARN              string `json:"Arn"`
			DeadLetterConfig struct {
				ARN string `json:"Arn"`
			}
		}
	}
}

func (r resource) tags() map[string]string {
	out := map[string]string{}
	for _, tag := range r.Properties.Tags {
		out[tag.Key] = tag.Value
	}
	return out
}

// resolve evaluates Ref, Fn::Sub and Fn::GetAtt like CloudFormation.
func resolve(t *testing.T, v any, names map[string]string) any {
	t.Helper()
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = resolve(t, v[i], names)
		}
	case map[string]any:
		if len(v) == 1 {
			if text, ok := v["Fn::Sub"].(string); ok {
				return strings.NewReplacer("${AWS::AccountId}", account, "${AWS::Region}", region, "${AWS::Partition}", "aws").Replace(text)
			}
			if name, ok := v["Ref"].(string); ok && names[name] != "" {
				return name
			}
			if at, ok := v["Fn::GetAtt"].([]any); ok && names[at[0].(string)] != "" && at[1] == "Arn" {
				return fmt.Sprintf("arn:aws:sqs:%s:%s:%s", region, account, names[at[0].(string)])
			}
		}
		for key := range v {
			if strings.HasPrefix(key, "Fn::") || key == "Ref" {
				t.Fatalf("%v refers to nothing", v)
			}
			v[key] = resolve(t, v[key], names)
		}
	}
	return v
}

func TestCloudFormationCreatesDesiredWiring(t *testing.T) {
	for _, p := range []emit.Place{{}, {Account: account, Region: region}} {
		text := emitted(t, emit.CloudFormation, p)
		asYAML, err := emit.YAML(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range [][]byte{text, asYAML} {
			checkDesired(t, fromCloudFormation(t, document))
		}
	}
}

func fromCloudFormation(t *testing.T, document []byte) awssetup.Observed {
	t.Helper()
	var raw map[string]any
	if err := yaml.Unmarshal(document, &raw); err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for name, r := range raw["Resources"].(map[string]any) {
		if queue, ok := r.(map[string]any)["Properties"].(map[string]any)["QueueName"].(string); ok {
			names[name] = queue
		}
	}
	flat, err := json.Marshal(resolve(t, raw, names))
	if err != nil {
		t.Fatal(err)
	}
	var template struct{ Resources map[string]resource }
	if err := json.Unmarshal(flat, &template); err != nil {
		t.Fatal(err)
	}
	var o awssetup.Observed
	policies := map[string]string{}
	for _, r := range template.Resources {
		if r.Type == "AWS::SQS::QueuePolicy" {
			policies[r.Properties.Queues[0]] = string(r.Properties.PolicyDocument)
		}
	}
	for name, r := range template.Resources {
		p := r.Properties
		switch r.Type {
		case "AWS::SQS::QueuePolicy":
		case "AWS::SQS::Queue":
			q := awssetup.ObservedQueue{URL: "https://" + p.QueueName, Tags: r.tags(), Attributes: map[string]string{
				"Policy": policies[name], "RedrivePolicy": string(p.RedrivePolicy), "RedriveAllowPolicy": string(p.RedriveAllowPolicy),
				"MessageRetentionPeriod": string(p.MessageRetentionPeriod), "VisibilityTimeout": string(p.VisibilityTimeout),
				"ReceiveMessageWaitTimeSeconds": string(p.ReceiveMessageWaitTimeSeconds), "DelaySeconds": string(p.DelaySeconds),
				"SqsManagedSseEnabled": fmt.Sprint(p.SqsManagedSseEnabled),
			}}
			if strings.HasSuffix(p.QueueName, "-dead-letter") {
				o.DeadLetter = q
			} else {
				o.Queue = q
			}
		case "AWS::Events::Rule":
			rule := awssetup.ObservedRule{Name: p.Name, Description: p.Description, State: p.State, Pattern: string(p.EventPattern), Tags: r.tags()}
			for _, target := range p.Targets {
				rule.Targets = append(rule.Targets, awssetup.Target{ID: target.ID, ARN: target.ARN, DeadLetterARN: target.DeadLetterConfig.ARN})
			}
			o.Rules = append(o.Rules, rule)
		default:
			t.Errorf("resource %s is a %s", name, r.Type)
		}
	}
	return o
}
