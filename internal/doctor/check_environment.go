package doctor

import (
	"fmt"
	"slices"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// Limits for the difference between this clock and AWS's. Deadlines are AWS times
// that are compared with the local clock.
const (
	skewWarning = 5 * time.Second
	skewBroken  = 30 * time.Second
)

// checkClock compares the local clock with AWS's.
func checkClock(e *diagnosis) []finding.Finding {
	if e.Skew == nil || e.Skew.Abs() <= skewWarning {
		return nil
	}
	f := finding.Finding{
		Severity: finding.Warning, ID: idClockSkew, Object: "clock",
		Fix: "synchronize the clock of this machine with NTP (on EC2: chrony with 169.254.169.123)",
	}
	if e.Skew.Abs() > skewBroken {
		f.Severity = finding.Broken
	}
	direction, effect := "ahead of", "deadlines seem too early, and pods get less time"
	if *e.Skew < 0 {
		direction, effect = "behind", "deadlines seem too late, and pods are killed before they finish"
	}
	f.Problem = fmt.Sprintf("the clock of this machine is %s %s that of AWS. On a machine that runs lifeboatd, %s",
		e.Skew.Abs().Round(time.Second), direction, effect)
	return []finding.Finding{f}
}

// checkPermissions reports the actions that AWS denied. checkUnanswered reports those
// that failed.
func checkPermissions(e *diagnosis) []finding.Finding {
	who := "the user of these credentials"
	if e.Caller != "" {
		who = e.Caller
	}
	var all []finding.Finding
	denied := slices.DeleteFunc(slices.Clone(e.Denied), func(d snapshot.Denial) bool { return d.Failure != "" })
	for _, action := range deniedActions(denied) {
		on := joinList(deniedObjects(denied, action))
		f := finding.Finding{
			Severity: finding.Unknown, ID: idPermissionMissing, Object: "permission " + action,
			Problem: fmt.Sprintf("%s does not have it for %s, so that part of the AWS resources was not checked", who, on),
			Fix:     fmt.Sprintf(`add the statement {"Effect":"Allow","Action":%q,"Resource":"*"}`, action),
		}
		switch {
		case readsMessages(action):
			f.Severity = finding.Warning
			f.Problem = fmt.Sprintf("%s does not have it for %s; the controller needs it, if it uses the same credentials", who, on)
			f.Fix = fmt.Sprintf("add the statements that this command prints to the controller's role: lifeboat aws iam --cluster %s", e.clusterOr("NAME"))
		case isOptional(action):
			f.Severity = finding.Info
			f.Problem = fmt.Sprintf("%s does not have it, so the AWS resources were checked without it", who)
		}
		all = append(all, f)
	}
	return all
}

// isOptional reports whether the verdicts are complete without an action.
func isOptional(action string) bool {
	return action == "events:TestEventPattern" || action == "events:ListEventBuses" || action == "sqs:ListQueueTags"
}

// checkUnanswered reports the calls that failed, once for each action. AWS may answer
// the next time.
func checkUnanswered(e *diagnosis) []finding.Finding {
	failed := slices.DeleteFunc(slices.Clone(e.Denied), func(d snapshot.Denial) bool { return d.Failure == "" })
	var all []finding.Finding
	for _, action := range deniedActions(failed) {
		i := slices.IndexFunc(failed, func(d snapshot.Denial) bool { return d.Action == action })
		f := finding.Finding{
			Severity: finding.Unknown, ID: idCallFailed, Object: "call " + action,
			Problem: fmt.Sprintf("AWS did not answer it for %s (%s), so that part of the AWS resources was not checked", joinList(deniedObjects(failed, action)), failed[i].Failure),
			Fix:     "run the command again in a minute; if it fails again, look at the AWS Health Dashboard",
		}
		if isOptional(action) || readsMessages(action) {
			f.Severity = finding.Info
			f.Problem = fmt.Sprintf("AWS did not answer it (%s), so the AWS resources were checked without it", failed[i].Failure)
		}
		all = append(all, f)
	}
	return all
}

func deniedActions(denied []snapshot.Denial) []string {
	var actions []string
	for _, d := range denied {
		actions = union(actions, []string{d.Action})
	}
	return actions
}

func deniedObjects(denied []snapshot.Denial, action string) []string {
	var objects []string
	for _, d := range denied {
		if d.Action == action {
			objects = append(objects, d.Object)
		}
	}
	return objects
}

// readsMessages reports whether the controller needs an action that the doctor only
// tests.
func readsMessages(action string) bool {
	return action == "sqs:DeleteMessage" || action == "sqs:ChangeMessageVisibility"
}

func (e *diagnosis) clusterOr(other string) string {
	if e.desired.Cluster == "" {
		return other
	}
	return e.desired.Cluster
}

// checkUnread reports parts of the input that could not be interpreted.
func checkUnread(e *diagnosis) []finding.Finding {
	var all []finding.Finding
	for _, u := range e.Unread {
		all = append(all, notUnderstood(u.From, u.What, u.Fix))
	}
	return all
}

// notUnderstood reports what a file leaves open. flags are the flags that supply it;
// empty if there are none.
func notUnderstood(object, problem, flags string) finding.Finding {
	f := finding.Finding{Severity: finding.Unknown, ID: idNotUnderstood, Object: object, Problem: problem, Fix: flags}
	if flags == "" {
		f.Fix = "add the files with its values, or check the account: lifeboat doctor --cluster NAME"
	}
	return f
}
