package interruption

import (
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
)

// A forged spot warning has a node of a group drained. The instance stays in its group: Lifeboat
// would have to terminate it.
func TestForgedWarningLeavesInstanceInItsGroup(t *testing.T) {
	t.Parallel()
	g := withGroup(t, recordOf(spot()), pod("web-1"))
	g.ec2 = map[string]cloud.Instance{instance: {SpotStatus: "fulfilled"}}
	g.run(2*time.Minute, g.stopsIn(time.Second))
	if len(g.detached)+len(g.ended) > 0 {
		t.Errorf("taken out %v, terminated %v", g.detached, g.ended)
	}
	if len(g.asked) == 0 {
		t.Error("the pod was not asked to leave")
	}
}

// The status says why an act waits. It is written once, and not with each question.
func TestDoubtIsWrittenOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, recordOf(spot()), node("a", instance), pod("web-1"), team(terminate))
	w.loop.Cloud = &fakeTerminator{world: w}
	w.ec2 = map[string]cloud.Instance{instance: {SpotStatus: "fulfilled"}}
	w.settle(time.Second)
	w.stopped("web-1")
	w.settle(2 * time.Second)
	if w.doubt() != v1beta1.ReasonContradicted {
		t.Fatalf("conditions %+v", w.record().Status.Conditions)
	}
	before := w.record().ResourceVersion
	for range 6 {
		w.settle(11 * time.Second)
	}
	if after := w.record().ResourceVersion; after != before {
		t.Errorf("written again: version %s, then %s", before, after)
	}
}
