package bench

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/sandbox/process"
)

// replica is one lifeboatd, with the addresses that it serves on.
type replica struct {
	*process.Process
	health, metrics string
}

// launch starts a lifeboatd with the rig's queue, and does not wait for it.
func (r *rig) launch(more ...string) replica {
	r.Helper()
	p := replica{metrics: r.freeAddress(), health: r.freeAddress()}
	args := append([]string{
		"controller", "--kubeconfig=" + r.kubeconfig(), "--queue-url=" + r.queueURL, "--region=" + region,
		"--metrics-bind-address=" + p.metrics, "--health-probe-bind-address=" + p.health, "--leader-elect=false", "--surge=false",
	}, more...)
	var err error
	p.Process, err = process.Start(r.Context(), process.Options{
		Name: "lifeboatd", Path: r.program, Args: args, Env: environment(r.url), Dir: r.dir, LogFile: r.logFile(),
	})
	r.must(err)
	r.Cleanup(p.Kill9)
	return p
}

func (r *rig) freeAddress() string {
	r.Helper()
	address, err := process.FreeAddress()
	r.must(err)
	return address
}

// untilReady waits until a replica's caches have synced.
func (r *rig) untilReady(p replica) {
	r.Helper()
	r.until("lifeboatd to become ready", 2*time.Minute, func() (bool, error) {
		resp, err := http.Get("http://" + p.health + "/readyz")
		if err != nil {
			return false, errors.Join(err, p.Err())
		}
		return resp.StatusCode == http.StatusOK, resp.Body.Close()
	})
}

// gauge reads a gauge from a replica's metrics, with the sum over its labels. It is 0 while the
// replica does not answer.
func (r *rig) gauge(p replica, name string) float64 {
	r.Helper()
	resp, err := http.Get("http://" + p.metrics + "/metrics")
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	r.must(err)
	sum := 0.0
	for line := range strings.Lines(string(text)) {
		// One sample a line: the name, its labels in braces, a space and the value (Prometheus
		// documentation, "Exposition formats").
		rest, found := strings.CutPrefix(line, name)
		if !found || rest[0] != ' ' && rest[0] != '{' {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, ' '):]), 64)
		r.must(err)
		sum += value
	}
	return sum
}
