package cloud

import (
	"context"
	"errors"
)

// Action identifies a lifecycle action. With a token it is exactly one;
// without, whichever action of the hook is pending for the instance.
type Action struct {
	Group, Hook, InstanceID string
	// Token comes from the notice of the action; empty: unknown.
	Token string
}

// Result is the result of a lifecycle action.
type Result string

// The two results.
const (
	Continue Result = "CONTINUE"
	Abandon  Result = "ABANDON"
)

// Lifecycle completes the lifecycle actions of node groups.
type Lifecycle interface {
	// Complete ends a lifecycle action. A nil error does not mean that the
	// instance proceeds: check its state. IsNoAction reports that no such
	// action is pending now; IsDenied and IsBusy are as for Cloud.
	Complete(ctx context.Context, a Action, r Result) error
	// Heartbeat extends a lifecycle action by the timeout of its hook. Its errors
	// are those of Complete.
	Heartbeat(ctx context.Context, a Action) error
	// Detach removes an instance from its group, which launches a replacement;
	// after that the caller must terminate the instance. It returns nil if the
	// instance is in no group any more. IsDenied and IsBusy are as for Cloud.
	Detach(ctx context.Context, group, instanceID string) error
}

// ErrNoAction means that no such lifecycle action is pending: it was completed,
// has timed out, has not begun, or belongs to another hook. Only the instance's
// state tells which.
var ErrNoAction = errors.New("no such lifecycle action is pending")

// IsNoAction reports whether no lifecycle action was pending.
func IsNoAction(err error) bool { return errors.Is(err, ErrNoAction) }
