package doctor

import (
	"fmt"
	"slices"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/symbol"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// policyAbsent reports a queue whose policy the files do not contain: whether notices
// arrive depends on it.
func (e *diagnosis) policyAbsent() []finding.Finding {
	said := slices.ContainsFunc(e.Unread, func(u snapshot.Unread) bool { return u.From == e.queueObject() })
	if !e.Offline || said || e.queue.ARN == "" {
		return nil
	}
	var names []string
	for _, r := range e.rules {
		if r.forNotices && len(r.To(e.queue.ARN)) > 0 {
			names = union(names, []string{r.Title()})
		}
	}
	if len(names) == 0 {
		return nil
	}
	name := e.queue.Name
	if symbol.Within(name) {
		name = "NAME"
	}
	return []finding.Finding{{
		Severity: finding.Unknown, ID: idQueuePolicyUnread, Object: e.queueObject(),
		Problem: "the files do not contain its policy, which decides whether the events of " + joinList(names) + " arrive",
		Fix: fmt.Sprintf("add the file that defines the queue, or the output of: aws sqs get-queue-attributes --attribute-names All "+
			"--queue-url $(aws sqs get-queue-url --queue-name %s --query QueueUrl --output text)", name),
	}}
}

// checkTargetsGiven reports rules whose targets the files do not contain, or do not
// define.
func checkTargetsGiven(e *diagnosis) []finding.Finding {
	if !e.Offline {
		return nil
	}
	var all []finding.Finding
	var without []string
	for _, r := range e.all {
		switch {
		case !r.forNotices || r.Scheduled:
		case !r.TargetsKnown:
			without = append(without, r.Title())
		default:
			all = append(all, e.undefinedTargets(r)...)
		}
	}
	if len(without) > 0 {
		all = append(all, finding.Finding{
			Severity: finding.Unknown, ID: idNotUnderstood, Object: "rule " + joinList(without),
			Problem: "the files do not contain the targets, so they do not say whether events reach Lifeboat's queue",
			Fix:     "add, for each rule, the output of: aws events describe-rule --name RULE; aws events list-targets-by-rule --rule RULE",
		})
	}
	return all
}

// undefinedTargets reports the targets of a rule that the files do not define at all.
func (e *diagnosis) undefinedTargets(r *rule) []finding.Finding {
	var all []finding.Finding
	for _, t := range r.Targets {
		if names := symbol.Undefined(t.ARN); len(names) > 0 && snapshot.Part(t.ARN, 2) == "" && !e.mayBeQueue(t.ARN) {
			all = append(all, notUnderstood(r.object(), "the files do not define its target: "+joinList(names), symbol.Supply(t.ARN)))
		}
	}
	return all
}

// mayBeQueue reports whether an ARN may be that of a queue in the files. checkTargets
// reports it.
func (e *diagnosis) mayBeQueue(arn string) bool {
	return slices.ContainsFunc(e.Queues, func(q snapshot.Queue) bool { return symbol.Equal(arn, q.ARN) == symbol.Maybe })
}
