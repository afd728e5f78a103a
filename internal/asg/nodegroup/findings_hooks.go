package nodegroup

import (
	"fmt"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// launchHook checks the hook that holds launches.
func (r *review) launchHook() {
	h, there := r.hook(r.w.Launch, "instances enter service before their nodes are Ready, and the warm pool before their set-up has finished")
	if !there {
		return
	}
	if !h.Abandons {
		r.add(finding.Warning, "launch-hook-continues",
			fmt.Sprintf("launch hook %s continues on timeout: an instance whose set-up failed enters service and counts as capacity", h.Name),
			r.fixForHook(h, "OnTimeout ABANDON", "hooks.launch.onTimeout: ABANDON", "--default-result ABANDON"))
	}
	longest := r.longestBoot()
	most := r.w.Patience
	if h.Global > 0 {
		most = min(most, h.Global)
	}
	switch {
	case longest > most:
		r.add(finding.Broken, "launch-hook-too-short",
			fmt.Sprintf("an instance took %s to enter service, but Lifeboat extends a launch to %s at most: such a launch is abandoned, and the next one is not faster", short(longest), short(most)),
			"raise hooks.launch.patienceSeconds (and timeoutSeconds: AWS ends a launch after 100 times that); or shorten the set-up with a prepared machine image or images pulled in the warm pool")
	case longest > h.Timeout:
		r.add(finding.Warning, "launch-hook-too-short",
			fmt.Sprintf("an instance took %s to enter service, but launch hook %s waits for %s: only heartbeats kept it, and a Lifeboat outage of that length would have ended it", short(longest), h.Name, short(h.Timeout)),
			r.fixForHook(h, "a longer timeout", fmt.Sprintf("hooks.launch.timeoutSeconds: %d", roomy(longest)), fmt.Sprintf("--heartbeat-timeout %d", roomy(longest))))
	}
}

// terminateHook checks the hook that holds terminations.
func (r *review) terminateHook() {
	h, there := r.hook(r.w.Terminate, "AWS terminates instances without waiting for the drain of their pods")
	if !there {
		return
	}
	retains := r.w.Spec.RetainUndrained != nil && *r.w.Spec.RetainUndrained
	if s := r.o.Settings; s != nil {
		retains = s.Retain
	}
	switch {
	case h.Abandons && !retains:
		r.add(finding.Warning, "terminate-hook-abandons",
			fmt.Sprintf("terminate hook %s abandons on timeout: AWS terminates the instance at once and skips the group's other hooks", h.Name),
			r.fixForHook(h, "CONTINUE", "hooks.terminate.onTimeout: CONTINUE", "--default-result CONTINUE")+"; or retain such instances: retainUndrained: true")
	case !h.Abandons && retains:
		r.add(finding.Warning, "retains-nothing",
			fmt.Sprintf("the group retains instances whose terminate hook was abandoned, but hook %s continues on timeout: nothing is ever retained", h.Name),
			r.fixForHook(h, "ABANDON", "hooks.terminate.onTimeout: ABANDON", "--default-result ABANDON"))
	}
}

// hook checks that one of the two hooks could be read, exists, and holds the
// right transition.
func (r *review) hook(wanted Hook, without string) (Hook, bool) {
	if !r.o.HooksKnown {
		if !wanted.Terminating { // report it once, not for each hook
			r.add(finding.Unknown, "hooks-unknown", "the group's lifecycle hooks could not be read: it is unknown whether instances are held until they are ready",
				"allow autoscaling:DescribeLifecycleHooks: `lifeboat aws iam` prints the policy")
		}
		return Hook{}, false
	}
	id := "launch-hook"
	if wanted.Terminating {
		id = "terminate-hook"
	}
	h, there := r.o.Hook(wanted.Name)
	switch {
	case !there:
		fix := r.fixForHook(wanted, "it", "management: Hooks", fmt.Sprintf("--default-result %s --heartbeat-timeout %d", wanted.result(), int(wanted.Timeout.Seconds())))
		if other := r.sameTransition(wanted); other != "" {
			fix = fmt.Sprintf("if Lifeboat must answer %s, set hooks.%s.name: %s; otherwise %s", other, transitionKey(wanted), other, fix)
		}
		severity := finding.Broken
		if owner := r.o.owner(); owner != "" {
			// The owner's own hooks handle launch and drain.
			severity, fix = finding.Info, fmt.Sprintf("nothing, if %s's own hooks are enough", owner)
		}
		r.add(severity, id+"-missing", fmt.Sprintf("the group has no %s %s: %s", wanted.kind(), wanted.Name, without), fix)
		return Hook{}, false
	case h.Terminating != wanted.Terminating:
		r.add(finding.Broken, id+"-elsewhere", fmt.Sprintf("hook %s holds the other transition (%s), so there is no %s", h.Name, h.transition(), wanted.kind()),
			fmt.Sprintf("set another name in hooks.%s.name; then delete this hook while no instance is in a transition", transitionKey(wanted)))
		return Hook{}, false
	}
	return h, true
}

// otherHooks reports hooks of others, and hooks with a notification target.
func (r *review) otherHooks() {
	for _, h := range r.o.Hooks {
		_, own := r.o.own(r.w.hookFor(h))
		if own && h.Name == r.w.hookFor(h).Name {
			if h.Target != "" {
				r.add(finding.Info, "hook-target", fmt.Sprintf("hook %s also notifies %s: a reader of that may answer it before the node is ready or drained", h.Name, h.Target),
					"make sure that no other tool, such as aws-node-termination-handler, answers it")
			}
			continue
		}
		if h.Name == v1beta1.LaunchHook || h.Name == v1beta1.TerminateHook {
			r.add(finding.Info, "hook-stale", fmt.Sprintf("hook %s is Lifeboat's default, but another is declared for its transition: both hold instances", h.Name),
				fmt.Sprintf("with management Hooks or All Lifeboat deletes it when no instance is in a transition; by hand: `aws autoscaling delete-lifecycle-hook --auto-scaling-group-name %s --lifecycle-hook-name %s`", r.o.Name, h.Name))
			continue
		}
		severity := finding.Info
		if h.Timeout > 15*time.Minute {
			severity = finding.Warning
		}
		r.add(severity, "other-hook", fmt.Sprintf("Lifeboat does not answer %s %s: if no other tool does, it holds each instance for %s", h.kind(), h.Name, short(h.Timeout)),
			fmt.Sprintf("make sure that some tool answers it, or delete it while no instance is in a transition; to have Lifeboat answer it, set hooks.%s.name: %s", transitionKey(h), h.Name))
	}
}

// pool checks a warm pool: without a launch hook AWS stops its instances before
// their set-up has finished.
func (r *review) pool() {
	if r.o.Pool == nil || r.o.Pool.Deleting {
		return
	}
	launch := false
	for _, h := range r.o.Hooks {
		launch = launch || !h.Terminating
	}
	if r.o.HooksKnown && !launch {
		r.add(finding.Broken, "pool-without-hook",
			"the group has a warm pool but no launch hook: AWS stops its instances as soon as they run, before their set-up has finished",
			r.fixForHook(r.w.Launch, "it", "management: Hooks", fmt.Sprintf("--default-result ABANDON --heartbeat-timeout %d", int(r.w.Launch.Timeout.Seconds())))+
				"; then replace the current warm instances")
	}
	most := r.o.Max
	if p := r.o.Pool.MaxPrepared; p != nil && *p != unbounded {
		most = *p
	}
	if r.o.PoolKnown && r.o.Pool.Min == 0 && r.o.Desired >= most && r.o.Desired > 0 {
		r.add(finding.Info, "pool-empty", fmt.Sprintf("the limits keep the warm pool empty: %d instances are desired, and at most %d may be prepared in total", r.o.Desired, most),
			"raise maxSize or warmPool.maxPreparedCapacity, or set warmPool.minSize")
	}
}

// sameTransition returns another existing hook of h's transition.
func (r *review) sameTransition(h Hook) string {
	for _, found := range r.o.Hooks {
		if found.Terminating == h.Terminating && found.Name != h.Name {
			return found.Name
		}
	}
	return ""
}

// fixForHook says how to correct a hook: Lifeboat does it, or a change of the
// spec, or a manual command.
func (r *review) fixForHook(h Hook, what, declare, flags string) string {
	if r.o.Operator != "" {
		return "change it through " + r.o.Operator + ", which rejects changes by others"
	}
	if r.w.Management != v1beta1.ManageNothing && declare == "management: Hooks" {
		return "nothing: Lifeboat sets " + what + "; if that does not happen, see the condition Synced"
	}
	byHand := fmt.Sprintf("`aws autoscaling put-lifecycle-hook --auto-scaling-group-name %s --lifecycle-hook-name %s --lifecycle-transition %s %s`", r.o.Name, h.Name, h.transition(), flags)
	if r.w.Management == v1beta1.ManageNothing {
		return fmt.Sprintf("set management: Hooks so that Lifeboat sets %s; or by hand: %s", what, byHand)
	}
	return fmt.Sprintf("declare %s, or by hand: %s", declare, byHand)
}

// transitionKey is the name of the hook's field in spec.hooks.
func transitionKey(h Hook) string {
	if h.Terminating {
		return "terminate"
	}
	return "launch"
}

// roomy returns a timeout in seconds with a margin above an observed duration.
func roomy(d time.Duration) int {
	const most = 7200 // (EC2 Auto Scaling API Reference, PutLifecycleHook)
	minutes := int((d*3/2)/time.Minute) + 1
	return min(minutes*60, most)
}

// short formats a duration in minutes and seconds.
func short(d time.Duration) string {
	d = d.Round(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d%time.Minute == 0:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	}
	return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
}
