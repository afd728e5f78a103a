package timelimit

import (
	"context"
	"testing"
	"time"
)

// poll is how often Until looks.
const poll = 50 * time.Millisecond

// Until waits for a condition, and fails the test if it does not hold in time. The limit is that of
// an idle machine, and is scaled by the factor. The error of the condition says how far it is.
func Until(t testing.TB, what string, within time.Duration, factor float64, holds func(context.Context) (bool, error)) {
	t.Helper()
	within = Stretch(within, factor)
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	var last error
	for {
		ok, err := holds(ctx)
		if ok {
			return
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waited %s for %s; last: %v", within, what, last)
		case <-tick.C:
		}
	}
}
