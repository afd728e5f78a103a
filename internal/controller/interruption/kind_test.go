package interruption

import (
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// "How many spot interruptions last week?": the state of an instance changes after it was reclaimed, and
// `lifeboat report` and `kubectl get interruptions` still name the reclaim.
func TestStateChangeThatFollowsKeepsKind(t *testing.T) {
	const spotKind, stateKind = notice.KindSpotInterruption, notice.KindInstanceStateChange
	for name, tc := range map[string]struct {
		first v1beta1.Notice
		gone  time.Duration // when the node is deleted; the instance is terminated after two minutes
		want  string
	}{
		"a reclaim":                               {spot(), 3 * time.Minute, spotKind},
		"a reclaim whose node is deleted before":  {spot(), time.Minute, spotKind},
		"a recommendation, which drained nothing": {rebalance(), 3 * time.Minute, stateKind},
		"an instance that a person shuts down":    {stateChange(notice.StateShuttingDown, start), 3 * time.Minute, stateKind},
	} {
		t.Run(name, func(t *testing.T) {
			a := node("a", instance)
			w := newWorld(t, recordOf(tc.first), a, pod("web-1"))
			w.settle(time.Second)
			w.settle(30 * time.Second)
			if tc.gone == time.Minute {
				w.remove(a)
				w.settle(30 * time.Second)
			}
			w.ec2 = map[string]cloud.Instance{instance: {State: "terminated"}}
			w.now = start.Add(2 * time.Minute)
			w.addNotices(stateChange(notice.StateTerminated, w.now))
			w.settle(time.Second)
			if tc.gone != time.Minute {
				w.remove(a)
				w.settle(time.Minute)
			}
			if s := w.record().Status; s.Kind != tc.want {
				t.Errorf("kind %s, want %s; %s: %+v", s.Kind, tc.want, s.Phase, s.Decision)
			}
		})
	}
}
