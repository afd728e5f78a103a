package diagnose

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/finding"
	"github.com/lifeboat-dev/lifeboat/internal/wiring/queuepolicy"
	"github.com/lifeboat-dev/lifeboat/internal/wiring/snapshot"
)

// eventBridge is the service that has to be let in.
const eventBridge = "events.amazonaws.com"

// checkPolicy asks the queue's policy about each rule, and about strangers.
// EventBridge has no role to write to SQS with: the policy is what lets it in
// (EventBridge User Guide, "Using resource-based policies").
func checkPolicy(e *exam) []finding.Finding {
	if !e.queue.PolicyKnown {
		return nil
	}
	var feeding []*rule
	for _, r := range e.rules {
		for _, t := range r.To(e.queue.ARN) {
			if t.RoleARN == "" {
				feeding = append(feeding, r)
				break
			}
		}
	}
	policy, err := parsePolicy(e.queue.Policy)
	if err != nil {
		return []finding.Finding{{
			Severity: finding.Unknown, ID: idQueuePolicyUnread, Object: e.queueObject(),
			Problem: "its policy cannot be read: " + err.Error(),
			Fix:     e.fixQueue("put the policy right", ""),
		}}
	}
	all := e.refused(policy, feeding)
	if open := openTo(policy, e.queue.ARN); open != "" {
		all = append(all, finding.Finding{
			Severity: finding.Warning, ID: idQueuePolicyOpen, Object: e.queueObject(),
			Problem: "its policy lets " + open + " send to it: whoever does can make nodes be evacuated, or drown a warning",
			Fix:     e.fixQueue(fmt.Sprintf("add a condition: %s", condition(feeding, e.account())), ""),
		})
	}
	return all
}

// parsePolicy reads a policy; an empty one has no opinion.
func parsePolicy(document string) (*queuepolicy.Policy, error) {
	if strings.TrimSpace(document) == "" {
		return nil, nil
	}
	return queuepolicy.ParseAny(document)
}

// refused are the rules that the policy does not let in.
func (e *exam) refused(policy *queuepolicy.Policy, feeding []*rule) []finding.Finding {
	by := map[queuepolicy.Verdict][]*rule{}
	for _, r := range feeding {
		verdict := policy.Evaluate(delivery(r.ARN, snapshot.Part(r.ARN, 4), e.queue.ARN))
		by[verdict] = append(by[verdict], r)
	}
	var all []finding.Finding
	refused := append(by[queuepolicy.NoOpinion], by[queuepolicy.Deny]...)
	if len(refused) > 0 {
		names, kinds := namesAndKinds(refused)
		f := finding.Finding{
			Severity: finding.Broken, ID: idQueuePolicyRefuses, Object: e.queueObject(), Kinds: kinds,
			Problem: e.whyRefused(len(by[queuepolicy.Deny]) > 0, len(refused) < len(feeding)) +
				": EventBridge matches what comes for " + list(names) + " and cannot deliver it",
			Fix: e.fixQueue("add to its policy: "+grant(refused, e.account(), e.queue.ARN), ""),
		}
		if len(by[queuepolicy.Deny]) > 0 {
			f.Fix = e.fixQueue("take "+eventBridge+" out of the statement with Effect Deny", "")
		}
		all = append(all, f)
	}
	if unsure := by[queuepolicy.Unknown]; len(unsure) > 0 {
		names, _ := namesAndKinds(unsure)
		all = append(all, finding.Finding{
			Severity: finding.Unknown, ID: idQueuePolicyUnread, Object: e.queueObject(),
			Problem: "whether its policy lets " + list(names) + " in hangs on a condition that only AWS can judge",
			Fix:     e.fixQueue("replace it: "+grant(unsure, e.account(), e.queue.ARN), ""),
		})
	}
	return all
}

func (e *exam) whyRefused(denied, some bool) string {
	switch {
	case e.queue.Policy == "":
		return "it has no policy"
	case denied:
		return "its policy denies EventBridge sqs:SendMessage"
	case !strings.Contains(e.queue.Policy, eventBridge):
		return "its policy does not let " + eventBridge + " send"
	case some:
		return "its policy lets EventBridge in for other rules only"
	}
	return "its policy lets EventBridge in, but under conditions (aws:SourceArn, aws:SourceAccount, Resource) that these rules do not fulfil"
}

// account is the account of the queue.
func (e *exam) account() string {
	if at := snapshot.Part(e.queue.ARN, 4); at != "" {
		return at
	}
	return e.Account
}

func namesAndKinds(rules []*rule) (names, kinds []string) {
	for _, r := range rules {
		names = append(names, r.Name)
		kinds = union(kinds, r.meant)
	}
	return names, kinds
}

// delivery is the request that EventBridge makes for a rule.
func delivery(ruleARN, account, queueARN string) queuepolicy.Request {
	return queuepolicy.Request{
		Service: eventBridge, Action: "sqs:SendMessage", Resource: queueARN,
		Context: map[string]string{
			"aws:SourceArn": ruleARN, "aws:SourceAccount": account, "aws:SecureTransport": "true",
			"aws:PrincipalIsAWSService": "true", "aws:PrincipalServiceName": eventBridge,
		},
		// They are there, but an account's organisation is not looked up.
		Unsure: []string{"aws:SourceOrgID", "aws:SourceOrgPaths"},
	}
}

// stranger is an account that is not anybody's own.
const stranger = "999999999999"

// openTo says whom a policy lets in beside the account's own rules.
func openTo(policy *queuepolicy.Policy, queueARN string) string {
	region := snapshot.Part(queueARN, 3)
	anybody := queuepolicy.Request{
		ARN: "arn:aws:iam::" + stranger + ":user/anybody", Account: stranger, Action: "sqs:SendMessage", Resource: queueARN,
		Context: map[string]string{"aws:SecureTransport": "true"},
	}
	rule := "arn:aws:events:" + region + ":" + stranger + ":rule/theirs"
	switch queuepolicy.Allow {
	case policy.Evaluate(anybody):
		return "anybody"
	case policy.Evaluate(delivery(rule, stranger, queueARN)):
		return "the rules of every AWS account"
	}
	return ""
}

// grant is the statement that lets rules in, and nobody else.
func grant(rules []*rule, account, queueARN string) string {
	text, err := json.Marshal(struct {
		Effect    string
		Principal map[string]string
		Action    string
		Resource  string
		Condition json.RawMessage
	}{"Allow", map[string]string{"Service": eventBridge}, "sqs:SendMessage", queueARN, json.RawMessage(condition(rules, account))})
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// condition limits a statement to rules of an account.
func condition(rules []*rule, account string) string {
	arns := []string{}
	for _, r := range rules {
		arns = append(arns, r.ARN)
	}
	text, err := json.Marshal(map[string]any{
		"ArnEquals":    map[string]any{"aws:SourceArn": arns},
		"StringEquals": map[string]string{"aws:SourceAccount": account},
	})
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// deadLetterRefuses tells whether a rule may not put what it cannot deliver into a
// queue, as far as its policy is known.
func (e *exam) deadLetterRefuses(r *rule, arn string) bool {
	q, ok := e.FindQueue(arn)
	if !ok || !q.PolicyKnown {
		return false
	}
	policy, err := parsePolicy(q.Policy)
	if err != nil {
		return false
	}
	verdict := policy.Evaluate(delivery(r.ARN, snapshot.Part(r.ARN, 4), arn))
	return verdict == queuepolicy.NoOpinion || verdict == queuepolicy.Deny
}
