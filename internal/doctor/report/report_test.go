package report_test

import (
	"encoding/json"
	"encoding/xml"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/report"
)

var all = []finding.Finding{
	{Severity: finding.Broken, ID: "rule-disabled", Object: "rule a", Problem: "it is <disabled> & silent", Fix: "in b.yaml, A: enable it"},
	{Severity: finding.Unknown, ID: "not-understood", Object: "a.yaml, P", Problem: "it has no default"},
	{Severity: finding.Warning, ID: "queue-delay", Object: "queue q", Problem: "it delays", Fix: "set it"},
	{Severity: finding.Info, ID: "queue-delay", Object: "queue r", Problem: "it delays", Fix: "set it"},
}

func TestSARIF(t *testing.T) {
	out, err := report.SARIF(all, "v1", []string{"a.yaml", "b.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	var log struct {
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct {
					Rules []struct{ ID, HelpURI string }
				}
			}
			Results []struct {
				RuleID    string
				RuleIndex int
				Level     string
				Locations []struct {
					PhysicalLocation struct{ ArtifactLocation struct{ URI string } }
				}
			}
		}
	}
	if err := json.Unmarshal(out, &log); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range log.Runs[0].Results {
		rule := log.Runs[0].Tool.Driver.Rules[r.RuleIndex]
		if rule.ID != r.RuleID || !strings.HasSuffix(rule.HelpURI, "doctor.md#"+r.RuleID) {
			t.Errorf("rule %+v of result %s", rule, r.RuleID)
		}
		got = append(got, r.RuleID+" "+r.Level+" "+r.Locations[0].PhysicalLocation.ArtifactLocation.URI)
	}
	want := []string{"rule-disabled error b.yaml", "not-understood error a.yaml", "queue-delay warning a.yaml", "queue-delay note a.yaml"}
	if diff := cmp.Diff(want, got); diff != "" || log.Version != "2.1.0" || len(log.Runs[0].Tool.Driver.Rules) != 3 {
		t.Errorf("(-want +got):\n%s\n%s", diff, out)
	}
	if out, err := report.SARIF(nil, "", nil); err != nil || !strings.Contains(string(out), `"results": []`) {
		t.Errorf("no findings: %v\n%s", err, out)
	}
}

func TestJUnit(t *testing.T) {
	out, err := report.JUnit(all, func(s finding.Severity) bool { return s == finding.Broken || s == finding.Unknown })
	if err != nil {
		t.Fatal(err)
	}
	var suite struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
		Cases    []struct {
			Failure *struct {
				Message string `xml:"message,attr"`
			} `xml:"failure"`
		} `xml:"testcase"`
	}
	if err := xml.Unmarshal(out, &suite); err != nil {
		t.Fatal(err)
	}
	if suite.Tests != 4 || suite.Failures != 1 || suite.Errors != 1 || suite.Cases[0].Failure.Message != all[0].Problem || suite.Cases[2].Failure != nil {
		t.Errorf("%+v\n%s", suite, out)
	}
	if out, err := report.JUnit(nil, nil); err != nil || !strings.Contains(string(out), `tests="1" failures="0"`) {
		t.Errorf("no findings: %v\n%s", err, out)
	}
}

func TestBaseline(t *testing.T) {
	old := report.Baseline{Accepted: []report.Accepted{{ID: "queue-delay", Object: "queue q", Reason: "tests only"}, {ID: "gone", Object: "x"}}}
	left, accepted, stale := old.Filter(all)
	if len(left) != 3 || accepted != 1 || len(stale) != 1 || stale[0].ID != "gone" {
		t.Errorf("left %v, accepted %d, stale %v", left, accepted, stale)
	}
	text, err := json.Marshal(old.With(all))
	if err != nil {
		t.Fatal(err)
	}
	written, err := report.ReadBaseline(text)
	if left, accepted, stale := written.Filter(all); err != nil || len(left) != 0 || accepted != 4 || stale != nil || written.Accepted[2].Reason != "tests only" {
		t.Errorf("%v: left %v, accepted %d, stale %v, %+v", err, left, accepted, stale, written)
	}
	if _, err := report.ReadBaseline([]byte("x")); err == nil {
		t.Error("x is a baseline")
	}
}
