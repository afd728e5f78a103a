package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
)

// stage puts three workloads' pods on one spot node and makes room for them elsewhere.
// The budget lets the pods of web leave one at a time.
func (r *rig) stage() (interrupted ec2.Instance, pods int) {
	r.t.Helper()
	return r.stageWeb(4)
}

// stageWeb is stage with so many pods of web.
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

// reclaim has EC2 take an instance back; the notice goes through EventBridge.
func (r *rig) reclaim(in ec2.Instance) {
	r.t.Helper()
	if err := r.EC2().Interrupt([]string{in.ID}, ec2.InterruptOptions{}); err != nil {
		r.t.Fatal(err)
	}
}

// checkDrain checks what must hold after a drain: lifeboatd removed every pod of the
// interrupted node once, each had its full grace and left before the deadline, and no other
// pod was touched.
func (r *rig) checkDrain(l *podRecords, interrupted ec2.Instance, pods int, record *v1alpha1.Interruption) {
	r.t.Helper()
	t, deadline := r.t, record.Status.Deadline.Time.Time
	r.closeOn(l, interrupted)
	left := l.on(interrupted.PrivateDNSName)
	if len(left) != pods {
		t.Errorf("%d pods were on the interrupted node, the records have %d: one landed on it after the notice", pods, len(left))
	}
	removed := r.removals()
	was := map[string]bool{}
	for _, a := range left {
		was[a.name] = true
		switch {
		case a.gone.IsZero():
			t.Errorf("%s never left", a.name)
		case a.gone.After(deadline):
			t.Errorf("%s left %s after the deadline", a.name, a.gone.Sub(deadline))
		case a.asked.IsZero() && !l.blind: // what deletes a pod at once is seen to have asked it
			t.Errorf("%s left, and was never asked to stop", a.name)
		case !a.asked.IsZero() && a.grace != 30:
			t.Errorf("%s was given %d s of its 30", a.name, a.grace)
		}
		// An API server that is killed may lose the last lines of its log. While it is away an
		// eviction can be repeated once it counts as lost (status.EvictionCacheLag). The
		// precondition on the UID makes that harmless.
		if n := removed[a.name]; !l.blind && (n.accepted > 1 || n == (removal{})) {
			t.Errorf("lifeboatd evicted %s not once: %+v", a.name, n)
		}
		delete(removed, a.name)
	}
	if len(removed) > 0 {
		t.Errorf("lifeboatd evicted pods of other nodes: %v", removed)
	}
	for _, a := range l.notOn(interrupted.PrivateDNSName) {
		// kwok removes a pod that has ended by its name, without its UID, and can so
		// remove its successor. The audit log above shows that lifeboatd did not.
		if a.grace == 0 && was[a.name] {
			continue
		}
		// A StatefulSet's controller may take back a pod that has no node yet.
		if !a.asked.IsZero() && a.node != "" {
			t.Errorf("%s on %s was asked to stop, with grace %d s: it had moved already", a.name, a.node, a.grace)
		}
	}
	if want := (v1alpha1.PodCounts{Total: int32(pods), Moved: int32(pods)}); drainOf(record).Pods != want {
		t.Errorf("the record counts %+v, want %+v", drainOf(record).Pods, want)
	}
}

// closeOn waits until podRecords shows that every pod of the node is gone: its own watch
// may be behind the record, by seconds where the API server was away.
func (r *rig) closeOn(l *podRecords, interrupted ec2.Instance) {
	r.t.Helper()
	r.until("the records to show every pod leave", 45*time.Second, func(context.Context) (bool, error) {
		open := l.where(func(a podRecord) bool { return a.node == interrupted.PrivateDNSName && a.gone.IsZero() })
		return len(open) == 0, fmt.Errorf("these have not: %+v", open)
	})
}

// TestKilledAfterEachStepItStillEvacuates kills lifeboatd each time that it has got one
// step further: the record exists, the node is cordoned, one more pod is evicted.
func TestKilledAfterEachStepItStillEvacuates(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	records := r.watchPods()
	interrupted, pods := r.stage()
	r.reclaim(interrupted)
	r.killAfterEachStep(kills{least: 3, most: 6, steps: 2 + pods}, func(ctx context.Context) (int, error) {
		done, err := r.begun(ctx, interrupted)
		return done + len(records.asked(interrupted)), err
	})
	record := r.reaches(interrupted.ID, v1alpha1.PhaseDrained, time.Minute)
	r.checkDrain(records, interrupted, pods, record)
	r.finish(interrupted)
}

// begun counts the first steps of an interruption that are done: its record exists, its
// node is cordoned.
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

// kills says how often lifeboatd is killed.
type kills struct {
	least, most int
	steps       int // with so many steps done there is nothing left to disturb
}

// killAfterEachStep kills lifeboatd whenever it has got at least one step further since
// it was last started. It stops early enough before the last call for the drain to be
// finished in time at the speed of this machine.
func (r *rig) killAfterEachStep(k kills, steps func(context.Context) (int, error)) {
	r.t.Helper()
	const lastCall = 75 * time.Second // the notice is 2 min, the grace 30 s, the margin 10 s
	enough := time.Now().Add(lastCall - 4*r.starts)
	killed, last := 0, 0
	for killed < k.most {
		// Steps that the killed process took may be seen only now. They do not count.
		r.until("lifeboatd to be started again", 30*time.Second, func(context.Context) (bool, error) {
			return r.lifeboatPID() != last, fmt.Errorf("its process is %d", r.lifeboatPID())
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
			return n > before, fmt.Errorf("%d are done", n)
		})
		// The API server charges the budget before it deletes a pod. A kill between the two
		// blocks the budget for two minutes, and the next step is at the last call.
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

// lifeboatPID is the process id of lifeboatd as it was last started.
func (r *rig) lifeboatPID() int {
	for _, part := range r.State().Parts {
		if part.Name == "lifeboatd" {
			return part.PID
		}
	}
	return 0
}

// finish lets the instance go at once, and follows the record to its end.
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
	r.reaches(interrupted.ID, v1alpha1.PhaseCompleted, 2*time.Minute)
}
