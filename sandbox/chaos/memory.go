package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/sandboxstate"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

const (
	// tinyLimit is one page: the next page that a process in the cgroup needs is too much.
	tinyLimit = "4096"
	oomPoll   = 20 * time.Millisecond
	// oomLimit is how long a process may need no page. Then it gets the signal that the kernel sends.
	oomLimit = 10 * time.Second
	// dyingLimit is how long a killed process may take to end.
	dyingLimit = 30 * time.Second
)

// outOfMemory are faults of memory.
func outOfMemory() []Fault {
	var all []Fault
	for _, one := range processParts {
		all = append(all, Fault{
			Name: "oom-" + one.name, Text: "lets the kernel kill " + one.what + " because they reach a memory limit; they are started again",
			Part: one.part, needs: func() error { _, err := memoryCgroups(); return err }, apply: exhausting(one.part),
		})
	}
	return all
}

// cgroups is the hierarchy of memory cgroups.
type cgroups struct{ root, limit, controllers string }

// memoryCgroups finds the hierarchy, of version 1 or 2 (cgroups(7)).
func memoryCgroups() (cgroups, error) {
	for _, c := range []cgroups{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory"},
		{"/sys/fs/cgroup", "memory.max", ""},
	} {
		// The root of version 2 has no limit, but lists what its children control.
		kinds, err := os.ReadFile(filepath.Join(c.root, "cgroup.subtree_control"))
		v2 := err == nil && strings.Contains(string(kinds), "memory")
		_, err = os.Stat(filepath.Join(c.root, c.limit))
		if (v2 || err == nil) && syscall.Access(c.root, 2) == nil { // W_OK
			return c, nil
		}
	}
	return cgroups{}, errors.New("this machine lets no memory cgroup be made: it needs Linux, and root")
}

// exhausting moves the processes of a part into a cgroup with a tiny limit, until the kernel has killed them.
func exhausting(part string) func(context.Context, *broken) error {
	return func(ctx context.Context, b *broken) error {
		groups, err := memoryCgroups()
		if err != nil {
			return err
		}
		all, err := b.parts(part)
		if err != nil {
			return err
		}
		dir := filepath.Join(groups.root, fmt.Sprintf("lifeboat-chaos-%d-%d", os.Getpid(), b.rand.Int32()))
		if err := os.Mkdir(dir, 0o755); err != nil {
			return fmt.Errorf("making a memory cgroup: %w", err)
		}
		b.onUndo(func(context.Context) error { return os.Remove(dir) })
		if err := os.WriteFile(filepath.Join(dir, groups.limit), []byte(tinyLimit), 0); err != nil {
			return fmt.Errorf("limiting a memory cgroup: %w", err)
		}
		for _, p := range all {
			if _, err := b.own(p.PID); errors.Is(err, os.ErrProcessDone) {
				continue
			} else if err != nil {
				return err
			}
			was, err := groups.of(p.PID)
			if err != nil {
				return err
			}
			b.onUndo(func(context.Context) error { return leave(dir, was, p) })
			if err := enter(dir, p); err != nil {
				return err
			}
		}
		return emptied(ctx, dir)
	}
}

// emptied waits until the kernel has killed all processes of a cgroup. An idle process may need no page:
// it is killed as the kernel would do it.
func emptied(ctx context.Context, dir string) error {
	idle := time.Now().Add(oomLimit)
	for limit := idle.Add(dyingLimit); ; {
		left, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			return fmt.Errorf("reading a memory cgroup: %w", err)
		}
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(idle) {
			if err := killAll(string(left)); err != nil {
				return err
			}
		}
		if time.Now().After(limit) || !sleep.For(ctx, oomPoll) {
			return errors.New("processes that were killed have not ended")
		}
	}
}

// killAll kills processes, one id in each line. One that has ended is no error.
func killAll(pids string) error {
	for line := range strings.Lines(pids) {
		pid, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			return fmt.Errorf("reading a memory cgroup: %w", err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("killing process %d: %w", pid, err)
		}
	}
	return nil
}

func enter(dir string, p sandboxstate.Part) error {
	err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(p.PID)), 0)
	if err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("moving %s (process %d) into a memory cgroup: %w", p.Name, p.PID, err)
	}
	return nil
}

// leave moves a process that lives on back to the cgroup in which it was.
func leave(dir, was string, p sandboxstate.Part) error {
	in, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil || !strings.Contains("\n"+string(in), fmt.Sprintf("\n%d\n", p.PID)) {
		return nil // it has been killed
	}
	return enter(was, p)
}

// of returns the directory of a process's cgroup.
func (c cgroups) of(pid int) (string, error) {
	all, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return "", fmt.Errorf("reading the cgroup of process %d: %w", pid, err)
	}
	for line := range strings.Lines(string(all)) { // such as 5:memory:/user and 0::/user
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) == 3 && fields[1] == c.controllers {
			return filepath.Join(c.root, fields[2]), nil
		}
	}
	return "", fmt.Errorf("process %d is in no memory cgroup", pid)
}
