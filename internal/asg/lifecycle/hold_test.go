package lifecycle

import (
	"testing"
	"time"
)

// The backoff grows to half a minute, is constant for an instance, and differs between
// instances.
func TestBackoff(t *testing.T) {
	t.Parallel()
	for i, want := range []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second} {
		seen := map[time.Duration]bool{}
		for _, seed := range []string{"i-1", "i-2", "i-3", "i-4"} {
			got := Backoff(i+1, seed)
			if seen[got] = true; got < want*9/10 || got > want*11/10 || got != Backoff(i+1, seed) {
				t.Errorf("after %d tries %s, want about %s", i+1, got, want)
			}
		}
		if len(seen) < 2 {
			t.Errorf("after %d tries all instances retry at %v", i+1, seen)
		}
	}
	if Backoff(-1, "") != Backoff(0, "") || Backoff(1000, "") > 33*time.Second {
		t.Error("odd numbers of tries")
	}
}

func TestAssumedHooks(t *testing.T) {
	t.Parallel()
	if Assumed([]string{"one", "lifeboat-*"}) != nil || len(Assumed([]string{"one", "two"})) != 4 {
		t.Error("what is assumed to be there")
	}
}
