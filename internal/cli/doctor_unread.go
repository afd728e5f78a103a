package cli

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// partNotChecked is the ID of the finding about parts of the cluster that could not be read.
const partNotChecked = "part-not-checked"

// unread is a part of the checks that lacks the answer to a question.
type unread struct {
	part string
	err  error
}

// notChecked records that a part of the checks lacks an answer. The other parts go on.
func (d *doctorRun) notChecked(part string, err error) {
	var several interface{ Unwrap() []error }
	if errors.As(err, &several) {
		for _, one := range several.Unwrap() {
			d.notChecked(part, one)
		}
		return
	}
	if err != nil {
		d.unread = append(d.unread, unread{part, err})
	}
}

// unreadFindings returns one finding for each cause, with the parts that need the answer.
func (d *doctorRun) unreadFindings() []finding.Finding {
	parts, fixes := map[string][]string{}, map[string]string{}
	var causes []string
	for _, u := range d.unread {
		cause := u.err.Error()
		var status apierrors.APIStatus
		if errors.As(u.err, &status) {
			cause = status.Status().Message
		}
		if parts[cause] == nil {
			causes = append(causes, cause)
			fixes[cause] = d.unreadFix(u.err)
		}
		if !slices.Contains(parts[cause], u.part) {
			parts[cause] = append(parts[cause], u.part)
		}
	}
	var out []finding.Finding
	for _, cause := range causes {
		out = append(out, finding.Finding{
			Severity: finding.Unknown, ID: partNotChecked, Object: strings.Join(parts[cause], ", "),
			Problem: "not everything was checked: " + cause, Fix: fixes[cause],
		})
	}
	return out
}

// refusal is how the API server words a missing permission.
var refusal = regexp.MustCompile(`cannot (\w+) resource "([^"]+)" in API group "([^"]*)"`)

func (d *doctorRun) unreadFix(err error) string {
	m := refusal.FindStringSubmatch(err.Error())
	if m == nil {
		return cmp.Or(d.hint(err), "run the doctor again; if that does not help, check the network and the credentials")
	}
	return fmt.Sprintf("allow the user to %s %s (docs/guides/doctor.md lists all permissions), or check --context", m[1], strings.TrimSuffix(m[2]+"."+m[3], "."))
}
