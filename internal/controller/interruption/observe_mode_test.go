package interruption

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// With mode Observe the record has the decision, and node, pods and instance are left alone.
func TestObserveModeLeavesNodeAndPodsAlone(t *testing.T) {
	for name, policy := range map[string]func(*v1beta1.InterruptionPolicySpec){
		"drain": func(*v1beta1.InterruptionPolicySpec) {}, "terminate": terminate,
		"cordon": func(s *v1beta1.InterruptionPolicySpec) { s.Rules[0].Action = v1beta1.ActionCordon },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, recordOf(spot()), node("a", instance), pod("web-1"), team(policy))
			cloud := &fakeTerminator{world: w}
			w.loop.Cloud, w.loop.Observe = cloud, true
			before := w.node()
			for range 5 {
				w.settle(time.Minute)
			}
			if diff := cmp.Diff(before, w.node()); diff != "" {
				t.Errorf("the node was changed (-before +after):\n%s", diff)
			}
			if len(w.evictions)+len(w.deletions)+len(cloud.asked) > 0 {
				t.Errorf("evicted %v, deleted %v, terminated %v", w.evictions, w.deletions, cloud.asked)
			}
			s := w.record().Status
			if !strings.HasPrefix(s.Decision.Message, "nothing is done, because the controller runs with mode Observe; with mode Act: ") || s.Decision.Policy != "team" {
				t.Errorf("the decision is %+v", s.Decision)
			}
			w.stopped("web-1") // the pod garbage collector deletes it
			w.remove(w.node())
			w.settle(time.Minute)
			if s := w.record().Status; s.CompletionTime == nil {
				t.Errorf("the instance is gone, and the record is in phase %s", s.Phase)
			}
		})
	}
}
