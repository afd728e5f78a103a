package awssetup_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/pattern"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// roleMatcher finds the roles of the rules that match an event.
func roleMatcher(t *testing.T, rules []awssetup.Rule) func(event []byte) []string {
	t.Helper()
	compiled := map[string]*pattern.Pattern{}
	for _, r := range rules {
		p, err := pattern.Compile([]byte(r.Pattern))
		if err != nil {
			t.Fatalf("rule %s: %v", r.Name, err)
		}
		compiled[r.Role] = p
	}
	return func(event []byte) []string {
		t.Helper()
		var by []string
		for role, p := range compiled {
			matched, err := p.Match(event)
			if err != nil {
				t.Fatal(err)
			}
			if matched {
				by = append(by, role)
			}
		}
		slices.Sort(by)
		return by
	}
}

// roleOfSample maps each sample to the role of the rule that must match it. No rule
// matches the other samples.
func roleOfSample() map[string]string {
	return map[string]string{
		"spot-interruption-warning":         awssetup.RoleSpotInterruption,
		"rebalance-recommendation":          awssetup.RoleRebalance,
		"instance-state-change":             awssetup.RoleStateChange,
		"health-event":                      awssetup.RoleHealth,
		"health-abuse-event":                "",
		"capacity-reservation-interruption": awssetup.RoleCapacity,
		"capacity-block-interruption":       awssetup.RoleCapacity,
		"capacity-block-expiration":         awssetup.RoleCapacity,
		"terminate-lifecycle-action":        awssetup.RoleAutoScalingLifecycle,
		"launch-lifecycle-action":           awssetup.RoleAutoScalingLifecycle,
		"instance-launch":                   "",
		"instance-terminate":                awssetup.RoleAutoScalingResult,
		"instance-refresh":                  "",
		"spot-request-fulfillment":          "",
		"fleet-instance-change":             "",
		"spot-fleet-instance-change":        "",
		"fis-experiment-state-change":       "",
		"cloudtrail-api-call":               awssetup.RoleLifecycleFailure,
	}
}

func TestEverySampleMatchesOnlyItsRule(t *testing.T) {
	match := roleMatcher(t, awssetup.Desired("prod", "210987654321", "eu-west-1").Rules)
	for _, sample := range pattern.Samples() {
		role, known := roleOfSample()[sample.Name]
		if !known {
			t.Errorf("sample %s: add it to roleOfSample", sample.Name)
			continue
		}
		var want []string
		if role != "" {
			want = []string{role}
		}
		if diff := cmp.Diff(want, match(sample.JSON)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sample.Name, diff)
		}
	}
}

func TestVariantsOfSamples(t *testing.T) {
	match := roleMatcher(t, awssetup.Desired("prod", "210987654321", "eu-west-1").Rules)
	for _, tc := range []struct{ sample, old, new, want string }{
		{"instance-state-change", `"stopping"`, `"running"`, ""},
		{"instance-state-change", `"stopping"`, `"pending"`, ""},
		{"instance-state-change", `"stopping"`, `"stopped"`, awssetup.RoleStateChange},
		{"instance-state-change", `"stopping"`, `"shutting-down"`, awssetup.RoleStateChange},
		{"instance-state-change", `"stopping"`, `"terminated"`, awssetup.RoleStateChange},
		{"spot-interruption-warning", `"terminate"`, `"hibernate"`, awssetup.RoleSpotInterruption},
		{"rebalance-recommendation", "EC2 Instance Rebalance Recommendation", "EC2 Spot Instance Rebalance Recommended", awssetup.RoleRebalance},
		{"health-event", `"service": "EC2"`, `"service": "RDS"`, ""},
		{"health-event", `"service": "EC2"`, `"service": "EBS"`, awssetup.RoleHealth},
		{"health-event", `"service": "EC2"`, `"service": "EKS"`, awssetup.RoleHealth},
		{"health-event", `"scheduledChange"`, `"issue"`, awssetup.RoleHealth},
		{"health-event", `"scheduledChange"`, `"accountNotification"`, awssetup.RoleHealth},
		{"health-event", `"scheduledChange"`, `"investigation"`, ""},
		{"health-event", `"backupEvent": "false"`, `"backupEvent": "true"`, ""},
		{"health-event", `"backupEvent": "false",`, ``, awssetup.RoleHealth},
		{"health-event", `"statusCode": "upcoming"`, `"statusCode": "closed"`, awssetup.RoleHealth},
		{"capacity-reservation-interruption", "EC2 Capacity Res", "EC2 Interruptible Capacity Res", awssetup.RoleCapacity},
		{"capacity-block-expiration", "Capacity Block Reservation Expiration", "Capacity Block Expiration", awssetup.RoleCapacity},
		{"instance-terminate", "Terminate Successful", "Terminate Unsuccessful", awssetup.RoleAutoScalingResult},
		{"instance-launch", "Launch Successful", "Launch Unsuccessful", awssetup.RoleAutoScalingResult},
		{"cloudtrail-api-call", `"errorCode": "ValidationException",`, ``, ""},
		{"cloudtrail-api-call", `"CompleteLifecycleAction"`, `"RecordLifecycleActionHeartbeat"`, ""},
		{"cloudtrail-api-call", `"aws.autoscaling"`, `"aws.ec2"`, ""},
	} {
		i := slices.IndexFunc(pattern.Samples(), func(s pattern.Sample) bool { return s.Name == tc.sample })
		before := string(pattern.Samples()[i].JSON)
		after := strings.Replace(before, tc.old, tc.new, 1)
		if before == after {
			t.Errorf("%s has no %s", tc.sample, tc.old)
		}
		if got := strings.Join(match([]byte(after)), " and "); got != tc.want {
			t.Errorf("%s with %s: matched by %q, want %q", tc.sample, tc.new, got, tc.want)
		}
	}
}

func TestPatternsAreValid(t *testing.T) {
	w := awssetup.Desired("prod", "210987654321", "eu-west-1")
	roles, kinds := map[string]bool{}, map[string]bool{}
	for _, r := range w.Rules {
		if roles[r.Role] || r.Name != "lifeboat-prod-"+r.Role {
			t.Errorf("rule %s has the duplicate role %s: %v", r.Name, r.Role, roles[r.Role])
		}
		roles[r.Role] = true
		for _, kind := range r.Kinds {
			kinds[kind] = true
			if !slices.Contains(notice.Kinds(), kind) {
				t.Errorf("rule %s has the unknown kind %s", r.Name, kind)
			}
		}
		if len(r.Pattern) > pattern.MaxLength || r.Description == "" || len(r.Description) > 512 || len(r.Kinds) == 0 {
			t.Errorf("rule %s: pattern of %d characters, description %q, kinds %v", r.Name, len(r.Pattern), r.Description, r.Kinds)
		}
		if r.Optional() != (r.Role == awssetup.RoleLifecycleFailure) {
			t.Errorf("rule %s: optional is %v", r.Name, r.Optional())
		}
		p, err := pattern.Compile([]byte(r.Pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range pattern.Lint(p).Findings {
			t.Errorf("rule %s: %s", r.Name, f)
		}
	}
	// Failed status checks have no event; they are polled.
	for _, kind := range notice.Kinds() {
		if kinds[kind] == (kind == notice.KindInstanceStatus) {
			t.Errorf("kind %s has a rule: %v", kind, kinds[kind])
		}
	}
}

func TestProbeMatchesOnlyItsRule(t *testing.T) {
	w := awssetup.Desired("prod", "210987654321", "eu-west-1")
	match := roleMatcher(t, w.Rules)
	for _, r := range w.Rules {
		probe, err := awssetup.Probe(r, "probe-1", w.Cluster)
		if err != nil {
			t.Fatal(err)
		}
		event, err := json.Marshal(map[string]any{
			"version": "0", "id": "3f1c9a52-6d0b-4f0e-9d0a-7b6f0c2f4f01", "account": w.Account, "region": w.Region, "time": "2026-05-11T08:14:02Z",
			"resources": []string{}, "source": probe.Source, "detail-type": probe.DetailType, "detail": probe.Detail,
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{r.Role}, match(event)); diff != "" {
			t.Errorf("probe of %s (-want +got):\n%s", r.Role, diff)
		}
		var detail struct {
			Mark awssetup.ProbeMark `json:"lifeboat-probe"`
		}
		if err := json.Unmarshal(probe.Detail, &detail); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(awssetup.ProbeMark{ID: "probe-1", Cluster: "prod", Rule: r.Role}, detail.Mark); diff != "" {
			t.Errorf("mark (-want +got):\n%s", diff)
		}
		if len(probe.DetailType) > 128 || probe.Source != notice.ProbeSource || strings.HasPrefix(probe.Source, "aws.") {
			t.Errorf("EventBridge would refuse %+v", probe)
		}
	}
	if _, err := awssetup.Probe(awssetup.Rule{Name: "lifeboat-prod-old", Role: "old"}, "1", "prod"); err == nil {
		t.Error("a rule without a known role has a probe")
	}
}

func TestNamesAreValidForAnyCluster(t *testing.T) {
	long := strings.Repeat("x", 100)
	seen := map[string]string{}
	for _, cluster := range []string{"prod", "k8s.example.com", "k8s-example-com", long, long + "y", strings.Repeat("x", 22), strings.Repeat("x", 23), "Ärger", "a_b"} {
		w := awssetup.Desired(cluster, "210987654321", "eu-west-1")
		names := []string{w.Queue.Name, w.DeadLetter.Name}
		for _, r := range w.Rules {
			names = append(names, r.Name)
			if len(r.Name) > 64 {
				t.Errorf("cluster %s: %q is too long for a rule", cluster, r.Name)
			}
			if !strings.HasPrefix(r.Name, awssetup.RulePrefix(cluster)) {
				t.Errorf("cluster %s: rule %s would not be found by its prefix %s", cluster, r.Name, awssetup.RulePrefix(cluster))
			}
		}
		for _, name := range names {
			if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" || len(name) > 80 {
				t.Errorf("cluster %s: %q is not a valid queue name", cluster, name)
			}
			if other, ok := seen[name]; ok {
				t.Errorf("clusters %s and %s share %s", cluster, other, name)
			}
			seen[name] = cluster
		}
	}
	for region, want := range map[string]string{
		"eu-west-1": "arn:aws:", "cn-north-1": "arn:aws-cn:", "us-gov-west-1": "arn:aws-us-gov:",
	} {
		if got := awssetup.Desired("prod", "210987654321", region).RuleARN("r"); got != fmt.Sprintf("%sevents:%s:210987654321:rule/r", want, region) {
			t.Errorf("ARN in %s: %s", region, got)
		}
	}
}

// The queue's name is enough to find all resources of the wiring. A changed name is
// never taken for the cluster's own.
func TestInferFromQueueName(t *testing.T) {
	long := strings.Repeat("x", 100)
	for cluster, sure := range map[string]bool{
		"prod": true, "k8s-example-com": true, "a_b": true, "deadbeef": true, "eks-1a2b3c4d": true, "my-eks-1A2B3C4D": true, "my-eks-cluster": true,
		strings.Repeat("x", 23): true, long[:71]: true,
		"my-eks-1a2b3c4d": false, // it might be my.eks, or my/eks
		"k8s.example.com": false, "prod.": false, "a.b": false, "Ärger": false, long[:72]: false, long: false, long + ".y": false,
		"prod.eu-west-1.kubernetes.example.com": false,
	} {
		want := awssetup.Desired(cluster, "210987654321", "eu-west-1")
		got, known := awssetup.InferFromQueueName(want.Queue.Name, "210987654321", "eu-west-1")
		if known != sure || known && got.Cluster != cluster {
			t.Errorf("%s: inferred %q, sure: %v; want %v", cluster, got.Cluster, known, sure)
		}
		if made := awssetup.QueueName(got.Cluster); made != want.Queue.Name {
			t.Errorf("%s: the queue is %s, and for %q would be %s", cluster, want.Queue.Name, got.Cluster, made)
		}
		got.Cluster = want.Cluster
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", cluster, diff)
		}
	}
	if w, sure := awssetup.InferFromQueueName("interruptions", "", ""); !sure || w.Cluster != "" {
		t.Errorf("a foreign queue name yields the cluster %q, sure: %v", w.Cluster, sure)
	}
}
