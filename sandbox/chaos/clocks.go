package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/sleep"
	"github.com/lifeboat-dev/lifeboat/sandbox/clock"
)

const (
	// clockStep is how wrong a stepped clock is: as much as `lifeboat doctor` tolerates.
	clockStep = 5 * time.Second
	// drift is much more than that of any real clock, so that a short fault shows it. In a random history it
	// adds up to less than the step.
	drift = 200 * time.Millisecond
	// clockPoll is how often processes that have started meanwhile are looked for.
	clockPoll = 100 * time.Millisecond
)

// clocks are faults of the wall clock of one part. The seed chooses the direction.
func clocks() []Fault {
	var all []Fault
	for _, one := range processParts {
		var skew time.Duration
		if one.part == PartLifeboat {
			skew = clockStep
		}
		all = append(all,
			Fault{
				Name: "step-clock-" + one.name, Text: "sets the clocks of " + one.what + " forward or back by " + clockStep.String(),
				Lasts: true, Part: one.part, Skew: skew, needs: clock.Supported, apply: wrongClock(one.part, clock.Error{Step: clockStep}),
			},
			Fault{
				Name: "drift-clock-" + one.name, Text: "makes the clocks of " + one.what + " gain or lose " + drift.String() + " a second",
				Lasts: true, Part: one.part, Skew: skew, needs: clock.Supported, apply: wrongClock(one.part, clock.Error{Rate: drift}),
			},
		)
	}
	return all
}

// wrongClock makes the clocks of a part wrong, also those of processes that start meanwhile: they run on the
// same machine.
func wrongClock(part string, wrong clock.Error) func(context.Context, *broken) error {
	return func(_ context.Context, b *broken) error {
		wrong := wrong
		wrong.From, wrong.Until = time.Now(), b.until
		if b.rand.IntN(2) == 0 {
			wrong.Step, wrong.Rate = -wrong.Step, -wrong.Rate
		}
		done := map[int]*os.Process{}
		b.onUndo(func(context.Context) error {
			var errs []error
			for _, process := range done {
				errs = append(errs, clock.Clear(process))
			}
			return errors.Join(errs...)
		})
		set := func() error {
			all, err := b.parts(part)
			for _, p := range all {
				if done[p.PID] != nil {
					continue
				}
				process, e := b.own(p.PID)
				if e == nil {
					e = clock.Set(process, wrong)
				}
				switch {
				case e == nil:
					done[p.PID] = process
				case !errors.Is(e, os.ErrProcessDone):
					err = errors.Join(err, fmt.Errorf("the clock of %s: %w", p.Name, e))
				}
			}
			return err
		}
		if err := set(); err != nil {
			return err
		}
		b.background(func(ctx context.Context) {
			for sleep.For(ctx, clockPoll) {
				_ = set() // it is tried again
			}
		})
		return nil
	}
}
