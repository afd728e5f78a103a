package policy_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

func protected(value string) *corev1.Node {
	n := ofPool("db")
	n.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": value}
	return n
}

// do-not-disrupt on a node holds what is voluntary, and nothing that ends the instance.
func TestDoNotDisruptOnNode(t *testing.T) {
	t.Parallel()
	stop := func(in time.Duration) v1beta1.Notice {
		return build("stop", notice.KindScheduledChange, due(noon.Add(in), v1beta1.DeadlineSoft), func(n *v1beta1.Notice) { n.InstanceAction = notice.ActionStop })
	}
	early := v1beta1.Rule{Kinds: []string{"*"}, Action: v1beta1.ActionDrain, NotBefore: &metav1.Duration{Duration: 48 * time.Hour}}
	late := early
	late.NotBefore = &metav1.Duration{Duration: 20 * time.Minute}
	ignores := early
	ignores.DoNotDisrupt = v1beta1.DoNotDisruptIgnore
	windowed := v1beta1.Rule{Kinds: []string{"*"}, Action: v1beta1.ActionDrain, Window: window("0 13 * * *", time.Hour, "")}
	replaces := protected("true")
	replaces.Labels[v1beta1.LabelReplacesInstance] = "i-1"
	for name, c := range map[string]struct {
		notice v1beta1.Notice
		rule   v1beta1.Rule
		node   *corev1.Node
		begun  time.Time
		action v1beta1.Action
		waits  time.Duration // until it begins
		says   bool          // the message names the annotation
	}{
		"rebalance":                        {rebalance(), early, protected("true"), time.Time{}, v1beta1.ActionNotify, 0, true},
		"rebalance, no annotation":         {rebalance(), early, ofPool("db"), time.Time{}, v1beta1.ActionDrain, 0, false},
		"rebalance, another value":         {rebalance(), early, protected("1h"), time.Time{}, v1beta1.ActionDrain, 0, false},
		"rebalance, policy ignores it":     {rebalance(), ignores, protected("true"), time.Time{}, v1beta1.ActionDrain, 0, false},
		"rebalance, drain has begun":       {rebalance(), early, protected("true"), noon, v1beta1.ActionDrain, 0, false},
		"rebalance, a replacement":         {rebalance(), early, replaces, time.Time{}, v1beta1.ActionDrain, 0, false},
		"planned stop":                     {stop(40 * time.Hour), early, protected("true"), time.Time{}, v1beta1.ActionDrain, 39 * time.Hour, true},
		"planned stop, no annotation":      {stop(40 * time.Hour), early, ofPool("db"), time.Time{}, v1beta1.ActionDrain, 0, false},
		"planned stop, shorter notBefore":  {stop(40 * time.Hour), late, protected("true"), time.Time{}, v1beta1.ActionDrain, 40*time.Hour - 20*time.Minute, false},
		"planned stop, window too early":   {stop(40 * time.Hour), windowed, protected("true"), time.Time{}, v1beta1.ActionDrain, 39 * time.Hour, false},
		"planned stop that is near":        {stop(30 * time.Minute), early, protected("true"), time.Time{}, v1beta1.ActionDrain, 0, true},
		"spot interruption":                {spot(), early, protected("true"), time.Time{}, v1beta1.ActionDrain, 0, false},
		"shutdown":                         {state(notice.StateShuttingDown), early, protected("true"), time.Time{}, v1beta1.ActionDrain, 0, false},
		"request of a person":              {build("r", notice.KindRequested), early, protected("true"), time.Time{}, v1beta1.ActionDrain, 0, false},
		"termination by the group":         {build("asg", notice.KindAutoScalingTermination), early, protected("true"), time.Time{}, v1beta1.ActionDrain, 0, false},
		"instance that fails its checks":   {build("sick", notice.KindInstanceStatus), early, protected("true"), time.Time{}, v1beta1.ActionDrain, 0, false},
		"rebalance, only cordoned by rule": {rebalance(), on(v1beta1.ActionCordon, "*"), protected("true"), time.Time{}, v1beta1.ActionCordon, 0, false},
	} {
		d, ok := policy.Decide(policy.Facts{
			Now: noon, Notices: []v1beta1.Notice{c.notice}, Node: c.node, Begun: c.begun, Policies: []v1beta1.InterruptionPolicy{named("p", 1, c.rule)},
		})
		waits := time.Duration(0)
		if !d.NotBefore.IsZero() {
			waits = d.NotBefore.Sub(noon)
		}
		if !ok || d.Action != c.action || waits != c.waits || strings.Contains(d.Message, "karpenter.sh/do-not-disrupt") != c.says {
			t.Errorf("%s: %s in %s, want %s in %s: %s", name, d.Action, waits, c.action, c.waits, d.Message)
		}
	}
}
