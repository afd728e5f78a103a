package cloud

import (
	"context"
	"errors"
)

// Action names a firing of a lifecycle hook. With a token it is one firing and no
// other; without, whichever of the hook is pending for the instance.
type Action struct {
	Group, Hook, InstanceID string
	// Token is the one that the notice of the firing brought; empty: not known.
	Token string
}

// Result is how a lifecycle action ends.
type Result string

// The two results.
const (
	Continue Result = "CONTINUE"
	Abandon  Result = "ABANDON"
)

// Lifecycle answers the lifecycle hooks of node groups.
type Lifecycle interface {
	// Complete ends a lifecycle action. That it returns nil does not mean that
	// the instance goes on: its state tells. IsNoAction tells of its error that
	// there is none to end, now; IsDenied and IsBusy as for Cloud.
	Complete(ctx context.Context, a Action, r Result) error
	// Heartbeat extends a lifecycle action by the timeout of its hook. Its errors
	// are those of Complete.
	Heartbeat(ctx context.Context, a Action) error
	// Detach takes an instance out of its group, which launches another in its
	// place; nobody but the caller terminates it then. It returns nil where it is
	// in no group any more. IsDenied and IsBusy as for Cloud.
	Detach(ctx context.Context, group, instanceID string) error
}

// ErrNoAction says that no such lifecycle action is pending: it was answered, has
// timed out, has not begun yet, or is another hook's. Which of these, only the
// state of the instance tells.
var ErrNoAction = errors.New("no such lifecycle action is pending")

// IsNoAction reports whether there was no lifecycle action to answer.
func IsNoAction(err error) bool { return errors.Is(err, ErrNoAction) }
