package policy

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// fallback is a built-in rule, for where no policy has one.
type fallback struct {
	name    string
	matches matcher
	action  v1alpha1.Action
	// replaces says that capacity is brought up before the drain.
	replaces bool
	because  string // ends a sentence that begins with the action
}

// defaultFor returns the built-in rule for a notice about a node, which is nil
// where there is none: of these the first that matches.
func defaultFor(n v1alpha1.Notice, node *corev1.Node) fallback {
	for _, d := range []fallback{
		{ // two minutes, which nobody can move
			name: notice.KindSpotInterruption, matches: ofKind(notice.KindSpotInterruption),
			action: v1alpha1.ActionDrain, replaces: true, because: "EC2 takes the instance back",
		},
		{ // as little time, as hard
			name: notice.KindCapacityReservationInterruption, matches: ofKind(notice.KindCapacityReservationInterruption),
			action: v1alpha1.ActionDrain, replaces: true, because: "EC2 takes the capacity back that the instance was lent",
		},
		{
			name: notice.KindCapacityBlockExpiration, matches: ofKind(notice.KindCapacityBlockExpiration),
			action: v1alpha1.ActionDrain, because: "the Capacity Block that the instance runs in ends",
		},
		{ // the group waits for its hook, and launches another itself if it wants one
			name: notice.KindAutoScalingTermination, matches: ofKind(notice.KindAutoScalingTermination),
			action: v1alpha1.ActionDrain, replaces: true, because: leaves(n),
		},
		{ // the pods live through it
			name: notice.KindScheduledChange + " (maintain)", matches: onlyMaintained,
			action: v1alpha1.ActionNotify, because: "the instance loses its network or power for a moment, and goes on",
		},
		{ // stop, retirement, reboot
			name: notice.KindScheduledChange, matches: disturbs,
			action: v1alpha1.ActionDrain, replaces: n.InstanceAction != notice.ActionReboot, because: "AWS has planned it",
		},
		{ // a share of the pool at a time
			name: notice.KindInstanceStatus, matches: ofKind(notice.KindInstanceStatus).and(node != nil && Pool(node) != ""),
			action: v1alpha1.ActionTerminate, because: "the instance fails its status checks, and its pool replaces it",
		},
		{ // there it would only be gone
			name: notice.KindInstanceStatus, matches: ofKind(notice.KindInstanceStatus),
			action: v1alpha1.ActionNotify, because: "the node is of no pool, so that nobody would replace it",
		},
		{ // most such hints come to nothing
			name: notice.KindRebalanceRecommendation, matches: ofKind(notice.KindRebalanceRecommendation),
			action: v1alpha1.ActionNotify, because: "the instance is only at risk",
		},
		{ // no warning came, or nobody heard it: save or clean up what is there
			name: notice.KindInstanceStateChange, matches: isGoing,
			action: v1alpha1.ActionDrain, because: "the instance is going or gone",
		},
	} {
		if d.matches(n) {
			return d
		}
	}
	if n.Kind == notice.KindHealthIssue || n.Kind == notice.KindLifecycleActionFailure {
		return fallback{name: n.Kind, action: v1alpha1.ActionNotify, because: "a person has to look at it"}
	}
	// A kind, a state or a code of a later release.
	return fallback{name: "Unknown", action: v1alpha1.ActionNotify, because: "this release does not know what it means"}
}

// matcher reports whether a built-in rule is for a notice.
type matcher func(v1alpha1.Notice) bool

func ofKind(kind string) matcher {
	return func(n v1alpha1.Notice) bool { return n.Kind == kind }
}

// and narrows it by what is known already.
func (m matcher) and(holds bool) matcher {
	return func(n v1alpha1.Notice) bool { return holds && m(n) }
}

// onlyMaintained reports whether a scheduled change costs the instance no more
// than a moment of network or power.
func onlyMaintained(n v1alpha1.Notice) bool {
	return n.Kind == notice.KindScheduledChange && n.InstanceAction == notice.ActionMaintain
}

// disturbs reports whether a scheduled change ends what runs on the instance.
// A code that this release does not know has no action, and is only reported.
func disturbs(n v1alpha1.Notice) bool {
	return n.Kind == notice.KindScheduledChange && n.InstanceAction != "" && n.InstanceAction != notice.ActionMaintain
}

// leaves says what the group does with the instance.
func leaves(n v1alpha1.Notice) string {
	if n.InstanceAction == notice.ActionReturn {
		return "its Auto Scaling group takes the instance back into its warm pool"
	}
	return "its Auto Scaling group terminates the instance"
}

// isGoing reports whether the notice says that the instance is on its way down
// or has gone.
func isGoing(n v1alpha1.Notice) bool {
	return n.Kind == notice.KindInstanceStateChange &&
		slices.Contains([]string{notice.StateStopping, notice.StateStopped, notice.StateShuttingDown, notice.StateTerminated}, n.InstanceState)
}

// subject names the notice in a reason.
func subject(n v1alpha1.Notice) string {
	if detail := cmp.Or(n.InstanceState, n.EventTypeCode); detail != "" {
		return fmt.Sprintf("%s (%s)", n.Kind, detail)
	}
	return n.Kind
}
