package pattern

import (
	"encoding/json"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// finding is the part of a Finding that the tests compare.
type finding struct {
	severity         Severity
	code, path, hint string
}

func lint(t *testing.T, pattern string) (Report, []finding) {
	t.Helper()
	r := Lint(mustCompile(t, pattern))
	var got []finding
	for _, f := range r.Findings {
		got = append(got, finding{f.Severity, f.Code, f.Path, f.Suggestion})
	}
	return r, got
}

func TestLintFindsMisconfigurations(t *testing.T) {
	const spot = "EC2 Spot Instance Interruption Warning"
	for _, tc := range []struct {
		name, pattern string
		want          []finding
	}{
		{"a detail-type without the word Instance", `{"source":["aws.ec2"],"detail-type":["EC2 Spot Interruption Warning"]}`,
			[]finding{{SeverityError, "unknown-detail-type", "detail-type", `did you mean "` + spot + `"?`}}},
		{"a detail-type without the word Warning", `{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption"]}`,
			[]finding{{SeverityError, "unknown-detail-type", "detail-type", `did you mean "` + spot + `"?`}}},
		{"a misspelt name beside a correct one", `{"source":["aws.ec2"],"detail-type":["EC2 Spot Interruption Warning","EC2 Instance Rebalance Recommendation"]}`,
			[]finding{{SeverityError, "unknown-detail-type", "detail-type", `did you mean "` + spot + `"?`}}},
		{"without a source the guess is a warning", `{"detail-type":["EC2 Spot Interruption Warning"]}`,
			[]finding{{SeverityWarning, "unknown-detail-type", "detail-type", `did you mean "` + spot + `"?`}}},
		{"a detail-type in another case", `{"source":["aws.ec2"],"detail-type":["EC2 Spot instance Interruption Warning"]}`,
			[]finding{{SeverityError, "unknown-detail-type", "detail-type", `write "` + spot + `": matching is case-sensitive`}}},
		{"a detail-type of FIS with AWS in front", `{"source":["aws.fis"],"detail-type":["AWS FIS Experiment State Change"]}`,
			[]finding{{SeverityError, "unknown-detail-type", "detail-type", `did you mean "FIS Experiment State Change"?`}}},
		{"a detail-type of another source", `{"source":["aws.ec2"],"detail-type":["EC2 Instance-terminate Lifecycle Action"]}`,
			[]finding{{SeverityError, "wrong-source", "detail-type", `write "source":["aws.autoscaling"]`}}},
		{"a detail-type of another source beside one of this", `{"source":["aws.ec2"],"detail-type":["` + spot + `","AWS Health Event"]}`,
			[]finding{{SeverityError, "wrong-source", "detail-type", `add "aws.health" to source`}}},
		{"the domain of a service as the source", `{"source":["ec2.amazonaws.com"],"detail-type":["` + spot + `"]}`,
			[]finding{{SeverityError, "unknown-source", "source", `write "aws.ec2"`}}},
		{"a node name as the instance id", `{"source":["aws.ec2"],"detail-type":["` + spot + `"],"detail":{"instance-id":[{"prefix":"ip-"}]}}`,
			[]finding{{SeverityError, "unknown-value", "detail.instance-id", ""}}},
		{"a service of Health in lower case", `{"source":["aws.health"],"detail-type":["AWS Health Event"],"detail":{"service":["ec2"]}}`,
			[]finding{{SeverityError, "unknown-value", "detail.service", `write "EC2": matching is case-sensitive`}}},
		{"detailType", `{"source":["aws.ec2"],"detailType":["` + spot + `"]}`, []finding{{SeverityError, "unknown-key", "detailType", `write "detail-type"`}}},
		{"DetailType and Source", `{"Source":["aws.ec2"],"DetailType":["` + spot + `"]}`,
			[]finding{{SeverityError, "unknown-key", "DetailType", `write "detail-type"`}, {SeverityError, "unknown-key", "Source", `write "source"`}}},
		{"details", `{"source":["aws.ec2"],"detail-type":["` + spot + `"],"details":{"instance-action":["terminate"]}}`,
			[]finding{{SeverityError, "unknown-key", "details.instance-action", `write "detail"`}}},
		{"a field of detail at the top", `{"source":["aws.ec2"],"instance-id":["i-1"]}`, []finding{{SeverityError, "unknown-key", "instance-id", `put it under "detail"`}}},
		{"capitalised categories", `{"source":["aws.health"],"detail-type":["AWS Health Event"],"detail":{"service":["EC2"],"eventTypeCategory":["ScheduledChange","Issue"]}}`,
			[]finding{{SeverityError, "unknown-value", "detail.eventTypeCategory", `write "scheduledChange": matching is case-sensitive`},
				{SeverityError, "unknown-value", "detail.eventTypeCategory", `write "issue": matching is case-sensitive`}}},
		{"a state in upper case", `{"source":["aws.ec2"],"detail-type":["EC2 Instance State-change Notification"],"detail":{"state":["STOPPED"]}}`,
			[]finding{{SeverityError, "unknown-value", "detail.state", `write "stopped": matching is case-sensitive`}}},
		{"an unknown state", `{"source":["aws.ec2"],"detail-type":["EC2 Instance State-change Notification"],"detail":{"state":["terminate"]}}`,
			[]finding{{SeverityWarning, "unknown-value", "detail.state", `did you mean "terminated"?`}}},
		{"page as a number", `{"source":["aws.health"],"detail":{"service":["EC2"],"page":[1]}}`,
			[]finding{{SeverityError, "wrong-type", "detail.page", `write ["1"]`}}},
		{"capitalised categories without a detail-type", `{"source":["aws.health"],"detail":{"service":["EC2"],"eventTypeCategory":["ScheduledChange"]}}`,
			[]finding{{SeverityError, "unknown-value", "detail.eventTypeCategory", `write "scheduledChange": matching is case-sensitive`}}},
		{"page as a number of a Health event", `{"source":["aws.health"],"detail-type":["AWS Health Event"],"detail":{"service":["EC2"],"page":[1]}}`,
			[]finding{{SeverityError, "wrong-type", "detail.page", `write ["1"]`}}},
		{"backupEvent as a boolean", `{"source":["aws.health"],"detail-type":["AWS Health Event"],"detail":{"service":["EC2"],"backupEvent":[false]}}`,
			[]finding{{SeverityError, "wrong-type", "detail.backupEvent", `write ["false"]`}}},
		{"an account as a number", `{"source":["aws.ec2"],"detail-type":["` + spot + `"],"account":[210987654321]}`,
			[]finding{{SeverityError, "wrong-type", "account", `write ["210987654321"]`}}},
		{"a resource prefix with region and account", `{"source":["aws.ec2"],"detail-type":["` + spot + `"],"resources":[{"prefix":"arn:aws:ec2:eu-west-1:210987654321:"}]}`,
			[]finding{{SeverityError, "zone-arn", "resources", `match detail.instance-id, or write {"wildcard":"arn:aws:ec2:<region>*:instance/*"}`}}},
		{"detail.state.status of FIS", `{"source":["aws.fis"],"detail-type":["FIS Experiment State Change"],"detail":{"state":{"status":["running"]}}}`,
			[]finding{{SeverityWarning, "unknown-field", "detail.state.status", `in "FIS Experiment State Change": detail has no "state"; did you mean detail.new-state.status?`}}},
		{"a field that the other detail-type lacks", `{"source":["aws.ec2"],"detail-type":["` + spot + `","EC2 Instance State-change Notification"],"detail":{"state":["stopping"]}}`,
			[]finding{{SeverityError, "dead-detail-type", "detail.state", "use a separate rule for it, or put the fields into $or"}}},
		{"all instance states", `{"source":["aws.ec2"],"detail-type":["EC2 Instance State-change Notification"]}`,
			[]finding{{SeverityAdvice, "noise", "detail.state", `add "state":["stopping","stopped","shutting-down","terminated"] to detail`}}},
		{"all of Health", `{"source":["aws.health"],"detail-type":["AWS Health Event"]}`,
			[]finding{{SeverityAdvice, "noise", "detail.service", `add "service":["EC2","EBS","EKS"] to detail`}}},
		{"a source in capitals", `{"source":["AWS.EC2"],"detail-type":["` + spot + `"]}`, []finding{{SeverityError, "unknown-source", "source", `write "aws.ec2"`}}},
		{"a source without aws", `{"source":["ec2"],"detail-type":["` + spot + `"]}`, []finding{{SeverityError, "unknown-source", "source", `write "aws.ec2"`}}},
		{"a contradiction", `{"source":["aws.ec2"],"detail-type":["` + spot + `"],"detail":{"instance-id":[{"exists":true}],"instance-action":[{"prefix":"re"}]}}`,
			[]finding{{SeverityWarning, "unknown-value", "detail.instance-action", ""}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, got := lint(t, tc.pattern)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(finding{})); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLintHasNoFalsePositives(t *testing.T) {
	const karpenter = "karpenter's four rules, narrowed"
	for _, tc := range []struct {
		name, pattern string
		matches       []string
	}{
		{karpenter + ": spot", `{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning"]}`, []string{"spot-interruption-warning"}},
		{karpenter + ": rebalance", `{"source":["aws.ec2"],"detail-type":["EC2 Instance Rebalance Recommendation"]}`, []string{"rebalance-recommendation"}},
		{karpenter + ": states", `{"source":["aws.ec2"],"detail-type":["EC2 Instance State-change Notification"],"detail":{"state":["stopping","terminated"]}}`, []string{"instance-state-change"}},
		{karpenter + ": health", `{"source":["aws.health"],"detail-type":["AWS Health Event"],"detail":{"service":["EC2"],"eventTypeCategory":["scheduledChange"]}}`, []string{"health-event"}},
		{"one instance, account and region", `{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning"],"account":["123456789012"],"region":["xx-north-9"],"detail":{"instance-id":["i-1"]}}`, []string{"spot-interruption-warning"}},
		{"a wildcard for zones", `{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning"],"resources":[{"wildcard":"arn:aws:ec2:us-east-1*:instance/*"}]}`, []string{"spot-interruption-warning"}},
		{"a zone of another region", `{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning"],"resources":[{"prefix":"arn:aws:ec2:us-east-1a:"}]}`, []string{"spot-interruption-warning"}},
		{"the region, without account", `{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning"],"resources":[{"prefix":"arn:aws:ec2:us-east-1"}]}`, []string{"spot-interruption-warning"}},
		{"rebalance recommendations of a region and an account", `{"source":["aws.ec2"],"detail-type":["EC2 Instance Rebalance Recommendation"],"resources":[{"prefix":"arn:aws:ec2:us-east-2:123456789012:instance/"}]}`, []string{"rebalance-recommendation"}},
		{"instances by the beginning of their id", `{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning"],"detail":{"instance-id":[{"prefix":"i-0"},{"wildcard":"i-*"},{"prefix":"i"}]}}`, []string{"spot-interruption-warning"}},
		{"hooks of one group", `{"source":["aws.autoscaling"],"detail-type":["EC2 Instance-terminate Lifecycle Action"],"detail":{"AutoScalingGroupName":[{"prefix":"mine-"}],"Destination":[{"anything-but":"WarmPool"}]}}`, []string{"terminate-lifecycle-action"}},
		{"a field that may be absent", `{"source":["aws.autoscaling"],"detail-type":["EC2 Instance-terminate Lifecycle Action"],"detail":{"Destination":[{"exists":false},"EC2"],"Foo":[{"exists":false}]}}`, []string{"terminate-lifecycle-action"}},
		{"a tag of an affected entity", `{"source":["aws.health"],"detail-type":["AWS Health Event"],"detail":{"service":["EC2"],"affectedEntities":{"tags":{"owner":["me"]}}}}`, []string{"health-event"}},
		{"a failed launch", `{"source":["aws.autoscaling"],"detail-type":["EC2 Instance Launch Unsuccessful"]}`, []string{"instance-launch"}},
		{"API calls", `{"source":["aws.ec2"],"detail-type":["AWS API Call via CloudTrail"],"detail":{"eventName":["RunInstances"],"requestParameters":{"x":["y"]}}}`, []string{"cloudtrail-api-call"}},
		{"API calls of Health", `{"source":["aws.health"],"detail":{"eventName":["DescribeEvents"],"vpcEndpointId":["vpce-1"]}}`, []string{"cloudtrail-api-call"}},
		{"EC2 events without a sample", `{"source":["aws.ec2"],"detail-type":["EBS Volume Notification"],"detail":{"event":["createVolume"]}}`, nil},
		{"an EC2 event without a sample beside one with", `{"source":["aws.ec2"],"detail-type":["EBS Volume Notification","EC2 Instance State-change Notification"],"detail":{"event":["createVolume"]}}`, nil},
		{"EC2 events without a sample, by prefix", `{"source":["aws.ec2"],"detail-type":[{"prefix":"EBS "}],"detail":{"event":["createVolume"]}}`, nil},
		{"another service", `{"source":["aws.ecs"],"detail-type":["ECS Task State Change"],"detail":{"lastStatus":["STOPPED"]}}`, nil},
		{"custom events", `{"source":["my.app"],"detail-type":["EC2 Spot Interruption Warning"],"detail":{"page":[1],"state":["STOPPED"]}}`, nil},
		{"a custom source named ec2", `{"source":["ec2"],"detail-type":["Order Placed"]}`, nil},
		{"a drill's own source beside AWS's", `{"source":["aws.ec2","drill"],"detail-type":["EC2 Spot Instance Interruption Warning"]}`, []string{"spot-interruption-warning"}},
		{"replayed events", `{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning"],"replay-name":["mine"]}`, []string{"spot-interruption-warning"}},
		{"one rule for two kinds by $or", `{"source":["aws.ec2"],"$or":[{"detail-type":["EC2 Spot Instance Interruption Warning"]},{"detail-type":["EC2 Instance State-change Notification"],"detail":{"state":["stopping"]}}]}`, []string{"instance-state-change", "spot-interruption-warning"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			report, got := lint(t, tc.pattern)
			if len(got) > 0 {
				t.Errorf("findings: %+v", report.Findings)
			}
			if diff := cmp.Diff(tc.matches, report.Matches, cmp.Transformer("nilIsEmpty", func(s []string) string { return strings.Join(s, " ") })); diff != "" {
				t.Errorf("matches (-want +got):\n%s", diff)
			}
		})
	}
}

// Lint must agree with the matcher: a pattern that matches a sample can match its kind.
func TestSamplesMatchTheirOwnPatterns(t *testing.T) {
	for _, s := range Samples() {
		t.Run(s.Name, func(t *testing.T) {
			e := mustDecode(t, string(s.JSON))
			var fields []string
			for _, key := range []string{"version", "id", "detail-type", "source", "account", "time", "region", "resources"} {
				if values := e.at(key).values; len(values) > 0 {
					fields = append(fields, quote(key)+":["+values[0].String()+"]")
				}
			}
			for _, key := range keysOf(e.root.get("detail")) {
				if values := e.at("detail." + key).values; len(values) > 0 {
					fields = append(fields, quote("detail."+key)+":["+values[0].String()+"]")
				}
			}
			p := mustCompile(t, "{"+strings.Join(fields, ",")+"}")
			if !p.MatchEvent(e) {
				t.Errorf("%s does not match its sample:\n%s", p, p.ExplainEvent(e))
			}
			report := Lint(p)
			if !slices.Contains(report.Matches, s.Name) {
				t.Errorf("lint does not list the sample: %+v", report)
			}
			for _, f := range report.Findings {
				t.Errorf("finding %s", f)
			}
		})
	}
}

func TestEverySampleFileHasItsShape(t *testing.T) {
	files, err := fs.Glob(sampleFiles, "samples/*.json")
	if err != nil {
		t.Fatal(err)
	}
	var names, described []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(f, "samples/"), ".json"))
	}
	for _, k := range catalogue() {
		described = append(described, k.Name)
		if k.Source == "" || k.DetailType == "" {
			t.Errorf("sample %s lacks source or detail-type", k.Name)
		}
		for path, values := range k.values {
			at := k.event.at(path)
			if len(at.values) == 0 || !slices.Contains(values, at.values[0].text) {
				t.Errorf("sample %s: %s does not hold one of %v", k.Name, path, values)
			}
		}
	}
	slices.Sort(described)
	if diff := cmp.Diff(names, described); diff != "" {
		t.Errorf("files and shapes differ (-files +shapes):\n%s", diff)
	}
}

func TestReportIsReadable(t *testing.T) {
	report, _ := lint(t, `{"source":["aws.ec2"],"detail-type":["EC2 Spot Interruption Warning"]}`)
	want := `can match: no AWS event known here
error: "EC2 Spot Interruption Warning" is not a detail-type known of aws.ec2; did you mean "EC2 Spot Instance Interruption Warning"?`
	if diff := cmp.Diff(want, report.String()); diff != "" {
		t.Error(diff)
	}
	data, err := json.Marshal(Lint(mustCompile(t, `{"source":["my.app"]}`)))
	if err != nil || string(data) != `{"matches":[],"findings":[]}` {
		t.Errorf("got %s, %v", data, err)
	}
	report, _ = lint(t, `{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning"]}`)
	if report.String() != "can match: spot-interruption-warning" {
		t.Errorf("got %s", report)
	}
}
