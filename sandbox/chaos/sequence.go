package chaos

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

// Planned is a fault of a random sequence.
type Planned struct {
	Fault Fault
	// After is the pause before it, and Lasts how long it lasts.
	After, Lasts time.Duration
	Seed         uint64
}

const (
	// shortest is how long a random fault lasts at least.
	shortest   = time.Second
	mostPaused = 10 * time.Second
)

// Random returns faults in random order, without an end. The same seed and menu give the same ones.
// longest is how long one lasts at most.
func Random(seed uint64, menu []Fault, longest time.Duration) func() Planned {
	r := rand.New(rand.NewPCG(seed, 0))
	return func() Planned {
		return Planned{
			Fault: menu[r.IntN(len(menu))],
			After: time.Duration(r.Int64N(int64(mostPaused))).Truncate(time.Millisecond),
			Lasts: (shortest + time.Duration(r.Int64N(int64(max(longest-shortest, 1))))).Truncate(time.Millisecond),
			Seed:  r.Uint64(),
		}
	}
}

// RunRandom applies random faults, one after the other, until ctx ends. tell receives each one before
// it is applied.
func RunRandom(ctx context.Context, t *Target, next func() Planned, tell func(Planned)) error {
	for {
		p := next()
		if !sleep.For(ctx, p.After) {
			return nil
		}
		tell(p)
		if err := Run(ctx, t, p.Fault, p.Lasts, p.Seed); err != nil && ctx.Err() == nil {
			return err
		}
	}
}
