package sleep_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

func TestSleepEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		d, cancelled, woken, want time.Duration
		undisturbed               bool
	}{
		"when the time is over":  {d: time.Minute, want: time.Minute, undisturbed: true},
		"at once, of no time":    {undisturbed: true},
		"at once, of less":       {d: -time.Second, undisturbed: true},
		"when ctx is done":       {d: time.Minute, cancelled: time.Second, want: time.Second},
		"when something wakes":   {d: time.Minute, woken: time.Second, want: time.Second, undisturbed: true},
		"whichever of two first": {d: time.Minute, woken: 2 * time.Second, cancelled: time.Second, want: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				wake := make(chan struct{}, 1)
				if tc.cancelled > 0 {
					time.AfterFunc(tc.cancelled, cancel)
				}
				if tc.woken > 0 {
					time.AfterFunc(tc.woken, func() { wake <- struct{}{} })
				}
				began := time.Now()
				if got := sleep.OrWake(ctx, tc.d, wake); got != tc.undisturbed {
					t.Errorf("returned %v", got)
				}
				if took := time.Since(began); took != tc.want {
					t.Errorf("took %s, want %s", took, tc.want)
				}
			})
		})
	}
}

func TestSleepWithoutAWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if !sleep.For(t.Context(), time.Hour) || time.Since(began) != time.Hour {
			t.Errorf("took %s", time.Since(began))
		}
	})
}
