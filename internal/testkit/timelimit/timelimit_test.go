package timelimit

import (
	"testing"
	"time"
)

func TestFactor(t *testing.T) {
	for _, tc := range []struct {
		up   time.Duration
		want float64
	}{{0, least}, {quiet, least}, {3 * quiet, 3}, {time.Hour, most}} {
		if got := Factor(tc.up); got != tc.want {
			t.Errorf("Factor(%s) = %v, want %v", tc.up, got, tc.want)
		}
	}
	if got := Stretch(10*time.Second, 3); got != 30*time.Second {
		t.Errorf("Stretch() = %s", got)
	}
}
