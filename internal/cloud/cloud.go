// Package cloud defines the calls that Lifeboat makes to a cloud about an
// instance after its drain. Each cloud has a package below that implements
// them.
package cloud

import (
	"context"
	"errors"
)

// Cloud ends instances.
type Cloud interface {
	// Terminate ends an instance. It is idempotent: it returns nil if the cloud
	// accepted the request or the instance is already ending or gone. IsDenied
	// and IsBusy classify its errors; all others may be retried.
	Terminate(ctx context.Context, instanceID string) error
	// MayTerminate returns nil if the cloud would accept Terminate. It ends
	// nothing. Its errors are those of Terminate.
	MayTerminate(ctx context.Context, instanceID string) error
	// Describe returns an instance, or nil if the cloud does not know it. IsDenied and
	// IsBusy classify its errors. Concurrent calls share requests.
	Describe(ctx context.Context, instanceID string) (*Instance, error)
}

// Instance is an instance as the cloud describes it.
type Instance struct {
	ID string
	// State is its state, such as running or terminated.
	State string
	// DNSName is its private DNS name, and Addresses are its private addresses. They may
	// be empty once it is terminated.
	DNSName   string
	Addresses []string
	// SpotStatus is the status code of its spot request, such as fulfilled. It is empty if the
	// instance is no spot instance, and where the caller may not read spot requests.
	SpotStatus string
}

// ErrBusy means that the cloud throttles calls or is temporarily unavailable.
var ErrBusy = errors.New("the cloud is busy")

// IsBusy reports whether to retry later.
func IsBusy(err error) bool { return errors.Is(err, ErrBusy) }

// DeniedError means that the cloud denies the call until a user does what
// Fix says.
type DeniedError struct {
	// Fix is what to do, as the end of a sentence: "allow ec2:…".
	Fix string
	// Err is the cloud's error.
	Err error
}

// Error returns the cloud's message and what to do.
func (e *DeniedError) Error() string { return e.Err.Error() + "; " + e.Fix }

// Unwrap returns the cloud's error.
func (e *DeniedError) Unwrap() error { return e.Err }

// IsDenied reports whether a retry is useless until a user changes something.
func IsDenied(err error) bool {
	var denied *DeniedError
	return errors.As(err, &denied)
}
