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

// The restart backoff: no delay the first time, then increasing delays, as for the pods of a
// Deployment. A long run resets it.
const (
	firstBackOff = 200 * time.Millisecond
	lastBackOff  = 5 * time.Second
	longRun      = 10 * time.Second
)

// supervisor restarts one program whenever it ends.
type supervisor struct {
	name string
	log  *slog.Logger
	// launch starts the program.
	launch func(context.Context) (*process.Process, error)
	// started receives the process id of each start.
	started func(pid int)

	mu   sync.Mutex // guards proc and keep
	proc *process.Process
	keep *background // nil: stopped
}

// start starts the program, unless it runs already.
func (k *supervisor) start(ctx context.Context) error {
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

// run restarts the program whenever it ends, until ctx ends, and then stops it.
func (k *supervisor) run(ctx context.Context, p *process.Process) error {
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
		k.log.Warn("program ended, restarting it", "name", k.name, "after", wait, "err", p.Err())
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

// stop stops the program and its restarts.
func (k *supervisor) stop() error {
	k.mu.Lock()
	keep := k.keep
	k.keep = nil
	k.mu.Unlock()
	if keep == nil {
		return nil
	}
	return keep.stop()
}

// kill kills the program as a crash would; it is restarted.
func (k *supervisor) kill() error {
	k.mu.Lock()
	p, kept := k.proc, k.keep != nil
	k.mu.Unlock()
	if !kept {
		return fmt.Errorf("%s does not run", k.name)
	}
	p.Kill9()
	return nil
}

// ErrRestarting is the error of a kill between the end of a program and its restart.
var ErrRestarting = errors.New("it has ended and will be restarted")

// crash is kill of a running program. A kill between two starts has no effect, and must not count
// as one.
func (k *supervisor) crash() error {
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

// current is the current process.
func (k *supervisor) current() (*process.Process, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keep == nil {
		return nil, fmt.Errorf("%s does not run", k.name)
	}
	return k.proc, nil
}

// lastError is the error of its last end, if it ends repeatedly.
func (k *supervisor) lastError() error {
	p, err := k.current()
	if err != nil {
		return err
	}
	return p.Err()
}
