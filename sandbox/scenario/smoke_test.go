//go:build !e2e

package scenario_test

import "testing"

// TestFirstVoyage plays one scenario on a real control plane with the real lifeboatd, from
// the notice until the power goes. `make e2e` plays all of them.
func TestFirstVoyage(t *testing.T) {
	t.Parallel()
	play(t, read(t, "first-voyage"), buildLifeboatd(t), func() {}, &monitor{})
}
