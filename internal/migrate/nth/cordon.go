package nth

import (
	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// cordonRules returns the rules for a handler with cordon-only. Kinds that the
// handler's flags disable are ignored, because Lifeboat would drain by default. For
// rebalance recommendations the default only taints the node, so no rule is needed.
// The handler receives instance state changes only from its queue. No flag disables
// them, so they are always cordoned; Lifeboat's default drains them.
func (c *converter) cordonRules() []v1beta1.Rule {
	var rules []v1beta1.Rule
	var kinds []string
	add := func(name, kind, flag string) {
		if c.switchedOff(flag) {
			rules = append(rules, v1beta1.Rule{Name: name, Kinds: []string{kind}, Action: v1beta1.ActionIgnore})
			return
		}
		kinds = append(kinds, kind)
	}
	add("spot", notice.KindSpotInterruption, "enable-spot-interruption-draining")
	add("scheduled", notice.KindScheduledChange, "enable-scheduled-event-draining")
	if c.queue() || c.on("enable-rebalance-monitoring") || c.on("enable-rebalance-draining") {
		kinds = append(kinds, notice.KindRebalanceRecommendation)
	}
	kinds = append(kinds, notice.KindInstanceStateChange)
	add("terminations", notice.KindAutoScalingTermination, terminations)
	if !c.switchedOff(terminations) {
		c.report("cordon-only", finding.Warning, "terminations", "If the action for an Auto Scaling termination is Cordon, Lifeboat does not complete the lifecycle hook: the instance waits until the hook's timeout. NTH in queue mode completes it.",
			"to complete the hook, set action: Drain in a rule for AutoScalingTermination; or shorten the hook's timeout")
	}
	return append(rules, v1beta1.Rule{Name: "cordon-only", Kinds: kinds, Action: v1beta1.ActionCordon})
}

// terminations is the flag of Auto Scaling terminations. They are always drained,
// unless the handler has cordon-only.
const terminations = "enable-asg-lifecycle-draining"

// queue reports whether the handler reads a queue, and not instance metadata.
func (c *converter) queue() bool { return c.on("enable-sqs-termination-draining") }

// switchedOff reports whether a flag disables a kind. In queue mode the handler
// ignores these flags.
func (c *converter) switchedOff(flag string) bool { return !c.queue() && c.off(flag) }
