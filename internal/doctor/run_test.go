package doctor_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/emit"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/template"
	"github.com/lifeboat-dev/lifeboat/internal/doctor"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

const (
	testAccount = "210987654321"
	testRegion  = "eu-west-1"
)

var want = awssetup.Desired("prod", testAccount, testRegion)

// sound is Lifeboat's own wiring.
func sound(t *testing.T) snapshot.Snapshot {
	t.Helper()
	policies := map[string]string{}
	attributes := map[string]func() (map[string]string, error){"queue": want.QueueAttributes, "dead": want.DeadLetterAttributes}
	for name, read := range attributes {
		a, err := read()
		if err != nil {
			t.Fatal(err)
		}
		policies[name] = a["Policy"]
	}
	s := snapshot.Snapshot{
		Account: testAccount, Region: testRegion, Queue: want.QueueARN(),
		Queues: []snapshot.Queue{
			{
				ARN: want.QueueARN(), Name: want.Queue.Name, Known: true, PolicyKnown: true, Policy: policies["queue"],
				Retention: want.Queue.Retention, Visibility: want.Queue.Visibility, MaximumSize: 1 << 20, ManagedSSE: true,
				DeadLetterARN: want.DeadLetterARN(), MaxReceives: want.Queue.MaxReceives,
			},
			{
				ARN: want.DeadLetterARN(), Name: want.DeadLetter.Name, Known: true, PolicyKnown: true, Policy: policies["dead"],
				Retention: want.DeadLetter.Retention, ManagedSSE: true,
			},
		},
	}
	for _, r := range want.Rules {
		s.Rules = append(s.Rules, snapshot.Rule{
			Name: r.Name, ARN: want.RuleARN(r.Name), Bus: "default", Enabled: true, Pattern: r.Pattern, TargetsKnown: true,
			Targets: []snapshot.Target{{ID: "lifeboat-queue", ARN: want.QueueARN(), DeadLetterARN: want.DeadLetterARN()}},
		})
	}
	return s
}

// zero returns a pointer to zero.
func zero() *int { return new(int) }

func TestRun(t *testing.T) {
	type change func(*snapshot.Snapshot, *doctor.Cluster)
	spot := func(edit func(*snapshot.Rule)) change {
		return func(s *snapshot.Snapshot, _ *doctor.Cluster) { edit(&s.Rules[0]) }
	}
	queue := func(edit func(*snapshot.Queue)) change {
		return func(s *snapshot.Snapshot, _ *doctor.Cluster) { edit(&s.Queues[0]) }
	}
	pattern := func(text string) change { return spot(func(r *snapshot.Rule) { r.Pattern = text }) }
	around := func(edit func(*doctor.Cluster)) change {
		return func(_ *snapshot.Snapshot, c *doctor.Cluster) { edit(c) }
	}
	const (
		rule = " rule lifeboat-prod-spot-interruption"
		main = " queue lifeboat-prod"
		kind = " kind SpotInterruption"
	)
	for _, tc := range []struct {
		name   string
		change change
		want   []string
		text   string // a part of the first finding's problem or fix
	}{
		{"sound wiring has no findings", func(*snapshot.Snapshot, *doctor.Cluster) {}, []string{}, ""},
		{"only two of the three actions", pattern(`{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning"],"detail":{"instance-action":["terminate","stop"]}}`),
			[]string{"warning kind-partly-covered" + kind}, "spot-interruption-warning (hibernate)"},
		{"one instance only", pattern(`{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning"],"detail":{"instance-id":["i-1"]}}`),
			[]string{"broken kind-partly-covered" + kind}, "a particular detail.instance-id"},
		{"only the stop action", pattern(`{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning"],"detail":{"instance-action":["stop"]}}`),
			[]string{"broken kind-partly-covered" + kind}, "most notices are lost"},
		{"a zone as region", pattern(`{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning"],"region":["us-east-1a"]}`),
			[]string{"broken rule-matches-nothing" + rule}, "it is not an AWS region"},
		{"a policy for a foreign account, and no other senders", queue(func(q *snapshot.Queue) {
			q.Policy = strings.Replace(q.Policy, `"Statement":[`, `"Statement":[{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},"Action":"sqs:SendMessage","Resource":"*"},`, 1)
		}), []string{}, ""},
		{"a policy for one foreign account", queue(func(q *snapshot.Queue) {
			allowed, _, _ := strings.Cut(q.Policy, `,{"Sid":"DenyPlainHTTP"`)
			q.Policy = strings.Replace(allowed+"]}", `"Statement":[`, `"Statement":[{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},"Action":"sqs:SendMessage","Resource":"*","Condition":{"StringEquals":{"aws:SourceAccount":"999999999999"}}},`, 1)
		}), []string{"warning queue-policy-open" + main}, "the rules of the account 999999999999"},
		{"a policy that denies no sender", queue(func(q *snapshot.Queue) {
			allowed, _, _ := strings.Cut(q.Policy, `,{"Sid":"DenyPlainHTTP"`)
			q.Policy = allowed + "]}"
		}), []string{"warning queue-policy-undenied" + main}, "principals of the account that may send to all queues (DenyOtherSenders): they can forge notices, which drain nodes, and requests without TLS"},
		{"a policy that denies plain HTTP only", queue(func(q *snapshot.Queue) {
			allowed, _, _ := strings.Cut(q.Policy, `,{"Sid":"DenyOtherSenders"`)
			q.Policy = allowed + "]}"
		}), []string{"warning queue-policy-undenied" + main}, "does not deny principals"},
		{"the name of a service in place of the source", pattern(`{"source":["ec2.amazonaws.com"],"detail-type":["EC2 Spot Instance Interruption Warning"]}`),
			[]string{"broken rule-matches-nothing" + rule}, `"aws.ec2"`},
		{"a schedule also fills the queue", func(s *snapshot.Snapshot, _ *doctor.Cluster) {
			s.Rules = append(s.Rules, snapshot.Rule{Name: "nightly", ARN: want.RuleARN(s.Rules[0].Name), Enabled: true, Scheduled: true, TargetsKnown: true, Targets: s.Rules[0].Targets})
		}, []string{}, ""},
		{"another account's events", pattern(`{"source":["aws.ec2"],"account":["999999999999"],"detail-type":["EC2 Spot Instance Interruption Warning"]}`),
			[]string{"broken kind-uncovered" + kind}, "no rule delivers such notices"},
		{"by wildcard", pattern(`{"source":["aws.ec2"],"detail-type":[{"wildcard":"EC2 Spot Instance*Warning"}]}`), []string{}, ""},
		{"one of two names is misspelt", pattern(`{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning","EC2 Instance Rebalance Recomendation"]}`),
			[]string{"broken pattern-slip" + rule}, `did you mean "EC2 Instance Rebalance Recommendation"`},
		{"a value that AWS does not document", pattern(`{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning"],"detail":{"instance-action":["terminate","stop","hibernate","explode"]}}`),
			[]string{"warning pattern-doubt" + rule}, "explode"},
		{"no pattern", pattern(""), []string{"broken rule-pattern-invalid" + rule}, "no event pattern"},
		{"in another region", spot(func(r *snapshot.Rule) { r.ARN = "arn:aws:events:us-west-2:210987654321:rule/x" }),
			[]string{"broken rule-other-region" + rule, "broken target-other-region" + rule, "broken queue-policy-refuses" + main, "warning target-dead-letter-refuses queue lifeboat-prod-dead-letter"}, "it is in us-west-2"},
		{"delivered with a role", spot(func(r *snapshot.Rule) {
			r.ARN, r.Targets[0].RoleARN = "arn:aws:events:eu-west-1:210987654321:rule/x", "arn:aws:iam::210987654321:role/r"
		}), []string{"warning target-dead-letter-refuses queue lifeboat-prod-dead-letter", "info target-role" + rule}, ""},
		{"a fixed input", spot(func(r *snapshot.Rule) { r.Targets[0].Input = `{}` }), []string{"broken target-input-changed" + rule}, "has an Input,"},
		{"the whole event as input path", spot(func(r *snapshot.Rule) { r.Targets[0].InputPath = "$" }), []string{}, ""},
		{"no dead-letter queue for the target", spot(func(r *snapshot.Rule) { r.Targets[0].DeadLetterARN = "" }), []string{"info target-dead-letter-missing" + main}, ""},
		{"FIFO with a group, but not deduplicated", queue(func(q *snapshot.Queue) { q.FIFO = true }), append(slices.Repeat([]string{"broken target-fifo-without-group"}, 8), "warning queue-fifo"+main), ""},
		{"not encrypted", queue(func(q *snapshot.Queue) { q.ManagedSSE = false }), []string{"info queue-unencrypted" + main}, "SSE-SQS"},
		{"no dead-letter queue", queue(func(q *snapshot.Queue) { q.DeadLetterARN = "" }), []string{"warning dead-letter-missing" + main}, ""},
		{"the dead-letter queue has the same retention", func(s *snapshot.Snapshot, _ *doctor.Cluster) { s.Queues[1].Retention = s.Queues[0].Retention },
			[]string{"warning dead-letter-retention-short queue lifeboat-prod-dead-letter"}, "4 days"},
		{"a policy that is not JSON", queue(func(q *snapshot.Queue) { q.Policy = "{" }), []string{"unknown queue-policy-unread" + main}, ""},
		{"a policy that depends on an organization", queue(func(q *snapshot.Queue) {
			q.Policy = `{"Statement":{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},"Action":"sqs:SendMessage","Resource":"*","Condition":{"StringEquals":{"aws:SourceOrgID":"o-1"}}}}`
		}), []string{"unknown queue-policy-unread" + main}, "only AWS can evaluate"},
		{"a policy that denies", queue(func(q *snapshot.Queue) {
			q.Policy = strings.Replace(q.Policy, `"Statement":[`, `"Statement":[{"Effect":"Deny","Principal":"*","Action":"sqs:SendMessage","Resource":"*"},`, 1)
		}), []string{"broken queue-policy-refuses" + main}, "denies EventBridge"},
		{"a policy that denies all but other rules", queue(func(q *snapshot.Queue) {
			allowed, denied, _ := strings.Cut(q.Policy, `{"Sid":"DenyOtherSenders"`)
			q.Policy = allowed + `{"Sid":"DenyOtherSenders"` + strings.ReplaceAll(denied, "rule/lifeboat-prod-", "rule/old-prod-")
		}), []string{"broken queue-policy-refuses" + main}, "denies EventBridge"},
		{"a policy that denies all outside of an organization", queue(func(q *snapshot.Queue) {
			q.Policy = strings.Replace(q.Policy, `"Statement":[`, `"Statement":[{"Effect":"Deny","Principal":"*","Action":"sqs:*","Resource":"*","Condition":{"StringNotEquals":{"aws:PrincipalOrgID":"o-1"}}},`, 1)
		}), []string{"broken queue-policy-refuses" + main}, "denies EventBridge"},
		{"a policy that denies plain HTTP", queue(func(q *snapshot.Queue) {
			q.Policy = strings.Replace(q.Policy, `"Statement":[`, `"Statement":[{"Effect":"Deny","Principal":"*","Action":"sqs:*","Resource":"*","Condition":{"Bool":{"aws:SecureTransport":"false"}}},`, 1)
		}), []string{}, ""},
		{"a queue with Karpenter's tags receives the same events", func(s *snapshot.Snapshot, _ *doctor.Cluster) {
			other := snapshot.Queue{ARN: "arn:aws:sqs:eu-west-1:210987654321:nodes", Name: "nodes", Tags: map[string]string{"karpenter.sh/discovery": "prod"}}
			s.Queues = append(s.Queues, other)
			s.Rules[0].Targets = append(s.Rules[0].Targets, snapshot.Target{ID: "n", ARN: other.ARN})
		}, []string{"warning karpenter-hears-too queue nodes"}, "Karpenter deletes the node at once"},
		{"a thousand messages wait", queue(func(q *snapshot.Queue) { q.Waiting = 1000 }), []string{"warning queue-backlog" + main}, "1000 messages"},
		{"the number of messages grows", queue(func(q *snapshot.Queue) { q.Waiting, q.Growth = 5, 2 }), []string{"warning queue-backlog" + main}, "+2"},
		{"messages in flight while Lifeboat runs", func(s *snapshot.Snapshot, c *doctor.Cluster) {
			s.Queues[0].InFlight, c.Lifeboat = 3, zero()
			*c.Lifeboat = 2
		}, []string{}, ""},
		{"messages in flight while Lifeboat does not run", func(s *snapshot.Snapshot, c *doctor.Cluster) { s.Queues[0].InFlight, c.Lifeboat = 3, zero() },
			[]string{"warning queue-read-by-another" + main}, "Lifeboat is not running"},
		{"Karpenter reads this queue", around(func(c *doctor.Cluster) {
			c.Karpenter = &doctor.Tool{Object: "deployment kube-system/karpenter", Version: "1.9.0", Queue: "lifeboat-prod"}
		}), []string{"broken karpenter-same-queue deployment kube-system/karpenter"}, "settings.interruptionQueue"},
		{"Karpenter polls", around(func(c *doctor.Cluster) {
			c.Karpenter = &doctor.Tool{Object: "deployment kube-system/karpenter", Version: "1.14.1"}
		}), []string{"warning karpenter-polls deployment kube-system/karpenter"}, "ec2:DescribeInstanceStatus"},
		{"Karpenter polls, and a policy refuses", around(func(c *doctor.Cluster) {
			c.Karpenter, c.Void = &doctor.Tool{Object: "k", Version: "1.14.1"}, []string{"policy databases (rule 1 has action: Ignore)"}
		}), []string{"broken karpenter-polls k"}, "so it defeats policy databases (rule 1 has action: Ignore)"},
		{"Karpenter polls, and the guard is on", around(func(c *doctor.Cluster) {
			c.Karpenter, c.Void, c.Guard = &doctor.Tool{Object: "k", Version: "1.14.1"}, []string{"policy databases"}, true
		}), []string{"warning karpenter-polls k"}, "ec2:DescribeInstanceStatus"},
		{"Karpenter 1.12 polls", around(func(c *doctor.Cluster) { c.Karpenter = &doctor.Tool{Object: "k", Version: "1.12.0"} }), []string{"warning karpenter-polls k"}, "from v1.12 on"},
		{"Karpenter 1.11 does not poll", around(func(c *doctor.Cluster) { c.Karpenter = &doctor.Tool{Object: "k", Version: "v1.11.3"} }), []string{}, ""},
		{"Karpenter of an unknown version may poll", around(func(c *doctor.Cluster) { c.Karpenter = &doctor.Tool{Object: "k", Version: "latest"} }),
			[]string{"warning karpenter-polls k"}, ""},
		{"Node Termination Handler runs", around(func(c *doctor.Cluster) {
			c.NTH = &doctor.Tool{Object: "daemonset kube-system/aws-node-termination-handler"}
		}), []string{"warning nth-runs daemonset kube-system/aws-node-termination-handler"}, ""},
		{"Node Termination Handler's queue receives the same events", func(s *snapshot.Snapshot, _ *doctor.Cluster) {
			s.Rules[0].Targets = append(s.Rules[0].Targets, snapshot.Target{ID: "n", ARN: "arn:aws:sqs:eu-west-1:210987654321:k8s-example-com-nth"})
		}, []string{"warning nth-hears-too queue k8s-example-com-nth"}, ""},
		{"EventBridge disagrees", func(s *snapshot.Snapshot, _ *doctor.Cluster) {
			s.Verdicts = []snapshot.Verdict{{Rule: s.Rules[1].Name, Sample: "rebalance-recommendation", Matches: false}, {Rule: s.Rules[1].Name, Sample: "health-event (issue)", Matches: false}}
		}, []string{"unknown pattern-engine-disagrees rule lifeboat-prod-rebalance"}, "does not match rebalance-recommendation"},
		{"EventBridge evaluates every pattern differently: one finding", func(s *snapshot.Snapshot, _ *doctor.Cluster) {
			for _, r := range s.Rules {
				for _, sample := range []string{"spot-interruption-warning (terminate)", "rebalance-recommendation", "instance-state-change (stopping)"} {
					s.Verdicts = append(s.Verdicts, snapshot.Verdict{Rule: r.Name, Sample: sample, Matches: false})
				}
			}
		}, []string{"unknown pattern-engine-disagrees rule lifeboat-prod-spot-interruption, rule lifeboat-prod-rebalance and rule lifeboat-prod-state-change"}, "are not certain"},
		{"the clock is 31 s behind", func(s *snapshot.Snapshot, _ *doctor.Cluster) { d := -31 * time.Second; s.Skew = &d },
			[]string{"broken clock-skew clock"}, "31s behind"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, c := sound(t), doctor.Cluster{}
			tc.change(&s, &c)
			all := doctor.Run(s, want, c)
			got := brief(all)
			for i := range got {
				if strings.HasPrefix(got[i], "broken target-fifo-without-group") {
					got[i] = "broken target-fifo-without-group" // one for each rule
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s\n%s", diff, text(all))
			}
			if len(all) > 0 && !strings.Contains(all[0].Problem+all[0].Fix, tc.text) {
				t.Errorf("%q is not in\n%s", tc.text, text(all[:1]))
			}
		})
	}
}

// A queue with another name can belong to another tool.
func TestQueueOfOtherTool(t *testing.T) {
	for name, tool := range map[string]string{
		"Karpenter-prod": "Karpenter", "k8s-example-com-nth": "AWS Node Termination Handler", "lifeboat-karpenter": "", "notices": "",
	} {
		arn := "arn:aws:sqs:eu-west-1:210987654321:" + name
		s := snapshot.Snapshot{Account: testAccount, Region: testRegion, Queue: arn, Queues: []snapshot.Queue{{ARN: arn, Name: name}}}
		got := ""
		for _, f := range doctor.Run(s, awssetup.Desired("", testAccount, testRegion), doctor.Cluster{}) {
			if f.ID == "queue-of-another-tool" {
				got = f.Problem
			}
		}
		if (got != "") != (tool != "") || !strings.Contains(got, tool) {
			t.Errorf("%s: %q, want %q", name, got, tool)
		}
	}
}

func TestEveryKindHasItsExamples(t *testing.T) {
	s := sound(t)
	s.Rules = nil
	var kinds []string
	for _, f := range doctor.Run(s, want, doctor.Cluster{}) {
		if f.ID == "kind-uncovered" {
			kinds = append(kinds, f.Kinds...)
		}
	}
	slices.Sort(kinds)
	// Status checks are polled; EventBridge does not send them.
	all := slices.DeleteFunc(notice.Kinds(), func(k string) bool { return k == notice.KindInstanceStatus })
	if diff := cmp.Diff(all, kinds); diff != "" {
		t.Errorf("uncovered kinds without rules (-want +got):\n%s", diff)
	}
}

// The templates that Lifeboat emits must have no findings.
func TestEmittedTemplatesHaveNoFindings(t *testing.T) {
	place := emit.Place{}
	cloudFormation, err := emit.CloudFormation("prod", place)
	if err != nil {
		t.Fatal(err)
	}
	yaml, err := emit.YAML(cloudFormation)
	if err != nil {
		t.Fatal(err)
	}
	terraform, err := emit.Terraform("prod", place)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"template.json": cloudFormation, "template.yaml": yaml, "main.tf.json": terraform} {
		for _, region := range []string{"", testRegion} {
			s, err := template.Read([]template.File{{Name: name, Data: data}}, template.Given{Region: region})
			if err != nil {
				t.Fatal(err)
			}
			if len(s.Rules) != len(want.Rules) || len(s.Queues) != 2 {
				t.Errorf("%s: %d rules and %d queues were read", name, len(s.Rules), len(s.Queues))
			}
			if all := doctor.Run(s, awssetup.Desired("", "", ""), doctor.Cluster{}); len(all) > 0 {
				t.Errorf("%s:\n%s", name, text(all))
			}
		}
	}
}

func TestGuideDescribesEveryFinding(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guides/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	var described []string
	for _, m := range regexp.MustCompile(`(?m)^\| <a id="[a-z-]+"></a>\x60([a-z-]+)\x60 \|`).FindAllStringSubmatch(string(guide), -1) {
		described = append(described, m[1])
	}
	for _, id := range doctor.IDs() {
		if !slices.Contains(described, id) {
			t.Errorf("docs/guides/doctor.md does not describe %s", id)
		}
	}
	if len(slices.Compact(slices.Sorted(slices.Values(doctor.IDs())))) != len(doctor.IDs()) {
		t.Error("duplicate id")
	}
}

// FuzzRun checks that no pattern or policy makes Run panic, and that every finding is
// complete.
func FuzzRun(f *testing.F) {
	for _, tc := range []string{"", "{", misspelt, `{"source":"aws.ec2"}`, `{"source":["aws.ec2"],"$or":[{"detail-type":["x"]},{"detail":{"state":[1]}}]}`} {
		f.Add(tc, tc, "arn:aws:sqs:eu-west-1:210987654321:lifeboat-prod")
	}
	f.Fuzz(func(t *testing.T, pattern, policy, target string) {
		s := sound(t)
		s.Rules[0].Pattern, s.Rules[0].Targets[0].ARN = pattern, target
		s.Rules[1].ARN = target
		s.Queues[0].Policy, s.Queues[0].KMSKey, s.Queues[0].KeyPolicy = policy, target, policy
		for _, offline := range []bool{true, false} {
			s.Offline = offline
			for _, x := range doctor.Run(s, want, doctor.Cluster{}) {
				if x.Severity == "" || x.Problem == "" || x.Fix == "" || !slices.Contains(doctor.IDs(), x.ID) {
					t.Errorf("%+v", x)
				}
			}
		}
	})
}
