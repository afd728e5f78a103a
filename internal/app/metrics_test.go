package app

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/internal/asg/groupcache"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/probe"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/awsmetrics"
	"github.com/lifeboat-dev/lifeboat/internal/controller/inflight"
	"github.com/lifeboat-dev/lifeboat/internal/controller/instancelaunch"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/status"
	groupcontroller "github.com/lifeboat-dev/lifeboat/internal/controller/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/controller/sourcehealth"
	"github.com/lifeboat-dev/lifeboat/internal/controller/tracing"
	"github.com/lifeboat-dev/lifeboat/internal/hooks/runner"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/kube/events"
	"github.com/lifeboat-dev/lifeboat/internal/metric"
)

var update = flag.Bool("update", false, "write docs/reference/metrics.md")

const reference = "../../docs/reference/metrics.md"

// metricTable is the metrics of one package.
type metricTable struct {
	// Title says what the metrics are about.
	title   string
	metrics []metric.Definition
}

// metricTables are all metrics of lifeboatd, for the documentation.
func metricTables() []metricTable {
	return []metricTable{
		{"What is under way", inflight.Definitions()},
		{"Drains and replacements", append(status.Definitions(), watchedNodes, unreadBudgets)},
		{"Sources of notices", intake.Definitions()},
		{"Missing notices", sourcehealth.Definitions()},
		{"The canary", probe.Definitions()},
		{"Hooks and notifications", runner.Definitions()},
		{"Auto Scaling groups", append(groupcontroller.Definitions(), groupcache.Definitions()...)},
		{"Launches", instancelaunch.Definitions()},
		{"Kubernetes Events", events.Definitions()},
		{"Tracing", tracing.Definitions()},
		{"Requests to AWS", awsmetrics.Definitions()},
		{"The build", metric.Definitions()},
	}
}

func TestMetricsReferenceIsCurrent(t *testing.T) {
	want := referencePage()
	if *update {
		if err := os.WriteFile(reference, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/reference/metrics.md differs from the code: run go test ./internal/app -run Reference -update\n%s", diff)
	}
}

func referencePage() string {
	var b strings.Builder
	b.WriteString(`# Metrics

<!-- go test ./internal/app -run Reference -update writes this page from the code. -->

The controller serves these metrics on ` + "`/metrics`" + ` at the port ` + "`controller.ports.metrics`" + ` of the chart, and the
agents, with ` + "`agent.metrics: true`, at `agent.ports.metrics`. `metrics.serviceMonitor.enabled`" + ` lets the Prometheus
operator find them. No label contains the id of an instance, a node, a pod or a message. Therefore the number of
series does not grow with the cluster.

- A counter whose labels have closed lists of values exists before its first event. The others, marked *later*, appear
  with their first event.
- Only the leader exports what is under way. If no replica leads, these gauges are absent.
- Agents export the metrics of their own source, of the process and of the build.
- The controller also exports the
  [metrics of controller-runtime](https://book.kubebuilder.io/reference/metrics-reference), such as
  ` + "`controller_runtime_reconcile_errors_total`, `workqueue_depth` and `leader_election_master_status`" + `.
`)
	for _, table := range metricTables() {
		fmt.Fprintf(&b, "\n## %s\n\n| metric | type | unit | labels | meaning |\n|---|---|---|---|---|\n", table.title)
		for _, d := range table.metrics {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", d.Name, d.Type, d.Unit, labelsOf(d), d.Help)
		}
	}
	return b.String()
}

func labelsOf(d metric.Definition) string {
	var parts []string
	for _, l := range d.Labels {
		text := "`" + l.Name + "`: " + l.Meaning
		if len(l.Values) > 0 {
			text = "`" + l.Name + "`: " + strings.Join(l.Values, ", ")
		}
		parts = append(parts, text)
	}
	if d.Lazy && d.Type == metric.Counter {
		parts = append(parts, "*later*")
	}
	return strings.Join(parts, "<br>")
}

func TestMetricsHaveUnitsAndMeaning(t *testing.T) {
	seen := map[string]bool{}
	for _, table := range metricTables() {
		for _, d := range table.metrics {
			suffix := map[metric.Type]string{metric.Counter: `_total$`, metric.Histogram: `_seconds$`, metric.Gauge: `[a-z]$`}[d.Type]
			switch {
			case seen[d.Name]:
				t.Errorf("%s is declared twice", d.Name)
			case !regexp.MustCompile(`^lifeboat_[a-z_]+$`).MatchString(d.Name), suffix == "", !regexp.MustCompile(suffix).MatchString(d.Name):
				t.Errorf("%s: the name does not fit a %s", d.Name, d.Type)
			case d.Unit == "", !strings.HasSuffix(d.Help, "."):
				t.Errorf("%s: it has unit %q and help %q", d.Name, d.Unit, d.Help)
			case strings.HasSuffix(d.Name, "_seconds") != (d.Unit == "seconds"):
				t.Errorf("%s: its unit is %s", d.Name, d.Unit)
			case d.Type == metric.Histogram && len(d.Buckets) == 0:
				t.Errorf("%s has no buckets", d.Name)
			}
			seen[d.Name] = true
			for _, l := range d.Labels {
				if (len(l.Values) == 0) == (l.Meaning == "") {
					t.Errorf("%s: label %s needs either values or a meaning", d.Name, l.Name)
				}
			}
		}
	}
	if len(seen) < 35 {
		t.Errorf("only %d metrics", len(seen))
	}
}
