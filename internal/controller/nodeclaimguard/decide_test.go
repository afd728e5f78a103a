package nodeclaimguard

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

var now = time.Date(2026, 5, 11, 8, 14, 0, 0, time.UTC)

func ignoring(pools ...string) []v1beta1.InterruptionPolicy {
	return []v1beta1.InterruptionPolicy{{
		ObjectMeta: metav1.ObjectMeta{Name: "databases"},
		Spec: v1beta1.InterruptionPolicySpec{
			Nodes: v1beta1.NodeSelector{NodePools: pools},
			Rules: []v1beta1.Rule{{Kinds: []string{"ScheduledChange"}, Action: v1beta1.ActionIgnore}},
		},
	}}
}

func nodeOf(pool string, ready corev1.ConditionStatus, since time.Duration) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: pool, Labels: map[string]string{"karpenter.sh/nodepool": pool},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: pool + "-x", UID: "uid-" + "x"}},
		},
		Spec: corev1.NodeSpec{ProviderID: "aws:///us-east-1a/i-0a1b2c3d4e5f60718"},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: ready, LastTransitionTime: metav1.NewTime(now.Add(-since)),
		}}},
	}
}

func TestGuardDecision(t *testing.T) {
	t.Parallel()
	ready := nodeOf("databases", corev1.ConditionTrue, time.Hour)
	deleted := ready.DeepCopy()
	deleted.DeletionTimestamp = &metav1.Time{Time: now}
	for name, test := range map[string]struct {
		f    facts
		want bool
	}{
		"a policy that ignores":       {facts{policies: ignoring("databases"), node: ready}, true},
		"another NodePool's policy":   {facts{policies: ignoring("web"), node: ready}, false},
		"no policy":                   {facts{node: ready}, false},
		"held, no policy":             {facts{node: ready, held: true}, true},
		"no node yet":                 {facts{policies: ignoring("databases")}, false},
		"a Node that is deleted":      {facts{policies: ignoring("databases"), node: deleted, held: true}, false},
		"not Ready for a moment":      {facts{policies: ignoring("databases"), node: nodeOf("databases", corev1.ConditionUnknown, time.Minute)}, true},
		"not Ready for ten minutes":   {facts{policies: ignoring("databases"), node: nodeOf("databases", corev1.ConditionUnknown, 10*time.Minute)}, false},
		"Ready condition not set yet": {facts{policies: ignoring("databases"), node: &corev1.Node{ObjectMeta: ready.ObjectMeta}}, true},
	} {
		if got := test.f.guarded(now); got != test.want {
			t.Errorf("%s: guarded %v", name, got)
		}
	}
}

func TestMarkIsRenewedInTime(t *testing.T) {
	t.Parallel()
	const limit = 30 * time.Minute
	at := func(d time.Duration) string { return now.Add(d).Format(time.RFC3339) }
	for name, test := range map[string]struct {
		current string
		guarded bool
		want    string
		change  bool
	}{
		"new":                      {"", true, at(limit), true},
		"fresh":                    {at(25 * time.Minute), true, at(25 * time.Minute), false},
		"a third is over":          {at(20 * time.Minute), true, at(limit), true},
		"over":                     {at(-time.Minute), true, at(limit), true},
		"not a time":               {"tomorrow", true, at(limit), true},
		"longer than the limit":    {at(time.Hour), true, at(limit), true},
		"guarded no longer":        {at(25 * time.Minute), false, "", true},
		"never guarded":            {"", false, "", false},
		"not a time, and unwanted": {"tomorrow", false, "", true},
	} {
		if value, change := mark(test.current, test.guarded, now, limit); value != test.want || change != test.change {
			t.Errorf("%s: %q, %v", name, value, change)
		}
	}
}
