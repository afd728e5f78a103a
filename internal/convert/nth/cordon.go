package nth

import (
	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/finding"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// cordons are the rules for a handler that never drains. What it would not have heard
// of for being switched off is ignored, since by default Lifeboat would drain; of
// rebalance recommendations the default is to mark the node, which may stay. Changes
// of an instance's state the handler hears from its queue only, and they are cordoned
// either way: nothing switches them off, and by default they drain as well.
func (c *converter) cordons() []v1alpha1.Rule {
	var rules []v1alpha1.Rule
	var kinds []string
	add := func(name, kind, flag string) {
		if c.switchedOff(flag) {
			rules = append(rules, v1alpha1.Rule{Name: name, Kinds: []string{kind}, Action: v1alpha1.ActionIgnore})
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
		c.say("cordon-only", finding.Warning, "terminations", "Where an Auto Scaling termination is only cordoned for, Lifeboat leaves the lifecycle hook unanswered: the instance waits until the hook's time is out. NTH in queue mode answers it.",
			"action: Drain in a rule for AutoScalingTermination, where the hook is to be answered; or a shorter timeout of the hook")
	}
	return append(rules, v1alpha1.Rule{Name: "cordon-only", Kinds: kinds, Action: v1alpha1.ActionCordon})
}

// terminations is the flag of Auto Scaling terminations, which are always drained for
// unless the handler was never to drain.
const terminations = "enable-asg-lifecycle-draining"

// queue reports whether the handler reads a queue, and no metadata.
func (c *converter) queue() bool { return c.on("enable-sqs-termination-draining") }

// switchedOff reports whether a flag keeps the handler from a kind. With a queue it
// looks at none of them.
func (c *converter) switchedOff(flag string) bool { return !c.queue() && c.off(flag) }
