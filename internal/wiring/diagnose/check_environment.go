package diagnose

import (
	"fmt"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/finding"
	"github.com/lifeboat-dev/lifeboat/internal/wiring/snapshot"
)

// How far the clock may be off. Deadlines are times of AWS that are compared with
// the clock here.
const (
	skewWarns  = 5 * time.Second
	skewBreaks = 30 * time.Second
)

// checkClock compares the clock here with AWS's.
func checkClock(e *exam) []finding.Finding {
	if e.Skew == nil || e.Skew.Abs() <= skewWarns {
		return nil
	}
	f := finding.Finding{
		Severity: finding.Warning, ID: idClockSkew, Object: "clock",
		Fix: "have the clock of this machine set by NTP (on EC2: chrony with 169.254.169.123)",
	}
	if e.Skew.Abs() > skewBreaks {
		f.Severity = finding.Broken
	}
	direction, effect := "ahead of", "deadlines seem nearer than they are, and pods get less time"
	if *e.Skew < 0 {
		direction, effect = "behind", "deadlines seem further away than they are, and pods are cut off"
	}
	f.Problem = fmt.Sprintf("the clock of this machine is %s %s that of AWS: on a machine that runs lifeboatd, %s",
		e.Skew.Abs().Round(time.Second), direction, effect)
	return []finding.Finding{f}
}

// checkPermissions names what AWS refused to do.
func checkPermissions(e *exam) []finding.Finding {
	who := "these credentials"
	if e.Caller != "" {
		who = e.Caller
	}
	var all []finding.Finding
	for _, action := range deniedActions(e.Denied) {
		on := list(deniedObjects(e.Denied, action))
		f := finding.Finding{
			Severity: finding.Unknown, ID: idPermissionMissing, Object: "permission " + action,
			Problem: fmt.Sprintf("%s may not do it on %s, so that part of the wiring was not looked at", who, on),
			Fix:     fmt.Sprintf(`allow it: {"Effect":"Allow","Action":%q,"Resource":"*"}`, action),
		}
		switch {
		case readsMessages(action):
			f.Severity = finding.Warning
			f.Problem = fmt.Sprintf("%s may not do it on %s; the controller has to, if these are its credentials", who, on)
			f.Fix = fmt.Sprintf("give the controller's role what this prints: lifeboat wire iam --cluster %s", e.clusterOr("NAME"))
		case action == "events:TestEventPattern", action == "events:ListEventBuses", action == "sqs:ListQueueTags":
			f.Severity = finding.Info
			f.Problem = fmt.Sprintf("%s may not do it, so the wiring was looked at without", who)
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

// readsMessages tells whether an action is one that the controller needs, and
// that the doctor only tries.
func readsMessages(action string) bool {
	return action == "sqs:DeleteMessage" || action == "sqs:ChangeMessageVisibility"
}

func (e *exam) clusterOr(other string) string {
	if e.want.Cluster == "" {
		return other
	}
	return e.want.Cluster
}

// checkUnread names what could not be understood.
func checkUnread(e *exam) []finding.Finding {
	var all []finding.Finding
	for _, u := range e.Unread {
		all = append(all, finding.Finding{
			Severity: finding.Unknown, ID: idNotUnderstood, Object: u.From, Problem: u.What,
			Fix: "give what it is made of too, or let the doctor look at the account: lifeboat doctor --cluster NAME",
		})
	}
	return all
}

// checkEngine compares EventBridge's own verdicts with ours.
func checkEngine(e *exam) []finding.Finding {
	var all []finding.Finding
	for _, v := range e.Verdicts {
		for _, r := range e.all {
			if r.Name != v.Rule || r.compiled == nil {
				continue
			}
			for _, c := range e.examples {
				if c.name != v.Sample || r.compiled.MatchEvent(c.event) == v.Matches {
					continue
				}
				all = append(all, finding.Finding{
					Severity: finding.Warning, ID: idPatternEngine, Object: r.object(),
					Problem: fmt.Sprintf("EventBridge says that its pattern %s %s, and Lifeboat says the opposite: do not trust what is said here of this rule",
						map[bool]string{true: "matches", false: "does not match"}[v.Matches], strings.ToLower(c.name)),
					Fix: "report it, with the pattern: " + r.Pattern,
				})
			}
		}
	}
	return all
}
