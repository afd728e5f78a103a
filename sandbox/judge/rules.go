package judge

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Violation is one promise that was broken.
type Violation struct {
	// Rule is the name of the rule, and Object is what it is about.
	Rule, Object string
	Time         time.Time
	// Text says what happened and what was promised.
	Text string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s: %s at %s: %s", v.Rule, v.Object, v.Time.Format("15:04:05.000"), v.Text)
}

// Rule is one promise.
type Rule struct {
	Name, Promise string
	check         func(*History, func(object string, at time.Time, format string, args ...any))
}

// Rules are all promises that the judge checks.
func Rules() []Rule {
	return []Rule{
		{"notice-recorded", "every spot warning about a node of the cluster is in its Interruption", noticeRecorded},
		{"recorded-before-acknowledged", "the message with a warning is deleted only when the warning is recorded", recordedBeforeAcknowledged},
		{"settled", "the Interruption of an instance without power is completed soon", settled},
		{"record-kept", "an Interruption is deleted only after it is completed", recordKept},
		{"status-true", "a completed Interruption lists no pending pods, and a pod that is gone is not pending", statusTrue},
		{"status-prompt", "a pod that is gone is not pending for longer than the status may be late", statusPrompt},
		{"departures-true", "the record says when a pod was gone, within the time that the status may be late", departuresTrue},
		{"no-write-loop", "no object is written again and again", noWriteLoop},

		{"only-interrupted-nodes", "pods leave only nodes with an Interruption that says so", onlyInterruptedNodes},
		{"listed-before-eviction", "a pod is in status.drain.pods before it is asked to stop", listedBeforeEviction},
		{"cordoned-before-eviction", "a node is cordoned before its first pod is asked to stop", cordonedBeforeEviction},
		{"all-cordoned-first", "all nodes with a firm deadline are cordoned before a pod of any is asked to stop", allCordonedFirst},
		{"daemons-stay", "pods of DaemonSets and static pods are never asked to stop", daemonsStay},
		{"grace-kept", "a pod gets its whole grace period if there is time", graceKept},
		{"grace-not-shortened", "no pod is asked again with less time than it was given, unless the deadline needs it", graceNotShortened},
		{"budget-respected", "a budget is overridden only at last call before a firm deadline", budgetRespected},
		{"override-reported", "the Interruption says that a budget was overridden", overrideReported},
		{"pods-not-cut", "no pod loses power if there was time to stop it, unless a policy says so", podsNotCut},
		{"disruption-stated", "a pod of a Job has the condition DisruptionTarget before it is gone, if Lifeboat asked it to stop", disruptionStated},
		{"jobs-go-on", "no Job fails because of an interruption if its podFailurePolicy ignores DisruptionTarget", jobsGoOn},
		{"foreign-pods", "pods of other nodes are not changed", foreignPods},

		{"foreign-nodes", "only nodes with an Interruption are cordoned", foreignNodes},
		{"own-node-fields", "of a node only spec.unschedulable and Lifeboat's own taints, labels and annotations change", ownNodeFields},
		{"node-restored", "a node that lives ends up as it was", nodeRestored},

		{"one-replacement", "an interrupted node has at most one replacement at a time", oneReplacement},
		{"claim-deleted-for-notice", "a NodeClaim is deleted only for a notice that drains its node", claimDeletedForNotice},
		{"terminated-for-cause", "an instance is terminated only if its Interruption says Terminate, or it was detached", terminatedForCause},
		{"terminated-once", "TerminateInstances is not repeated within a minute", terminatedOnce},
		{"hook-after-drain", "a lifecycle hook is completed only when the node is empty, or its time is over", hookAfterDrain},
		{"drill-harmless", "a drill ends no instance, deletes no NodeClaim, and forces no pod", drillHarmless},
	}
}

// Judge returns all violations, in the order of time.
func (h *History) Judge() []Violation {
	var out []Violation
	for _, rule := range Rules() {
		rule.check(h, func(object string, at time.Time, format string, args ...any) {
			out = append(out, Violation{rule.Name, object, at, fmt.Sprintf(format, args...)})
		})
	}
	slices.SortFunc(out, func(a, b Violation) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Object, b.Object))
	})
	return out
}

// Size says how much there was to judge, so that an empty history does not pass.
func (h *History) Size() (requests, pods, asks, records int) {
	for _, p := range h.pods {
		for _, a := range p.asks {
			if a.ours {
				asks++
			}
		}
	}
	return len(h.requests), len(h.pods), asks, len(h.records)
}
