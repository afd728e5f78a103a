package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/lifeboat-dev/lifeboat/sandbox/process"
)

// How soon a program that died is started again: at once the first time, then
// later and later, as a Deployment's pods are. One that ran for long starts anew.
const (
	firstBackOff = 200 * time.Millisecond
	lastBackOff  = 5 * time.Second
	longRun      = 10 * time.Second
)

// keeper keeps one program running.
type keeper struct {
	name string
	log  *slog.Logger
	// launch starts the program.
	launch func(context.Context) (*process.Process, error)
	// started hears the process id of each start.
	started func(pid int)

	mu   sync.Mutex // guards proc and keep
	proc *process.Process
	keep *background // nil: stopped
}

// start starts the program, unless it is kept running already.
func (k *keeper) start(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keep != nil {
		return nil
	}
	p, err := k.launch(ctx)
	if err != nil {
		return err
	}
	k.proc = p
	k.started(p.PID())
	k.keep = inBackground(func(ctx context.Context) error { return k.run(ctx, p) })
	return nil
}

// run starts the program again whenever it ends, until ctx does, and stops it then.
func (k *keeper) run(ctx context.Context, p *process.Process) error {
	wait := firstBackOff
	for {
		began := time.Now()
		select {
		case <-ctx.Done():
			return p.Stop()
		case <-p.Done():
		}
		if time.Since(began) > longRun {
			wait = firstBackOff
		}
		k.log.Warn("program ended, starting it again", "name", k.name, "after", wait, "err", p.Err())
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		wait = min(2*wait, lastBackOff)
		next, err := k.launch(ctx)
		if err != nil {
			k.log.Warn("program not started", "name", k.name, "err", err)
			continue
		}
		k.mu.Lock()
		p, k.proc = next, next
		k.mu.Unlock()
		k.started(next.PID())
	}
}

// stop stops the program and its keeping.
func (k *keeper) stop() error {
	k.mu.Lock()
	keep := k.keep
	k.keep = nil
	k.mu.Unlock()
	if keep == nil {
		return nil
	}
	return keep.stop()
}

// kill kills the program as a crash would; it is started again.
func (k *keeper) kill() error {
	k.mu.Lock()
	p, kept := k.proc, k.keep != nil
	k.mu.Unlock()
	if !kept {
		return fmt.Errorf("%s does not run", k.name)
	}
	p.Kill9()
	return nil
}

// ErrRestarting says that a program cannot be killed: it has ended already, and is about
// to be started again.
var ErrRestarting = errors.New("it has ended and is about to be started again")

// crash is kill of a program that runs: a kill between two starts disturbs nothing, and
// must not count as one.
func (k *keeper) crash() error {
	p, err := k.current()
	if err != nil {
		return err
	}
	select {
	case <-p.Done():
		return ErrRestarting
	default:
		return k.kill()
	}
}

// current is the process as it is now.
func (k *keeper) current() (*process.Process, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keep == nil {
		return nil, fmt.Errorf("%s does not run", k.name)
	}
	return k.proc, nil
}

// trouble is what its last end has to say, if it keeps ending.
func (k *keeper) trouble() error {
	p, err := k.current()
	if err != nil {
		return err
	}
	return p.Err()
}
