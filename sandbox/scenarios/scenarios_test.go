package scenarios_test

import (
	"os"
	"strings"
	"testing"

	"github.com/lifeboat-dev/lifeboat/sandbox/scenario"
	"github.com/lifeboat-dev/lifeboat/sandbox/scenarios"
)

func TestEveryScenarioIsWellFormed(t *testing.T) {
	names, err := scenarios.Names()
	if err != nil || len(names) == 0 {
		t.Fatalf("Names() = %v, %v", names, err)
	}
	for _, name := range names {
		text, err := scenarios.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		sc, err := scenario.Parse(name, text)
		if err != nil {
			t.Error(err)
			continue
		}
		if sc.Prose == "" {
			t.Errorf("%s does not say what it shows", name)
		}
	}
}

func TestTourShowsEveryScenario(t *testing.T) {
	tour, err := os.ReadFile("../../docs/tour.md")
	if err != nil {
		t.Fatal(err)
	}
	names, err := scenarios.Names()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.Contains(string(tour), "\n| `"+name+"` | ") {
			t.Errorf("docs/tour.md does not show %s", name)
		}
	}
}

func TestReadErrorListsScenarios(t *testing.T) {
	_, err := scenarios.Read("maiden-voyage")
	want := `unknown scenario "maiden-voyage"; the scenarios are adopted, budget, capacity-rebalance, chain, controller-away, ` +
		`database-approval, declared, do-not-disrupt, first-voyage, held-pods, hold, hook-hangs, hook-job, instance-refresh, ` +
		`karpenter-deadline-alone, karpenter-deadline, karpenter-health-alone, karpenter-health, karpenter-own-queue, killed, limits-reached, long-grace, maintenance-window, misspelt-rule-alone, misspelt-rule, ` +
		`no-capacity, node-lives, ordinary-spot-twenty, ordinary-spot, ordinary-world, overtaken, past-the-group, policy-ignore, rebalance-by-pool, rebalance, reuse, scale-in, ` +
		`silent-agent, spot-walkthrough, spot-warm-pool, surge-waves, surge, terminate-instances-alone, terminate-instances, ` +
		`terminated, walkthrough-crashes, warm-pool, zone-rebalance`
	if err == nil || err.Error() != want {
		t.Errorf("Read() = %v, want %s", err, want)
	}
}
