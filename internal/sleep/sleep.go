// Package sleep waits in a way that can be cut short.
package sleep

import (
	"context"
	"time"
)

// For waits, and returns true, or false if ctx is done before.
func For(ctx context.Context, d time.Duration) bool { return OrWake(ctx, d, nil) }

// OrWake waits until the time is over or a value comes from wake, and returns true, or
// false if ctx is done before. A wake that is nil never wakes.
func OrWake(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	case <-wake:
	}
	return true
}
