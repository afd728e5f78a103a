package policy

import (
	"fmt"
	"strings"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// form is the format of a problem's message. All of them are here, so that the guide can explain
// each. If the CRD has the same rule, both have the same message.
type form string

// problems are the problems of a part of a policy.
type problems []string

func (p *problems) add(f form, args ...any) {
	*p = append(*p, fmt.Sprintf(string(f), args...))
}

// at adds the problems of a part, with its path before each.
func (p *problems) at(path string, part []string) {
	for _, problem := range part {
		*p = append(*p, path+": "+problem)
	}
}

// For the selector of nodes.
const (
	nodesEmptyPool   form = "nodes.nodePools has an empty name: write the name of a Karpenter NodePool, or remove the entry"
	nodesEmptyGroup  form = "nodes.nodeGroups has an empty name: write the name of a node group, or remove the entry"
	nodesLabels      form = "nodes.matchLabels: %v; write a key and a value that a label can have"
	nodesExpressions form = "nodes.matchExpressions[%d]: %v; write operator In or NotIn with values, or Exists or DoesNotExist without"
)

// For rules.
const (
	noRules             form = "it has no rules: write at least one, or delete the policy"
	noKinds             form = "it has no kinds: write %s"
	unknownKind         form = "unknown kind %q: write %s"
	emptyCode           form = "eventTypeCodes has an empty code: write one such as \"*_STOP_SCHEDULED\", or remove the entry"
	unknownAction       form = "unknown action %q: write Ignore, Notify, Cordon, Drain or Terminate"
	unknownApproval     form = "unknown approval %q: write Required or None"
	unknownUnanswered   form = "unknown ifUnanswered %q: write Wait or Proceed"
	unknownWorth        form = "unknown doNotDisrupt %q: write Respect, UntilLastCall or Ignore"
	unknownReplace      form = "unknown replacement %q: write Before or None"
	unknownStrategy     form = "unknown strategy %q: write Evict or Surge; Never is for workloads"
	notBeforeRange      form = "notBefore must be between 1m and 8760h, such as 24h"
	drainTimeoutRange   form = "drainTimeout must be between 1m and 48h, such as 30m"
	deregistrationRange form = "waitForDeregistration must be between 1s and 1h, such as 1m"
	noSenseDrainTime    form = "drainTimeout is for drains that no deadline ends: of kind AutoScalingTermination, or with action Terminate; remove it, or add the kind"
	noSenseBegin        form = "%s only makes sense with action Cordon, Drain or Terminate; remove it, or change the action"
	noSenseMove         form = "%s only makes sense with action Drain or Terminate; remove it, or change the action"
	noSenseUnanswered   form = "ifUnanswered says what happens without an approval; write approval: Required as well, or remove it"
	windowDuration      form = "duration must be between 1m and 168h, such as 2h"
	windowZone          form = "time zone %q is not an IANA name: write UTC or one such as Europe/Berlin"
	windowSchedule      form = "schedule %q is not one: %v; write minute hour day-of-month month day-of-week, such as \"0 2 * * *\" for 02:00 every day"
	windowNeverComes    form = "schedule %q never comes: no month has such a day; write one that does, such as \"0 2 1 * *\" for the first of every month"
)

// For the rest.
const (
	limitNotOne        form = "maxConcurrent must be a number of at least 1, or a percentage from 1%% to 100%%"
	workloadForNone    form = "a workload has to say which pods it is for: write namespaces, selector or matchOwnerKinds"
	workloadNoTreat    form = "a workload has to say what is different for its pods: write order or strategy"
	workloadNamespace  form = "namespaces has %q, which no namespace is called: write the name of one"
	workloadSelector   form = "selector: %v; write matchLabels, or matchExpressions with operator In, NotIn, Exists or DoesNotExist"
	workloadEmptyOwner form = "matchOwnerKinds has an empty kind: write one such as StatefulSet, None for pods that nothing controls, or remove the entry"
	workloadOrder      form = "unknown order %q: write First, Normal or Last"
	workloadStrategy   form = "unknown strategy %q: write Evict, Surge or Never"
	badName            form = "name %q must be of lower-case letters, digits and hyphens, 30 at most, and begin and end with none of the hyphens: write one such as move-leaders"
	sameName           form = "name %q is taken by one before it: write another"
	retriesRange       form = "retries %d is not between 0 and 10: write one such as 2"
	jobNamespace       form = "job.namespace %q is a name that no namespace has: write the name of one that the chart's value hooks.namespaces names"
	unknownReason      form = "on has %q, which no timeline entry is called: write %s"
)

// leaves says what the group does with the instance.
func leaves(n v1beta1.Notice) string {
	if n.InstanceAction == notice.ActionReturn {
		return "its Auto Scaling group takes the instance back into its warm pool"
	}
	return "its Auto Scaling group terminates the instance"
}

// message is the reported sentence: the action, why, and what it waits for.
func (c match) message(agreed approvalState, starts startTime) string {
	clauses := []string{fmt.Sprintf("%s: %s", c.action, c.because)}
	if agreed.because != "" {
		clauses = append(clauses, agreed.because)
	}
	switch {
	case starts.because == "":
	case agreed.awaited && !starts.notBefore.IsZero():
		clauses = append(clauses, "once approved "+starts.because)
	default:
		clauses = append(clauses, starts.because)
	}
	return strings.Join(clauses, "; ")
}

// Considered is one policy, or one of its rules, that was compared.
type Considered struct {
	// Policy is the policy's name; empty for the built-in defaults.
	Policy string
	// Rule is the rule's name or position; empty for the policy as a whole.
	Rule string
	// Rules is set for the rule that applies.
	Rules bool
	// Reason is a sentence that says why it applies or does not.
	Reason string
}

func (q *matchContext) consider(policy, rule string, rules bool, reason string) {
	q.considered = append(q.considered, Considered{Policy: policy, Rule: rule, Rules: rules, Reason: reason})
}
