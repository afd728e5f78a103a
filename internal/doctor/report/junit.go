package report

import (
	"encoding/xml"
	"fmt"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// The parts of JUnit's XML format that CI systems read.
type (
	junitSuite struct {
		XMLName  xml.Name    `xml:"testsuite"`
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Failure *junitProblem `xml:"failure"`
		Error   *junitProblem `xml:"error"`
		Output  string        `xml:"system-out,omitempty"`
	}
	junitProblem struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit encodes findings as JUnit XML, one test case for each. A broken part is a
// failure, and one that could not be checked is an error. counts reports which other
// findings are failures. Without findings there is one test case that passes.
func JUnit(all []finding.Finding, counts func(finding.Severity) bool) ([]byte, error) {
	suite := junitSuite{Name: "lifeboat doctor"}
	for _, f := range all {
		one := junitCase{Class: "lifeboat.doctor." + f.ID, Name: f.Object}
		problem := &junitProblem{Message: f.Problem, Type: string(f.Severity), Text: text(f)}
		switch {
		case !counts(f.Severity):
			one.Output = fmt.Sprintf("%s: %s", f.Severity, text(f))
		case f.Severity == finding.Unknown:
			one.Error, suite.Errors = problem, suite.Errors+1
		default:
			one.Failure, suite.Failures = problem, suite.Failures+1
		}
		suite.Cases = append(suite.Cases, one)
	}
	if len(all) == 0 {
		suite.Cases = []junitCase{{Class: "lifeboat.doctor", Name: "all checks"}}
	}
	suite.Tests = len(suite.Cases)
	out, err := xml.MarshalIndent(suite, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing JUnit XML: %w", err)
	}
	return append([]byte(xml.Header), out...), nil
}
