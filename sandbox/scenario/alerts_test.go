package scenario_test

import (
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/sandbox"
	"github.com/lifeboat-dev/lifeboat/sandbox/scrape"
)

// fires are the alerts of a scenario that breaks what they are about. In all others every alert is
// silent, also if the state at the end of the scenario is held for five hours. Package e2e breaks what
// the other alerts are about.
var fires = map[string][]string{
	"misspelt-rule":       {"LifeboatWiringDegraded"},
	"misspelt-rule-alone": {"LifeboatPodsLost"},
	// Lifeboat does not run.
	"karpenter-deadline-alone":  {"LifeboatNoLeader"},
	"terminate-instances-alone": {"LifeboatNoLeader"},
}

// notInDemo are the panels of the dashboards that the demo does not fill, and why.
var notInDemo = map[string]string{
	"lifeboat-autoscaling: Instances by phase":          inScenario,
	"lifeboat-autoscaling: Instances that a hook holds": inScenario,
	"lifeboat-autoscaling: Longest wait at a hook":      inScenario,
	"lifeboat-sources: Unreadable messages":             inTest,
	"lifeboat-sources: Probes that failed":              inTest,
	"lifeboat-sources: Time of probes":                  inTest,
}

const (
	demo       = "spot-walkthrough"
	inScenario = "the demo has no NodeGroup; the scenario adopted has one"
	inTest     = "no scenario switches the canary on or sends unreadable messages; TestAlertsFireOnTheirFaults does"
)

const rules = "../../charts/lifeboat/alerts/lifeboat.yaml"

// monitor evaluates alerts and dashboards over the metrics of each scenario. It does nothing without
// the program replay.
type monitor struct {
	replay string

	mu    sync.Mutex
	empty map[string][]string // panels without data, by scenario
}

// watch begins to record. The returned function evaluates the recording.
func (m *monitor) watch(t *testing.T, sb *sandbox.Sandbox) func(scenario string) {
	if m.replay == "" {
		return func(string) {}
	}
	recorder := scrape.Start(t.Context(), sb)
	return func(scenario string) {
		recorder.Settle(t.Context())
		got, err := scrape.Evaluate(t.Context(), m.replay, rules, recorder.Stop(), 5*time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(fires[scenario], slices.Sorted(maps.Keys(got.Firing))); diff != "" {
			t.Errorf("the alerts that fire (-want +got):\n%s\n%v", diff, got.Firing)
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.empty[scenario] = got.Empty
	}
}

// checkPanels checks that each panel of the dashboards has data in the demo, or in another scenario.
func (m *monitor) checkPanels(t *testing.T) {
	if diff := cmp.Diff(slices.Sorted(maps.Keys(notInDemo)), slices.Sorted(slices.Values(m.empty[demo]))); diff != "" {
		t.Errorf("the panels without data in the demo (-want +got):\n%s", diff)
	}
	for panel, why := range notInDemo {
		shown := slices.ContainsFunc(slices.Collect(maps.Values(m.empty)), func(empty []string) bool { return !slices.Contains(empty, panel) })
		if shown != (why == inScenario) {
			t.Errorf("%s has data in a scenario: %t, and the reason is: %s", panel, shown, why)
		}
	}
}
