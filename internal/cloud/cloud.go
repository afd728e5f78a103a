// Package cloud is the answer side of Lifeboat: what the cloud is told about an
// instance, once nothing on its node is needed any more. What tells it stands
// beneath, a package for each cloud.
package cloud

import (
	"context"
	"errors"
)

// Cloud is told what to do with instances.
type Cloud interface {
	// Terminate ends an instance. It returns nil where the cloud has taken that
	// on, or the instance is going or gone already, so it may be called again.
	// IsDenied and IsBusy tell of its errors what is worth knowing; all others
	// are worth another try.
	Terminate(ctx context.Context, instanceID string) error
	// MayTerminate returns nil where the cloud would let Terminate end the instance. It
	// ends nothing. Its errors are as Terminate's.
	MayTerminate(ctx context.Context, instanceID string) error
}

// ErrBusy says that the cloud wants to be asked again later: calls are
// throttled, or it does not work at the moment.
var ErrBusy = errors.New("the cloud is busy")

// IsBusy reports whether to ask again later.
func IsBusy(err error) bool { return errors.Is(err, ErrBusy) }

// DeniedError says that the cloud does not let Lifeboat do it, and will not
// until somebody has changed what Mend names.
type DeniedError struct {
	// Mend is what to do, as a sentence's end: "allow ec2:…".
	Mend string
	// Err is what the cloud said.
	Err error
}

// Error tells what was said and what to do.
func (e *DeniedError) Error() string { return e.Err.Error() + "; " + e.Mend }

// Unwrap returns what the cloud said.
func (e *DeniedError) Unwrap() error { return e.Err }

// IsDenied reports whether asking again is of no use before somebody has
// changed something.
func IsDenied(err error) bool {
	var denied *DeniedError
	return errors.As(err, &denied)
}
