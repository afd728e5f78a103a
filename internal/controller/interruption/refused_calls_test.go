package interruption

import (
	"errors"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// queuedWithGroup reconciles as the queue does, and shows the group as it is before each pass.
func (g *scaledGroup) queuedWithGroup(until time.Time) (passes int, last error) {
	g.t.Helper()
	for g.now.Before(until) && passes < 3000 {
		g.look()
		n, err := g.queued(g.now.Add(time.Nanosecond)) // one pass
		if passes += n; err != nil {                   // the controller of the hooks has its own queue
			last = err
			_, _ = g.callHooks(instance, 0)
		}
	}
	return passes, last
}

// What AWS refuses each time costs no pod its grace, and neither does what the API server refuses beside it.
func TestPodsAreAskedByLastCallWhateverAWSRefuses(t *testing.T) {
	held := func(t *testing.T, objects ...client.Object) *scaledGroup {
		t.Helper()
		g := withGroup(t, append(objects, pod("web-1"), pod("web-2"), budget(0))...)
		g.hold("Terminating:Wait")
		return g
	}
	heartbeat := func(t *testing.T) *scaledGroup { return held(t, recordOf(terminating(notice.SourceQueue))) }
	reclaimed := func(t *testing.T) *scaledGroup {
		return held(t, recordOf(spot(), terminating(notice.SourceQueue)))
	}
	detach := func(t *testing.T) *scaledGroup {
		return withGroup(t, recordOf(spot()), pod("web-1"), pod("web-2"), budget(0))
	}
	unheld := func(t *testing.T) *scaledGroup {
		return withGroup(t, recordOf(spot()), pod("web-1"), pod("web-2"))
	}
	denied, failed := &cloud.DeniedError{Err: errors.New("AccessDenied"), Fix: "allow it"}, errors.New("ValidationError")
	hookEnd, reclaimEnd := start.Add(hookTimeout), start.Add(2*time.Minute)
	for _, c := range []struct {
		name    string
		group   func(*testing.T) *scaledGroup
		err     error
		refused []string // by the API server
		// unsent is set where the call waits for what the API server refuses.
		unsent bool
		end    time.Time
	}{
		{"heartbeat denied", heartbeat, denied, nil, false, hookEnd},
		{"heartbeat fails", heartbeat, failed, nil, false, hookEnd},
		{"heartbeat denied, and cordon", heartbeat, denied, []string{"patch Node"}, false, hookEnd},
		{"heartbeat denied, and cordon, of a reclaimed instance", reclaimed, denied, []string{"patch Node"}, true, reclaimEnd},
		{"detach denied", detach, denied, nil, false, reclaimEnd},
		{"detach denied, and cordon", detach, denied, []string{"patch Node"}, true, reclaimEnd},
		{"detach fails", detach, failed, nil, false, reclaimEnd},
		{"detach fails, and eviction", unheld, failed, []string{"evict Pod"}, false, reclaimEnd},
		{"detach fails, of a node whose pods nothing holds", unheld, failed, nil, false, reclaimEnd},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := c.group(t)
			g.refuse, g.refuses.requests = c.err, c.refused
			passes, last := g.queuedWithGroup(c.end.Add(15 * time.Second))
			if !c.unsent && g.refusedCalls == 0 || len(c.refused) > 0 && g.refuses.count == 0 {
				t.Fatalf("AWS refused %d calls, and the API server %d, in %d passes", g.refusedCalls, g.refuses.count, passes)
			}
			for _, name := range []string{"web-1", "web-2"} {
				if at, asked := g.asked[name]; !asked || c.end.Sub(at) < 35*time.Second {
					t.Errorf("%s: asked %t, %s before the end; want its 30s of grace (%d passes, last error %v)", name, asked, c.end.Sub(at), passes, last)
				}
			}
		})
	}
}
