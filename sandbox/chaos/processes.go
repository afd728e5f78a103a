package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/sandboxstate"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

// downPoll is how often a part that is down is looked for.
const downPoll = 100 * time.Millisecond

// The parts of a sandbox that are processes.
const (
	PartLifeboat     = "lifeboatd"
	PartStandby      = "lifeboatd-2"
	PartAgents       = "agent"
	PartKarpenter    = "karpenter"
	PartKubelets     = "kwok"
	PartControlPlane = "control plane"
)

// processParts are the parts as their faults name and describe them.
var processParts = []struct{ name, part, what string }{
	{"lifeboatd", PartLifeboat, "all replicas of lifeboatd"},
	{"agents", PartAgents, "the agents of all nodes"},
	{"karpenter", PartKarpenter, "Karpenter"},
	{"kubelets", PartKubelets, "the simulated kubelets of all nodes"},
	{"control-plane", PartControlPlane, "etcd, the API server, the scheduler and the controllers"},
}

// processes are faults of processes.
func processes() []Fault {
	var all []Fault
	for _, one := range processParts {
		all = append(all,
			Fault{Name: "kill-" + one.name, Text: "kills " + one.what + " with SIGKILL; they are started again", Part: one.part, apply: killing(one.part)},
			Fault{Name: "freeze-" + one.name, Text: "stops " + one.what + " with SIGSTOP, and continues them afterwards", Lasts: true, Part: one.part, apply: freezing(one.part)},
		)
		if one.part != PartControlPlane {
			all = append(all, Fault{Name: "down-" + one.name, Text: "kills " + one.what + " as often as they are started", Lasts: true, Part: one.part, apply: keepingDown(one.part)})
		}
	}
	return all
}

// signal sends a signal to a part. A process that has ended meanwhile is no error, even if another one
// has its id by now.
func (t *Target) signal(p sandboxstate.Part, sig syscall.Signal) error {
	process, err := t.own(p.PID)
	if err == nil {
		err = process.Signal(sig)
	}
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %s to %s (process %d): %w", sig, p.Name, p.PID, err)
	}
	return nil
}

// own returns a process of the sandbox. The error is os.ErrProcessDone if it has ended, also if another process
// has its id by now. On Linux the result holds a pidfd (pidfd_open(2)), so that its methods reach no other process.
func (t *Target) own(pid int) (*os.Process, error) {
	state, err := t.state()
	if err != nil {
		return nil, err
	}
	process, err := os.FindProcess(pid)
	if err == nil && !isChild(pid, state.Supervisor) {
		err = os.ErrProcessDone
	}
	return process, err
}

// isChild reports whether a process is a child of another: the fourth field of its stat (proc(5)). Where
// there is no /proc, it is not known, and true.
func isChild(pid, parent int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		_, err := os.Stat("/proc/self")
		return err != nil
	}
	// The second field is the program's name, in parentheses, and may contain any character.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	return len(fields) > 1 && fields[1] == strconv.Itoa(parent)
}

func (t *Target) killAll(part string) error {
	all, err := t.parts(part)
	for _, p := range all {
		err = errors.Join(err, t.signal(p, syscall.SIGKILL))
	}
	return err
}

func killing(part string) func(context.Context, *broken) error {
	return func(_ context.Context, b *broken) error { return b.killAll(part) }
}

// freezing stops the current processes. One that starts meanwhile runs.
func freezing(part string) func(context.Context, *broken) error {
	return func(_ context.Context, b *broken) error {
		all, err := b.parts(part)
		if err != nil {
			return err
		}
		for _, p := range all {
			b.onUndo(func(context.Context) error { return b.signal(p, syscall.SIGCONT) })
			err = errors.Join(err, b.signal(p, syscall.SIGSTOP))
		}
		return err
	}
}

func keepingDown(part string) func(context.Context, *broken) error {
	return func(_ context.Context, b *broken) error {
		if err := b.killAll(part); err != nil {
			return err
		}
		b.background(func(ctx context.Context) {
			for sleep.For(ctx, downPoll) {
				_ = b.killAll(part) // it is tried again
			}
		})
		return nil
	}
}
