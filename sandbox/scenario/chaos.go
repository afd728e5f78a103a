package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/sleep"
	"github.com/lifeboat-dev/lifeboat/sandbox/chaos"
)

// defaultFault is how long a fault lasts by default.
const defaultFault = 10 * time.Second

func (p *parser) chaos(args []string) (any, error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("a fault is missing")
	}
	st := ChaosStatement{For: defaultFault, Seed: 1}
	var err error
	if st.Fault, err = chaos.Find(args[0]); err != nil {
		return nil, err
	}
	return st, options(args[1:], map[string]func(string) error{
		"for": duration(&st.For),
		"seed": func(v string) (err error) {
			st.Seed, err = strconv.ParseUint(v, 10, 64)
			return err
		},
	})
}

// breaks reports whether a scenario has a fault.
func (sc *Scenario) breaks() bool {
	return slices.ContainsFunc(sc.Steps, func(s Step) bool { _, ok := s.Do.(ChaosStatement); return ok })
}

// disturb executes what comes between a notice and the end of its drain.
func (p *player) disturb(ctx context.Context, do any) error {
	if st, ok := do.(CancelStatement); ok {
		return p.cancel(st)
	}
	return p.chaos(ctx, do.(ChaosStatement))
}

// chaos applies a fault, and undoes it in the background. The end of the script undoes it too.
func (p *player) chaos(ctx context.Context, st ChaosStatement) error {
	target, err := chaos.Open(p.sandbox.State().Dir)
	if err != nil {
		return err
	}
	p.addMoment(MomentStep, "fault "+st.Fault.Name+": "+st.Fault.Text)
	undo, err := startFault(ctx, target, st)
	if err != nil {
		return err
	}
	limited, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		if st.Fault.Lasts {
			sleep.For(limited, st.For)
		}
		err := undo()
		if err == nil && st.Fault.Lasts {
			p.addMoment(MomentStep, "fault "+st.Fault.Name+" is over")
		}
		done <- err
	}()
	p.faults = append(p.faults, func() error { cancel(); return <-done })
	return nil
}

// startLimit is how long a fault may fail: a part such as the agent of a new node may be starting, and so may the
// API server, after another fault.
const startLimit = 30 * time.Second

func startFault(ctx context.Context, target *chaos.Target, st ChaosStatement) (func() error, error) {
	for limit := time.Now().Add(startLimit); ; {
		undo, err := chaos.Start(ctx, target, st.Fault, st.For, st.Seed)
		if err == nil || errors.Is(err, errors.ErrUnsupported) || time.Now().After(limit) || !sleep.For(ctx, 100*time.Millisecond) {
			return undo, err
		}
	}
}

// repair undoes all faults.
func (p *player) repair() error {
	var errs []error
	for _, end := range p.faults {
		errs = append(errs, end())
	}
	p.faults = nil
	return errors.Join(errs...)
}
