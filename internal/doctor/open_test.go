package doctor_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/template"
	"github.com/lifeboat-dev/lifeboat/internal/doctor"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// readOpen diagnoses a file of testdata/open, with what the caller knows.
func readOpen(t *testing.T, name string, given template.Given) []finding.Finding {
	t.Helper()
	data, err := os.ReadFile("testdata/open/" + name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := template.Read([]template.File{{Name: name, Data: data}}, given)
	if err != nil {
		t.Fatal(err)
	}
	return doctor.Run(s, awssetup.Desired("", s.Account, s.Region), doctor.Cluster{})
}

// What a template leaves open is neither broken nor well.
func TestOpenTemplates(t *testing.T) {
	here := template.Given{Account: "210987654321", Region: "us-east-1"}
	for _, tc := range []struct {
		file  string
		given template.Given
		want  string // the id of the finding about the policy or the rule; empty for none
	}{
		{"unnamed-by-logical-id.yaml", template.Given{}, "broken queue-policy-refuses"},
		{"unnamed-by-logical-id.yaml", here, "broken queue-policy-refuses"},
		{"unnamed-by-stack-name.yaml", template.Given{}, ""},
		{"unnamed-by-stack-name.yaml", template.Given{Parameters: map[string]string{"AWS::StackName": "web"}}, ""},
		{"unnamed-by-attribute.yaml", template.Given{}, ""},
		{"unnamed-without-condition.yaml", template.Given{}, "warning queue-policy-open"},
		{"queue-by-logical-id.yaml", template.Given{}, "broken queue-policy-refuses"},
		{"account-written-out.yaml", template.Given{}, "unknown queue-policy-unread"},
		{"account-written-out.yaml", here, ""},
		{"account-written-out.yaml", template.Given{Account: "111122223333", Region: "us-east-1"}, "broken queue-policy-refuses"},
		{"parameter-names-queue.yaml", template.Given{}, ""},
		// A plan does not contain the policy of a new queue.
		{"plan-with-modules.json", template.Given{}, "unknown not-understood"},
	} {
		all := readOpen(t, tc.file, tc.given)
		var got []string
		for _, f := range all {
			if slices.Contains([]string{"queue-policy-refuses", "queue-policy-open", "queue-policy-unread", "not-understood", "rule-no-target", "rule-matches-nothing"}, f.ID) {
				got = append(got, string(f.Severity)+" "+f.ID)
			}
			if strings.Contains(f.Fix, "{account}") || strings.Contains(f.Fix, "{region}") || strings.Contains(f.Fix, "{~") || strings.Contains(f.Object, "{~") {
				t.Errorf("%s: a symbol is printed: %s: %s", tc.file, f.Object, f.Fix)
			}
		}
		if strings.Join(got, ", ") != tc.want {
			t.Errorf("%s with %v: %q, want %q\n%s", tc.file, tc.given, got, tc.want, text(all))
		}
	}
}

// The fix for an open policy refers to the rule by its attribute: its name is not known.
func TestFixRefersToTheRule(t *testing.T) {
	for _, f := range readOpen(t, "unnamed-without-condition.yaml", template.Given{}) {
		if f.ID == "queue-policy-open" && !strings.Contains(f.Fix, `{"aws:SourceArn":[{"Fn::GetAtt":["Warnings","Arn"]}]}`) {
			t.Error(f.Fix)
		}
	}
	for _, f := range readOpen(t, "account-written-out.yaml", template.Given{}) {
		if f.ID == "queue-policy-unread" && !strings.Contains(f.Fix, "--account ACCOUNT --region REGION (the policy names account 210987654321 and region us-east-1)") {
			t.Error(f.Fix)
		}
	}
}
