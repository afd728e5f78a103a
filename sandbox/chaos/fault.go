package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/sleep"
	"github.com/lifeboat-dev/lifeboat/internal/text/levenshtein"
)

// Fault is one way to break a sandbox.
type Fault struct {
	Name string
	// Text says what happens, in the third person.
	Text string
	// Lasts: the fault is a state that ends when it is undone. Otherwise it is one event.
	Lasts bool
	// Part is the part that must run; "": none.
	Part string
	// Skew is how wrong the clock of lifeboatd gets.
	Skew time.Duration
	// needs returns what this machine lacks; nil: nothing is needed.
	needs func() error
	apply func(ctx context.Context, b *broken) error
}

// Missing returns what this machine lacks for a fault, as an errors.ErrUnsupported; nil: nothing.
func (f Fault) Missing() error {
	if f.needs == nil {
		return nil
	}
	if err := f.needs(); err != nil {
		return fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return nil
}

// broken is one application of a fault.
type broken struct {
	*Target
	fault Fault
	rand  *rand.Rand
	until time.Time
	// undo repairs, in reverse order. Each is called until it succeeds.
	undo []func(context.Context) error
}

func (b *broken) onUndo(f func(context.Context) error) { b.undo = append(b.undo, f) }

// background runs f until the fault is undone.
func (b *broken) background(f func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); f(ctx) }()
	b.onUndo(func(context.Context) error { cancel(); <-done; return nil })
}

// Menu lists all faults, sorted by name.
func Menu() []Fault {
	all := slices.Concat(processes(), links(), admissions(), objects(), messages(), clocks(), outOfMemory(), full(), leases(), nodePools())
	slices.SortFunc(all, func(a, b Fault) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Find returns the fault of a name. The error names the closest one.
func Find(name string) (Fault, error) {
	var names []string
	for _, f := range Menu() {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	near := slices.MinFunc(names, func(a, b string) int { return levenshtein.Distance(name, a) - levenshtein.Distance(name, b) })
	return Fault{}, fmt.Errorf("there is no fault %q, the closest is %s; `lifeboat sandbox chaos list` shows all", name, near)
}

// undoLimit is how long the repair of a fault is tried: the API server may be starting.
const undoLimit = time.Minute

// Start applies a fault until the returned function is called, or for at most lasts. seed chooses
// what the fault leaves open, such as one of several nodes. The function must be called; it may be
// called after ctx has ended.
func Start(ctx context.Context, t *Target, f Fault, lasts time.Duration, seed uint64) (undo func() error, err error) {
	if err := t.supports(f); err != nil {
		return nil, fmt.Errorf("fault %s: %w", f.Name, err)
	}
	b := &broken{Target: t, fault: f, rand: rand.New(rand.NewPCG(seed, seed)), until: time.Now().Add(lasts)}
	err = f.apply(ctx, b)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("fault %s: %w", f.Name, err), b.repair())
	}
	return b.repair, nil
}

// repair undoes everything once. It retries what fails.
func (b *broken) repair() error {
	ctx, cancel := context.WithTimeout(context.Background(), undoLimit)
	defer cancel()
	var errs []error
	for _, undo := range slices.Backward(b.undo) {
		err := undo(ctx)
		for err != nil && b.exists() && sleep.For(ctx, time.Second) {
			err = undo(ctx)
		}
		if err != nil && b.exists() {
			errs = append(errs, fmt.Errorf("undoing the fault %s: %w", b.fault.Name, err))
		}
	}
	b.undo = nil
	return errors.Join(errs...)
}

// Run applies a fault, waits, and undoes it, also when ctx ends before.
func Run(ctx context.Context, t *Target, f Fault, lasts time.Duration, seed uint64) error {
	undo, err := Start(ctx, t, f, lasts, seed)
	if err != nil {
		return err
	}
	if f.Lasts {
		sleep.For(ctx, lasts)
	}
	return undo()
}
