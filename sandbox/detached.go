package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/sandboxstate"
)

const (
	// reportFD is the environment variable with the file descriptor of a supervisor's report.
	reportFD = "LIFEBOAT_SANDBOX_REPORT_FD"
	// stopTimeout is how long a supervisor may take to stop before it is killed.
	stopTimeout = 90 * time.Second
)

// report is a line from the supervisor to the process that started it.
type report struct {
	Step  *Step  `json:"step,omitempty"`
	Ready *State `json:"ready,omitempty"`
	Error string `json:"error,omitempty"`
}

// Start starts a sandbox in the background and returns when it is ready. self is the command line,
// program first, that runs Supervise with the same options. If ctx ends before, Start removes the
// sandbox. The error wraps ErrRunning if one of that name runs.
func Start(ctx context.Context, o Options, self []string) (State, error) {
	o, err := o.complete()
	if err != nil {
		return State{}, err
	}
	if running, err := sandboxstate.Held(o.Dir); err != nil || running {
		return State{}, fmt.Errorf("starting the sandbox %s: %w", o.Name, errors.Join(err, onlyIf(running, ErrRunning)))
	}
	supervisor, reports, err := spawn(o, self)
	if err != nil {
		return State{}, fmt.Errorf("starting the sandbox %s: %w", o.Name, err)
	}
	defer reports.Close()
	// Ctrl-C here is forwarded; the supervisor then reports why it ended.
	stop := context.AfterFunc(ctx, func() { _ = supervisor.Process.Signal(syscall.SIGTERM) })
	defer stop()
	st, err := listen(o, reports)
	if err != nil {
		err = errors.Join(err, ignoreExit(supervisor.Wait()))
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return State{}, fmt.Errorf("starting the sandbox %s: %w", o.Name, err)
	}
	if err := supervisor.Process.Release(); err != nil {
		return st, fmt.Errorf("releasing the supervisor: %w", err)
	}
	return st, nil
}

func onlyIf(yes bool, err error) error {
	if yes {
		return err
	}
	return nil
}

// ignoreExit drops a supervisor's exit status: its report has the cause.
func ignoreExit(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}

// spawn starts the supervisor in a separate session, so that it outlives the terminal, and returns
// its report.
func spawn(o Options, self []string) (*exec.Cmd, *os.File, error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("making its directory: %w", err)
	}
	log, err := os.OpenFile(filepath.Join(o.Dir, sandboxstate.LogFile), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("opening its log: %w", err)
	}
	defer log.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("making a pipe: %w", err)
	}
	defer w.Close()
	cmd := exec.Command(self[0], self[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{w} // descriptor 3
	cmd.Env = append(os.Environ(), reportFD+"=3")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("starting its supervisor: %w", err), r.Close())
	}
	return cmd, r, nil
}

// listen forwards steps until the supervisor is ready or fails.
func listen(o Options, reports *os.File) (State, error) {
	lines := bufio.NewScanner(reports)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r report
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return State{}, fmt.Errorf("reading the supervisor's report: %w", err)
		}
		switch {
		case r.Step != nil:
			o.Progress(*r.Step)
		case r.Ready != nil:
			return *r.Ready, nil
		case r.Error != "":
			return State{}, errors.New(r.Error)
		}
	}
	return State{}, errors.Join(fmt.Errorf("its supervisor has ended; see %s", filepath.Join(o.Dir, sandboxstate.LogFile)), lines.Err())
}

// Supervise is the supervisor: it starts the sandbox, reports to the process that started it, and
// keeps the sandbox until ctx ends. The caller ends ctx on SIGTERM. Then it removes the sandbox.
func Supervise(ctx context.Context, o Options) error {
	tell, done, err := reporter()
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	o.Progress = func(st Step) {
		if err := tell(report{Step: &st}); err != nil {
			cancel(fmt.Errorf("the process that started it has ended: %w", err))
		}
	}
	s, err := New(o)
	if err != nil {
		return errors.Join(err, tell(report{Error: err.Error()}))
	}
	if err := s.Up(ctx); err != nil {
		return errors.Join(err, tell(report{Error: err.Error()}))
	}
	st := s.State()
	if err := tell(report{Ready: &st}); err != nil {
		return errors.Join(err, s.Down())
	}
	done()
	s.opts.Progress = func(Step) {} // the report is closed
	<-ctx.Done()
	return s.Down()
}

// reporter returns a function that reports to the process that started this one.
func reporter() (send func(report) error, done func(), err error) {
	text, ok := os.LookupEnv(reportFD)
	if !ok {
		return func(report) error { return nil }, func() {}, nil
	}
	fd, err := strconv.Atoi(text)
	if err != nil {
		return nil, nil, fmt.Errorf("reading $%s: %w", reportFD, err)
	}
	// The sandbox's own children must not inherit it.
	if err := os.Unsetenv(reportFD); err != nil {
		return nil, nil, fmt.Errorf("clearing $%s: %w", reportFD, err)
	}
	syscall.CloseOnExec(fd)
	f := os.NewFile(uintptr(fd), "report")
	out := json.NewEncoder(f)
	return func(r report) error { return out.Encode(r) }, func() { f.Close() }, nil
}

// Stop removes the sandbox of a name and returns when it is gone, also if its supervisor was killed
// before. The error wraps ErrNotRunning if there is none.
func Stop(ctx context.Context, name string, progress func(Step)) error {
	o, err := (Options{Name: name, Progress: progress}).complete()
	if err != nil {
		return err
	}
	if _, err := os.Stat(o.Dir); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("stopping the sandbox %s: %w", o.Name, ErrNotRunning)
	}
	err = o.run("stopping "+o.Name, func(func(string)) error { return stop(ctx, o) })
	if err != nil {
		return fmt.Errorf("stopping the sandbox %s: %w", o.Name, err)
	}
	return nil
}

func stop(ctx context.Context, o Options) error {
	dir := o.Dir
	running, err := sandboxstate.Held(dir)
	if err != nil {
		return err
	}
	if running {
		if err := stopSupervisor(ctx, dir); err != nil {
			return err
		}
	}
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	// The supervisor was killed, and its children died with it. Files, and cgroups of real
	// instances, are left.
	l, err := sandboxstate.TakeLock(ctx, dir)
	if err != nil {
		return err
	}
	return errors.Join(sweepInstances(ctx, o), l.Remove())
}

func stopSupervisor(ctx context.Context, dir string) error {
	st, ok, err := sandboxstate.Read(dir)
	if err != nil || !ok {
		return errors.Join(err, errors.New("it is starting or stopping: try again"))
	}
	if err := syscall.Kill(st.Supervisor, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("asking its supervisor (process %d) to stop: %w", st.Supervisor, err)
	}
	gone := func(context.Context) (bool, error) {
		running, err := sandboxstate.Held(dir)
		return !running, err
	}
	patient, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	err = waitFor(patient, "its supervisor to end", gone)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if err := syscall.Kill(st.Supervisor, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("killing its supervisor (process %d): %w", st.Supervisor, err)
	}
	killed, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return waitFor(killed, "its supervisor to be killed", gone)
}
