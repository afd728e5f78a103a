package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
)

// stage creates three workloads on one spot node, and room for them on other nodes. The budget of
// web allows one eviction at a time.
func (r *rig) stage() (interrupted ec2.Instance, pods int) {
	r.t.Helper()
	return r.stageWeb(4)
}

// stageWeb is stage with the given number of web pods.
func (r *rig) stageWeb(web int32) (interrupted ec2.Instance, pods int) {
	r.t.Helper()
	interrupted, pods = r.launch(1)[0], int(web)+3
	r.apply(
		deployment("web", web, 3*time.Second), budget("web", int(web)-1),
		deployment("single", 1, 6*time.Second),
		statefulSet("db", 2, 5*time.Second),
	)
	r.waitPods(interrupted, pods)
	r.launch(2)
	return interrupted, pods
}

// reclaim lets EC2 interrupt an instance; the notice arrives through EventBridge.
func (r *rig) reclaim(in ec2.Instance) {
	r.t.Helper()
	if err := r.EC2().Interrupt([]string{in.ID}, ec2.InterruptOptions{}); err != nil {
		r.t.Fatal(err)
	}
}

// checkDrain checks a finished drain. lifeboatd must have removed every pod of the interrupted node
// once, and no other pod. Each pod must have had its full grace period, and have ended in time.
func (r *rig) checkDrain(l *podRecords, interrupted ec2.Instance, pods int, record *v1beta1.Interruption) {
	r.t.Helper()
	t, deadline := r.t, record.Status.Deadline.Time.Time
	r.closeOn(l, interrupted)
	left := l.on(interrupted.PrivateDNSName)
	if len(left) != pods {
		t.Errorf("%d pods were on the interrupted node, the records have %d: a pod was scheduled to it after the notice", pods, len(left))
	}
	removed := r.removals()
	was := map[string]bool{}
	for _, a := range left {
		was[a.name] = true
		switch {
		case a.gone.IsZero():
			t.Errorf("%s was not removed", a.name)
		case a.gone.After(deadline):
			t.Errorf("%s ended %s after the deadline", a.name, a.gone.Sub(deadline))
		case a.asked.IsZero() && !l.blind: // the watch sees every deletion unless it was interrupted
			t.Errorf("%s ended without an eviction", a.name)
		case !a.asked.IsZero() && a.grace != 30:
			t.Errorf("%s got a grace period of %d s, want 30", a.name, a.grace)
		}
		// A killed API server may lose the last lines of its audit log. During an outage lifeboatd
		// can repeat an eviction after status.EvictionCacheLag. The precondition on the UID makes
		// the repetition harmless.
		if n := removed[a.name]; !l.blind && (n.accepted > 1 || n == (removal{})) {
			t.Errorf("lifeboatd must evict %s once: %+v", a.name, n)
		}
		delete(removed, a.name)
	}
	if len(removed) > 0 {
		t.Errorf("lifeboatd evicted pods of other nodes: %v", removed)
	}
	byStatefulSet := r.removedByStatefulSet()
	for _, a := range l.notOn(interrupted.PrivateDNSName) {
		// kwok removes a finished pod by name, without the UID, as a StatefulSet's controller does,
		// and so can remove its successor. The audit log above shows that lifeboatd did not.
		if was[a.name] && (a.grace == 0 || byStatefulSet[a.name]) {
			continue
		}
		// A StatefulSet's controller may delete a pod that has no node yet.
		if !a.asked.IsZero() && a.node != "" {
			t.Errorf("%s on %s was asked to stop, with grace %d s: it had already moved", a.name, a.node, a.grace)
		}
	}
	if want := (v1beta1.PodCounts{Total: int32(pods), Moved: int32(pods)}); drainOf(record).PodCounts != want {
		t.Errorf("the record counts %+v, want %+v", drainOf(record).PodCounts, want)
	}
}

// closeOn waits until podRecords shows that every pod of the node is gone. After an API server
// outage its watch can be seconds behind the Interruption.
func (r *rig) closeOn(l *podRecords, interrupted ec2.Instance) {
	r.t.Helper()
	r.until("the records to show every pod leave", 45*time.Second, func(context.Context) (bool, error) {
		open := l.where(func(a podRecord) bool { return a.node == interrupted.PrivateDNSName && a.gone.IsZero() })
		return len(open) == 0, fmt.Errorf("still there: %+v", open)
	})
}

// TestDrainCompletesWhenKilledAfterEachStep kills lifeboatd after each step of a drain: the
// Interruption exists, the node is cordoned, one more pod is evicted.
func TestDrainCompletesWhenKilledAfterEachStep(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	records := r.watchPods()
	interrupted, pods := r.stage()
	r.reclaim(interrupted)
	r.killAfterEachStep(kills{least: 3, most: 6, steps: 2 + pods}, func(ctx context.Context) (int, error) {
		done, err := r.begun(ctx, interrupted)
		return done + len(records.asked(interrupted)), err
	})
	record := r.reaches(interrupted.ID, v1beta1.PhaseDrained, time.Minute)
	r.checkDrain(records, interrupted, pods, record)
	r.finish(interrupted)
}

// begun counts the completed first steps of an interruption: the Interruption exists, the node is
// cordoned.
func (r *rig) begun(ctx context.Context, in ec2.Instance) (steps int, err error) {
	record, err := r.record(ctx, in.ID)
	if err != nil {
		return 0, err
	}
	node, err := r.node(ctx, in)
	if err != nil {
		return 0, err
	}
	if record != nil {
		steps++
	}
	if node.Spec.Unschedulable {
		steps++
	}
	return steps, nil
}

// kills sets how often lifeboatd is killed.
type kills struct {
	least, most int
	steps       int // stop killing after this many steps
}

// killAfterEachStep kills lifeboatd when at least one step has completed since its last start. It
// stops early enough for a drain at this machine's speed to complete before the last call.
func (r *rig) killAfterEachStep(k kills, steps func(context.Context) (int, error)) {
	r.t.Helper()
	const lastCall = 75 * time.Second // the notice is 2 min, the grace 30 s, the margin 10 s
	enough := time.Now().Add(lastCall - 4*r.starts)
	killed, last := 0, 0
	for killed < k.most {
		// Steps of the killed process may become visible only now. They do not count.
		r.until("lifeboatd to be started again", 30*time.Second, func(context.Context) (bool, error) {
			return r.lifeboatPID() != last, fmt.Errorf("process ID %d", r.lifeboatPID())
		})
		before := 0
		r.until("the API server to tell how far it is", 30*time.Second, func(ctx context.Context) (bool, error) {
			n, err := steps(ctx)
			before = n
			return err == nil, err
		})
		if before >= k.steps || killed >= k.least && time.Now().After(enough) {
			break
		}
		r.until(fmt.Sprintf("step %d", before+1), time.Minute, func(ctx context.Context) (bool, error) {
			n, err := steps(ctx)
			if err != nil {
				return false, err
			}
			return n > before, fmt.Errorf("%d steps done", n)
		})
		// The API server decrements the budget before it deletes a pod. A kill between the two
		// blocks the budget for two minutes, so the next step comes at the last call.
		if killed >= k.least && time.Now().After(enough) {
			break
		}
		last = r.lifeboatPID()
		if err := r.KillLifeboat(); err != nil {
			r.t.Fatal(err)
		}
		killed++
	}
	r.t.Logf("lifeboatd was killed %d times; it starts in %s", killed, r.starts)
	if killed < k.least {
		r.t.Errorf("lifeboatd was killed only %d times, want %d or more", killed, k.least)
	}
}

// lifeboatPID is the process ID of the latest lifeboatd.
func (r *rig) lifeboatPID() int {
	for _, part := range r.State().Parts {
		if part.Name == "lifeboatd" {
			return part.PID
		}
	}
	return 0
}

// finish terminates the instance now and waits until the Interruption completes.
func (r *rig) finish(interrupted ec2.Instance) {
	r.t.Helper()
	node, err := r.node(r.t.Context(), interrupted)
	if err != nil {
		r.t.Fatal(err)
	}
	if !mutate.IsMarked(node, mutate.MarkInterrupted) {
		r.t.Errorf("the interrupted node is not cordoned: %+v", node.Spec)
	}
	if _, err := r.EC2().Terminate([]string{interrupted.ID}); err != nil {
		r.t.Fatal(err)
	}
	r.reaches(interrupted.ID, v1beta1.PhaseCompleted, 2*time.Minute)
}
