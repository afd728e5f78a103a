package scenario_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/program"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/timelimit"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/unkind"
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

// kind are the scenarios whose emulated AWS answers at its best, and why.
var kind = map[string]string{
	"karpenter-deadline": "Karpenter must get its message first",
	"reuse":              "a late message that the instance has stopped cordons its new Node until the kubelet reports again",
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
	if reason := kind[sc.Name]; reason != "" {
		t.Log("the emulated AWS answers at its best: " + reason)
	} else {
		options.Unkind = unkind.Seed(t)
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
