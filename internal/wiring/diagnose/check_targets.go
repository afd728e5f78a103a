package diagnose

import (
	"fmt"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/finding"
	"github.com/lifeboat-dev/lifeboat/internal/wiring/snapshot"
)

// checkTargets looks at how the rules send to the queue.
func checkTargets(e *exam) []finding.Finding {
	var all []finding.Finding
	for _, r := range e.rules {
		for _, t := range r.To(e.queue.ARN) {
			all = append(all, e.input(r, t)...)
			all = append(all, e.group(r, t)...)
			all = append(all, e.reach(r, t)...)
		}
	}
	return all
}

// input is about messages that do not arrive as AWS sent them.
func (e *exam) input(r *rule, t snapshot.Target) []finding.Finding {
	var what string
	switch {
	case t.Transformed:
		what = "InputTransformer"
	case t.InputPath != "" && t.InputPath != "$":
		what = "InputPath"
	case t.Input != "":
		what = "Input"
	default:
		return nil
	}
	return []finding.Finding{{
		Severity: finding.Broken, ID: idTargetInputChanged, Object: r.object(), Kinds: r.meant,
		Problem: "its target has an " + what + ": what arrives is not the event that AWS sent, and cannot be read",
		Fix: e.fix(r.From, r.role != "", "remove "+what+" from the target",
			fmt.Sprintf("aws events put-targets --rule %s --targets Id=%s,Arn=%s", r.Name, t.ID, t.ARN)),
	}}
}

// group is about FIFO queues, which EventBridge cannot send to without a group
// (EventBridge API Reference, SqsParameters).
func (e *exam) group(r *rule, t snapshot.Target) []finding.Finding {
	fifo := e.queue.FIFO || strings.HasSuffix(t.ARN, ".fifo")
	if !fifo || t.GroupID != "" && (!e.queue.Known || e.queue.ContentDeduplicated) {
		return nil
	}
	problem := "its target is a FIFO queue and names no message group: every delivery fails"
	if t.GroupID != "" {
		problem = "its target is a FIFO queue without content-based deduplication: every delivery fails"
	}
	return []finding.Finding{{
		Severity: finding.Broken, ID: idTargetFIFOGroup, Object: r.object(), Kinds: r.meant, Problem: problem,
		Fix: e.fix(r.From, r.role != "", "make the target a standard queue", "make a standard queue: "+e.apply()),
	}}
}

// reach is about targets that the rule cannot reach, or only with a role that
// cannot be looked at here.
func (e *exam) reach(r *rule, t snapshot.Target) []finding.Finding {
	var all []finding.Finding
	from, to := snapshot.Part(r.ARN, 3), snapshot.Part(t.ARN, 3)
	if from != "" && to != "" && from != to && !strings.HasPrefix(from, "{") && !strings.HasPrefix(to, "{") {
		all = append(all, finding.Finding{
			Severity: finding.Broken, ID: idTargetOtherRegion, Object: r.object(), Kinds: r.meant,
			Problem: fmt.Sprintf("the rule is in %s and the queue in %s: EventBridge delivers to queues of its own region only", from, to),
			Fix:     e.fix(r.From, r.role != "", "make both in one region", e.apply()),
		})
	}
	if t.RoleARN != "" {
		all = append(all, finding.Finding{
			Severity: finding.Info, ID: idTargetRole, Object: r.object(),
			Problem: fmt.Sprintf("it delivers as %s, which has to be allowed sqs:SendMessage; that was not looked at", t.RoleARN),
			Fix:     e.fix(r.From, r.role != "", "leave out the role: the queue's policy is enough within an account", ""),
		})
	}
	return all
}

// checkTargetDeadLetters looks at what becomes of events that cannot be
// delivered.
func checkTargetDeadLetters(e *exam) []finding.Finding {
	var without []string
	var queues []string
	from, by := "", map[string][]*rule{}
	for _, r := range e.rules {
		for _, t := range r.To(e.queue.ARN) {
			switch {
			case t.DeadLetterARN == "":
				without, from = append(without, r.Name), r.From
			case e.deadLetterRefuses(r, t.DeadLetterARN):
				queues = union(queues, []string{t.DeadLetterARN})
				by[t.DeadLetterARN] = append(by[t.DeadLetterARN], r)
			}
		}
	}
	var all []finding.Finding
	for _, arn := range queues {
		q, _ := e.FindQueue(arn)
		names, _ := namesAndKinds(by[arn])
		edit := "add to its policy: " + grant(by[arn], snapshot.Part(arn, 4), arn)
		all = append(all, finding.Finding{
			Severity: finding.Warning, ID: idTargetDeadLetterRefuse, Object: "queue " + q.Name,
			Problem: "its policy does not let " + list(names) + " put there what cannot be delivered: it is thrown away, and nobody sees that",
			Fix:     e.fix(q.From, e.ours(), edit, edit),
		})
	}
	if len(without) > 0 {
		edit := "give each target a DeadLetterConfig"
		all = append(all, finding.Finding{
			Severity: finding.Info, ID: idTargetDeadLetter, Object: e.queueObject(),
			Problem: "what " + list(without) + " cannot deliver to it is thrown away, and nobody sees that",
			Fix:     e.fix(from, e.ours(), edit, edit),
		})
	}
	return all
}
