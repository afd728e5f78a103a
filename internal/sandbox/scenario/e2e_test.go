package scenario_test

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/sandbox"
	"github.com/lifeboat-dev/lifeboat/internal/sandbox/scenario"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/program"
	"github.com/lifeboat-dev/lifeboat/scenarios"
)

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard()) // the timeline tells what matters
	os.Exit(m.Run())
}

// TestScenarios plays every scenario on a real control plane with the real
// lifeboatd. They mostly wait for their clocks, so they play side by side, but
// come up one after the other, the longest first.
func TestScenarios(t *testing.T) {
	if testing.Short() {
		t.Skip("NO SCENARIO WAS PLAYED: leave -short out to play them (about five minutes)")
	}
	names, err := scenarios.Names()
	if err != nil {
		t.Fatal(err)
	}
	var stories []*scenario.Scenario
	for _, name := range names {
		text, err := scenarios.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		sc, err := scenario.Parse(name, text)
		if err != nil {
			t.Fatal(err)
		}
		stories = append(stories, sc)
	}
	slices.SortStableFunc(stories, func(a, b *scenario.Scenario) int { return cmp.Compare(lasts(b), lasts(a)) })
	lifeboatd := buildLifeboatd(t)
	var playing sync.WaitGroup
	turn := make(chan struct{}) // closed when it has come
	close(turn)
	for _, sc := range stories {
		mine, next := turn, make(chan struct{})
		turn = next
		playing.Go(func() { // not t.Parallel, which -parallel bounds by the number of cores
			up := sync.OnceFunc(func() { close(next) })
			defer up() // also where -run leaves the story out
			<-mine
			t.Run(sc.Name, func(t *testing.T) { play(t, sc, lifeboatd, up) })
		})
	}
	playing.Wait()
}

// lasts is about how long a story goes on after its notice.
func lasts(sc *scenario.Scenario) time.Duration {
	var deadline, longest time.Duration
	note := func(w scenario.When) {
		from := map[scenario.Anchor]time.Duration{scenario.FromDeadline: deadline, scenario.FromWindow: time.Minute}[w.From]
		longest = max(longest, from+w.Offset)
	}
	for _, step := range sc.Steps {
		switch do := step.Do.(type) {
		case scenario.InterruptStatement:
			deadline = do.Notice
		case scenario.UntilStatement:
			note(do.Until)
		case scenario.CheckStatement:
			note(do.When)
		}
	}
	return longest
}

func play(t *testing.T, sc *scenario.Scenario, lifeboatd string, up func()) {
	sb, err := sandbox.New(sc.Sandbox(sandbox.Options{
		Dir: filepath.Join(t.TempDir(), "sandbox"), Lifeboatd: lifeboatd,
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sb.Down(); err != nil {
			t.Error(err)
		}
	})
	err = sb.Up(t.Context())
	up()
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
		if _, err := os.Stat(sb.KarpenterLog()); err == nil {
			logTail(t, sb.KarpenterLog())
		}
	}
}

func buildLifeboatd(t *testing.T) string {
	t.Helper()
	path, err := program.Lifeboatd(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return path
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
