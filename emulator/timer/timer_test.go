package timer

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestTimersRunUnderLockUntilStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var done []string
		c := NewClock(&mu)
		does := func(what string) func() {
			return func() {
				if mu.TryLock() {
					t.Errorf("%s: ran without the lock", what)
				}
				done = append(done, what)
			}
		}
		mu.Lock()
		c.After(2*time.Second, does("second"))
		c.After(time.Second, func() {
			does("first")()
			c.After(2*time.Second, does("third"))
		})
		c.After(10*time.Second, does("too late"))
		mu.Unlock()
		time.Sleep(5 * time.Second)
		c.Stop()
		c.After(0, does("after the end"))
		time.Sleep(time.Minute)
		if want := []string{"first", "second", "third"}; !slices.Equal(done, want) {
			t.Errorf("done: %v, want %v", done, want)
		}
		if len(c.timers) != 0 {
			t.Errorf("%d timers are kept", len(c.timers))
		}
	})
}
