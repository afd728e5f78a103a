package prometheus

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/promqltest"
)

const (
	alertsFile = "../../charts/lifeboat/alerts/lifeboat.yaml"
	reference  = "../../docs/reference/metrics.md"
	runbooks   = "../../docs/runbooks"
	repository = "https://github.com/lifeboat-dev/lifeboat/blob/main/docs/runbooks/"
)

// alerts are the rules of the chart, as Prometheus reads them.
func alerts(t *testing.T) []rulefmt.Rule {
	t.Helper()
	all, err := ReadAlerts(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// healthy are series of a cluster in which all is well, at one sample a minute for two hours: one
// node has been drained, and an approval is young.
const healthy = `load 1m
  lifeboat_interruptions_under_way 1x120
  lifeboat_source_up{source="sqs",pod="c-1"} 1x120
  lifeboat_source_up{source="sqs",pod="c-2"} 0x3 1x116
  lifeboat_source_up{source="ec2",pod="c-1"} 1x120
  lifeboat_source_up{source="imds",pod="lifeboat-agent-1"} 1x120
  lifeboat_source_up{source="imds",pod="lifeboat-agent-2"} 1x120
  up{pod="lifeboat-agent-1"} 1x120
  up{pod="lifeboat-agent-2"} 1x120
  lifeboat_wiring_degraded_total{kind="SpotInterruption"} 2x120
  lifeboat_canary_failed_total{rule="health"} 0x60 1x59
  lifeboat_drained_pods_total{outcome="moved"} 0+1x120
  lifeboat_drained_pods_total{outcome="lost"} 3x120
  lifeboat_nearest_deadline_seconds{type="Hard"} 20x120
  lifeboat_oldest_blocked_drain_seconds 1200x120
  lifeboat_nearest_deadline_seconds{type="Soft"} 5x120
  lifeboat_pending_pods{state="waiting"} 4x120
  lifeboat_oldest_approval_wait_seconds 60x120
  lifeboat_oldest_replacement_wait_seconds 45x120
  lifeboat_oldest_pause_seconds 1200x120
  lifeboat_pauses{stops="Deferrable"} 1x120
  lifeboat_pauses{stops="Everything"} 0x120
  lifeboat_oldest_hook_wait_seconds 30x120
  lifeboat_notifications_total{outcome="failed"} 0x60 1x59
  lifeboat_uncorroborated 0x60 1x5 0x54
  lifeboat_refused_writes_total{kind="node"} 2x120
  lifeboat_unreadable_messages_total{source="sqs",reason="body"} 7x120
  lifeboat_aws_requests_total{service="SQS",operation="ReceiveMessage",result="ok"} 0+30x120
  lifeboat_aws_requests_total{service="SQS",operation="ReceiveMessage",result="failed"} 0+1x120
  lifeboat_nodegroup_oldest_pending_action_seconds{nodegroup="web"} 300x120
  lifeboat_recorded_notices_total{source="cloudtrail",kind="LifecycleActionFailure"} 1x120
`

// faults are, for each alert, the series of its fault, in place of the healthy ones. _ is a missing
// sample.
var faults = map[string]string{
	"LifeboatNoLeader":             `lifeboat_interruptions_under_way 1x100 _x19`,
	"LifeboatAnswersRefused":       `lifeboat_recorded_notices_total{source="cloudtrail",kind="LifecycleActionFailure"} 0x100 1x19`,
	"LifeboatSourceDown":           "lifeboat_source_up{source=\"sqs\",pod=\"c-1\"} 1x100 0x19\n  lifeboat_source_up{source=\"sqs\",pod=\"c-2\"} 1x100 0x19",
	"LifeboatAgentsDown":           `lifeboat_source_up{source="imds",pod="lifeboat-agent-1"} 1x100 0x19`,
	"LifeboatWiringDegraded":       `lifeboat_wiring_degraded_total{kind="SpotInterruption"} 0x100 1x19`,
	"LifeboatCanaryFailing":        `lifeboat_canary_failed_total{rule="health"} 0x100 0+1x19`,
	"LifeboatPodsLost":             `lifeboat_drained_pods_total{outcome="lost"} 0x115 1x4`,
	"LifeboatDeadlineNear":         `lifeboat_pods_past_last_call{node="a"} _x118 1x1`,
	"LifeboatDrainBlocked":         `lifeboat_oldest_blocked_drain_seconds 0+60x120`,
	"LifeboatApprovalForgotten":    `lifeboat_oldest_approval_wait_seconds 12000+60x120`,
	"LifeboatPauseForgotten":       `lifeboat_pauses{stops="Everything"} 0x100 1x19`,
	"LifeboatReplacementStuck":     `lifeboat_oldest_replacement_wait_seconds 0+60x120`,
	"LifeboatHookHangs":            `lifeboat_oldest_hook_wait_seconds 0+60x120`,
	"LifeboatNotificationsFailing": `lifeboat_notifications_total{outcome="failed"} 0x100 0+1x19`,
	"LifeboatUncorroborated":       `lifeboat_uncorroborated 0x100 1x19`,
	"LifeboatWriteRefused":         `lifeboat_refused_writes_total{kind="node"} 2x115 3x4`,
	"LifeboatUnreadableMessages":   `lifeboat_unreadable_messages_total{source="sqs",reason="body"} 1x100 1+1x19`,
	"LifeboatAWSRequestsFailing":   `lifeboat_aws_requests_total{service="SQS",operation="ReceiveMessage",result="denied"} 0x60 0+30x59`,
	"LifeboatLaunchStuck":          `lifeboat_nodegroup_oldest_pending_action_seconds{nodegroup="web"} 0+60x120`,
}

// with replaces series of the healthy ones.
func with(fault string) string {
	var kept []string
	for line := range strings.Lines(healthy) {
		series := strings.Fields(line)[0]
		if !strings.Contains(fault, series) {
			kept = append(kept, strings.TrimRight(line, "\n"))
		}
	}
	return strings.Join(append(kept, "  "+fault), "\n") + "\n"
}

// firing evaluates all alerts once a minute for two hours, and returns those that fire. The first
// hour fills the ranges of the expressions.
func firing(t *testing.T, series string) []string {
	t.Helper()
	var times []time.Time
	for minute := 60; minute < 120; minute++ {
		times = append(times, time.Unix(0, 0).Add(time.Duration(minute)*time.Minute))
	}
	engine := NewEngine()
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	fires, err := Firing(t.Context(), alerts(t), engine, promqltest.LoadedStorage(t, series), times)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(fires))
}

func TestAlertsAreSilentOnHealthySeries(t *testing.T) {
	if fires := firing(t, healthy); len(fires) > 0 {
		t.Errorf("%v fire", fires)
	}
}

func TestEachAlertFiresOnItsFaultOnly(t *testing.T) {
	for _, a := range alerts(t) {
		t.Run(a.Alert, func(t *testing.T) {
			t.Parallel()
			fault := faults[a.Alert]
			if fault == "" {
				t.Fatal("there is no fault for it: add one to the table")
			}
			if fires := firing(t, with(fault)); !slices.Equal(fires, []string{a.Alert}) {
				t.Errorf("%v fire", fires)
			}
		})
	}
}

func TestAlertsNameKnownMetrics(t *testing.T) {
	page, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range alerts(t) {
		for _, name := range regexp.MustCompile(`lifeboat_[a-z_]+`).FindAllString(a.Expr, -1) {
			if !strings.Contains(string(page), "| `"+name+"` |") {
				t.Errorf("%s uses %s, which docs/reference/metrics.md does not have", a.Alert, name)
			}
		}
	}
}

func TestEachAlertHasRunbook(t *testing.T) {
	pages := map[string]bool{"README.md": true}
	for _, a := range alerts(t) {
		page, ours := strings.CutPrefix(a.Annotations["runbook_url"], repository)
		text, err := os.ReadFile(filepath.Join(runbooks, page))
		if !ours || err != nil || page != a.Alert+".md" {
			t.Errorf("%s: runbook_url %s: %v", a.Alert, a.Annotations["runbook_url"], err)
		}
		for _, heading := range []string{"## Meaning", "## Impact", "## Diagnosis", "## Fix"} {
			if !strings.Contains(string(text), heading) {
				t.Errorf("%s has no %s", page, heading)
			}
		}
		if a.Labels["severity"] == "" || a.Annotations["summary"] == "" {
			t.Errorf("%s has no severity or no summary", a.Alert)
		}
		pages[page] = true
	}
	files, err := os.ReadDir(runbooks)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !pages[f.Name()] {
			t.Errorf("%s is of no alert", f.Name())
		}
	}
}
