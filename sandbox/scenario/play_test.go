package scenario_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/program"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/timelimit"
	"github.com/lifeboat-dev/lifeboat/sandbox"
	"github.com/lifeboat-dev/lifeboat/sandbox/observer"
	"github.com/lifeboat-dev/lifeboat/sandbox/scenario"
	"github.com/lifeboat-dev/lifeboat/sandbox/scenarios"
)

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard()) // the timeline tells what matters
	os.Exit(m.Run())
}

func read(t *testing.T, name string) *scenario.Scenario {
	t.Helper()
	text, err := scenarios.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	sc, err := scenario.Parse(name, text)
	if err != nil {
		t.Fatal(err)
	}
	return sc
}

func play(t *testing.T, sc *scenario.Scenario, lifeboatd string, isUp func(), m *monitor) {
	var up time.Duration
	options := sc.Sandbox(sandbox.Options{
		Dir: filepath.Join(t.TempDir(), "sandbox"), Lifeboatd: lifeboatd,
		Progress: func(s sandbox.Step) {
			if s.Done && s.Name != "programs" { // they may have to be built first
				up += s.Took
			}
		},
	})
	options.DeliverySeed = deliverySeed(t)
	if os.Getenv("LIFEBOAT_LAG") != "" {
		options.LagSeed = options.DeliverySeed
	}
	seen, err := observer.New(t.TempDir(), &options)
	if err != nil {
		t.Fatal(err)
	}
	sb, err := sandbox.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sb.Down(); err != nil {
			t.Error(err)
		}
	})
	err = sb.Up(t.Context())
	isUp()
	if err != nil {
		t.Fatal(err)
	}
	factor := timelimit.Factor(up)
	t.Logf("the sandbox came up in %s: time limits are multiplied by %.1f", up.Round(time.Millisecond), factor)
	stretch(sc, factor)
	out := terminal.NewStream(t.Output(), os.Getenv)
	seen.Connect(sb)
	evaluate := m.watch(t, sb)
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
		return
	}
	judgeRun(t, seen, sc.Name, factor)
	evaluate(sc.Name)
}

// deliverySeed is random, so that each run meets another order of messages and other duplicates.
// LIFEBOAT_DELIVERY_SEED repeats a run's choices.
func deliverySeed(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64() | 1
	if text := os.Getenv("LIFEBOAT_DELIVERY_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("LIFEBOAT_DELIVERY_SEED=%d repeats the order of messages, and with LIFEBOAT_LAG=1 the lag of EC2", seed)
	return seed
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

// stretch multiplies the time limits of a scenario for a slow machine. Times before a deadline
// stay, because AWS does not wait either.
func stretch(sc *scenario.Scenario, factor float64) {
	for i, step := range sc.Steps {
		check, ok := step.Do.(scenario.CheckStatement)
		if !ok {
			continue
		}
		check.Within = timelimit.Stretch(check.Within, factor)
		if check.Mode == scenario.CheckBy && check.When.Offset > 0 {
			check.When.Offset = timelimit.Stretch(check.When.Offset, factor)
		}
		sc.Steps[i].Do = check
	}
}
