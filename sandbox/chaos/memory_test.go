package chaos

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/sandboxstate"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/need"
)

// TestKernelKillsAtTheMemoryLimit: the processes of the part are killed, others are not, and no cgroup is left.
func TestKernelKillsAtTheMemoryLimit(t *testing.T) {
	t.Parallel()
	groups, err := memoryCgroups()
	if err != nil {
		need.Missing(t, err.Error())
	}
	first, _ := clocked(t)
	second, _ := clocked(t)
	_, other := sandboxOf(t, PartKarpenter)
	state := sandboxstate.State{Dir: t.TempDir(), Supervisor: os.Getpid(), Parts: []sandboxstate.Part{
		{Name: PartLifeboat, PID: first}, {Name: PartStandby, PID: second}, {Name: PartKarpenter, PID: other.Process.Pid},
	}}
	if err := state.Write(); err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), &Target{dir: state.Dir}, fault(t, "oom-lifeboatd"), time.Minute, 1); err != nil {
		t.Fatal(err)
	}
	for _, pid := range []int{first, second} {
		waitUntil(t, "killed", func() bool { return zombie(pid) })
	}
	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("another part was killed: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(groups.root, fmt.Sprintf("lifeboat-chaos-%d-*", os.Getpid())))
	if err != nil || len(left) > 0 {
		t.Errorf("cgroups are left: %s, %v", left, err)
	}
}

// zombie reports whether a child has ended.
func zombie(pid int) bool {
	var status syscall.WaitStatus
	ended, err := syscall.Wait4(pid, &status, syscall.WNOHANG, nil)
	return ended == pid && status.Signal() == syscall.SIGKILL || errors.Is(err, syscall.ECHILD)
}

// A process that needs no page is killed in the same way.
func TestIdleProcessIsKilled(t *testing.T) {
	t.Parallel()
	idle := exec.Command("sleep", "600")
	if err := idle.Start(); err != nil {
		t.Fatal(err)
	}
	pids := fmt.Sprintln(idle.Process.Pid)
	if err := killAll(pids); err != nil {
		t.Fatal(err)
	}
	_ = idle.Wait()
	if status, ok := idle.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Errorf("it ended as %s", idle.ProcessState)
	}
	if err := killAll(pids); err != nil {
		t.Errorf("of a process that has ended: %v", err)
	}
}
