package interruption

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// A terminate hook must not wait for an hour for pods whose kubelet is dead: their grace is over.
func TestHookIsCompletedOnceEveryGraceIsOverAndTheKubeletIsDead(t *testing.T) {
	t.Parallel()
	for _, dead := range []bool{true, false} {
		g := withGroup(t, recordOf(terminating(notice.SourceQueue)), pod("web-1"), pod("web-2"))
		g.hold("Terminating:Wait")
		if dead {
			g.silence()
		}
		g.run(80*time.Second, nil) // their grace is 30 s
		if len(g.asked) != 2 || len(g.completed) != 0 {
			t.Fatalf("dead %t: %d pods were asked to stop, hooks completed: %v", dead, len(g.asked), g.completed)
		}
		g.run(2*time.Minute, nil)
		if done := len(g.completed) == 1; done != dead {
			t.Errorf("dead %t: hooks completed after 200 s: %v", dead, g.completed)
		}
		c := meta.FindStatusCondition(g.record().Status.Conditions, v1beta1.ConditionDrained)
		if said := c != nil && strings.Contains(c.Message, "kubelet does not report"); said != dead {
			t.Errorf("dead %t: the record says %+v", dead, c)
		}
	}
}

// The instance would be kept until 110 s otherwise.
func TestInstanceIsTerminatedOnceGraceIsOverAndTheKubeletIsDead(t *testing.T) {
	for _, dead := range []bool{true, false} {
		w := newWorld(t, recordOf(impaired()), node("a", instance), pod("web-1"), team(terminate))
		cloud := &fakeTerminator{world: w}
		w.loop.Cloud = cloud
		w.settle(time.Second)
		if dead {
			w.silence()
		}
		w.settle(80 * time.Second)
		if len(w.asked) != 1 || len(cloud.asked) > 0 {
			t.Fatalf("dead %t: %d pods were asked to stop, terminated: %v", dead, len(w.asked), cloud.asked)
		}
		w.settle(15 * time.Second)
		if terminated := len(cloud.asked) > 0; terminated != dead {
			t.Errorf("dead %t: terminated %v", dead, cloud.asked)
		}
	}
}
