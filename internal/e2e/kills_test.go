//go:build kills

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// TestKills evacuates a node in one sandbox after the other, and kills lifeboatd at
// random steps of each drain, until LIFEBOAT_KILLS kills have happened (`make kills`).
// After each sandbox it checks that nothing was lost and nothing was done twice.
func TestKills(t *testing.T) {
	want, err := strconv.Atoi(os.Getenv("LIFEBOAT_KILLS"))
	if err != nil || want < 1 {
		t.Fatal("set LIFEBOAT_KILLS to the number of kills, as `make kills` does")
	}
	sandboxes, killed, moved, began := 0, 0, 0, time.Now()
	for killed < want && !t.Failed() {
		sandboxes++
		t.Run(fmt.Sprint(sandboxes), func(t *testing.T) {
			r := newRig(t)
			books := r.openLedger()
			doomed, pods := r.stage()
			r.reclaim(doomed)
			n := r.killAtRandom(2+pods, func(ctx context.Context) (int, error) {
				done, err := r.begun(ctx, doomed)
				return done + len(books.asked(doomed)), err
			})
			killed += n
			r.checkDrain(books, doomed, pods, r.reaches(doomed.ID, v1alpha1.PhaseDrained, 2*time.Minute))
			r.finish(doomed)
			moved += pods
			t.Logf("%d kills here, %d of %d in all, %s", n, killed, want, time.Since(began).Round(time.Second))
		})
	}
	t.Logf("%d kills in %d sandboxes, %d pods moved, %s: failed %t", killed, sandboxes, moved, time.Since(began).Round(time.Second), t.Failed())
}

// killAtRandom kills lifeboatd after random numbers of steps, until all steps are done or
// the last call is near. It returns how often it did.
func (r *rig) killAtRandom(all int, steps func(context.Context) (int, error)) (killed int) {
	r.t.Helper()
	const lastCall = 75 * time.Second // the notice is 2 min, the grace 30 s, the margin 10 s
	enough := time.Now().Add(lastCall - 4*r.starts)
	for next := 1 + rand.IntN(3); next < all && time.Now().Before(enough); {
		done, last := 0, r.lifeboatPID()
		r.until(fmt.Sprintf("step %d", next), time.Minute, func(ctx context.Context) (bool, error) {
			n, err := steps(ctx)
			done = n
			return err == nil && n >= next, fmt.Errorf("%d are done: %w", n, err)
		})
		if err := r.KillLifeboat(); err != nil {
			r.t.Fatal(err)
		}
		killed++
		r.until("lifeboatd to be started again", 30*time.Second, func(context.Context) (bool, error) {
			return r.lifeboatPID() != last, fmt.Errorf("its process is %d", r.lifeboatPID())
		})
		next = done + 1 + rand.IntN(2)
	}
	return killed
}
