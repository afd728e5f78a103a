package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const patience = 20 * time.Second

// roleEnv makes this test's own program act as a child, or as a parent of one.
const roleEnv = "PROCESS_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case "":
		os.Exit(m.Run())
	case "fail":
		for i := range 40 {
			fmt.Println("line", i)
		}
		os.Exit(3)
	case "polite": // ends at SIGTERM
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		fmt.Println("up")
		<-c
		fmt.Println("stopped")
	case "stubborn": // ignores SIGTERM, and has its own child
		signal.Ignore(syscall.SIGTERM)
		grandchild := exec.Command("sleep", "1000")
		if err := grandchild.Start(); err != nil {
			panic(err)
		}
		fmt.Println("grandchild", grandchild.Process.Pid)
		time.Sleep(time.Hour)
	case "careless": // ends, and leaves its own child
		grandchild := exec.Command("sleep", "1000")
		if err := grandchild.Start(); err != nil {
			panic(err)
		}
		fmt.Println("grandchild", grandchild.Process.Pid)
	case "parent": // prints its child's id and waits to be killed
		p, err := Start(context.Background(), Options{Name: "child", Path: "sleep", Args: []string{"1000"}, LogFile: os.Getenv("LOG")})
		if err != nil {
			panic(err)
		}
		fmt.Println(p.PID())
		time.Sleep(time.Hour)
	}
}

func start(t *testing.T, role string, grace time.Duration) *Process {
	t.Helper()
	p, err := Start(t.Context(), Options{
		Name: role, Path: os.Args[0], Env: append(os.Environ(), roleEnv+"="+role),
		LogFile: filepath.Join(t.TempDir(), "log"), StopGrace: grace,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill9)
	return p
}

// waitLine waits until the child has written a line that begins with prefix, and returns the rest.
func waitLine(t *testing.T, p *Process, prefix string) string {
	t.Helper()
	var rest string
	waitFor(t, "a line "+prefix, func() bool {
		for _, l := range p.LastLines() {
			if after, ok := strings.CutPrefix(l, prefix); ok {
				rest = strings.TrimSpace(after)
				return true
			}
		}
		return false
	})
	return rest
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s for %s", patience, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// alive reports whether a process runs (a zombie, which is not reaped yet, does not).
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && !strings.HasPrefix(strings.TrimSpace(string(out)), "Z")
}

func TestFailureReportsLastLogLines(t *testing.T) {
	p := start(t, "fail", 0)
	<-p.Done()
	var exit *ExitError
	if !errors.As(p.Err(), &exit) {
		t.Fatalf("got error %v, want an ExitError", p.Err())
	}
	if n := len(exit.LastLines); n != tailLines || exit.LastLines[n-1] != "line 39" {
		t.Errorf("last lines are %q, want %d that end with line 39", exit.LastLines, tailLines)
	}
	for _, want := range []string{"fail ended: exit status 3", "line 39", exit.LogFile} {
		if !strings.Contains(p.Err().Error(), want) {
			t.Errorf("error %q lacks %q", p.Err(), want)
		}
	}
	if err := p.Stop(); err != nil {
		t.Errorf("stopping what has ended: %v", err)
	}
}

func TestLastLinesAreFromThisRun(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, []byte("of an earlier run\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := Start(t.Context(), Options{Name: "false", Path: "false", LogFile: log})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if p.Err() == nil || strings.Contains(p.Err().Error(), "earlier") {
		t.Errorf("got error %v, want one without the earlier run's output", p.Err())
	}
}

func TestStopSendsSIGTERMFirst(t *testing.T) {
	p := start(t, "polite", patience)
	waitLine(t, p, "up")
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if lines := p.LastLines(); !slices.Equal(lines, []string{"up", "stopped"}) {
		t.Errorf("it wrote %q, want a stop without a kill", lines)
	}
	if p.Err() != nil {
		t.Errorf("a requested stop is an error: %v", p.Err())
	}
}

func TestStopKillsGroupAfterGrace(t *testing.T) {
	p := start(t, "stubborn", 50*time.Millisecond)
	grandchild, err := strconv.Atoi(waitLine(t, p, "grandchild "))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(); err == nil || !strings.Contains(err.Error(), "so it was killed") {
		t.Errorf("got error %v, want that it was killed", err)
	}
	waitFor(t, "the grandchild's end", func() bool { return !alive(grandchild) })
	if p.Err() != nil {
		t.Errorf("a requested kill is an error: %v", p.Err())
	}
}

func TestGrandchildrenEndWithChild(t *testing.T) {
	p := start(t, "careless", 0)
	<-p.Done()
	grandchild, err := strconv.Atoi(waitLine(t, p, "grandchild "))
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the grandchild's end", func() bool { return !alive(grandchild) })
	if p.Err() != nil {
		t.Errorf("an end with status 0 is an error: %v", p.Err())
	}
}

func TestChildEndsWithParent(t *testing.T) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), roleEnv+"=parent", "LOG="+filepath.Join(t.TempDir(), "log"))
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if !alive(child) {
		t.Fatal("the child does not run")
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // it was killed
	waitFor(t, "the child's end", func() bool { return !alive(child) })
}

// If the forking thread ended, the kernel would kill the child. Many children of short-lived goroutines
// would show that.
func TestChildOutlivesStartingGoroutine(t *testing.T) {
	var all []*Process
	for range 10 {
		started := make(chan *Process)
		go func() { started <- start(t, "polite", patience) }()
		all = append(all, <-started)
	}
	for _, p := range all {
		waitLine(t, p, "up")
		if err := p.Stop(); err != nil || p.LastLines()[1] != "stopped" {
			t.Errorf("stopping gave %v, and it wrote %q", err, p.LastLines())
		}
	}
}

func TestWatchdogKillsAtPipeEnd(t *testing.T) {
	child := exec.Command("sleep", "1000")
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	w, err := newWatchdog(child.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	unstick := time.AfterFunc(patience, func() { _ = child.Process.Signal(syscall.SIGTERM) })
	defer unstick.Stop()
	w.pipe.Close() // as the kernel does when this process dies
	if err := child.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("the child ended with %v, want it killed", err)
	}
	w.release()
}

func TestReleasedWatchdogDoesNothing(t *testing.T) {
	child := exec.Command("sleep", "1000")
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	w, err := newWatchdog(child.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	w.release() // returns when the watchdog has ended
	if !alive(child.Process.Pid) {
		t.Error("the child was killed")
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed
}

func TestStartErrors(t *testing.T) {
	_, err := Start(t.Context(), Options{Name: "nothing", Path: "/no/such/program", LogFile: filepath.Join(t.TempDir(), "log")})
	if err == nil || !strings.HasPrefix(err.Error(), "starting nothing: ") {
		t.Errorf("got error %v", err)
	}
	_, err = Start(t.Context(), Options{Name: "true", Path: "true", LogFile: "/no/such/directory/log"})
	if err == nil || !strings.Contains(err.Error(), "opening its log") {
		t.Errorf("got error %v", err)
	}
}
