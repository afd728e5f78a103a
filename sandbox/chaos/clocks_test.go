package chaos

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/sandboxstate"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/need"
	"github.com/lifeboat-dev/lifeboat/sandbox/clock"
)

// clocked is a process that writes its clock to a file.
func clocked(t *testing.T) (pid int, off func() time.Duration) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "clock")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "CHAOS_TEST_CLOCK="+path)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd.Process.Pid, func() time.Duration {
		text, err := os.ReadFile(path)
		at, _ := strconv.ParseInt(string(text), 10, 64)
		if err != nil || at == 0 {
			return 0
		}
		return time.Until(time.Unix(0, at))
	}
}

// TestClocksOfAPart: the clocks of all processes of a part are wrong, also of one that starts meanwhile, and
// right again afterwards.
func TestClocksOfAPart(t *testing.T) {
	t.Parallel()
	if err := clock.Supported(); err != nil {
		need.Missing(t, err.Error())
	}
	first, firstOff := clocked(t)
	state := sandboxstate.State{Dir: t.TempDir(), Supervisor: os.Getpid(), Parts: []sandboxstate.Part{{Name: PartLifeboat, PID: first}}}
	if err := state.Write(); err != nil {
		t.Fatal(err)
	}
	// A step that no busy machine can look like.
	wrong := Fault{Name: "wrong", Part: PartLifeboat, apply: wrongClock(PartLifeboat, clock.Error{Step: time.Hour})}
	undo, err := Start(t.Context(), &Target{dir: state.Dir}, wrong, time.Hour, 1)
	if err != nil {
		t.Fatal(err)
	}
	second, secondOff := clocked(t)
	state.Parts = append(state.Parts, sandboxstate.Part{Name: PartStandby, PID: second})
	if err := state.Write(); err != nil {
		t.Fatal(err)
	}
	isWrong := func(off func() time.Duration) bool { return off().Abs() > 30*time.Minute }
	waitUntil(t, "both clocks wrong", func() bool { return isWrong(firstOff) && isWrong(secondOff) })
	if err := undo(); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "both clocks right", func() bool { return !isWrong(firstOff) && !isWrong(secondOff) })
}
