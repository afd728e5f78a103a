//go:build soak

package history

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/program"
	"github.com/lifeboat-dev/lifeboat/sandbox"
	"github.com/lifeboat-dev/lifeboat/sandbox/chaos"
)

const (
	// soakTTL is how long lifeboatd keeps Interruptions.
	soakTTL = 5 * time.Minute
	// rest is how long nothing happens before the values are read, after all Events are written. Events
	// that wait fill memory: some thousand after a large history.
	rest       = 10 * time.Second
	eventLimit = 8 * time.Minute
)

// endsLifeboat are faults that end lifeboatd, and with it the run that is measured.
var endsLifeboat = []string{"kill-lifeboatd", "down-lifeboatd", "oom-lifeboatd"}

// TestSoak plays histories on one sandbox for LIFEBOAT_SOAK_TIME, and reads after each what must not
// grow. LIFEBOAT_SOAK_DIR keeps the rounds: another run continues there. summary.md has the result.
// LIFEBOAT_SOAK_SIZE makes smaller or larger histories. LIFEBOAT_SOAK_SEED plays one history again.
func TestSoak(t *testing.T) {
	ctrllog.SetLogger(logr.Discard())
	lasts, err := time.ParseDuration(os.Getenv("LIFEBOAT_SOAK_TIME"))
	dir := os.Getenv("LIFEBOAT_SOAK_DIR")
	if err != nil || dir == "" {
		t.Fatal("set LIFEBOAT_SOAK_TIME and LIFEBOAT_SOAK_DIR, as `make soak` does")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	lifeboatd, err := program.Lifeboatd(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := newPlayer(t, lifeboatd, Settings()[0], "--ttl="+soakTTL.String())
	p.KeepRecords = true
	left := maps.Clone(skipped)
	for _, name := range endsLifeboat {
		left[name] = "it ends the process that is measured"
	}
	faults := Settings()[0].faults(left)
	size, sized := number(t, "LIFEBOAT_SOAK_SIZE")
	if !sized {
		size = soakSize
	}
	if size < 1 || size > 1000 {
		t.Fatal("LIFEBOAT_SOAK_SIZE must be from 1 to 1000")
	}
	play := func(seed uint64) Round {
		return soakRound(t, p, random(seed, Settings()[0], faults, int(size)))
	}
	if seed, ok := number(t, "LIFEBOAT_SOAK_SEED"); ok {
		if r := play(seed); len(r.Violations) > 0 {
			t.Errorf("seed %d breaks %d promises", seed, len(r.Violations))
		}
		return
	}
	for end := time.Now().Add(lasts); time.Now().Before(end); {
		r := play(rand.Uint64N(1 << 32))
		if err := r.Append(filepath.Join(dir, "rounds.jsonl")); err != nil {
			t.Fatal(err)
		}
		summarize(t, dir)
	}
	if _, failures := summarize(t, dir); len(failures) > 0 {
		t.Error(strings.Join(failures, "\n"))
	}
}

func summarize(t *testing.T, dir string) (page string, failures []string) {
	t.Helper()
	rounds, err := ReadRounds(filepath.Join(dir, "rounds.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	page, failures = Summary(rounds)
	if err := os.WriteFile(filepath.Join(dir, "summary.md"), []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	return page, failures
}

// soakRound plays a history, and reads the values.
func soakRound(t *testing.T, p *Player, h History) Round {
	t.Helper()
	began := time.Now()
	got, err := p.Play(t.Context(), fmt.Sprintf("seed-%d", h.Seed), h.Scenario(), nil)
	if err != nil {
		t.Fatalf("seed %d: %v\n%s", h.Seed, err, h.Scenario())
	}
	r := Round{Seed: h.Seed, Judged: got.Judged}
	for _, v := range got.Violations {
		r.Violations = append(r.Violations, v.String())
	}
	if err := p.Clean(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitEvents(t, p)
	r.Time = time.Now()
	r.Run, r.Values = measured(t, p)
	t.Logf("seed %d: %d Interruptions, %d requests to stop, %d broken promises, %s: %v", h.Seed, r.Records, r.Asks, len(r.Violations), time.Since(began).Round(time.Second), r.Values)
	for _, v := range r.Violations {
		t.Logf("broken promise: %s", v)
	}
	if len(r.Violations) > 0 {
		t.Logf("the history:\n%s", h.Scenario())
	}
	return r
}

// awaitEvents waits until lifeboatd has written all Events, and rests.
func awaitEvents(t *testing.T, p *Player) {
	t.Helper()
	part := lifeboatdPart(t, p)
	for limit := time.Now().Add(eventLimit); sum(t, metricsOf(t, part), "lifeboat_waiting_events", "") > 0; {
		if time.Now().After(limit) || !sleep.For(t.Context(), time.Second) {
			t.Fatalf("Events still wait after %s", eventLimit)
		}
	}
	if !sleep.For(t.Context(), rest) {
		t.Fatal(context.Cause(t.Context()))
	}
}

func metricsOf(t *testing.T, lifeboatd sandbox.Part) string {
	t.Helper()
	resp, err := http.Get(lifeboatd.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s of lifeboatd's metrics: %v", resp.Status, err)
	}
	return string(text)
}

// measured returns the run and its values.
func measured(t *testing.T, p *Player) (string, map[string]float64) {
	t.Helper()
	part := lifeboatdPart(t, p)
	kube, err := kubernetes.NewForConfig(p.Sandbox.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	api, err := kube.RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	own := metricsOf(t, part)
	var records v1beta1.InterruptionList
	if err := p.kube.List(t.Context(), &records); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", part.PID))
	if err != nil {
		t.Fatal(err)
	}
	target, err := chaos.Open(p.Sandbox.State().Dir)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := target.StoredBytes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d-%d", p.Sandbox.State().Started.Unix(), part.PID), map[string]float64{
		"goroutines": sum(t, own, "go_goroutines", ""), "RssAnon": anonymous(t, part.PID), "open files": float64(len(files)),
		"watches":       sum(t, string(api), "apiserver_longrunning_requests", `verb="WATCH"`),
		"Interruptions": float64(len(records.Items)), "etcd": float64(stored) / (1 << 20),
		// Events live for an hour, and so grow at first.
		"objects": sum(t, string(api), "apiserver_resource_objects", "") - sum(t, string(api), "apiserver_resource_objects", `resource="events"`),
	}
}

func lifeboatdPart(t *testing.T, p *Player) sandbox.Part {
	t.Helper()
	for _, part := range p.Sandbox.State().Parts {
		if part.Name == "lifeboatd" {
			return part
		}
	}
	t.Fatal("lifeboatd does not run")
	return sandbox.Part{}
}

// sum adds the series of a metric whose labels contain a text.
func sum(t *testing.T, metrics, name, labels string) (total float64) {
	t.Helper()
	found := false
	for line := range strings.Lines(metrics) {
		if !strings.HasPrefix(line, name+"{") && !strings.HasPrefix(line, name+" ") || !strings.Contains(line, labels) {
			continue
		}
		fields := strings.Fields(line)
		if v, err := strconv.ParseFloat(fields[len(fields)-1], 64); err == nil {
			total += v
			found = true
		}
	}
	if !found {
		t.Fatalf("no metric %s{%s}: was it renamed?", name, labels)
	}
	return total
}

// anonymous reads RssAnon in MiB (proc_pid_status(5)).
func anonymous(t *testing.T, pid int) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(text), "\nRssAnon:")
	if !ok {
		t.Fatal("no RssAnon: run this on Linux")
	}
	kib, err := strconv.ParseFloat(strings.Fields(after)[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib / 1024
}
