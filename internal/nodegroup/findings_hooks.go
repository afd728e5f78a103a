package nodegroup

import (
	"fmt"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/finding"
)

// launchHook looks at the hook that holds what is launched.
func (r *review) launchHook() {
	h, there := r.hook(r.w.Launch, "instances come into service before their nodes are Ready, and into the warm pool before they are set up")
	if !there {
		return
	}
	if !h.Abandons {
		r.add(finding.Warning, "launch-hook-continues",
			fmt.Sprintf("launch hook %s lets an instance go on when its time is out: one whose set-up failed comes into service, and counts as capacity", h.Name),
			r.mendHook(h, "OnTimeout ABANDON", "hooks.launch.onTimeout: ABANDON", "--default-result ABANDON"))
	}
	longest := r.longestBoot()
	most := r.w.Patience
	if h.Global > 0 {
		most = min(most, h.Global)
	}
	switch {
	case longest > most:
		r.add(finding.Broken, "launch-hook-too-short",
			fmt.Sprintf("an instance took %s into service, and a launch is extended to %s at most: such a launch is given up, and the next is no faster", short(longest), short(most)),
			"raise hooks.launch.patienceSeconds (and timeoutSeconds: AWS ends a launch after 100 times that); or shorten the set-up: a baked image, images pulled in the warm pool")
	case longest > h.Timeout:
		r.add(finding.Warning, "launch-hook-too-short",
			fmt.Sprintf("an instance took %s into service, and launch hook %s waits for %s: it lived only by heartbeats, and would not have with Lifeboat away for that long", short(longest), h.Name, short(h.Timeout)),
			r.mendHook(h, "a longer timeout", fmt.Sprintf("hooks.launch.timeoutSeconds: %d", roomy(longest)), fmt.Sprintf("--heartbeat-timeout %d", roomy(longest))))
	}
}

// terminateHook looks at the hook that holds what is terminated.
func (r *review) terminateHook() {
	h, there := r.hook(r.w.Terminate, "instances are terminated with the pods on them, as nothing holds them until they are drained")
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
			fmt.Sprintf("terminate hook %s abandons when its time is out: the instance is terminated at once, and the group's other hooks are skipped", h.Name),
			r.mendHook(h, "CONTINUE", "hooks.terminate.onTimeout: CONTINUE", "--default-result CONTINUE")+"; or keep such instances: retainUndrained: true")
	case !h.Abandons && retains:
		r.add(finding.Warning, "retains-nothing",
			fmt.Sprintf("the group retains instances whose terminate hook was abandoned, and hook %s goes on instead: nothing is ever retained", h.Name),
			r.mendHook(h, "ABANDON", "hooks.terminate.onTimeout: ABANDON", "--default-result ABANDON"))
	}
}

// hook looks at one of the two hooks: whether it could be read, is there, and
// holds the right transition.
func (r *review) hook(wanted Hook, without string) (Hook, bool) {
	if !r.o.HooksKnown {
		if !wanted.Terminating { // once is enough
			r.add(finding.Unknown, "hooks-unknown", "the group's lifecycle hooks could not be read: nobody can say whether instances are held until they are ready",
				"allow autoscaling:DescribeLifecycleHooks: `lifeboat wire iam` prints the policy")
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
		fix := r.mendHook(wanted, "it", "management: Hooks", fmt.Sprintf("--default-result %s --heartbeat-timeout %d", wanted.result(), int(wanted.Timeout.Seconds())))
		if other := r.sameTransition(wanted); other != "" {
			fix = fmt.Sprintf("if %s is Lifeboat's to answer, name it: hooks.%s.name: %s; otherwise %s", other, transitionKey(wanted), other, fix)
		}
		severity := finding.Broken
		if owner := r.o.owner(); owner != "" {
			// Its owner sees to it that nodes join and are drained in its own way.
			severity, fix = finding.Info, fmt.Sprintf("nothing, where %s's own hooks are enough", owner)
		}
		r.add(severity, id+"-missing", fmt.Sprintf("the group has no %s %s: %s", wanted.kind(), wanted.Name, without), fix)
		return Hook{}, false
	case h.Terminating != wanted.Terminating:
		r.add(finding.Broken, id+"-elsewhere", fmt.Sprintf("hook %s holds the other transition (%s), so there is no %s", h.Name, h.transition(), wanted.kind()),
			fmt.Sprintf("give another name in hooks.%s.name; then delete this one, while no instance is on its way", transitionKey(wanted)))
		return Hook{}, false
	}
	return h, true
}

// otherHooks tell of hooks that hold instances beside Lifeboat's, and of those
// that tell somebody else.
func (r *review) otherHooks() {
	for _, h := range r.o.Hooks {
		_, own := r.o.own(r.w.hookFor(h))
		if own && h.Name == r.w.hookFor(h).Name {
			if h.Target != "" {
				r.add(finding.Info, "hook-target", fmt.Sprintf("hook %s is told to %s as well: whoever reads that may answer it too, before the node is ready or drained", h.Name, h.Target),
					"see that nobody else answers it, such as aws-node-termination-handler")
			}
			continue
		}
		if h.Name == v1alpha1.LaunchHook || h.Name == v1alpha1.TerminateHook {
			r.add(finding.Info, "hook-stale", fmt.Sprintf("hook %s is Lifeboat's, and another is declared for its transition: instances are held by both", h.Name),
				fmt.Sprintf("with management Hooks or All it goes by itself while no instance is on its way; by hand: `aws autoscaling delete-lifecycle-hook --auto-scaling-group-name %s --lifecycle-hook-name %s`", r.o.Name, h.Name))
			continue
		}
		severity := finding.Info
		if h.Timeout > 15*time.Minute {
			severity = finding.Warning
		}
		r.add(severity, "other-hook", fmt.Sprintf("%s %s is not Lifeboat's to answer: where nobody else does, it holds each instance for %s", h.kind(), h.Name, short(h.Timeout)),
			fmt.Sprintf("see that somebody answers it, or delete it while no instance is on its way; to have Lifeboat answer it: hooks.%s.name: %s", transitionKey(h), h.Name))
	}
}

// pool looks at a warm pool: without a launch hook its instances are stopped in
// the middle of their set-up.
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
			"the group has a warm pool and no launch hook: its instances are stopped as soon as they run, in the middle of their set-up, and serve later without it",
			r.mendHook(r.w.Launch, "it", "management: Hooks", fmt.Sprintf("--default-result ABANDON --heartbeat-timeout %d", int(r.w.Launch.Timeout.Seconds())))+
				"; then replace the instances that are warm now")
	}
	most := r.o.Max
	if p := r.o.Pool.MaxPrepared; p != nil && *p != unbounded {
		most = *p
	}
	if r.o.PoolKnown && r.o.Pool.Min == 0 && r.o.Desired >= most && r.o.Desired > 0 {
		r.add(finding.Info, "pool-empty", fmt.Sprintf("the warm pool is empty by its own bounds: %d are desired, and %d may be prepared in all", r.o.Desired, most),
			"raise maxSize or warmPool.maxPreparedCapacity, or give warmPool.minSize")
	}
}

// sameTransition is another hook of the transition of h that is there.
func (r *review) sameTransition(h Hook) string {
	for _, found := range r.o.Hooks {
		if found.Terminating == h.Terminating && found.Name != h.Name {
			return found.Name
		}
	}
	return ""
}

// mendHook says how a hook is put right: by itself where Lifeboat may do it,
// else by its spec, or by hand.
func (r *review) mendHook(h Hook, what, declare, flags string) string {
	if r.o.Operator != "" {
		return "have " + r.o.Operator + " change it: others are refused"
	}
	if r.w.Management != v1alpha1.ManageNothing && declare == "management: Hooks" {
		return "nothing: Lifeboat puts " + what + "; if it does not come, the condition Synced says why"
	}
	byHand := fmt.Sprintf("`aws autoscaling put-lifecycle-hook --auto-scaling-group-name %s --lifecycle-hook-name %s --lifecycle-transition %s %s`", r.o.Name, h.Name, h.transition(), flags)
	if r.w.Management == v1alpha1.ManageNothing {
		return fmt.Sprintf("have Lifeboat put %s: management: Hooks; or by hand: %s", what, byHand)
	}
	return fmt.Sprintf("declare %s, or by hand: %s", declare, byHand)
}

// transitionKey is where a hook stands in the spec.
func transitionKey(h Hook) string {
	if h.Terminating {
		return "terminate"
	}
	return "launch"
}

// roomy is a timeout, in seconds, that leaves room above a time that was seen.
func roomy(d time.Duration) int {
	const most = 7200 // (EC2 Auto Scaling API Reference, PutLifecycleHook)
	minutes := int((d*3/2)/time.Minute) + 1
	return min(minutes*60, most)
}

// short writes a duration in minutes and seconds.
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
