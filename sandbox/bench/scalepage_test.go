package bench

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of docs/scale.md from testdata/scale")

// TestScalePage compares the tables of docs/scale.md with the results in testdata/scale, which
// BenchmarkScale wrote.
func TestScalePage(t *testing.T) {
	const page = "../../docs/scale.md"
	sizes := []scaleResult{readScale(t, "1000"), readScale(t, "5000"), readScale(t, "10000")}
	model := calibrate(sizes)
	was, err := os.ReadFile(page)
	must(t, err)
	is := string(was)
	for name, table := range map[string]string{
		"measured": measuredTable(sizes), "requests": requestsTable(sizes), "records": recordsTable(sizes[0], readScale(t, "failover")),
		"slopes": slopesTable(model), "check": checkTable(sizes), "model": modelTable(model),
	} {
		block := regexp.MustCompile(`(?s)<!-- table ` + name + ` -->\n\n.*?\n\n`)
		if !block.MatchString(is) {
			t.Fatalf("docs/scale.md has no table %s", name)
		}
		is = block.ReplaceAllLiteralString(is, "<!-- table "+name+" -->\n\n"+table+"\n")
	}
	if *update {
		must(t, os.WriteFile(page, []byte(is), 0o600))
		return
	}
	if is != string(was) {
		t.Error("docs/scale.md does not have the results of testdata/scale: run go test -C sandbox ./bench -run ScalePage -update")
	}
}

func readScale(t *testing.T, name string) scaleResult {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "scale", "scale-"+name+".json"))
	must(t, err)
	var r scaleResult
	must(t, json.Unmarshal(text, &r))
	return r
}

// table is a Markdown table.
type table struct{ strings.Builder }

func (t *table) row(cells ...string) { fmt.Fprintf(t, "| %s |\n", strings.Join(cells, " | ")) }

func (t *table) head(cells ...string) {
	t.row(cells...)
	fmt.Fprintf(t, "|%s\n", strings.Repeat("---|", len(cells)))
}

// measuredTable has one column for each size.
func measuredTable(sizes []scaleResult) string {
	var t table
	head := []string{"one replica"}
	for _, r := range sizes {
		head = append(head, thousands(r.Nodes)+" nodes")
	}
	t.head(head...)
	line := func(name string, of func(scaleResult) string) {
		cells := []string{name}
		for _, r := range sizes {
			cells = append(cells, of(r))
		}
		t.row(cells...)
	}
	line("pods", func(r scaleResult) string { return thousands(r.Nodes * r.PodsPerNode) })
	line("load average before (1, 5, 15 min)", func(r scaleResult) string { return r.Load })
	line("the benchmark created the cluster in", func(r scaleResult) string { return fmt.Sprintf("%.0f s", r.Created) })
	line("start: caches synced after", func(r scaleResult) string { return seconds(r.Ready) })
	line("start: first eviction after", func(r scaleResult) string { return seconds(r.FirstEviction) })
	line("start: peak memory", func(r scaleResult) string { return peak(r.Start) })
	line("start: received", func(r scaleResult) string { return fmt.Sprintf("%.1f MiB", r.Start.ReceivedMiB) })
	line("idle: memory", func(r scaleResult) string { return settled(r.Idle) })
	line("idle: goroutines", func(r scaleResult) string { return fmt.Sprint(r.Idle.Goroutines) })
	line("idle: processor time a minute", func(r scaleResult) string { return seconds(perMinute(r.Idle, r.Idle.CPU)) })
	line("idle: received a minute", func(r scaleResult) string {
		return fmt.Sprintf("%.1f MiB", perMinute(r.Idle, r.Idle.ReceivedMiB))
	})
	line("100 nodes interrupted: peak memory", func(r scaleResult) string { return peak(r.Interruption) })
	line("100 nodes interrupted: goroutines after it", func(r scaleResult) string { return fmt.Sprint(r.Interruption.Goroutines) })
	line("100 nodes interrupted: received, a node", func(r scaleResult) string {
		return fmt.Sprintf("%.0f KiB", r.Interruption.ReceivedMiB*1024/float64(r.Interrupted))
	})
	return t.String()
}

// recordsTable has the costs of policies and finished Interruptions, and the failovers with these.
func recordsTable(r, killed scaleResult) string {
	var t table
	t.head(thousands(r.Nodes)+" nodes", "")
	t.row("idle, after 100 nodes were interrupted", settled(r.Interruption))
	t.row("started again with 100 policies, idle", settled(r.WithPolicies))
	t.row("started again with 10,000 finished Interruptions too, idle", settled(r.WithRecords))
	t.row("the same: caches synced after", seconds(r.RestartReady))
	for _, n := range []int{2, 3} {
		var after []string
		for _, f := range killed.Failovers {
			if f.Replicas == n {
				after = append(after, seconds(f.Evicted))
			}
		}
		t.row(fmt.Sprintf("leader killed, %d replicas run: first eviction by another after, in each run", n), strings.Join(after, ", "))
	}
	t.row("a replica that does not lead", mib(killed.Failovers[0].Standby))
	return t.String()
}

// requestsTable has the requests to the API server and to AWS.
func requestsTable(sizes []scaleResult) string {
	var t table
	head := []string{"requests"}
	for _, r := range sizes {
		head = append(head, thousands(r.Nodes)+" nodes")
	}
	t.head(head...)
	line := func(name string, of func(scaleResult) float64, format string) {
		cells := []string{name}
		for _, r := range sizes {
			cells = append(cells, fmt.Sprintf(format, of(r)))
		}
		t.row(cells...)
	}
	line("API server, at the start and for the first interrupted node", func(r scaleResult) float64 { return float64(r.Start.Requests.total()) }, "%.0f")
	line("API server, an idle minute: leases", func(r scaleResult) float64 { return perMinute(r.Idle, float64(r.Idle.Requests.containing(" leases"))) }, "%.0f")
	line("API server, an idle minute: all others", func(r scaleResult) float64 { return perMinute(r.Idle, float64(r.Idle.Requests.besides())) }, "%.0f")
	per := func(of func(scaleResult) int) func(scaleResult) float64 {
		return func(r scaleResult) float64 { return float64(of(r)) / float64(r.Interrupted) }
	}
	line("API server, an interrupted node: evictions", per(func(r scaleResult) int { return r.Interruption.Requests.containing("pods/eviction") }), "%.1f")
	line("API server, an interrupted node: Events", per(func(r scaleResult) int { return r.Interruption.Requests.containing(" events") }), "%.1f")
	line("API server, an interrupted node: all others", per(func(r scaleResult) int {
		return r.Interruption.Requests.besides() - r.Interruption.Requests.containing(" events")
	}), "%.1f")
	aws := func(service string) func(scaleResult) float64 {
		return func(r scaleResult) float64 {
			return perMinute(r.Idle, float64(r.Idle.AWS.containing(service+" ")))
		}
	}
	for _, service := range []string{"sqs", "ec2", "autoscaling"} {
		line(strings.ToUpper(service[:1])+service[1:]+", an idle minute", aws(service), "%.0f")
	}
	return t.String()
}

func slopesTable(s slopes) string {
	var t table
	t.head("one more", "memory", "received")
	t.row("idle node", fmt.Sprintf("%.1f KiB; at the start %.1f KiB", s.IdleNode, s.StartNode),
		fmt.Sprintf("%.1f KiB at the start, %.1f KiB a minute", s.ReceivedStart, s.ReceivedIdle))
	t.row("pod on an idle node", "0: Lifeboat does not read it", "0")
	t.row("interrupted node with ten pods", fmt.Sprintf("%.0f KiB", s.InterruptedNode), "see above")
	t.row("finished Interruption", fmt.Sprintf("%.1f KiB", s.Record), "")
	t.row("policy", "too small to measure with 100", "")
	t.row("*an empty cluster*", fmt.Sprintf("%.0f MiB; at the start %.0f MiB", s.Empty, s.StartEmpty), "")
	return t.String()
}

// checkTable compares the largest size with a model that does not know it.
func checkTable(sizes []scaleResult) string {
	last := len(sizes) - 1
	r := sizes[last]
	e := calibrate(sizes[:last]).expect(size{nodes: r.Nodes, interrupted: r.Interrupted})
	var t table
	t.head(thousands(r.Nodes)+" nodes", "model of the smaller sizes", "measured")
	both := func(name string, model, measured float64) {
		t.row(name, fmt.Sprintf("%.0f MiB", model), fmt.Sprintf("%.0f MiB", measured))
	}
	both("peak at the start", e.Start, r.Start.Peak.MostAnonymous)
	both("idle", e.Idle, r.Idle.Settled.Anonymous)
	both("peak with 100 nodes interrupted", e.Busy, r.Interruption.Peak.MostAnonymous)
	return t.String()
}

// modelSizes are the clusters of the model's table. Each node was interrupted once in the time for which records are kept.
var modelSizes = []size{{1000, 100, 1000}, {5000, 500, 5000}, {10_000, 1000, 10_000}, {50_000, 1000, 50_000}}

func modelTable(s slopes) string {
	var t table
	t.head("nodes", "interrupted at once", "finished", "start", "idle", "interrupted", "received at the start", "an idle minute", "memory limit")
	for _, c := range modelSizes {
		e := s.expect(c)
		m := func(v float64) string { return fmt.Sprintf("%.0f MiB", v) }
		t.row(thousands(c.nodes), thousands(c.interrupted), thousands(c.records), m(e.Start), m(e.Idle), m(e.Busy),
			m(e.ReceivedStart), fmt.Sprintf("%.1f MiB", e.ReceivedIdle), fmt.Sprintf("%dMi", e.limit()))
	}
	return t.String()
}

// limit is the memory limit in MiB for what the model expects: half more than the highest peak, in steps
// of 256 MiB.
func (e expected) limit() int {
	return int(math.Ceil(1.5*max(e.Start, e.Busy)/256)) * 256
}

func perMinute(s stage, n float64) float64 { return n * 60 / s.Seconds }

func (n requests) total() int { return n.containing("") }

// containing counts the requests whose kinds contain a text.
func (n requests) containing(text string) int {
	sum := 0
	for kind, count := range n {
		if strings.Contains(kind, text) {
			sum += count
		}
	}
	return sum
}

// The memory of a process: anonymous, then resident in brackets.

func mib(m memory) string { return fmt.Sprintf("%.0f (%.0f) MiB", m.Anonymous, m.Resident) }

func settled(s stage) string { return mib(s.Settled) }

func peak(s stage) string {
	return fmt.Sprintf("%.0f (%.0f) MiB", s.Peak.MostAnonymous, s.Peak.Resident)
}

func seconds(s float64) string { return fmt.Sprintf("%.1f s", s) }

func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
