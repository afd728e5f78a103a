package doctor

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/queuepolicy"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/symbol"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// eventBridge is the service principal that the policy must allow.
const eventBridge = "events.amazonaws.com"

// checkPolicy evaluates the queue's policy for each rule, and for foreign accounts.
// EventBridge cannot assume a role for SQS: the queue's policy is its only permission
// (EventBridge User Guide, "Using resource-based policies").
func checkPolicy(e *diagnosis) []finding.Finding {
	if !e.queue.PolicyKnown {
		return e.policyAbsent()
	}
	// A rule that delivers with a role needs no permission in the policy. The fixes
	// allow it anyway: the role is not needed.
	var feeding, all []*rule
	for _, r := range e.rules {
		to := slices.DeleteFunc(r.To(e.queue.ARN), func(t snapshot.Target) bool { return t.Topic != "" }) // checkTopic
		if len(to) > 0 {
			all = append(all, r)
		}
		if slices.ContainsFunc(to, func(t snapshot.Target) bool { return t.RoleARN == "" }) {
			feeding = append(feeding, r)
		}
	}
	policy, err := parsePolicy(e.queue.Policy)
	if err != nil {
		return []finding.Finding{{
			Severity: finding.Unknown, ID: idQueuePolicyUnread, Object: e.queueObject(),
			Problem: "its policy cannot be read: " + err.Error(),
			Fix:     e.fixQueue("correct the policy", ""),
		}}
	}
	found := e.checkAllowed(policy, feeding, all)
	if open, statements := tooPermissiveFor(policy, e.queue.ARN); open != "" {
		found = append(found, finding.Finding{
			Severity: finding.Warning, ID: idQueuePolicyOpen, Object: e.queueObject(),
			Problem: "its policy lets " + open + " send to it: a forged notice drains nodes, and a flood of messages delays real notices",
			Fix:     e.fixQueue(fmt.Sprintf("add a condition: %s", e.conditionText(all)), ""),
			Change: together(restrict(e.queue.ARN, statements, "ArnEquals", "aws:SourceArn", arnsOf(all)),
				restrict(e.queue.ARN, statements, "StringEquals", "aws:SourceAccount", e.account())),
		})
	}
	if len(found) == 0 { // the fix of the others corrects the whole policy
		found = e.checkDenied(policy)
	}
	return found
}

// checkDenied reports that the policy of Lifeboat's own queue does not deny what lifeboat aws setup
// has it deny. An identity policy of the account is then enough to send to the queue: within an
// account it needs no Allow here (IAM User Guide, "Policy evaluation logic").
func (e *diagnosis) checkDenied(policy *queuepolicy.Policy) []finding.Finding {
	if e.queue.From != "" || !e.hasLifeboatName() || policy == nil {
		return nil
	}
	principal := "arn:" + snapshot.Part(e.queue.ARN, 1) + ":iam::" + e.account() + ":role/any-role-of-the-account"
	passes := func(action, tls string) bool {
		verdict := policy.Evaluate(queuepolicy.Request{
			ARN: principal, Account: e.account(), Action: action, Resource: e.queue.ARN,
			Context: map[string]string{"aws:SecureTransport": tls, "aws:PrincipalArn": principal},
		})
		return verdict == queuepolicy.NoOpinion || verdict == queuepolicy.Allow
	}
	var lacks []string
	if passes("sqs:SendMessage", "true") {
		lacks = append(lacks, "principals of the account that may send to all queues (DenyOtherSenders): they can forge notices, which drain nodes")
	}
	if passes("sqs:ReceiveMessage", "false") {
		lacks = append(lacks, "requests without TLS (DenyPlainHTTP)")
	}
	if len(lacks) == 0 {
		return nil
	}
	return []finding.Finding{{
		Severity: finding.Warning, ID: idQueuePolicyUndenied, Object: e.queueObject(),
		Problem: "its policy does not deny " + strings.Join(lacks, ", and "),
		Fix:     e.applyCommand(),
		Change: onQueue(e.queue.ARN, func(q *snapshot.Queue) {
			if wanted, err := e.desired.QueueAttributes(); err == nil {
				q.Policy = wanted["Policy"]
			}
		}),
	}}
}

// parsePolicy reads a policy. It returns nil for an empty one.
func parsePolicy(document string) (*queuepolicy.Policy, error) {
	if strings.TrimSpace(document) == "" {
		return nil, nil
	}
	return queuepolicy.ParseAny(document)
}

// checkAllowed reports the rules that the policy does not allow to send.
func (e *diagnosis) checkAllowed(policy *queuepolicy.Policy, feeding, senders []*rule) []finding.Finding {
	by := map[queuepolicy.Verdict][]*rule{}
	for _, r := range feeding {
		verdict := policy.Evaluate(deliveryRequest(r.ARN, snapshot.Part(r.ARN, 4), e.queue.ARN))
		by[verdict] = append(by[verdict], r)
	}
	var all []finding.Finding
	refused := append(by[queuepolicy.NoOpinion], by[queuepolicy.Deny]...)
	if len(refused) > 0 {
		names, kinds := namesAndKinds(refused)
		f := finding.Finding{
			Severity: finding.Broken, ID: idQueuePolicyRefuses, Object: e.queueObject(), Kinds: kinds,
			Problem: e.denialReason(len(by[queuepolicy.Deny]) > 0, len(refused) < len(feeding)) +
				": EventBridge cannot deliver the events of " + joinList(names),
			Fix:    e.letSend(refused, by[queuepolicy.Deny]),
			Change: allowRules(refused, e.account(), e.queue.ARN),
		}
		if denied := by[queuepolicy.Deny]; len(denied) > 0 {
			f.Change = together(exempt(e.queue.ARN, e.denying(policy, denied), denied), allowRules(refused, e.account(), e.queue.ARN))
		}
		all = append(all, f)
	}
	if undecided := by[queuepolicy.Unknown]; len(undecided) > 0 {
		names, _ := namesAndKinds(undecided)
		if flags := symbol.Supply(e.openInPolicy(undecided)); flags != "" {
			return append(all, finding.Finding{
				Severity: finding.Unknown, ID: idQueuePolicyUnread, Object: e.queueObject(),
				Problem: "whether its policy lets " + joinList(names) + " send depends on values that the files do not define",
				Fix:     flags + e.literals(),
			})
		}
		all = append(all, finding.Finding{
			Severity: finding.Unknown, ID: idQueuePolicyUnread, Object: e.queueObject(),
			Problem: "whether its policy lets " + joinList(names) + " send depends on a condition that only AWS can evaluate",
			Fix:     e.fixQueue("replace it: "+e.allowStatementText(senders, e.queue), ""),
			Change:  together(onQueue(e.queue.ARN, func(q *snapshot.Queue) { q.Policy = "" }), allowRules(senders, e.account(), e.queue.ARN)),
		})
	}
	return all
}

// letSend returns the fix that lets rules send, some of which a statement denies. lifeboat aws
// setup does that for Lifeboat's rules only.
func (e *diagnosis) letSend(refused, denied []*rule) string {
	setup := e.queue.From == "" && e.hasLifeboatName()
	var parts []string
	if setup && slices.ContainsFunc(refused, isLifeboats) {
		parts = append(parts, e.applyCommand())
	}
	if setup {
		refused = slices.DeleteFunc(slices.Clone(refused), isLifeboats)
		denied = slices.DeleteFunc(slices.Clone(denied), isLifeboats)
	}
	if len(denied) > 0 {
		parts = append(parts, "add to its statement with Effect Deny the condition "+e.exemption(denied))
	}
	switch {
	case len(refused) == 0:
	case len(denied) > 0:
		parts = append(parts, "add the statement "+e.allowStatementText(refused, e.queue))
	default:
		parts = append(parts, "add to its policy: "+e.allowStatementText(refused, e.queue))
	}
	fix := strings.Join(parts, "; and ")
	if setup {
		return fix
	}
	return e.fixQueue(fix, "")
}

// denying returns the indexes of the statements that deny rules.
func (e *diagnosis) denying(policy *queuepolicy.Policy, rules []*rule) []int {
	var all []int
	for _, r := range rules {
		all = append(all, policy.Applying("Deny", deliveryRequest(r.ARN, snapshot.Part(r.ARN, 4), e.queue.ARN))...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// exemption returns the condition that excludes rules from a statement.
func (e *diagnosis) exemption(rules []*rule) string {
	text, err := json.Marshal(map[string]any{denyOperator: map[string]any{"aws:SourceArn": e.references(rules)}})
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (e *diagnosis) denialReason(denied, some bool) string {
	switch {
	case e.queue.Policy == "":
		return "it has no policy"
	case denied:
		return "its policy denies EventBridge sqs:SendMessage"
	case !strings.Contains(e.queue.Policy, eventBridge):
		return "its policy does not allow " + eventBridge + " to send"
	case some:
		return "its policy allows EventBridge to send only for other rules"
	}
	return "its policy allows EventBridge to send, but with conditions (aws:SourceArn, aws:SourceAccount, Resource) that these rules do not meet"
}

// account returns the account of the queue.
func (e *diagnosis) account() string {
	if at := snapshot.Part(e.queue.ARN, 4); at != "" {
		return at
	}
	return e.Account
}

func namesAndKinds(rules []*rule) (names, kinds []string) {
	for _, r := range rules {
		names = append(names, r.Title())
		kinds = union(kinds, r.intendedKinds)
	}
	return names, kinds
}

// deliveryRequest returns the request that EventBridge makes for a rule.
func deliveryRequest(ruleARN, account, queueARN string) queuepolicy.Request {
	return queuepolicy.Request{
		Service: eventBridge, Action: "sqs:SendMessage", Resource: queueARN,
		Context: map[string]string{
			"aws:SourceArn": ruleARN, "aws:SourceAccount": account, "aws:SecureTransport": "true",
			"aws:PrincipalIsAWSService": "true", "aws:PrincipalServiceName": eventBridge,
		},
		// The request has these keys, but their values are unknown: the doctor does
		// not read the account's organization.
		UnknownKeys: []string{"aws:SourceOrgID", "aws:SourceOrgPaths"},
	}
}

// foreignAccount and otherAccount are account ids that no customer uses.
const (
	foreignAccount = "999999999999"
	otherAccount   = "999999999998"
)

// onlyAccount returns foreignAccount if the policy allows its rules, and not those of
// another foreign account: the policy then names it.
func onlyAccount(policy *queuepolicy.Policy, queueARN string) string {
	rule := "arn:aws:events:" + snapshot.Part(queueARN, 3) + ":" + otherAccount + ":rule/foreign"
	if policy.Evaluate(deliveryRequest(rule, otherAccount, queueARN)) == queuepolicy.NoOpinion {
		return foreignAccount
	}
	return ""
}

// tooPermissiveFor names the foreign senders that a policy allows, and the statements
// that allow them. It returns "" if there are none.
func tooPermissiveFor(policy *queuepolicy.Policy, queueARN string) (who string, statements []int) {
	region := snapshot.Part(queueARN, 3)
	anyone := queuepolicy.Request{
		ARN: "arn:aws:iam::" + foreignAccount + ":user/anyone", Account: foreignAccount, Action: "sqs:SendMessage", Resource: queueARN,
		Context: map[string]string{"aws:SecureTransport": "true"},
	}
	rule := deliveryRequest("arn:aws:events:"+region+":"+foreignAccount+":rule/foreign", foreignAccount, queueARN)
	by := append(policy.Applying("Allow", anyone), policy.Applying("Allow", rule)...)
	slices.Sort(by)
	by = slices.Compact(by)
	switch queuepolicy.Allow {
	case policy.Evaluate(anyone):
		return "anyone", by
	case policy.Evaluate(rule):
		if other := onlyAccount(policy, queueARN); other != "" {
			return "the rules of the account " + other, by
		}
		return "the rules of every AWS account", by
	}
	return "", nil
}

// allowStatement returns the policy statement that allows only these rules to send.
func allowStatement(rules []*rule, account, queueARN string) string {
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
	text, err := json.Marshal(map[string]any{
		"ArnEquals":    map[string]any{"aws:SourceArn": arnsOf(rules)},
		"StringEquals": map[string]string{"aws:SourceAccount": account},
	})
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// deadLetterDenies reports whether the policy of a dead-letter queue does not allow a
// rule to send to it. It returns false if the policy is unknown.
func (e *diagnosis) deadLetterDenies(r *rule, arn string) bool {
	q, ok := e.FindQueue(arn)
	if !ok || !q.PolicyKnown {
		return false
	}
	policy, err := parsePolicy(q.Policy)
	if err != nil {
		return false
	}
	verdict := policy.Evaluate(deliveryRequest(r.ARN, snapshot.Part(r.ARN, 4), arn))
	return verdict == queuepolicy.NoOpinion || verdict == queuepolicy.Deny
}

// openInPolicy returns the texts with symbols that decide whether the policy lets
// rules send.
func (e *diagnosis) openInPolicy(rules []*rule) string {
	text := ""
	for _, name := range symbol.Undefined(e.queue.Policy) {
		if one := symbol.Open(name); !strings.Contains(rules[0].ARN+e.queue.ARN, one) {
			text += one // the others are equal to themselves
		}
	}
	for _, place := range []struct {
		symbol  string
		written *regexp.Regexp
	}{{symbol.Account, writtenAccount}, {symbol.Region, writtenRegion}} {
		if place.written.MatchString(e.queue.Policy) && strings.Contains(rules[0].ARN+e.queue.ARN, place.symbol) {
			text += place.symbol
		}
	}
	return text
}

// Accounts and regions that are written out in a policy.
var (
	writtenAccount = regexp.MustCompile(`"([0-9]{12})"|:([0-9]{12}):`)
	writtenRegion  = regexp.MustCompile(`"arn:[^:"]*:[^:"]*:([a-z]+-[a-z-]+-[0-9]+):`)
)

// literals names the account and the region that the policy contains.
func (e *diagnosis) literals() string {
	var all []string
	if m := writtenAccount.FindStringSubmatch(e.queue.Policy); m != nil && e.Account == "" {
		all = append(all, "account "+m[1]+m[2])
	}
	if m := writtenRegion.FindStringSubmatch(e.queue.Policy); m != nil && e.Region == "" {
		all = append(all, "region "+m[1])
	}
	if len(all) == 0 {
		return ""
	}
	return " (the policy names " + joinList(all) + ")"
}
