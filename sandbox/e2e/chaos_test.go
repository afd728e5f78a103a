//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/sandbox"
	"github.com/lifeboat-dev/lifeboat/sandbox/chaos"
)

// TestFaultsAreRepaired applies each fault that the sandbox supports, and undoes it. Afterwards the
// sandbox works as before: an interruption drains its node.
func TestFaultsAreRepaired(t *testing.T) {
	t.Parallel()
	r := newRigWith(t, sandbox.Options{Chaos: true, Replicas: 2, Agents: true})
	records := r.watchPods()
	interrupted, pods := r.stage()
	target, err := chaos.Open(r.State().Dir)
	if err != nil {
		t.Fatal(err)
	}
	var menu []chaos.Fault
	r.until("the agents to be parts of the sandbox", time.Minute, func(context.Context) (bool, error) {
		menu = target.Supported()
		want := 0
		for _, f := range chaos.Menu() {
			if f.Part != chaos.PartKarpenter && f.Missing() == nil {
				want++
			}
		}
		if len(menu) != want {
			return false, fmt.Errorf("%d faults are supported, want %d", len(menu), want)
		}
		return true, nil
	})
	for i, f := range menu {
		// A vanished node takes the pods of the drain below with it.
		if f.Name == "vanish-node" {
			continue
		}
		began := time.Now()
		if err := chaos.Run(t.Context(), target, f, time.Second, uint64(i)); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
		t.Logf("%s, repaired after %s", f.Name, time.Since(began).Round(time.Millisecond))
		r.until("the API server to answer after "+f.Name, time.Minute, func(ctx context.Context) (bool, error) {
			_, err := r.node(ctx, interrupted)
			return err == nil, err
		})
	}
	r.reclaim(interrupted)
	record := r.reaches(interrupted.ID, v1beta1.PhaseDrained, 90*time.Second)
	r.checkDrain(records, interrupted, pods, record)
}
