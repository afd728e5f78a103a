//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

func TestPolicyReportsAcceptedCondition(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	tests := map[string]struct {
		spec   string
		status metav1.ConditionStatus
		says   string
	}{
		"good": {
			spec:   `{rules: [{kinds: ["*"], action: Drain, window: {schedule: "0 2 * * *", duration: 2h, timeZone: Europe/Berlin}}]}`,
			status: metav1.ConditionTrue, says: "in force",
		},
		"unknown-kind": {spec: `{rules: [{kinds: [SpotInteruption], action: Drain}]}`, status: metav1.ConditionFalse, says: "SpotInterruption"},
		"unknown-zone": {
			spec:   `{rules: [{kinds: ["*"], action: Drain, window: {schedule: "0 2 * * *", duration: 2h, timeZone: Europe/Berlim}}]}`,
			status: metav1.ConditionFalse, says: "Europe/Berlim",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r.apply(policyOf(t, name, tc.spec))
			r.until("the policy to be judged", 30*time.Second, func(ctx context.Context) (bool, error) {
				p := &v1beta1.InterruptionPolicy{}
				if err := r.client.Get(ctx, types.NamespacedName{Name: name}, p); err != nil {
					return false, err
				}
				c := meta.FindStatusCondition(p.Status.Conditions, v1beta1.ConditionAccepted)
				return c != nil && c.Status == tc.status && strings.Contains(c.Message, tc.says), fmt.Errorf("condition %+v", c)
			})
		})
	}
}

func policyOf(t *testing.T, name, spec string) *v1beta1.InterruptionPolicy {
	t.Helper()
	p := &v1beta1.InterruptionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
		t.Fatal(err)
	}
	return p
}
