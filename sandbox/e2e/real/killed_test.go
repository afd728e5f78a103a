//go:build e2e

package real

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/sandbox"
)

// asVictimEnv makes the test binary run as the test runner that the test kills; its value is the
// path of lifeboatd.
const asVictimEnv = "LIFEBOAT_E2E_VICTIM"

const victimName = "e2e-killed"

// victim starts a sandbox with one node, prints a line when it is up, and waits to be killed.
func victim(lifeboatd string) error {
	s, err := sandbox.New(sandbox.Options{Name: victimName, Lifeboatd: lifeboatd, RealNodes: true})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := s.Up(ctx); err != nil {
		return err
	}
	w, err := newWorldOf(s)
	if err != nil {
		return err
	}
	in, err := w.boot(safePool, nil)
	if err != nil {
		return err
	}
	if err := w.waitReady(ctx, in); err != nil {
		return err
	}
	fmt.Println("READY")
	_, err = io.Copy(io.Discard, os.Stdin) // the test closes stdin when it ends, in case the kill failed
	return err
}

// TestKilledRunnerLeavesNothing kills a test runner. The kernel must end its processes too, and the
// next start and stop must remove everything else. A second sandbox on this machine must stay
// untouched.
func TestKilledRunnerLeavesNothing(t *testing.T) {
	s := needWorld(t)
	lifeboatd, err := buildLifeboatd()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := sandbox.DefaultDir(victimName)
	if err != nil {
		t.Fatal(err)
	}
	runner := exec.Command(os.Args[0])
	runner.Env = append(os.Environ(), asVictimEnv+"="+lifeboatd)
	runner.Stderr = os.Stderr
	if _, err := runner.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := runner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := runner.Start(); err != nil {
		t.Fatal(err)
	}
	up := false
	for lines := bufio.NewScanner(out); !up && lines.Scan(); {
		up = lines.Text() == "READY"
	}
	if err := runner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = runner.Wait() // an error is expected: it was killed
	if !up {
		t.Fatal("the runner did not come up")
	}
	s.until("the processes of the killed runner to end", 30*time.Second, func(context.Context) (bool, error) {
		left, err := processesOf(dir)
		return len(left) == 0, fmt.Errorf("left over: %q, %w", left, err)
	})

	again, err := sandbox.New(sandbox.Options{Name: victimName, Lifeboatd: lifeboatd, RealNodes: true, NoLifeboat: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := again.Down(); err != nil {
		t.Fatal(err)
	}
	if left, err := leftovers(victimName, dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, error %v", left, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for _, in := range s.EC2().Instances() {
		if in.Powered {
			s.check(s.waitReady(ctx, in))
		}
	}
}

// leftovers lists the processes, namespaces and files that a sandbox left.
func leftovers(name, dir string) ([]string, error) {
	left, err := processesOf(dir)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(dir); err == nil {
		left = append(left, "directory "+dir)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, dir+"/") {
			left = append(left, "mount "+strings.TrimSpace(line))
		}
	}
	for _, root := range []string{"/run/netns", "/sys/fs/cgroup"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil // it ended between the two calls, or never existed
			case strings.Contains(filepath.Base(path), name):
				left = append(left, path)
				return filepath.SkipDir
			case strings.Count(path, "/") > 6:
				return filepath.SkipDir
			default:
				return nil
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return left, nil
}

// processesOf returns the command lines of the processes that mention a directory.
func processesOf(dir string) ([]string, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the process has ended
		}
		if line := strings.ReplaceAll(string(text), "\x00", " "); strings.Contains(line, dir) {
			out = append(out, "process "+line)
		}
	}
	slices.Sort(out)
	return out, nil
}
