// Package scrape records the metrics of a sandbox's processes, as Prometheus scrapes them in a
// cluster. The program of modules/prometheus evaluates the chart's alerts and dashboards over a
// recording, so that the sandbox does not require Prometheus.
package scrape

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
	"github.com/lifeboat-dev/lifeboat/sandbox"
)

const (
	interval = time.Second
	// timeout of a scrape, as of a usual Prometheus.
	timeout = 10 * time.Second
)

// Scrape is the answer of one process to one request.
type Scrape struct {
	Time time.Time `json:"time"`
	// Labels are those that the chart's monitors give a target.
	Labels map[string]string `json:"labels"`
	// Text has Lifeboat's own metrics; empty: there was no answer.
	Text string `json:"text,omitempty"`
	// Gone is true if there was no request, because the target is no more.
	Gone bool `json:"gone,omitempty"`
}

// Recorder scrapes each process once a second.
type Recorder struct {
	sandbox *sandbox.Sandbox
	stop    func()
	known   []sandbox.Part // the targets of the latest round

	mu        sync.Mutex // guards the fields below
	recording []Scrape
	busy      map[string]bool // by part: a scrape is under way
	rounds    int             // how many have begun
}

// Start starts a recorder. Stop ends it.
func Start(ctx context.Context, sb *sandbox.Sandbox) *Recorder {
	ctx, cancel := context.WithCancel(ctx)
	r := &Recorder{sandbox: sb, busy: map[string]bool{}}
	var scrapes sync.WaitGroup
	scrapes.Go(func() {
		for {
			r.discover()
			r.mu.Lock()
			r.rounds++
			r.mu.Unlock()
			for _, part := range r.known {
				scrapes.Go(func() { r.scrape(ctx, part) })
			}
			if !sleep.For(ctx, interval) {
				return
			}
		}
	})
	r.stop = func() { cancel(); scrapes.Wait() }
	return r
}

// Stop ends the recording and returns it, the oldest scrape first.
func (r *Recorder) Stop() []Scrape {
	r.stop()
	r.discover()
	slices.SortStableFunc(r.recording, func(a, b Scrape) int { return a.Time.Compare(b.Time) })
	return r.recording
}

// Rounds waits until n more rounds of scrapes have begun and the round after them: those that answer
// have done so.
func (r *Recorder) Rounds(ctx context.Context, n int) {
	begun := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.rounds
	}
	for last := begun() + n + 1; begun() < last && sleep.For(ctx, interval/10); {
	}
}

// settling is how long Settle waits at most.
const settling = time.Minute

// Settle waits until lifeboatd has seen the end of the last lifecycle action, and EC2 agrees with the
// notices. lifeboatd reads Auto Scaling groups at intervals, and the EC2 API is eventually consistent.
func (r *Recorder) Settle(ctx context.Context) {
	for end := time.Now().Add(settling); time.Now().Before(end) && r.unsettled() && sleep.For(ctx, interval); {
	}
}

var transient = regexp.MustCompile(`(?m)^lifeboat_(?:nodegroup_oldest_pending_action_seconds\{.*\}|uncorroborated) (?:[1-9]|0\.)`)

// unsettled reports whether lifeboatd exports a pending lifecycle action, or facts that do not agree.
func (r *Recorder) unsettled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range slices.Backward(r.recording) {
		if s.Labels["instance"] == controller {
			return transient.MatchString(s.Text)
		}
	}
	return false
}

// scrape scrapes a process, unless it has not answered the request before.
func (r *Recorder) scrape(ctx context.Context, part sandbox.Part) {
	r.mu.Lock()
	busy := r.busy[part.Name]
	r.busy[part.Name] = true
	r.mu.Unlock()
	if busy {
		return
	}
	s := Scrape{Time: time.Now(), Labels: labelsOf(part)}
	s.Text = get(ctx, part.Address)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy[part.Name] = false
	if ctx.Err() == nil { // a cancelled request says nothing about the process
		r.recording = append(r.recording, s)
	}
}

// The names of the parts of a sandbox.
const (
	controller  = "lifeboatd"
	agentPrefix = "agent-"
)

// labelsOf are the labels that a monitor of the chart gives a process.
func labelsOf(part sandbox.Part) map[string]string {
	if node, agent := strings.CutPrefix(part.Name, agentPrefix); agent {
		return map[string]string{"job": "lifeboat-agent", "pod": "lifeboat-agent-" + node, "instance": part.Name}
	}
	return map[string]string{"job": "lifeboat-controller", "pod": "lifeboat-controller-0", "instance": part.Name}
}

// discover looks for the targets, and records those that are no more.
func (r *Recorder) discover() {
	before, now := r.known, time.Now()
	r.known = r.targets()
	for _, part := range before {
		if !slices.ContainsFunc(r.known, func(p sandbox.Part) bool { return p.Name == part.Name }) {
			r.mu.Lock()
			r.recording = append(r.recording, Scrape{Time: now, Labels: labelsOf(part), Gone: true})
			r.mu.Unlock()
		}
	}
}

// targets are lifeboatd and the agents of the machines with power: in a cluster the pod of an agent
// goes away with its node.
func (r *Recorder) targets() []sandbox.Part {
	powered := map[string]bool{}
	for _, in := range r.sandbox.EC2().Instances() {
		powered[in.PrivateDNSName] = in.State == ec2.Running
	}
	var all []sandbox.Part
	for _, p := range r.sandbox.State().Parts {
		node, agent := strings.CutPrefix(p.Name, agentPrefix)
		if p.Address != "" && (p.Name == controller || agent && powered[node]) {
			all = append(all, p)
		}
	}
	return all
}

// get requests metrics, and returns those of Lifeboat.
func get(ctx context.Context, address string) string {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return ""
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return ""
	}
	var own strings.Builder
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, "lifeboat_") || strings.HasPrefix(line, "# TYPE lifeboat_") {
			own.WriteString(line)
		}
	}
	return own.String()
}
