package doctor_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/template"
	"github.com/lifeboat-dev/lifeboat/internal/doctor"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// soundVariants are ways to write a wiring that is well.
func soundVariants() map[string]func(*snapshot.Snapshot) {
	queue, account := want.QueueARN(), testAccount
	policy := func(condition string) func(*snapshot.Snapshot) {
		return func(s *snapshot.Snapshot) {
			s.Queues[0].Policy = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},"Action":"sqs:SendMessage","Resource":"` + queue + `","Condition":` + condition + `}]}`
		}
	}
	patterns := func(edit func(string) string) func(*snapshot.Snapshot) {
		return func(s *snapshot.Snapshot) {
			for i := range s.Rules {
				s.Rules[i].Pattern = edit(s.Rules[i].Pattern)
			}
		}
	}
	return map[string]func(*snapshot.Snapshot){
		"as Lifeboat makes it":         func(*snapshot.Snapshot) {},
		"a policy for one account":     policy(`{"StringEquals":{"aws:SourceAccount":"` + account + `"}}`),
		"a policy for rules by prefix": policy(`{"ArnLike":{"aws:SourceArn":"arn:aws:events:` + testRegion + `:` + account + `:rule/lifeboat-prod-*"}}`),
		"a policy that also denies plain HTTP": func(s *snapshot.Snapshot) {
			s.Queues[0].Policy = `{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Principal":"*","Action":"sqs:*","Resource":"` + queue + `","Condition":{"Bool":{"aws:SecureTransport":"false"}}},` +
				`{"Effect":"Allow","Principal":{"Service":["events.amazonaws.com","sqs.amazonaws.com"]},"Action":["sqs:SendMessage"],"Resource":["*"],"Condition":{"StringEquals":{"aws:SourceAccount":["` + account + `"]}}}]}`
		},
		"patterns with their region": patterns(func(p string) string {
			return strings.Replace(p, `{"source"`, `{"region":["`+testRegion+`"],"source"`, 1)
		}),
		"patterns with their account": patterns(func(p string) string {
			return strings.Replace(p, `{"source"`, `{"account":["`+account+`"],"source"`, 1)
		}),
		"patterns without probes": patterns(func(p string) string { return strings.ReplaceAll(p, `,"lifeboat.dev"`, "") }),
		"a customer's key": func(s *snapshot.Snapshot) {
			s.Queues[0].ManagedSSE, s.Queues[0].KMSKey = false, "arn:aws:kms:"+testRegion+":"+account+":key/1234"
			s.Queues[0].KeyPolicy = `{"Statement":[{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},"Action":["kms:Decrypt","kms:GenerateDataKey"],"Resource":"*"}]}`
		},
	}
}

// findings reads files and checks them.
func findings(t *testing.T, files []template.File) (snapshot.Snapshot, []finding.Finding) {
	t.Helper()
	s, err := template.Read(files, template.Given{Account: testAccount, Region: testRegion})
	if err != nil {
		t.Fatalf("%v\n%s", err, files[0].Data)
	}
	return s, doctor.Run(s, awssetup.Desired("", testAccount, testRegion), doctor.Cluster{})
}

func TestSoundWiringsHaveNoFindings(t *testing.T) {
	n := 0
	for _, name := range slices.Sorted(maps.Keys(soundVariants())) {
		for syntax, write := range syntaxes() {
			s := sound(t)
			soundVariants()[name](&s)
			if s.Queues[0].KMSKey != "" && !syntax.keys {
				continue
			}
			files := write(s)
			_, all := findings(t, files)
			if n++; len(all) > 0 {
				t.Errorf("%s in %s:\n%s\n%s", name, syntax.name, text(all), files[0].Data)
			}
		}
	}
	t.Logf("%d sound wirings", n)
	if n < 60 {
		t.Errorf("only %d sound wirings", n)
	}
}

// mistake is one mistake, with the id of its finding.
type mistake struct {
	name, id string
	edit     func(*snapshot.Snapshot)
}

// inPattern returns a mistake in the pattern of the rule at an index.
func inPattern(rule int, from, to string) func(*snapshot.Snapshot) {
	return func(s *snapshot.Snapshot) {
		s.Rules[rule].Pattern = strings.ReplaceAll(s.Rules[rule].Pattern, from, to)
	}
}

func setPattern(rule int, text string) func(*snapshot.Snapshot) {
	return func(s *snapshot.Snapshot) { s.Rules[rule].Pattern = text }
}

func onAllTargets(edit func(*snapshot.Target)) func(*snapshot.Snapshot) {
	return func(s *snapshot.Snapshot) {
		for i := range s.Rules {
			for j := range s.Rules[i].Targets {
				edit(&s.Rules[i].Targets[j])
			}
		}
	}
}

// ruleFor returns the index of the rule that brings a detail-type.
func ruleFor(t *testing.T, detailType string) int {
	t.Helper()
	i := slices.IndexFunc(want.Rules, func(r awssetup.Rule) bool { return strings.Contains(r.Pattern, detailType) })
	if i < 0 {
		t.Fatalf("no rule for %s", detailType)
	}
	return i
}

func mistakes(t *testing.T) []mistake {
	spot, state := ruleFor(t, "EC2 Spot Instance Interruption Warning"), ruleFor(t, "EC2 Instance State-change Notification")
	health := ruleFor(t, "AWS Health Event")
	const warning = `{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning"]`
	queue := func(edit func(*snapshot.Queue)) func(*snapshot.Snapshot) {
		return func(s *snapshot.Snapshot) { edit(&s.Queues[0]) }
	}
	return []mistake{
		{"a misspelt detail-type", "rule-matches-nothing", inPattern(spot, "Spot Instance Interruption", "Spot Interruption")},
		{"a detail-type in lower case", "rule-matches-nothing", inPattern(spot, "EC2 Spot Instance Interruption Warning", "ec2 spot instance interruption warning")},
		{"detailType", "rule-matches-nothing", inPattern(spot, "detail-type", "detailType")},
		{"Source", "rule-matches-nothing", inPattern(spot, `"source"`, `"Source"`)},
		{"the domain of EC2 as the source", "rule-matches-nothing", inPattern(spot, "aws.ec2", "ec2.amazonaws.com")},
		{"the source of another service", "rule-matches-nothing", setPattern(spot, strings.Replace(warning, "aws.ec2", "aws.autoscaling", 1)+"}")},
		{"a node name as the instance", "rule-matches-nothing", setPattern(spot, warning+`,"detail":{"instance-id":[{"prefix":"ip-10-"}]}}`)},
		{"a resource with an account", "rule-matches-nothing", setPattern(spot, warning+`,"resources":[{"prefix":"arn:aws:ec2:eu-west-1:210987654321:instance/"}]}`)},
		{"an account in words", "rule-matches-nothing", setPattern(spot, warning+`,"account":["ACCOUNT_ID"]}`)},
		{"a zone as the region", "rule-matches-nothing", setPattern(spot, warning+`,"region":["eu-west-1a"]}`)},
		{"states in capitals", "rule-matches-nothing", inPattern(state, `"stopping","stopped","shutting-down","terminated"`, `"STOPPING"`)},
		{"Health in lower case", "rule-matches-nothing", setPattern(health, `{"source":["aws.health"],"detail-type":["AWS Health Event"],"detail":{"service":["ec2"]}}`)},
		{"a category in capitals", "rule-matches-nothing", setPattern(health, `{"source":["aws.health"],"detail-type":["AWS Health Event"],"detail":{"service":["EC2"],"eventTypeCategory":["SCHEDULEDCHANGE"]}}`)},
		{"a text for a list", "rule-pattern-invalid", setPattern(spot, `{"source":"aws.ec2","detail-type":["EC2 Spot Instance Interruption Warning"]}`)},
		{"an unknown operator", "rule-pattern-invalid", setPattern(spot, warning+`,"detail":{"instance-action":[{"equals":"terminate"}]}}`)},
		{"detail-types that exclude each other", "pattern-slip",
			setPattern(spot, `{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning","EC2 Instance State-change Notification"],"detail":{"state":["stopping"]}}`)},
		{"a name beside a misspelt one", "pattern-slip", setPattern(spot, `{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning","EC2 Instance Rebalance Recommendaton"]}`)},
		{"one instance", "kind-partly-covered", setPattern(spot, warning+`,"detail":{"instance-id":["i-0a1b2c3d4e5f60718"]}}`)},
		{"the resource of one instance", "kind-partly-covered", setPattern(spot, warning+`,"resources":["arn:aws:ec2:eu-west-1b:instance/i-0a1b2c3d4e5f60718"]}`)},
		{"a past year", "kind-partly-covered", setPattern(spot, warning+`,"time":[{"prefix":"2023"}]}`)},
		{"only stops", "kind-partly-covered", setPattern(spot, warning+`,"detail":{"instance-action":["stop"]}}`)},
		{"another region in the pattern", "kind-uncovered", setPattern(spot, warning+`,"region":["us-east-1"]}`)},
		{"no rule for spot", "kind-uncovered", func(s *snapshot.Snapshot) { s.Rules = slices.Delete(s.Rules, spot, spot+1) }},
		{"two rules for the same", "kind-covered-twice", func(s *snapshot.Snapshot) {
			r := s.Rules[spot]
			r.Name, r.ARN = r.Name+"-2", r.ARN+"-2"
			s.Rules = append(s.Rules, r)
			s.Queues[0].Policy = strings.ReplaceAll(s.Queues[0].Policy, s.Rules[spot].ARN+`"`, s.Rules[spot].ARN+`","`+r.ARN+`"`)
			s.Queues[1].Policy = strings.ReplaceAll(s.Queues[1].Policy, s.Rules[spot].ARN+`"`, s.Rules[spot].ARN+`","`+r.ARN+`"`)
		}},
		{"all state changes", "pattern-noise", setPattern(state, `{"source":["aws.ec2"],"detail-type":["EC2 Instance State-change Notification"]}`)},
		{"all of Health", "pattern-noise", setPattern(health, `{"source":["aws.health"],"detail-type":["AWS Health Event"]}`)},
		{"a disabled rule", "rule-disabled", func(s *snapshot.Snapshot) { s.Rules[spot].Enabled = false }},
		{"a custom bus", "rule-custom-bus", func(s *snapshot.Snapshot) {
			s.Rules[spot].Bus, s.Rules[spot].ARN = "nodes", strings.Replace(s.Rules[spot].ARN, "rule/", "rule/nodes/", 1)
		}},
		{"no target", "rule-no-target", func(s *snapshot.Snapshot) { s.Rules[spot].Targets = nil }},
		{"an input path", "target-input-changed", onAllTargets(func(t *snapshot.Target) { t.InputPath = "$.detail" })},
		{"an input", "target-input-changed", onAllTargets(func(t *snapshot.Target) { t.Input = `{"a":1}` })},
		{"an input transformer", "target-input-changed", onAllTargets(func(t *snapshot.Target) { t.Transformed = true })},
		{"a role", "target-role", onAllTargets(func(t *snapshot.Target) { t.RoleARN = "arn:aws:iam::210987654321:role/r" })},
		{"no dead-letter queue of the targets", "target-dead-letter-missing", onAllTargets(func(t *snapshot.Target) { t.DeadLetterARN = "" })},
		{"a closed dead-letter queue", "target-dead-letter-refuses", func(s *snapshot.Snapshot) { s.Queues[1].Policy = "" }},
		{"no policy", "queue-policy-refuses", queue(func(q *snapshot.Queue) { q.Policy = "" })},
		{"a policy for other rules", "queue-policy-refuses", queue(func(q *snapshot.Queue) { q.Policy = strings.ReplaceAll(q.Policy, "rule/lifeboat", "rule/other") })},
		{"a policy for another account", "queue-policy-refuses", queue(func(q *snapshot.Queue) {
			q.Policy = `{"Statement":[{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},"Action":"sqs:SendMessage","Resource":"*","Condition":{"StringEquals":{"aws:SourceAccount":"111122223333"}}}]}`
		})},
		{"a policy for another action", "queue-policy-refuses", queue(func(q *snapshot.Queue) {
			q.Policy = strings.ReplaceAll(q.Policy, "sqs:SendMessage", "sqs:ReceiveMessage")
		})},
		{"a policy that denies all", "queue-policy-refuses", queue(func(q *snapshot.Queue) {
			q.Policy = strings.Replace(q.Policy, `"Statement":[`, `"Statement":[{"Effect":"Deny","Principal":"*","Action":"sqs:*","Resource":"*"},`, 1)
		})},
		{"an open policy", "queue-policy-open", queue(func(q *snapshot.Queue) {
			q.Policy = `{"Statement":[{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},"Action":"sqs:SendMessage","Resource":"` + q.ARN + `"}]}`
		})},
		{"a policy for anyone", "queue-policy-open", queue(func(q *snapshot.Queue) {
			q.Policy = `{"Statement":[{"Effect":"Allow","Principal":"*","Action":"sqs:*","Resource":"` + q.ARN + `"}]}`
		})},
		{"the key of SQS", "queue-encryption-aws-key", queue(func(q *snapshot.Queue) { q.KMSKey, q.ManagedSSE = "alias/aws/sqs", false })},
		{"no encryption", "queue-unencrypted", queue(func(q *snapshot.Queue) { q.ManagedSSE = false })},
		{"a short retention", "queue-retention-short", queue(func(q *snapshot.Queue) { q.Retention = 300e9 })},
		{"a long visibility timeout", "queue-visibility-long", queue(func(q *snapshot.Queue) { q.Visibility = 300e9 })},
		{"a delay", "queue-delay", queue(func(q *snapshot.Queue) { q.Delay = 60e9 })},
		{"small messages", "queue-message-size", queue(func(q *snapshot.Queue) { q.MaximumSize = 1024 })},
		{"no dead-letter queue", "dead-letter-missing", queue(func(q *snapshot.Queue) { q.DeadLetterARN, q.MaxReceives = "", 0 })},
		{"few receives", "dead-letter-max-receives", queue(func(q *snapshot.Queue) { q.MaxReceives = 1 })},
		{"a short-lived dead-letter queue", "dead-letter-retention-short", func(s *snapshot.Snapshot) { s.Queues[1].Retention = 3600e9 }},
	}
}

// Every mistake is found in every syntax, and its fix removes it.
func TestBrokenWiringsAreFound(t *testing.T) {
	n, verified := 0, 0
	for _, m := range mistakes(t) {
		for syntax, write := range syntaxes() {
			if !syntax.broken {
				continue
			}
			s := sound(t)
			m.edit(&s)
			read, all := findings(t, write(s))
			i := slices.IndexFunc(all, func(f finding.Finding) bool { return f.ID == m.id })
			if n++; i < 0 {
				t.Errorf("%s in %s: no %s\n%s", m.name, syntax.name, m.id, text(all))
				continue
			}
			if after, changed := doctor.Apply(all[i], read); changed {
				verified++
				for _, f := range doctor.Run(after, awssetup.Desired("", testAccount, testRegion), doctor.Cluster{}) {
					if f.ID == m.id && f.Object == all[i].Object {
						t.Errorf("%s in %s: %s remains after %s", m.name, syntax.name, m.id, all[i].Fix)
					}
				}
			} else if !slices.Contains([]string{"kind-covered-twice", "rule-matches-nothing", "rule-pattern-invalid"}, m.id) {
				t.Errorf("%s in %s: the fix cannot be verified: %s", m.name, syntax.name, all[i].Fix)
			}
		}
	}
	t.Logf("%d broken wirings, %d fixes verified", n, verified)
	if n < 120 {
		t.Errorf("only %d broken wirings", n)
	}
}

// syntax is a way to write a wiring in files.
type syntax struct {
	name string
	// keys means that it has KMS keys; broken means that the broken wirings are written
	// in it.
	keys, broken bool
}

func syntaxes() map[syntax]func(snapshot.Snapshot) []template.File {
	one := func(name string, write func(snapshot.Snapshot) string) func(snapshot.Snapshot) []template.File {
		return func(s snapshot.Snapshot) []template.File {
			return []template.File{{Name: name, Data: []byte(write(s))}}
		}
	}
	return map[syntax]func(snapshot.Snapshot) []template.File{
		{"CloudFormation in JSON", true, true}:  one("template.json", func(s snapshot.Snapshot) string { return encode(cloudFormation(s, nil)) }),
		{"CloudFormation in YAML", true, false}: one("template.yaml", func(s snapshot.Snapshot) string { return yamlOf(cloudFormation(s, nil)) }),
		{"CloudFormation with attributes", true, false}: one("refs.json", func(s snapshot.Snapshot) string {
			return encode(cloudFormation(s, func(id string) string { return `{"Fn::GetAtt":["` + id + `","Arn"]}` }))
		}),
		{"SAM", true, false}: one("sam.yaml", func(s snapshot.Snapshot) string {
			root := cloudFormation(s, nil)
			root["Transform"] = "AWS::Serverless-2016-10-31"
			return yamlOf(root)
		}),
		{"Terraform in JSON", true, false}:         one("main.tf.json", func(s snapshot.Snapshot) string { return encode(map[string]any{"resource": terraformOf(s, true)}) }),
		{"Terraform in HCL", true, true}:           one("infra/main.tf", func(s snapshot.Snapshot) string { return hclOf(terraformOf(s, true)) }),
		{"a state of Terraform", true, true}:       one("state.json", func(s snapshot.Snapshot) string { return shown("values", terraformOf(s, false)) }),
		{"a plan of Terraform", true, false}:       one("plan.json", func(s snapshot.Snapshot) string { return shown("planned_values", terraformOf(s, false)) }),
		{"the output of the AWS CLI", false, true}: one("wiring.json", awsOutput),
	}
}

func encode(v any) string {
	text, err := jsonText(v)
	if err != nil {
		panic(fmt.Sprintf("encoding a fixture: %v", err))
	}
	return text
}
