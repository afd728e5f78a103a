package diagnose

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/finding"
	"github.com/lifeboat-dev/lifeboat/internal/wiring/snapshot"
)

// shortestHook is how long a hook has to wait at least: groups are looked at every
// 30 seconds, and an action is extended at a third of its hook's time.
const shortestHook = 90 * time.Second

// checkGroups looks at the Auto Scaling groups of templates: whether their hooks
// are there in time, and say the right thing.
func checkGroups(e *exam) []finding.Finding {
	var all []finding.Finding
	for _, g := range e.Groups {
		all = append(all, checkOrder(g)...)
		for _, h := range g.Hooks {
			all = append(all, checkHook(g, h)...)
		}
	}
	return all
}

// checkOrder asks whether launch hooks are there before what they are to hold. Only
// hooks that a group is created with are (EC2 Auto Scaling API Reference,
// CreateAutoScalingGroup, LifecycleHookSpecificationList).
func checkOrder(g snapshot.Group) []finding.Finding {
	launching := g.Launching()
	f := finding.Finding{Severity: finding.Warning, Object: "group " + g.Name}
	has := func(is func(snapshot.Hook) bool) bool { return slices.ContainsFunc(launching, is) }
	switch {
	case g.HooksOpen && len(launching) == 0:
		return nil
	case g.Pool && len(launching) == 0:
		f.Severity, f.ID = finding.Broken, idPoolWithoutHook
		f.Problem = "it has a warm pool and no launch hook: instances are stopped as soon as they run, in the middle of their set-up, and serve later without it"
		f.Fix = "in " + g.From + ": " + firstHook(g.From)
	case g.Pool && !has(func(h snapshot.Hook) bool { return h.BeforePool }):
		f.ID = idPoolBeforeHook
		f.Problem = fmt.Sprintf("its warm pool is made before its launch hook %s: the pool's first instances are stopped as soon as they run, in the middle of their set-up, and serve later without it", launching[0].Name)
		f.Fix = "in " + g.From + ": " + firstHook(g.From) + "; replace the instances that are warm already: aws ec2 terminate-instances"
	case g.Starts && len(launching) > 0 && !g.HooksOpen && !has(func(h snapshot.Hook) bool { return h.First }):
		f.ID = idGroupBeforeHook
		f.Problem = fmt.Sprintf("it launches its first instances before its launch hook %s is put: they come into service without being waited for, and whoever answers for them is refused", launching[0].Name)
		f.Fix = "in " + g.From + ": " + firstHook(g.From)
	default:
		return nil
	}
	return []finding.Finding{f}
}

// firstHook says how a template has a hook there first.
func firstHook(from string) string {
	if isTerraform(from) {
		return "give it the hook as initial_lifecycle_hook (lifeboat wire emit --groups prints them); a resource aws_autoscaling_lifecycle_hook of the same name may stay"
	}
	return "give it the hook in LifecycleHookSpecificationList"
}

// isTerraform tells by an address whether a resource is one of Terraform's.
func isTerraform(from string) bool { return strings.Contains(from, "aws_autoscaling_") }

// checkHook asks whether a hook says the right thing when its time is out, and can
// be answered.
func checkHook(g snapshot.Group, h snapshot.Hook) []finding.Finding {
	var all []finding.Finding
	add := func(severity finding.Severity, id, problem, fix string) {
		all = append(all, finding.Finding{Severity: severity, ID: id, Object: "hook " + h.Name + " of group " + g.Name, Problem: problem, Fix: "in " + h.From + ": " + fix})
	}
	set := func(cloudFormation, terraform, value string) string {
		if isTerraform(h.From) {
			return "set " + terraform + " to " + value
		}
		return "set " + cloudFormation + " to " + value
	}
	switch {
	case !h.Terminating && !h.Abandons:
		add(finding.Warning, idLaunchHookContinues, "it lets an instance go on when its time is out: one whose set-up failed comes into service, and counts as capacity",
			set("DefaultResult", "default_result", "ABANDON"))
	case h.Terminating && h.Abandons && !g.Retains:
		add(finding.Warning, idTerminateHookAbandons, "when its time is out the instance is terminated at once, with what is left of its pods, and the group's other hooks are skipped",
			set("DefaultResult", "default_result", "CONTINUE")+"; or keep such instances: InstanceLifecyclePolicy with TerminateHookAbandon retain")
	case h.Terminating && !h.Abandons && g.Retains:
		add(finding.Warning, idRetainsNothing, "the group keeps instances whose terminate hook was abandoned, and this one goes on instead: nothing is ever kept",
			set("DefaultResult", "default_result", "ABANDON"))
	}
	if h.Timeout < shortestHook {
		add(finding.Warning, idHookTooShort, fmt.Sprintf("it waits for %s, and groups are looked at every 30 seconds: where the notice of it is lost, its time is out before it is extended", span(h.Timeout)),
			set("HeartbeatTimeout", "heartbeat_timeout", "300"))
	}
	if strings.HasSuffix(h.Target, ".fifo") {
		add(finding.Broken, idHookTargetFIFO, "it tells a FIFO queue or topic, which Auto Scaling does not take: the hook cannot be put", set("NotificationTargetARN", "notification_target_arn", "none: EventBridge hears of every hook"))
	}
	return all
}
