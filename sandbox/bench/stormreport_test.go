package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"
)

// reportDirEnv names a directory to which each storm writes its results as JSON.
const reportDirEnv = "LIFEBOAT_BENCH_DIR"

// stormReport is a storm and its floors.
type stormReport struct {
	Case          string        `json:"case"`
	Nodes         int           `json:"nodes"`
	Pods          int           `json:"pods"`
	AgentPercent  int           `json:"agentPercent"`
	Fsync         float64       `json:"fsyncMilliseconds"`
	FloorInFlight int           `json:"floorInFlight"`
	Floors        []floorResult `json:"floors"`
	Storm         stormResult   `json:"storm"`
}

// bestFloor takes the best value of each measurement from the floor's runs.
func (s stormReport) bestFloor() floorResult {
	best := s.Floors[0]
	for _, f := range s.Floors[1:] {
		if f.Cordoned < best.Cordoned {
			best.Cordoned, best.CordonedCPU = f.Cordoned, f.CordonedCPU
		}
		if f.Evicted < best.Evicted {
			best.Evicted, best.EvictedCPU = f.Evicted, f.EvictedCPU
		}
	}
	return best
}

func (s stormReport) perNode(n int) float64 { return float64(n) / float64(s.Nodes) }

// table formats the report as text.
func (s stormReport) table() string {
	var text strings.Builder
	out := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	line := func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) }
	floor, storm := s.bestFloor(), s.Storm
	line("storm %s: %d nodes, %d pods, agents on %d %%, fdatasync %.2f ms, floor with %d in flight over %d connections",
		s.Case, s.Nodes, s.Pods, s.AgentPercent, s.Fsync, s.FloorInFlight, floorConnections)
	line("\tfloor runs\tbest floor\tlifeboat\tratio")
	times := func(name string, of func(floorResult) float64, ours float64) {
		var runs []string
		for _, f := range s.Floors {
			runs = append(runs, fmt.Sprintf("%.2f", of(f)))
		}
		line("%s\t%s\t%.2f\t%.2f\t%.2f", name, strings.Join(runs, " "), of(floor), ours, ours/of(floor))
	}
	times("all nodes cordoned, s", func(f floorResult) float64 { return f.Cordoned }, storm.Cordoned)
	times("all pods evicted, s", func(f floorResult) float64 { return f.Evicted }, storm.Evicted)
	times("kube-apiserver CPU until then, s", func(f floorResult) float64 { return f.EvictedCPU.APIServer }, storm.EvictedCPU.APIServer)
	times("etcd CPU until then, s", func(f floorResult) float64 { return f.EvictedCPU.Etcd }, storm.EvictedCPU.Etcd)
	line("lifeboatd CPU until then, s\t\t\t%.2f", storm.EvictedCPU.Lifeboatd)
	line("bench and AWS emulator CPU until then, s\t\t%.2f\t%.2f", floor.EvictedCPU.Bench, storm.EvictedCPU.Bench)
	line("kube-apiserver, etcd, lifeboatd CPU until quiet, s\t\t\t%.2f %.2f %.2f", storm.QuietCPU.APIServer, storm.QuietCPU.Etcd, storm.QuietCPU.Lifeboatd)
	line("first pod evicted, s\t\t\t%.2f", storm.FirstEvicted)
	line("all pods recorded in status, s\t\t\t%.2f\t(%.1f s after the last eviction; complete: %t)", storm.Recorded, storm.Recorded-storm.Evicted, storm.Complete)
	line("last status written, s\t\t\t%.2f", storm.LastStatus)
	line("last write, s\t\t\t%.2f", storm.LastWrite)
	line("pods evicted before the last cordon\t\t\t%d", storm.Early)
	line("pods without full grace\t\t\t%d", storm.ShortGrace)
	line("lifeboatd's peak memory, MiB\t\t\t%.0f\t(anonymous %.0f, at most %.0f)", storm.Memory.Resident, storm.Memory.Anonymous, storm.Memory.MostAnonymous)
	line("")
	line("lifeboatd's requests a node\tuntil evicted\tuntil quiet\twhile pods leave")
	row := func(name string, count func(requests) int) {
		line("%s\t%.2f\t%.2f\t%.2f", name, s.perNode(count(storm.EvictedRequests)), s.perNode(count(storm.QuietRequests)), s.perNode(count(storm.LeavingRequests)))
	}
	for _, kind := range kinds(storm.EvictedRequests, storm.QuietRequests, storm.LeavingRequests) {
		row("  "+kind, func(n requests) int { return n[kind] })
	}
	row("all except evictions and leases", requests.besides)
	_ = out.Flush() // a strings.Builder accepts every write
	return text.String()
}

// publish prints the report, and writes it as JSON if LIFEBOAT_BENCH_DIR is set.
func (s stormReport) publish(b *testing.B) {
	b.Helper()
	fmt.Println("\n" + s.table()) // b.Log keeps ten lines
	text, err := json.Marshal(s)
	must(b, err)
	fmt.Printf("JSON %s\n", text)
	if dir := os.Getenv(reportDirEnv); dir != "" {
		must(b, os.MkdirAll(dir, 0o755))
		must(b, os.WriteFile(filepath.Join(dir, "storm-"+s.Case+".json"), append(text, '\n'), 0o644))
	}
	floor := s.bestFloor()
	b.ReportMetric(s.Storm.Cordoned, "cordoned-s")
	b.ReportMetric(s.Storm.Evicted, "evicted-s")
	b.ReportMetric(s.Storm.Evicted/floor.Evicted, "evicted-ratio")
	b.ReportMetric(s.Storm.EvictedCPU.APIServer/floor.EvictedCPU.APIServer, "apiserver-cpu-ratio")
	b.ReportMetric(s.perNode(s.Storm.EvictedRequests.besides()), "requests/node")
	b.ReportMetric(s.perNode(s.Storm.EvictedRequests["patch interruptions/status"]), "status-patches/node")
	b.ReportMetric(float64(s.Storm.Early), "early-pods")
	b.ReportMetric(float64(s.Storm.ShortGrace), "short-pods")
	b.ReportMetric(0, "ns/op")
}
