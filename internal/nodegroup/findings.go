package nodegroup

import (
	"fmt"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/finding"
)

// manyFailures in a row is when launches are said to fail for a reason that
// stays.
const manyFailures = 3

// review gathers findings about one group.
type review struct {
	w   Wanted
	o   Observed
	h   History
	all []finding.Finding
}

// findings is what is wrong with a group.
func findings(w Wanted, o Observed, h History) []finding.Finding {
	r := &review{w: w, o: o, h: h, all: []finding.Finding{}}
	if !o.Exists {
		r.missing()
		return r.all
	}
	if o.Deleting {
		r.add(finding.Broken, "group-deleting", "AWS is deleting the group: no instance of it will come any more",
			"delete this NodeGroup as well; or, with management All, it is created again once it is gone")
		return r.all
	}
	for _, look := range []func(){
		r.operator, r.launchHook, r.terminateHook, r.otherHooks, r.pool, r.unhooked, r.outdated, r.suspensions, r.launches, r.retained, r.drift,
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
	if r.w.Management == v1alpha1.ManageAll {
		r.add(finding.Info, "group-missing", "there is no Auto Scaling group of this name yet: it is created, with its hooks in the same call",
			"nothing: if it does not come, the condition Synced says why")
		return
	}
	r.add(finding.Broken, "group-missing", "there is no Auto Scaling group of this name in this account and region: nothing is looked after",
		"correct spec.autoScalingGroup (`aws autoscaling describe-auto-scaling-groups --query 'AutoScalingGroups[].AutoScalingGroupName'` lists them), "+
			"or have Lifeboat create it: management: All")
}

// operator says how a group is set up that others own: its account is refused to
// change it (EC2 Auto Scaling API Reference, Operator).
func (r *review) operator() {
	owner := r.o.owner()
	if owner == "" {
		return
	}
	fix := "change it where it was made; here, management: Observe is enough"
	if strings.HasPrefix(owner, "eks") || owner == "EKS" {
		fix = fmt.Sprintf("change sizes, template and warm pool with EKS: `aws eks update-nodegroup-config --nodegroup-name %s --cluster-name %s …`; "+
			"its instances join and are drained by EKS's own hooks. Here, management: Observe is enough",
			word(r.o.Tags[tagEKS], "NODEGROUP"), word(r.o.Tags["eks:cluster-name"], "CLUSTER"))
	}
	severity := finding.Info
	problem := fmt.Sprintf("the group belongs to %s, so it is observed only, and nothing of it is changed from here", owner)
	if r.o.Operator == "" {
		problem = fmt.Sprintf("the group was made by %s, which undoes what it does not know of: of it only hooks are put", owner)
	}
	if r.w.Management != v1alpha1.ManageNothing {
		severity = finding.Warning
		problem += fmt.Sprintf(", although management is %s", r.w.Management)
	}
	r.add(severity, "operator-owned", problem, fix)
}

// unhooked tells of instances that went past the launch hook.
func (r *review) unhooked() {
	if len(r.h.Unhooked) == 0 {
		return
	}
	ids := r.h.Unhooked
	r.add(finding.Warning, "instances-before-hook",
		fmt.Sprintf("%s launched before the launch hook was there: %s. Nothing waited for the set-up to end; one that is warm may have been stopped in the middle of it, and would serve without it",
			were(len(ids), "instance"), strings.Join(ids[:min(len(ids), mostNamed)], ", ")),
		fmt.Sprintf("replace those that are warm; the pool refills: `aws ec2 terminate-instances --instance-ids %s`", strings.Join(ids[:min(len(ids), mostNamed)], " ")))
}

// outdated tells of warm instances of an older template.
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
		fmt.Sprintf("%s in the warm pool launched from another version of the launch template than %s, which is in force: %s. They come into service as they are",
			were(len(old), "instance"), current, names(old)),
		fmt.Sprintf("replace them; the pool refills: `aws ec2 terminate-instances --instance-ids %s`", strings.Join(ids, " ")))
}

// suspensions tell of processes that do not run (EC2 Auto Scaling User Guide,
// "Suspend and resume Amazon EC2 Auto Scaling processes").
func (r *review) suspensions() {
	effects := []struct {
		process  string
		severity finding.Severity
		effect   string
	}{
		{"Launch", finding.Broken, "no instance is launched: nothing that leaves is replaced, and the warm pool is not filled"},
		{"Terminate", finding.Warning, "no instance is terminated: the group does not shrink, and what is unhealthy stays"},
		{"HealthCheck", finding.Warning, "instances that fail are not noticed, and not replaced"},
		{"ReplaceUnhealthy", finding.Warning, "instances that are unhealthy are not replaced"},
		{"AddToLoadBalancer", finding.Info, "new instances are not registered with load balancers, also not later"},
		{"AZRebalance", finding.Info, "the zones are not balanced"},
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
			fix = "mend first why launches failed for a day, which is why AWS suspended it; then " + fix
		}
		r.add(e.severity, "process-suspended", problem, fix)
	}
}

// launches tell of launches that fail one after the other: AWS slows down, and
// after a day suspends the group's processes.
func (r *review) launches() {
	if r.h.Failures < manyFailures {
		return
	}
	problem := fmt.Sprintf("the last %d launches failed: AWS tries again and again, ever more slowly", r.h.Failures)
	if r.h.LastFailure != "" {
		problem += "; the last: " + r.h.LastFailure
	}
	r.add(finding.Broken, "launches-fail", problem, fmt.Sprintf(
		"look at `aws autoscaling describe-scaling-activities --auto-scaling-group-name %s` and at the console output of the instances; "+
			"to keep one for a look, suspend Terminate; where set-up takes longer than the hook waits, raise hooks.launch.patienceSeconds", r.o.Name))
}

// retained tells of instances that wait for somebody.
func (r *review) retained() {
	if n := r.o.Count().Retained; n > 0 {
		r.add(finding.Warning, "instances-retained",
			fmt.Sprintf("%s retained: the terminate hook was abandoned before they were drained; they cost, and serve nobody's count", were(int(n), "instance")),
			"save what is on them, then terminate each: `aws autoscaling terminate-instance-in-auto-scaling-group --no-should-decrement-desired-capacity --instance-id ID`")
	}
}

// drift tells what is declared and not so, where nothing is to be changed.
func (r *review) drift() {
	if r.w.Management == v1alpha1.ManageAll && r.o.owner() == "" {
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
	r.add(finding.Warning, "differs", "the group is not as declared, and is not changed: "+differences(changes),
		"write into spec what is there, or leave it out; or have Lifeboat change it: management: All")
}

// differences says what is not as declared.
func differences(changes []Change) string {
	var parts []string
	for _, c := range changes {
		parts = append(parts, fmt.Sprintf("%s is %s, declared %s", c.Name, word(c.Was, "not set"), word(c.WillBe, "not set")))
	}
	return strings.Join(parts, "; ")
}

func were(n int, noun string) string {
	if n == 1 {
		return "1 " + noun + " was"
	}
	return fmt.Sprintf("%d %ss were", n, noun)
}

func word(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// longestBoot is the longest that an instance was seen to take into service.
func (r *review) longestBoot() time.Duration {
	if r.h.Boots == nil {
		return 0
	}
	return time.Duration(r.h.Boots.LongestSeconds) * time.Second
}
