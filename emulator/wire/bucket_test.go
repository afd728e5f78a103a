package wire

import (
	"testing"
	"time"
)

func TestBucket(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 11, 8, 0, 0, 0, time.UTC)
	b := NewBucket(2, 3, now)
	for _, c := range []struct {
		after time.Duration
		ask   int
		want  int
	}{
		{0, 5, 3},
		{400 * time.Millisecond, 1, 0},
		{100 * time.Millisecond, 2, 1},
		{time.Second, 5, 2},
		{time.Hour, 9, 3},
	} {
		now = now.Add(c.after)
		got := 0
		for range c.ask {
			if b.Take(now) {
				got++
			}
		}
		if got != c.want {
			t.Errorf("%d of %d calls passed %s later, want %d", got, c.ask, c.after, c.want)
		}
	}
}
