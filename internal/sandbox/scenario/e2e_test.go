package scenario_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/sandbox"
	"github.com/lifeboat-dev/lifeboat/internal/sandbox/scenario"
	"github.com/lifeboat-dev/lifeboat/scenarios"
)

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard()) // the timeline tells what matters
	os.Exit(m.Run())
}

// TestScenarios plays every scenario on a real control plane with the real
// lifeboatd. They mostly wait for their clocks, so they play side by side, but
// come up one after the other.
func TestScenarios(t *testing.T) {
	if testing.Short() {
		t.Skip("NO SCENARIO WAS PLAYED: leave -short out to play them (about three minutes)")
	}
	names, err := scenarios.Names()
	if err != nil {
		t.Fatal(err)
	}
	lifeboatd := buildLifeboatd(t)
	var up sync.Mutex
	var playing sync.WaitGroup
	for _, name := range names {
		playing.Go(func() { // not t.Parallel, which -parallel bounds by the number of cores
			t.Run(name, func(t *testing.T) { play(t, name, lifeboatd, &up) })
		})
	}
	playing.Wait()
}

func play(t *testing.T, name, lifeboatd string, up *sync.Mutex) {
	text, err := scenarios.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	sc, err := scenario.Parse(name, text)
	if err != nil {
		t.Fatal(err)
	}
	sb, err := sandbox.New(sandbox.Options{
		Name: name, Dir: filepath.Join(t.TempDir(), "sandbox"), Lifeboatd: lifeboatd,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sb.Down(); err != nil {
			t.Error(err)
		}
	})
	up.Lock()
	err = sb.Up(t.Context())
	up.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	out := terminal.NewStream(t.Output(), os.Getenv)
	report, err := scenario.Play(t.Context(), sc, sb, scenario.RenderMoment(out))
	if report != nil {
		scenario.Render(out, report)
	}
	if err != nil {
		t.Error(err)
		logTail(t, sb.LifeboatLog())
	}
}

func buildLifeboatd(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "lifeboatd")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/lifeboat-dev/lifeboat/cmd/lifeboatd")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building lifeboatd: %v\n%s", err, out)
	}
	return program
}

// logTail shows the end of a log beside a failure.
func logTail(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Logf("reading the log: %v", err)
		return
	}
	const most = 16 << 10
	t.Logf("end of %s:\n%s", path, text[max(0, len(text)-most):])
}
