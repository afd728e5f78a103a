package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// atRiskFor is how long a node counts as at risk after a notice without a
// deadline. Reclaims that follow a rebalance recommendation mostly do so within
// the hour; a node that nothing happened to by then is put back.
const atRiskFor = time.Hour

// fallback is a built-in rule, for where no policy has one.
type fallback struct {
	name    string
	matches func(v1alpha1.Notice) bool
	action  v1alpha1.Action
	because string // ends a sentence that begins with the action
}

// defaultFor returns the built-in rule for a notice: of these the first that
// matches.
func defaultFor(n v1alpha1.Notice) fallback {
	for _, d := range []fallback{
		{ // two minutes, which nobody can move
			name: notice.KindSpotInterruption, matches: ofKind(notice.KindSpotInterruption),
			action: v1alpha1.ActionDrain, because: "EC2 takes the instance back",
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
	// A kind, or a state, of a later release.
	return fallback{name: "Unknown", action: v1alpha1.ActionNotify, because: "this release does not know what it means"}
}

func ofKind(kind string) func(v1alpha1.Notice) bool {
	return func(n v1alpha1.Notice) bool { return n.Kind == kind }
}

// isGoing reports whether the notice says that the instance is on its way down
// or has gone.
func isGoing(n v1alpha1.Notice) bool {
	return n.Kind == notice.KindInstanceStateChange &&
		slices.Contains([]string{notice.StateStopping, notice.StateStopped, notice.StateShuttingDown, notice.StateTerminated}, n.InstanceState)
}

// subject names the notice in a reason.
func subject(n v1alpha1.Notice) string {
	if n.InstanceState != "" {
		return fmt.Sprintf("%s (%s)", n.Kind, n.InstanceState)
	}
	return n.Kind
}
