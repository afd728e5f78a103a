package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// minHookTimeout is the shortest safe timeout of a hook: Lifeboat polls groups every
// 30 seconds, and extends an action after a third of the hook's timeout.
const minHookTimeout = 90 * time.Second

// checkGroups checks the Auto Scaling groups of templates: the order in which hooks
// are created, and their default results.
func checkGroups(e *diagnosis) []finding.Finding {
	var all []finding.Finding
	for _, g := range e.Groups {
		all = append(all, checkOrder(g)...)
		for _, h := range g.Hooks {
			all = append(all, checkHook(g, h)...)
		}
	}
	return all
}

// checkOrder checks that launch hooks exist before the first instance. Only hooks
// that are part of the group's creation do (EC2 Auto Scaling API Reference,
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
		f.Problem = "it has a warm pool and no launch hook: instances stop as soon as they run, in the middle of their setup, and later serve with an incomplete setup"
		f.Fix = "in " + g.From + ": " + firstHook(g.From)
	case g.Pool && !has(func(h snapshot.Hook) bool { return h.BeforePool }):
		f.ID = idPoolBeforeHook
		f.Problem = fmt.Sprintf("its warm pool is created before its launch hook %s: the pool's first instances stop as soon as they run, in the middle of their setup, and later serve with an incomplete setup", launching[0].Name)
		f.Fix = "in " + g.From + ": " + firstHook(g.From) + "; then replace the existing warm instances: aws ec2 terminate-instances"
	case g.Starts && len(launching) > 0 && !g.HooksOpen && !has(func(h snapshot.Hook) bool { return h.First }):
		f.ID = idGroupBeforeHook
		f.Problem = fmt.Sprintf("it launches its first instances before its launch hook %s exists: they come into service without waiting, and AWS refuses to complete the hook for them", launching[0].Name)
		f.Fix = "in " + g.From + ": " + firstHook(g.From)
	default:
		return nil
	}
	return []finding.Finding{f}
}

// firstHook describes how a template creates the hook together with the group.
func firstHook(from string) string {
	if isTerraform(from) {
		return "add the hook as initial_lifecycle_hook (lifeboat aws emit --groups prints it); a resource aws_autoscaling_lifecycle_hook with the same name can stay"
	}
	return "add the hook to LifecycleHookSpecificationList"
}

// isTerraform reports whether an address is that of a Terraform resource.
func isTerraform(from string) bool { return strings.Contains(from, "aws_autoscaling_") }

// checkHook checks a hook's default result, timeout and target.
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
		add(finding.Warning, idLaunchHookContinues, "a launch continues after the hook's timeout: an instance whose setup failed comes into service and counts as capacity",
			set("DefaultResult", "default_result", "ABANDON"))
	case h.Terminating && h.Abandons && !g.Retains:
		add(finding.Warning, idTerminateHookAbandons, "at its timeout the instance terminates immediately with its remaining pods, and the group skips its other hooks",
			set("DefaultResult", "default_result", "CONTINUE")+"; or retain such instances: InstanceLifecyclePolicy with TerminateHookAbandon retain")
	case h.Terminating && !h.Abandons && g.Retains:
		add(finding.Warning, idRetainsNothing, "the group retains instances whose terminate hook was abandoned, but this hook continues at its timeout: no instance is retained",
			set("DefaultResult", "default_result", "ABANDON"))
	}
	if h.Timeout < minHookTimeout {
		add(finding.Warning, idHookTooShort, fmt.Sprintf("its timeout is %s, and Lifeboat polls groups every 30 seconds: if its notice is lost, the timeout ends before Lifeboat extends it", formatDuration(h.Timeout)),
			set("HeartbeatTimeout", "heartbeat_timeout", "300"))
	}
	if strings.HasSuffix(h.Target, ".fifo") {
		add(finding.Broken, idHookTargetFIFO, "its target is a FIFO queue or topic, which Auto Scaling does not support: AWS refuses to create the hook", set("NotificationTargetARN", "notification_target_arn", "none: EventBridge receives the events of every hook"))
	}
	return all
}
