// Package sleep provides waits that a context or a wake-up can end.
package sleep

import (
	"context"
	"time"
)

// For waits, and returns true, or false if ctx is done first.
func For(ctx context.Context, d time.Duration) bool { return OrWake(ctx, d, nil) }

// OrWake waits until the time is over or wake delivers a value, and returns
// true, or false if ctx is done first. A nil wake never wakes.
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
