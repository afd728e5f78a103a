//go:build kills

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// killSandboxes is the number of sandboxes that TestKills runs in parallel. They mostly wait for
// pods to stop.
const killSandboxes = 3

// TestKills drains one node per sandbox and kills lifeboatd at random steps of each drain, until
// LIFEBOAT_KILLS kills have happened (`make kills`). After each drain it checks that every pod was
// evicted exactly once and in time.
func TestKills(t *testing.T) {
	want, err := strconv.ParseInt(os.Getenv("LIFEBOAT_KILLS"), 10, 64)
	if err != nil || want < 1 {
		t.Fatal("set LIFEBOAT_KILLS to the number of kills, as `make kills` does")
	}
	var killed, moved, drains atomic.Int64
	began := time.Now()
	t.Run("sandboxes", func(t *testing.T) {
		for i := range killSandboxes {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				for round := 1; killed.Load() < want && !t.Failed(); round++ {
					t.Run(fmt.Sprint(round), func(t *testing.T) {
						n, pods := drainUnderKills(t)
						moved.Add(int64(pods))
						drains.Add(1)
						t.Logf("%d kills here, %d of %d in all, %s", n, killed.Add(int64(n)), want, time.Since(began).Round(time.Second))
					})
				}
			})
		}
	})
	t.Logf("%d kills in %d drains, %d pods moved, %s: failed %t", killed.Load(), drains.Load(), moved.Load(), time.Since(began).Round(time.Second), t.Failed())
}

// drainUnderKills drains one node in a sandbox of its own while lifeboatd is killed, and
// checks the outcome.
func drainUnderKills(t *testing.T) (killed, pods int) {
	t.Helper()
	r := newRig(t)
	records := r.watchPods()
	interrupted, pods := r.stageWeb(10)
	r.reclaim(interrupted)
	killed = r.killAtRandom(2+pods, func(ctx context.Context) (int, error) {
		done, err := r.begun(ctx, interrupted)
		return done + len(records.asked(interrupted)), err
	})
	r.checkDrain(records, interrupted, pods, r.reaches(interrupted.ID, v1beta1.PhaseDrained, 2*time.Minute))
	r.finish(interrupted)
	return killed, pods
}

// killAtRandom kills lifeboatd after random numbers of steps, until all steps are done or the last
// call is near. It returns the number of kills.
func (r *rig) killAtRandom(all int, steps func(context.Context) (int, error)) (killed int) {
	r.t.Helper()
	const lastCall = 75 * time.Second // the notice is 2 min, the grace 30 s, the margin 10 s
	enough := time.Now().Add(lastCall - 4*r.starts)
	for next := 1 + rand.IntN(3); next < all && time.Now().Before(enough); {
		done, last := 0, r.lifeboatPID()
		r.until(fmt.Sprintf("step %d", next), time.Minute, func(ctx context.Context) (bool, error) {
			n, err := steps(ctx)
			done = n
			return err == nil && n >= next, fmt.Errorf("%d steps done: %w", n, err)
		})
		if time.Now().After(enough) {
			break // this step happened at the last call
		}
		if err := r.KillLifeboat(); err != nil {
			r.t.Fatal(err)
		}
		killed++
		r.until("lifeboatd to be started again", 30*time.Second, func(context.Context) (bool, error) {
			return r.lifeboatPID() != last, fmt.Errorf("process ID %d", r.lifeboatPID())
		})
		next = done + 1 + rand.IntN(2)
	}
	return killed
}
