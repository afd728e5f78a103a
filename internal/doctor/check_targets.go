package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/symbol"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// checkTargets checks the delivery from the rules to the queue.
func checkTargets(e *diagnosis) []finding.Finding {
	var all []finding.Finding
	for _, r := range e.rules {
		if e.mayTarget(r) {
			arn := r.Targets[0].ARN
			all = append(all, notUnderstood(r.object(), "the files do not say whether its target "+arn+" is the queue "+e.queue.Title(), symbol.Supply(arn+e.queue.ARN)))
		}
		for _, t := range r.To(e.queue.ARN) {
			all = append(all, e.checkInput(r, t)...)
			all = append(all, e.checkFIFO(r, t)...)
			all = append(all, e.checkDelivery(r, t)...)
		}
	}
	return all
}

// checkInput reports a target that changes the event.
func (e *diagnosis) checkInput(r *rule, t snapshot.Target) []finding.Finding {
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
		Severity: finding.Broken, ID: idTargetInputChanged, Object: r.object(), Kinds: r.intendedKinds,
		Problem: "its target has an " + what + ", which changes the event: Lifeboat cannot read the message",
		Fix: e.fix(r.From, ofSetup(r, t), "remove "+what+" from the target",
			fmt.Sprintf("aws events put-targets --rule %s --targets Id=%s,Arn=%s", r.Name, t.ID, cmp.Or(t.Topic, t.ARN))),
		Change: onTargets(r, cmp.Or(t.Topic, t.ARN), func(t *snapshot.Target) { t.Input, t.InputPath, t.Transformed = "", "", false }),
	}}
}

// The ids of the targets that lifeboat aws setup puts.
const (
	setupTarget      = "lifeboat-queue"
	setupTopicTarget = "lifeboat-topic"
)

// ofSetup reports whether lifeboat aws setup corrects the target. It leaves those of others
// alone.
func ofSetup(r *rule, t snapshot.Target) bool {
	return r.role != "" && (t.ID == setupTarget || t.ID == setupTopicTarget)
}

// checkFIFO reports FIFO queues to which EventBridge cannot deliver: it needs a
// message group (EventBridge API Reference, SqsParameters).
func (e *diagnosis) checkFIFO(r *rule, t snapshot.Target) []finding.Finding {
	fifo := e.queue.FIFO || strings.HasSuffix(t.ARN, ".fifo")
	if !fifo || t.GroupID != "" && (!e.queue.Known || e.queue.ContentDeduplicated) {
		return nil
	}
	problem := "its target is a FIFO queue without a message group: every delivery fails"
	if t.GroupID != "" {
		problem = "its target is a FIFO queue without content-based deduplication: every delivery fails"
	}
	return []finding.Finding{{
		Severity: finding.Broken, ID: idTargetFIFOGroup, Object: r.object(), Kinds: r.intendedKinds, Problem: problem,
		Fix:    e.fix(r.From, r.role != "", "use a standard queue as target", "create a standard queue: "+e.applyCommand()),
		Change: standardQueue(e.queue),
	}}
}

// checkDelivery reports targets in another region, and targets with a role that the
// doctor cannot check.
func (e *diagnosis) checkDelivery(r *rule, t snapshot.Target) []finding.Finding {
	var all []finding.Finding
	from, to := snapshot.Part(r.ARN, 3), snapshot.Part(t.ARN, 3)
	if from != "" && to != "" && symbol.Equal(from, to) == symbol.No {
		all = append(all, finding.Finding{
			Severity: finding.Broken, ID: idTargetOtherRegion, Object: r.object(), Kinds: r.intendedKinds,
			Problem: fmt.Sprintf("the rule is in %s and the queue in %s: EventBridge delivers only to queues of its own region", from, to),
			Fix:     e.fix(r.From, r.role != "", "create both in one region", e.applyCommand()),
		})
	}
	if t.RoleARN != "" {
		all = append(all, e.deliversWithRole(r, t))
	}
	return all
}

// deliversWithRole reports a target with a role. The queue's policy must allow the rule
// before the role goes.
func (e *diagnosis) deliversWithRole(r *rule, t snapshot.Target) finding.Finding {
	edit, changes := "remove the role: the queue's policy is enough within an account", []change{}
	if policy, err := parsePolicy(e.queue.Policy); err == nil && e.queue.PolicyKnown && e.policyRefuses(r, snapshot.Target{ARN: t.ARN}) {
		edit = "add to the queue's policy " + e.allowStatementText([]*rule{r}, e.queue) + ", then remove the role"
		if denying := e.denying(policy, []*rule{r}); len(denying) > 0 {
			edit = "add to the policy's statement with Effect Deny the condition " + e.exemption([]*rule{r}) + "; " + edit
			changes = append(changes, exempt(e.queue.ARN, denying, []*rule{r}))
		}
		changes = append(changes, allowRules([]*rule{r}, e.account(), e.queue.ARN))
	}
	changes = append(changes, onTargets(r, t.ARN, func(t *snapshot.Target) { t.RoleARN = "" }))
	return finding.Finding{
		Severity: finding.Info, ID: idTargetRole, Object: r.object(),
		Problem: fmt.Sprintf("it delivers with the role %s, which needs sqs:SendMessage; that was not checked", t.RoleARN),
		Fix:     e.fix(r.From, r.role != "", edit, ""),
		Change:  together(changes...),
	}
}

// checkTargetDeadLetters checks the dead-letter queues of the rules' targets.
func checkTargetDeadLetters(e *diagnosis) []finding.Finding {
	var without, commands, queues []string
	from, by := "", map[string][]*rule{}
	for _, r := range e.rules {
		for _, t := range r.To(e.queue.ARN) {
			switch {
			case t.Topic != "": // checkTopic
			case t.DeadLetterARN == "":
				without, from = append(without, r.Title()), r.From
				commands = union(commands, []string{e.addDeadLetterCommand(r, t)})
			case e.deadLetterDenies(r, t.DeadLetterARN):
				queues = union(queues, []string{t.DeadLetterARN})
				by[t.DeadLetterARN] = append(by[t.DeadLetterARN], r)
			}
		}
	}
	var all []finding.Finding
	for _, arn := range queues {
		q, _ := e.FindQueue(arn)
		names, _ := namesAndKinds(by[arn])
		edit := "add to its policy: " + e.allowStatementText(by[arn], q)
		all = append(all, finding.Finding{
			Severity: finding.Warning, ID: idTargetDeadLetterRefuse, Object: "queue " + q.Title(),
			Problem: "its policy does not let " + joinList(names) + " send undeliverable events to it: EventBridge drops them silently",
			Fix:     e.fix(q.From, e.hasLifeboatName() && ofLifeboat(by[arn]), edit, edit),
			Change:  allowRules(by[arn], snapshot.Part(arn, 4), arn),
		})
	}
	if len(without) > 0 {
		edit := "add a DeadLetterConfig to each target"
		all = append(all, finding.Finding{
			Severity: finding.Info, ID: idTargetDeadLetter, Object: e.queueObject(),
			Problem: "EventBridge silently drops events that " + joinList(without) + " cannot deliver to it",
			Fix:     e.fix(from, false, edit, strings.Join(commands, "; ")),
			Change:  e.addTargetDeadLetters(),
		})
	}
	return all
}

// isLifeboats reports whether lifeboat aws setup writes the rule.
func isLifeboats(r *rule) bool { return r.role != "" }

// ofLifeboat reports whether all rules are Lifeboat's.
func ofLifeboat(rules []*rule) bool {
	return !slices.ContainsFunc(rules, func(r *rule) bool { return !isLifeboats(r) })
}

// addDeadLetterCommand adds a dead-letter queue to a target in an account.
func (e *diagnosis) addDeadLetterCommand(r *rule, t snapshot.Target) string {
	switch {
	case ofSetup(r, t) && e.hasLifeboatName():
		return e.applyCommand()
	case e.queue.DeadLetterARN == "":
		return "add a DeadLetterConfig to each target"
	}
	return fmt.Sprintf("aws events put-targets --rule %s --targets %s", r.Name,
		quoteShell(fmt.Sprintf(`[{"Id":%q,"Arn":%q,"DeadLetterConfig":{"Arn":%q}}]`, t.ID, t.ARN, e.queue.DeadLetterARN)))
}
