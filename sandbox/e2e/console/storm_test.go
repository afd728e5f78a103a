//go:build e2e

package console

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

const (
	// storm is the number of interruptions, of which the page draws the first ones.
	storm, drawn = 1000, 200
	writers      = 4
	// maxPage and maxServer limit the memory of the page's process and of the server, in MB.
	maxPage, maxServer = 150, 300
)

// observe collects the time from a write to the page, in ms. The writer puts its time into the text.
const observe = `window.latencies = []; window.arrivals = [];
new EventSource("events").onmessage = (e) => { for (const m of e.data.matchAll(/written at (\d+) by \d+\./g)) window.arrivals.push(Date.now() - Number(m[1])); }; new MutationObserver((changes) => {
  const texts = new Set();
  for (const c of changes) for (const m of (c.target.textContent ?? "").matchAll(/written at (\d+) by \d+\./g)) texts.add(m[0]);
  requestAnimationFrame(() => { for (const text of texts) window.latencies.push(Date.now() - Number(text.split(" ")[2])); });
}).observe(document.querySelector(".rows tbody"), {subtree: true, characterData: true, childList: true});`

// percentiles are the median, the 95th percentile and the maximum.
const percentiles = `[latencies, arrivals].map((all) => JSON.stringify([0.5, 0.95, 1].map((p) => all.sort((a, b) => a - b)[Math.ceil(p * all.length) - 1]))).join(" and without drawing ")`

// stormName is the name of an interruption of the storm.
func stormName(i int) string { return fmt.Sprintf("i-%017x", i) }

// each calls f concurrently.
func each(n int, f func(i int)) {
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := w; i < n; i += writers {
				f(i)
			}
		})
	}
	all.Wait()
}

func TestStormOfInterruptions(t *testing.T) {
	r, now := &shared, time.Now()
	r.write(t) // deletes them afterwards
	each(storm, func(i int) {
		in := record(stormName(i), fmt.Sprintf("ip-10-0-%d-%d.ec2.internal", i/250, i%250), now)
		status := in.Status
		if err := r.client.Create(t.Context(), in); err != nil {
			t.Error(err)
			return
		}
		in.Status = status
		if err := r.client.Status().Update(t.Context(), in); err != nil {
			t.Error(err)
		}
	})
	opened := time.Now()
	b := r.open(t, 1280, 900)
	b.until(fmt.Sprintf(`document.querySelectorAll(".rows tbody tr").length === %d && document.body.innerText.includes("Show more (%d left)")`, drawn, storm-drawn))
	paint := value[float64](b, `performance.getEntriesByName("first-contentful-paint")[0].startTime`)
	t.Logf("%d interruptions: first paint after %.0f ms, the rows after %s with the start of the browser", storm, paint, time.Since(opened).Round(time.Millisecond))

	b.run(chromedp.Evaluate(observe, nil))
	names := value[[]string](b, `[...document.querySelectorAll(".rows tbody a")].map((a) => a.hash.slice("#/i/".length))`)
	each(drawn, func(i int) {
		r.change(t, names[i], func(s *v1beta1.InterruptionStatus) {
			s.Drain.Pods[3].Message = fmt.Sprintf("waits, written at %d by %d.", time.Now().UnixMilli(), i)
		})
	})
	b.until(fmt.Sprintf("latencies.length >= %d", drawn))
	t.Logf("%d changes: ms from the write to the page, p50, p95 and most: %s", drawn, value[string](b, percentiles))
	page := pageMB(t, chromedp.FromContext(b.ctx).Browser.Process().Pid)
	server := memoryMB(t, fmt.Sprintf("/proc/%d/status", r.pid), resident)
	t.Logf("memory: %.0f MB of the page's process, %.0f MB of the server", page, server)
	if page == 0 || page > maxPage || server > maxServer {
		t.Errorf("%.0f MB in the page, at most %d; %.0f MB of the server, at most %d", page, maxPage, server, maxServer)
	}
}

// pageMB is the memory of the largest renderer of a browser: its own, and its share of what it
// shares with the browser's other processes.
func pageMB(t *testing.T, browser int) float64 {
	t.Helper()
	parents, renderers := map[int]int{}, []int{}
	entries, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range entries {
		text, _ := os.ReadFile(path) // a process can have ended
		var pid, parent int
		var state string
		if name := strings.LastIndex(string(text), ")"); name > 0 {
			_, _ = fmt.Sscan(string(text[:strings.Index(string(text), " ")]), &pid)
			_, _ = fmt.Sscan(string(text[name+1:]), &state, &parent)
		}
		parents[pid] = parent
		if command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); strings.Contains(string(command), "--type=renderer") {
			renderers = append(renderers, pid)
		}
	}
	most := 0.0
	for _, pid := range renderers {
		for at := pid; at > 1; at = parents[at] {
			if at == browser {
				most = max(most, memoryMB(t, fmt.Sprintf("/proc/%d/smaps_rollup", pid), proportional))
			}
		}
	}
	return most
}

var (
	resident     = regexp.MustCompile(`VmRSS:\s+(\d+) kB`)
	proportional = regexp.MustCompile(`(?m)^Pss:\s+(\d+) kB`)
)

// memoryMB reads the memory of a process.
func memoryMB(t *testing.T, path string, line *regexp.Regexp) float64 {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found := line.FindSubmatch(text)
	if found == nil {
		t.Fatalf("no memory in %s", text)
	}
	kb, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return kb / 1000
}
