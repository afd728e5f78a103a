//go:build e2e || soak

package history

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/internal/testkit/program"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/timelimit"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/unkind"
	"github.com/lifeboat-dev/lifeboat/sandbox"
	"github.com/lifeboat-dev/lifeboat/sandbox/observer"
	"github.com/lifeboat-dev/lifeboat/sandbox/scenario"
)

const (
	// perSetting is how many sandboxes of each setting play at the same time. They mostly wait for their
	// clocks.
	perSetting = 2
	// shrinkTries is how many histories are played to shorten a failing one.
	shrinkTries = 12
	// faultDelay is how much later the faults of a history may make what must happen; with two replicas
	// a new leader also waits for the Lease.
	faultDelay = 25 * time.Second
	leaseDelay = 15 * time.Second
	// inCI is how many histories `make e2e` plays: those of the seeds from 1 on. A commit fails for its
	// own defects, so they are always the same. In most of them, pods must be stopped.
	inCI      = 36
	stopsInCI = 28
)

// TestHistories plays the histories of `make e2e`. `make histories` plays LIFEBOAT_HISTORIES of random
// seeds; LIFEBOAT_HISTORIES_DIR keeps their results, and the next run plays the seeds after them.
// LIFEBOAT_HISTORY_SEED plays one history again.
func TestHistories(t *testing.T) {
	ctrllog.SetLogger(logr.Discard())
	lifeboatd, err := program.Lifeboatd(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	results := &results{dir: os.Getenv("LIFEBOAT_HISTORIES_DIR")}
	todo, ci := seeds(t, results.dir)
	var playing sync.WaitGroup
	for i, on := range Settings() {
		for n := range min(perSetting, len(todo[i])) {
			playing.Go(func() {
				t.Run(fmt.Sprintf("%s-%d", on.Name, n), func(t *testing.T) {
					p := newPlayer(t, lifeboatd, on)
					for seed := range todo[i] {
						t.Run(fmt.Sprint(seed), func(t *testing.T) { results.add(t, playRandom(t, p, on, seed)) })
					}
				})
			})
		}
	}
	playing.Wait()
	tally := TallyOf(results.all)
	t.Log(tally)
	if ci && (tally.Histories != inCI || tally.Stopped < stopsInCI) {
		t.Errorf("%d histories were played, and pods were stopped in %d: %d and at least %d are necessary", tally.Histories, tally.Stopped, inCI, stopsInCI)
	}
}

// results collects the results of this run, and those of earlier ones in a directory.
type results struct {
	dir string
	mu  sync.Mutex // guards all
	all []Result
}

func (r *results) add(t *testing.T, one Result) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, one)
	if r.dir == "" {
		return
	}
	path := filepath.Join(r.dir, "results.jsonl")
	if err := one.Append(path); err != nil {
		t.Fatal(err)
	}
	all, err := ReadResults(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.dir, "summary.md"), []byte("# Histories\n\n"+TallyOf(all).String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// number reads an environment variable; false: it is not set.
func number(t *testing.T, name string) (uint64, bool) {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n, true
}

// seeds returns the seeds of each setting, and whether they are those of `make e2e`.
func seeds(t *testing.T, dir string) (todo []chan uint64, ci bool) {
	t.Helper()
	first, count := uint64(1), uint64(inCI)
	seed, one := number(t, "LIFEBOAT_HISTORY_SEED")
	many, random := number(t, "LIFEBOAT_HISTORIES")
	switch {
	case one:
		first, count = seed, 1
	case random:
		first, count = nextSeed(t, dir), many
	}
	t.Logf("%d histories, seeds %d to %d", count, first, first+count-1)
	for range Settings() {
		todo = append(todo, make(chan uint64, count))
	}
	for seed := range count {
		todo[SettingOf(first+seed)] <- first + seed
	}
	for _, of := range todo {
		close(of)
	}
	return todo, !one && !random
}

// nextSeed is the one after all earlier results, or a random one.
func nextSeed(t *testing.T, dir string) uint64 {
	t.Helper()
	if dir == "" {
		return rand.Uint64N(1 << 32)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	earlier, err := ReadResults(filepath.Join(dir, "results.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if len(earlier) == 0 {
		return rand.Uint64N(1 << 32)
	}
	return TallyOf(earlier).Last + 1
}

// starting lets sandboxes start one after the other: how long it takes says how slow the machine is.
var starting sync.Mutex

func start(t *testing.T, sb *sandbox.Sandbox) {
	t.Helper()
	starting.Lock()
	defer starting.Unlock()
	if err := sb.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func newPlayer(t *testing.T, lifeboatd string, on Setting, args ...string) *Player {
	t.Helper()
	var up time.Duration
	options := sandbox.Options{
		Name: "history", Dir: filepath.Join(t.TempDir(), "s"), Lifeboatd: lifeboatd, Chaos: true, Replicas: on.Replicas, Agents: on.Agents, Karpenter: on.Karpenter,
		BootDelay: firstBoot, Unkind: unkind.Seed(t), LifeboatdArgs: append([]string{"--sources=" + on.sources()}, args...),
		Progress: func(s sandbox.Step) {
			if s.Done && s.Name != "programs" {
				up += s.Took
			}
		},
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
	start(t, sb)
	seen.Connect(sb)
	factor := timelimit.Factor(up)
	delay := timelimit.Stretch(10*time.Second, factor) + faultDelay + time.Duration(on.Replicas-1)*leaseDelay
	t.Logf("the sandbox came up in %s: what must happen may be %s late", up.Round(time.Millisecond), delay.Round(time.Second))
	return &Player{Sandbox: sb, Observer: seen, Delay: delay, Karpenter: on.Karpenter, Group: on.Group, Stretch: func(sc *scenario.Scenario) {
		for i, step := range sc.Steps {
			switch do := step.Do.(type) {
			case scenario.CheckStatement:
				do.Within = timelimit.Stretch(do.Within, factor)
				sc.Steps[i].Do = do
			}
		}
	}}
}

func playRandom(t *testing.T, p *Player, on Setting, seed uint64) Result {
	h := Random(seed)
	t.Logf("LIFEBOAT_HISTORY_SEED=%d repeats this history, with %s", seed, on.Name)
	r := play(t, p, h)
	r.Setting = on.Name
	switch {
	case r.Error != "":
		t.Errorf("seed %d: %s\n%s", seed, r.Error, h.Scenario())
	case len(r.Violations) == 0:
	case os.Getenv("LIFEBOAT_SHRINK") == "":
		t.Errorf("seed %d breaks promises. LIFEBOAT_SHRINK=1 makes it shorter. The history:\n%s", seed, h.Scenario())
	default:
		t.Errorf("seed %d breaks promises", seed)
		short := Shrink(h, shrinkTries, func(h History) bool { return len(play(t, p, h).Violations) > 0 })
		t.Logf("shortened:\n%s", short.Scenario())
	}
	return r
}

// play plays a history, and judges it.
func play(t *testing.T, p *Player, h History) Result {
	t.Helper()
	var timeline strings.Builder
	began := time.Now()
	got, err := p.Play(t.Context(), fmt.Sprintf("seed-%d", h.Seed), h.Scenario(), func(m scenario.Moment) {
		fmt.Fprintf(&timeline, "%s %s %s\n", m.Time.Format("15:04:05.000"), m.Node, m.Text)
	})
	r := Result{Seed: h.Seed, Time: time.Now(), Seconds: time.Since(began).Seconds(), Judged: got.Judged}
	if err != nil {
		r.Error = err.Error()
	}
	t.Logf("judged %d writes, %d pods, %d requests to stop, %d Interruptions after %.0f s", got.Writes, got.Pods, got.Asks, got.Records, r.Seconds)
	for _, v := range got.Violations {
		r.Violations = append(r.Violations, v.String())
		t.Logf("broken promise: %s", v)
	}
	if err != nil || len(got.Violations) > 0 {
		t.Logf("what happened:\n%s", timeline.String())
	}
	return r
}
