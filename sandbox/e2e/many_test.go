//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/sandbox"
)

// Many nodes at once: EC2 reclaims a third of a pool in the same second.
const (
	manyNodes       = 24
	manyInterrupted = 8
	manyPods        = 120
)

func TestManyNodesReclaimedNoPodMovesTwice(t *testing.T) {
	t.Parallel()
	r := newUnkindRig(t, sandbox.Options{})
	nodes := r.launch(manyNodes)
	r.apply(deployment("web", manyPods, 3*time.Second), budget("web", manyPods-40))
	records := r.watchPods()
	r.until("all pods to run", time.Minute, func(context.Context) (bool, error) {
		running := records.where(func(a podRecord) bool { return a.node != "" && a.gone.IsZero() })
		return len(running) == manyPods, fmt.Errorf("%d run", len(running))
	})

	interrupted := map[string]ec2.Instance{}
	var ids []string
	for _, in := range nodes[:manyInterrupted] {
		interrupted[in.PrivateDNSName] = in
		ids = append(ids, in.ID)
	}
	start := time.Now()
	if err := r.EC2().Interrupt(ids, ec2.InterruptOptions{}); err != nil {
		t.Fatal(err)
	}
	moved := int32(0)
	for _, in := range interrupted {
		record := r.reaches(in.ID, v1beta1.PhaseDrained, 100*time.Second)
		if drainOf(record).PodCounts.Lost != 0 {
			t.Errorf("node %s: %+v", in.PrivateDNSName, drainOf(record).PodCounts)
		}
		moved += drainOf(record).PodCounts.Moved
	}
	t.Logf("%d pods moved off %d nodes in %s", moved, manyInterrupted, time.Since(start).Round(100*time.Millisecond))

	asked := records.where(func(a podRecord) bool { return !a.asked.IsZero() && a.node != "" })
	if len(asked) != int(moved) {
		t.Errorf("%d pods were evicted, %d had to move: some moved twice", len(asked), moved)
	}
	for _, a := range asked {
		if _, ok := interrupted[a.node]; !ok {
			t.Errorf("%s on healthy node %s was evicted", a.name, a.node)
		}
		if a.asked.Before(start.Add(-time.Second)) || a.grace != 30 {
			t.Errorf("%s: asked %s, grace %d s", a.name, a.asked, a.grace)
		}
	}
}
