// Package process runs the sandbox's programs as supervised child processes.
//
// A child gets its own process group. So Ctrl-C in a terminal reaches only the parent, which stops its
// children in order. A child never outlives its parent, even after SIGKILL: on Linux the kernel kills
// it (PR_SET_PDEATHSIG), on other systems a watchdog does.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/lifeboat-dev/lifeboat/sandbox/osthread"
)

// DefaultStopGrace is how long Stop waits between SIGTERM and SIGKILL by default.
const DefaultStopGrace = 10 * time.Second

// Options are the options of a child.
type Options struct {
	Name       string        // its name in messages; required
	Path       string        // the program; required
	Args       []string      // its arguments, without the program's name
	Env        []string      // its environment as KEY=value; nil means the parent's
	Dir        string        // its working directory; empty means the parent's
	LogFile    string        // its standard output and error are appended here; required
	ExtraFiles []*os.File    // open files it inherits as descriptors 3, 4, …
	StopGrace  time.Duration // between SIGTERM and SIGKILL; 0 means DefaultStopGrace
	Stdin      *os.File      // its standard input; nil means nothing to read

	// Cloneflags are its new namespaces, as in clone(2); Linux only.
	Cloneflags uintptr
	// Enter is called before the start, on the thread that starts the child. It can change what the
	// child inherits, such as a namespace. The thread ends with the child.
	Enter func() error
	// Unguarded lets the child outlive the parent, because something else ends it.
	Unguarded bool
}

// Process is a started child. Its methods may be called from several goroutines.
type Process struct {
	name      string
	logFile   string
	logStart  int64 // where this run's output begins in logFile
	stopGrace time.Duration
	cmd       *exec.Cmd
	enter     func() error
	unguarded bool
	stopping  atomic.Bool   // its end was requested, and is no error
	done      chan struct{} // closed when it has ended
	err       error         // why it ended; read after done
}

// Start starts a child. ctx bounds only the start: to end a child, call Stop. The caller must call Stop or Kill9, or wait for Done.
func Start(ctx context.Context, opts Options) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", opts.Name, err)
	}
	log, err := os.OpenFile(opts.LogFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("starting %s: opening its log: %w", opts.Name, err)
	}
	defer log.Close()
	info, err := log.Stat()
	if err != nil {
		return nil, fmt.Errorf("starting %s: reading its log's size: %w", opts.Name, err)
	}

	cmd := exec.Command(opts.Path, opts.Args...)
	cmd.Env, cmd.Dir, cmd.ExtraFiles = opts.Env, opts.Dir, opts.ExtraFiles
	// A file, not a pipe: the child can still write after the end of the parent.
	cmd.Stdout, cmd.Stderr = log, log
	if opts.Stdin != nil {
		cmd.Stdin = opts.Stdin
	}
	cmd.SysProcAttr = sysProcAttr(opts)
	p := &Process{
		name: opts.Name, logFile: opts.LogFile, logStart: info.Size(),
		stopGrace: opts.StopGrace, cmd: cmd, done: make(chan struct{}), enter: opts.Enter, unguarded: opts.Unguarded,
	}
	if p.stopGrace == 0 {
		p.stopGrace = DefaultStopGrace
	}
	started := make(chan error, 1)
	// The kernel sends the parent-death signal when the *thread* that forked ends (prctl(2)), so this
	// thread must exist as long as the child.
	osthread.Spend(func() { p.supervise(started) })
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", opts.Name, err)
	}
	return p, nil
}

// supervise starts the child and waits for its end.
func (p *Process) supervise(started chan<- error) {
	if p.enter != nil {
		if err := p.enter(); err != nil {
			started <- err
			return
		}
	}
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	release, err := p.guard()
	if err != nil {
		p.signalGroup(syscall.SIGKILL)
		_ = p.cmd.Wait() // the relevant error is that of guard
		started <- fmt.Errorf("guarding against the parent's death: %w", err)
		return
	}
	started <- nil
	waitErr := p.cmd.Wait()
	p.signalGroup(syscall.SIGKILL) // kill the child's own children too
	release()
	// Another thread reads the log: this one may be in a namespace without the file.
	go p.finish(waitErr)
}

func (p *Process) guard() (release func(), err error) {
	if p.unguarded {
		return func() {}, nil
	}
	return guard(p.cmd.Process.Pid)
}

func (p *Process) finish(waitErr error) {
	if waitErr != nil && !p.stopping.Load() {
		p.err = &ExitError{Name: p.name, LogFile: p.logFile, LastLines: lastLines(p.logFile, p.logStart), Err: waitErr}
	}
	close(p.done)
}

// PID returns the child's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the child has ended, for any reason.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err is the reason of the child's end: nil while it runs, after an exit with status 0, and after Stop
// or Kill9; otherwise an *ExitError.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Signal sends a signal only to the child, not to its group. It does nothing if the child has ended.
func (p *Process) Signal(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %s to %s: %w", sig, p.name, err)
	}
	return nil
}

// Stop sends SIGTERM, waits, and after the grace period sends SIGKILL to the child's whole group. It
// returns when the child has ended, with an error if it had to be killed. It does nothing if the child
// has ended.
func (p *Process) Stop() error {
	p.stopping.Store(true)
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stopping: %w", err)
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(p.stopGrace):
	}
	p.Kill9()
	return fmt.Errorf("stopping %s: still running %s after SIGTERM, so it was killed", p.name, p.stopGrace)
}

// Kill9 kills the child and its group with SIGKILL, as a crash would, and returns when the child has ended.
func (p *Process) Kill9() {
	p.stopping.Store(true)
	select {
	case <-p.done: // another process may have the id now
	default:
		p.signalGroup(syscall.SIGKILL)
		<-p.done
	}
}

func (p *Process) signalGroup(sig syscall.Signal) {
	// ESRCH, the only likely error, means that no process is left.
	_ = syscall.Kill(-p.cmd.Process.Pid, sig)
}
