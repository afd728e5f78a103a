package pattern

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func sample(t testing.TB, name string) string {
	t.Helper()
	for _, s := range Samples() {
		if s.Name == name {
			return string(s.JSON)
		}
	}
	t.Fatalf("no sample %s", name)
	return ""
}

func TestExplainMisspeltDetailType(t *testing.T) {
	p := mustCompile(t, `{"source":["aws.ec2"],"detail-type":["EC2 Spot Interruption Warning"]}`)
	got := p.ExplainEvent(mustDecode(t, sample(t, "spot-interruption-warning")))
	want := Explanation{Fields: 2, Choices: 1, Mismatches: []Mismatch{{
		Path: "detail-type", Problem: ProblemValue,
		Expected: []string{`"EC2 Spot Interruption Warning"`}, Found: []string{`"EC2 Spot Instance Interruption Warning"`},
		Hint: `detail-type wants "EC2 Spot Interruption Warning", the event has "EC2 Spot Instance Interruption Warning"; did you mean that?`,
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("explanation (-want +got):\n%s", diff)
	}
	wantText := `does not match: 1 of 2 fields do not hold
  detail-type
    wants  "EC2 Spot Interruption Warning"
    found  "EC2 Spot Instance Interruption Warning"
    hint   detail-type wants "EC2 Spot Interruption Warning", the event has "EC2 Spot Instance Interruption Warning"; did you mean that?`
	if diff := cmp.Diff(wantText, got.String()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}

func TestHints(t *testing.T) {
	for _, tc := range []struct {
		name, pattern, sample string
		path                  string
		problem               Problem
		hint                  string
	}{
		{"detail-type in another case", `{"detail-type":["EC2 spot instance interruption warning"]}`, "spot-interruption-warning",
			"detail-type", ProblemValue, `differs only in case; write "EC2 Spot Instance Interruption Warning" (matching is case-sensitive)`},
		{"detail-type misspelt, event of another kind", `{"detail-type":["EC2 Spot Instance Interruption"]}`, "instance-state-change",
			"detail-type", ProblemValue, `"EC2 Spot Instance Interruption" is not a detail-type known of aws.ec2; did you mean "EC2 Spot Instance Interruption Warning"?`},
		{"a right detail-type of another kind needs no hint", `{"detail-type":["EC2 Instance Rebalance Recommendation"]}`, "spot-interruption-warning",
			"detail-type", ProblemValue, ``},
		{"detailType", `{"detailType":["EC2 Spot Instance Interruption Warning"]}`, "spot-interruption-warning",
			"detailType", ProblemMissing, `the event has no "detailType", it has "detail-type"; did you mean that?`},
		{"details", `{"details":{"state":["stopping"]}}`, "instance-state-change",
			"details.state", ProblemMissing, `the event has no "details", it has "detail"; did you mean that?`},
		{"Source", `{"Source":["aws.ec2"]}`, "instance-state-change", "Source", ProblemMissing, `the event has no "Source", it has "source"; did you mean that?`},
		{"a field of detail at the top", `{"state":["stopping"]}`, "instance-state-change", "state", ProblemMissing, `the event has no "state"; did you mean detail.state?`},
		{"a key in camel case", `{"detail":{"instanceId":["i-0a1b2c3d4e5f60718"]}}`, "instance-state-change",
			"detail.instanceId", ProblemMissing, `detail has no "instanceId", it has "instance-id"; did you mean that?`},
		{"state in upper case", `{"detail":{"state":["STOPPING"]}}`, "instance-state-change", "detail.state", ProblemValue, `differs only in case; write "stopping" (matching is case-sensitive)`},
		{"a slip in a word", `{"detail":{"instance-action":["terminat"]}}`, "spot-interruption-warning", "detail.instance-action", ProblemValue, `the event has "terminate"; did you mean that?`},
		{"another instance id is no slip", `{"detail":{"instance-id":["i-0a1b2c3d4e5f60719"]}}`, "spot-interruption-warning", "detail.instance-id", ProblemValue, ``},
		{"a number for a string", `{"detail":{"page":[1]}}`, "health-event", "detail.page", ProblemType, `the event has the string "1", not a number; write ["1"]`},
		{"a boolean for a string", `{"detail":{"backupEvent":[false]}}`, "health-event", "detail.backupEvent", ProblemType, `the event has the string "false", not a boolean; write ["false"]`},
		{"a string for a boolean", `{"detail":{"readOnly":["false"]}}`, "cloudtrail-api-call", "detail.readOnly", ProblemType, `the event has a boolean, not a string; write [false]`},
		{"numeric over a string", `{"detail":{"page":[{"numeric":[">",0]}]}}`, "health-event", "detail.page", ProblemType, `{"numeric":[">",0]} only matches a number, the event has a string`},
		{"a status one level too high", `{"detail":{"state":{"status":["running"]}}}`, "fis-experiment-state-change",
			"detail.state.status", ProblemMissing, `detail has no "state"; did you mean detail.new-state.status?`},
		{"a path through a scalar", `{"detail":{"state":{"name":["stopping"]}}}`, "instance-state-change", "detail.state.name", ProblemMissing, `detail.state is a string, it has no fields`},
		{"a path that ends at an object", `{"detail":{"new-state":["running"]}}`, "fis-experiment-state-change",
			"detail.new-state", ProblemMissing, `detail.new-state is an object; a pattern must name one of its fields: status, reason`},
		{"an empty array", `{"resources":[{"prefix":"arn:"}]}`, "cloudtrail-api-call", "resources", ProblemMissing, `resources is an empty array, which has no value to match`},
		{"a resource prefix with region and account", `{"resources":[{"prefix":"arn:aws:ec2:eu-west-1:210987654321:"}]}`, "spot-interruption-warning", "resources", ProblemValue,
			`the resource names the availability zone eu-west-1b in place of the region, and no account; match detail.instance-id, or write {"wildcard":"arn:aws:ec2:eu-west-1*:instance/*"}`},
		{"an asterisk in an exact value", `{"detail":{"instance-id":["i-*"]}}`, "spot-interruption-warning", "detail.instance-id", ProblemValue, `* has no meaning in an exact value; write {"wildcard":"i-*"}`},
		{"a wildcard in another case", `{"detail":{"eventTypeCode":[{"wildcard":"*retirement*"}]}}`, "health-event", "detail.eventTypeCode", ProblemValue,
			`differs only in case from "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED"; a wildcard is case-sensitive`},
		{"an excluded value", `{"detail":{"state":[{"anything-but":["stopping"]}]}}`, "instance-state-change", "detail.state", ProblemValue, `"stopping" is among what {"anything-but":["stopping"]} excludes`},
		{"a field that must be absent", `{"detail":{"state":[{"exists":false}]}}`, "instance-state-change", "detail.state", ProblemPresent, `the pattern requires that the field does not exist, but it exists`},
		{"fields of different elements", `{"detail":{"affectedEntities":{"entityValue":["i-0bb2c3d4e5f607182"],"status":["PENDING"]}}}`, "health-event",
			"detail.affectedEntities.status", ProblemSameElement, `each field is satisfied somewhere, but fields below one array must be satisfied by the same element of it`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := mustCompile(t, tc.pattern).ExplainEvent(mustDecode(t, sample(t, tc.sample)))
			if got.Matched || len(got.Mismatches) != 1 {
				t.Fatalf("got %+v, want one mismatch", got)
			}
			m := got.Mismatches[0]
			if m.Path != tc.path || m.Problem != tc.problem || m.Hint != tc.hint {
				t.Errorf("got  %s %s %s\nwant %s %s %s", m.Path, m.Problem, m.Hint, tc.path, tc.problem, tc.hint)
			}
		})
	}
}

func TestExplainUsesTheNearestCombination(t *testing.T) {
	p := mustCompile(t, `{"source":["aws.ec2"],"$or":[{"region":["x"],"account":["y"]},{"detail":{"state":["Stopping"]}}]}`)
	got := p.ExplainEvent(mustDecode(t, sample(t, "instance-state-change")))
	if len(got.Mismatches) != 1 || got.Mismatches[0].Path != "detail.state" || got.Choices != 2 {
		t.Errorf("got %+v", got)
	}
	if !strings.HasPrefix(got.String(), "does not match: 1 of 2 fields do not hold (nearest of 2 $or combinations)\n") {
		t.Errorf("got %s", got)
	}
}

func TestExplanationAsJSON(t *testing.T) {
	p := mustCompile(t, `{"detail":{"page":[1,{"prefix":"<"}]}}`)
	data, err := json.Marshal(p.ExplainEvent(mustDecode(t, sample(t, "health-event"))))
	want := `{"matched":false,"fields":1,"choices":1,"mismatches":[{"path":"detail.page","problem":"type","wanted":["1","{\"prefix\":\"\u003c\"}"],` +
		`"found":["\"1\""],"hint":"the event has the string \"1\", not a number; write [\"1\"]"}]}`
	if err != nil || string(data) != want {
		t.Errorf("got %s %v\nwant %s", data, err, want)
	}
	matched := mustCompile(t, `{"source":["aws.health"]}`).ExplainEvent(mustDecode(t, sample(t, "health-event")))
	if !matched.Matched || matched.String() != "matches" || matched.Mismatches != nil {
		t.Errorf("got %+v", matched)
	}
}

func TestFoundValuesAreShortened(t *testing.T) {
	p := mustCompile(t, `{"a":["x"]}`)
	got := p.ExplainEvent(mustDecode(t, `{"a":[1,2,3,4,5,6,7,"`+strings.Repeat("é", 300)+`"]}`)).Mismatches[0].Found
	want := []string{"1", "2", "3", "4", "5", "and 3 more"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
