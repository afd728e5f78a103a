//go:build skew

package skew

import (
	"testing"
	"time"
)

// The steps need each other, in this order. In steps of upgrade and rollback EC2 reclaims one more
// node, and the queue does not deliver the notice: a NodeNotice must pass from the agent of one
// release to the controller of the same or of the other one.
func TestSkew(t *testing.T) {
	w := newWorld(t)
	for i, step := range []struct {
		name string
		run  func(*world)
	}{
		{"Install", (*world).install},
		{"Stage", (*world).stage},
		{"TwentyInterruptions", (*world).interrupt},
		{"UpgradeCRDs", (*world).upgradeCRDs},
		{"UpgradeController", (*world).upgradeController},
		{"UpgradeAgents", (*world).upgradeAgents},
		{"RollBackController", (*world).rollBackController},
		{"RollBackAgents", (*world).rollBackAgents},
		{"RollBackCRDs", (*world).rollBackCRDs},
		{"Complete", (*world).complete},
		{"Judge", (*world).judge},
	} {
		passed := t.Run(step.name, func(t *testing.T) {
			w.t = t
			began := time.Now()
			step.run(w)
			t.Logf("FIGURES step %d, %s: %.1f s", i+1, step.name, time.Since(began).Seconds())
		})
		w.t = t
		if !passed {
			w.explain()
			t.FailNow()
		}
	}
}
