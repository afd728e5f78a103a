package policy_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

// many are policies for other nodes, which all have to be looked at.
func many(n int) []v1beta1.InterruptionPolicy {
	var policies []v1beta1.InterruptionPolicy
	for i := range n {
		var rules []v1beta1.Rule
		for j := range 16 {
			rules = append(rules, v1beta1.Rule{
				Name: fmt.Sprint("r", j), Kinds: []string{"*"}, EventTypeCodes: []string{"*-no-such-code"}, Action: v1beta1.ActionDrain,
				Window: &v1beta1.Window{Schedule: "30 2 29 2 *", Duration: metav1.Duration{Duration: time.Hour}, TimeZone: "Europe/Berlin"},
			})
		}
		policies = append(policies, selecting(named(fmt.Sprintf("p%03d", i), int32(i), rules...), v1beta1.NodeSelector{MatchLabels: map[string]string{"tier": fmt.Sprint("other-", i)}}))
	}
	return policies
}

// decideWith returns the shortest of a few decisions with that many policies.
func decideWith(t *testing.T, n int) time.Duration {
	t.Helper()
	facts := policy.Facts{Now: noon, Notices: []v1beta1.Notice{spot()}, Node: node(map[string]string{"tier": "db"}), Policies: many(n)}
	best := time.Hour
	for range 3 {
		begun := time.Now()
		d, ok := policy.Decide(facts)
		best = min(best, time.Since(begun))
		if !ok || d.Action != v1beta1.ActionDrain {
			t.Fatalf("%d policies: %+v", n, d)
		}
	}
	return best
}

// A decision is made in each pass of each node, so 500 policies may cost it milliseconds.
func TestManyPoliciesDelayNoDecision(t *testing.T) {
	alone, crowded := decideWith(t, 1), decideWith(t, 500)
	t.Logf("with 1 policy %s, with 500 %s", alone, crowded)
	if most := 500*alone*4 + 50*time.Millisecond; crowded > most {
		t.Errorf("500 policies take %s, one takes %s: want at most %s", crowded, alone, most)
	}
}
