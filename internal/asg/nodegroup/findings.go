package nodegroup

import (
	"fmt"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// manyFailures is the number of consecutive failed launches that counts as a
// persistent failure.
const manyFailures = 3

// review collects findings about one group.
type review struct {
	w   Wanted
	o   Observed
	h   History
	all []finding.Finding
}

// findings are the problems of a group.
func findings(w Wanted, o Observed, h History) []finding.Finding {
	r := &review{w: w, o: o, h: h, all: []finding.Finding{}}
	if !o.Exists {
		r.missing()
		return r.all
	}
	if o.Deleting {
		r.add(finding.Broken, "group-deleting", "AWS is deleting the group: it launches no more instances",
			"delete this NodeGroup as well; with management All Lifeboat creates the group again once it is gone")
		return r.all
	}
	for _, look := range []func(){
		r.cluster, r.operator, r.launchHook, r.terminateHook, r.otherHooks, r.pool, r.unhooked, r.outdated, r.suspensions, r.launches, r.retained, r.drift,
	} {
		look()
	}
	return r.all
}

func (r *review) add(severity finding.Severity, id, problem, fix string) {
	r.all = append(r.all, finding.Finding{
		Severity: severity, ID: id, Object: "Auto Scaling group " + r.w.Group, Problem: problem, Fix: fix,
	})
}

func (r *review) missing() {
	if r.w.Management == v1beta1.ManageAll {
		r.add(finding.Info, "group-missing", "there is no Auto Scaling group of this name yet: Lifeboat creates it and its hooks in one call",
			"nothing; if it does not appear, see the condition Synced")
		return
	}
	r.add(finding.Broken, "group-missing", "there is no Auto Scaling group of this name in this account and region, so Lifeboat manages nothing",
		"correct spec.autoScalingGroup (`aws autoscaling describe-auto-scaling-groups --query 'AutoScalingGroups[].AutoScalingGroupName'` lists them), "+
			"or have Lifeboat create it: management: All")
}

// operator reports a group that another service owns: its account may not
// change it (EC2 Auto Scaling API Reference, Operator).
func (r *review) operator() {
	owner := r.o.owner()
	if owner == "" {
		return
	}
	fix := "change it with the tool that created it; use management: Observe here"
	if strings.HasPrefix(owner, "eks") || owner == "EKS" {
		fix = fmt.Sprintf("change sizes, template and warm pool with EKS: `aws eks update-nodegroup-config --nodegroup-name %s --cluster-name %s …`; "+
			"EKS's own hooks handle launch and drain. Use management: Observe here",
			orDefault(r.o.Tags[tagEKS], "NODEGROUP"), orDefault(r.o.Tags["eks:cluster-name"], "CLUSTER"))
	}
	severity := finding.Info
	problem := fmt.Sprintf("the group belongs to %s, so Lifeboat only observes it", owner)
	if r.o.Operator == "" {
		problem = fmt.Sprintf("the group was created by %s, which reverts foreign changes, so Lifeboat manages only its hooks", owner)
	}
	if r.w.Management != v1beta1.ManageNothing {
		severity = finding.Warning
		problem += fmt.Sprintf(", although management is %s", r.w.Management)
	}
	r.add(severity, "operator-owned", problem, fix)
}

// unhooked reports instances that launched without the launch hook.
func (r *review) unhooked() {
	if len(r.h.Unhooked) == 0 {
		return
	}
	ids := r.h.Unhooked
	r.add(finding.Warning, "instances-before-hook",
		fmt.Sprintf("%s launched before the launch hook existed: %s. AWS did not wait for their set-up, so a warm one may have been stopped before its set-up ended",
			were(len(ids), "instance"), strings.Join(ids[:min(len(ids), mostNamed)], ", ")),
		fmt.Sprintf("replace the warm ones; AWS refills the pool: `aws ec2 terminate-instances --instance-ids %s`", strings.Join(ids[:min(len(ids), mostNamed)], " ")))
}

// outdated reports warm instances of an older template version.
func (r *review) outdated() {
	old, current := r.o.outdated()
	if len(old) == 0 {
		return
	}
	var ids []string
	for _, i := range old[:min(len(old), mostNamed)] {
		ids = append(ids, i.ID)
	}
	r.add(finding.Warning, "warm-outdated",
		fmt.Sprintf("%s in the warm pool launched from another version of the launch template than the current %s: %s. They enter service without the newer version",
			were(len(old), "instance"), current, names(old)),
		fmt.Sprintf("replace them; AWS refills the pool: `aws ec2 terminate-instances --instance-ids %s`", strings.Join(ids, " ")))
}

// suspensions reports suspended processes (EC2 Auto Scaling User Guide,
// "Suspend and resume Amazon EC2 Auto Scaling processes").
func (r *review) suspensions() {
	effects := []struct {
		process  string
		severity finding.Severity
		effect   string
	}{
		{"Launch", finding.Broken, "AWS launches no instances: it replaces none and does not fill the warm pool"},
		{"Terminate", finding.Warning, "AWS terminates no instances: the group does not shrink, and unhealthy instances stay"},
		{"HealthCheck", finding.Warning, "AWS does not detect or replace failed instances"},
		{"ReplaceUnhealthy", finding.Warning, "AWS does not replace unhealthy instances"},
		{"AddToLoadBalancer", finding.Info, "new instances are never registered with load balancers, not even after the process resumes"},
		{"AZRebalance", finding.Info, "AWS does not balance the zones"},
	}
	for _, e := range effects {
		s, is := r.o.suspended(e.process)
		if !is {
			continue
		}
		problem := fmt.Sprintf("the process %s is suspended: %s", e.process, e.effect)
		fix := fmt.Sprintf("`aws autoscaling resume-processes --auto-scaling-group-name %s --scaling-processes %s`", r.o.Name, e.process)
		if s.Reason != "" {
			problem += fmt.Sprintf(" (AWS: %s)", s.Reason)
		}
		if strings.Contains(strings.ToLower(s.Reason), "administrative") {
			fix = "AWS suspended it because launches failed for a day: fix that first, then " + fix
		}
		r.add(e.severity, "process-suspended", problem, fix)
	}
}

// launches reports consecutive failed launches: AWS slows down, and suspends
// the group's processes after a day.
func (r *review) launches() {
	if r.h.Failures < manyFailures {
		return
	}
	problem := fmt.Sprintf("the last %d launches failed: AWS retries more and more slowly", r.h.Failures)
	if r.h.LastFailure != "" {
		problem += "; the last: " + r.h.LastFailure
	}
	r.add(finding.Broken, "launches-fail", problem, fmt.Sprintf(
		"look at `aws autoscaling describe-scaling-activities --auto-scaling-group-name %s` and at the console output of the instances; "+
			"to inspect a failed instance, suspend Terminate; if the set-up takes longer than the hook waits, raise hooks.launch.patienceSeconds", r.o.Name))
}

// retained reports instances that AWS retained for manual recovery.
func (r *review) retained() {
	if n := r.o.Count().Retained; n > 0 {
		r.add(finding.Warning, "instances-retained",
			fmt.Sprintf("%s retained: the terminate hook was abandoned before they were drained; they cost money and do not count as capacity", were(int(n), "instance")),
			"save their data, then terminate each: `aws autoscaling terminate-instance-in-auto-scaling-group --no-should-decrement-desired-capacity --instance-id ID`")
	}
}

// drift reports declared settings that differ but that Lifeboat may not change.
func (r *review) drift() {
	if r.w.Management == v1beta1.ManageAll && r.o.owner() == "" {
		return
	}
	var p Plan
	changes := p.sizes(r.w, r.o)
	if s := r.o.Settings; s != nil {
		changes = append(append(changes, launchChanges(r.w, *s)...), settingChanges(r.w, *s)...)
	}
	if r.o.PoolKnown && r.w.Pool != nil {
		changes = append(changes, poolChanges(*r.w.Pool, r.o.Pool)...)
	}
	if len(changes) == 0 {
		return
	}
	r.add(finding.Warning, "differs", "the group differs from the spec, and Lifeboat does not change it: "+differences(changes),
		"set the spec to the current values or omit them; or set management: All so that Lifeboat changes the group")
}

// differences lists the settings that differ.
func differences(changes []Change) string {
	var parts []string
	for _, c := range changes {
		parts = append(parts, fmt.Sprintf("%s is %s, declared %s", c.Name, orDefault(c.Was, "not set"), orDefault(c.WillBe, "not set")))
	}
	return strings.Join(parts, "; ")
}

func were(n int, noun string) string {
	if n == 1 {
		return "1 " + noun + " was"
	}
	return fmt.Sprintf("%d %ss were", n, noun)
}

func orDefault(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// longestBoot is the longest observed time from launch to service.
func (r *review) longestBoot() time.Duration {
	if r.h.Boots == nil {
		return 0
	}
	return time.Duration(r.h.Boots.LongestSeconds) * time.Second
}
