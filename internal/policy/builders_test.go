package policy_test

import (
	"time"
	_ "time/tzdata" // for time zones on any machine

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// noon is the time of every test, unless it says otherwise.
var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func spot(change ...func(*v1beta1.Notice)) v1beta1.Notice {
	return build("spot-1", notice.KindSpotInterruption, append([]func(*v1beta1.Notice){due(noon.Add(2*time.Minute), v1beta1.DeadlineHard)}, change...)...)
}

func rebalance(change ...func(*v1beta1.Notice)) v1beta1.Notice {
	return build("rebalance-1", notice.KindRebalanceRecommendation, change...)
}

func state(s string, change ...func(*v1beta1.Notice)) v1beta1.Notice {
	return build("state-"+s, notice.KindInstanceStateChange, append([]func(*v1beta1.Notice){func(n *v1beta1.Notice) { n.InstanceState = s }}, change...)...)
}

func build(id, kind string, change ...func(*v1beta1.Notice)) v1beta1.Notice {
	n := v1beta1.Notice{ID: id, Kind: kind, Source: "sqs", Time: metav1.NewTime(noon), ReceivedTime: metav1.NewMicroTime(noon.Add(time.Second))}
	for _, c := range change {
		c(&n)
	}
	return n
}

func due(at time.Time, typ v1beta1.DeadlineType) func(*v1beta1.Notice) {
	return func(n *v1beta1.Notice) { n.Deadline = notice.At(at, typ) }
}

func received(at time.Time) func(*v1beta1.Notice) {
	return func(n *v1beta1.Notice) { n.ReceivedTime = metav1.NewMicroTime(at) }
}

func node(labels map[string]string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "ip-10-0-0-1", Labels: labels}}
}

func ofPool(pool string) *corev1.Node {
	return node(map[string]string{"karpenter.sh/nodepool": pool})
}

// named builds a policy; without rules it gets one that ignores everything.
func named(name string, priority int32, rules ...v1beta1.Rule) v1beta1.InterruptionPolicy {
	if len(rules) == 0 {
		rules = []v1beta1.Rule{{Kinds: []string{"*"}, Action: v1beta1.ActionIgnore}}
	}
	return v1beta1.InterruptionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1beta1.InterruptionPolicySpec{Priority: priority, Rules: rules},
	}
}

func selecting(p v1beta1.InterruptionPolicy, nodes v1beta1.NodeSelector) v1beta1.InterruptionPolicy {
	p.Spec.Nodes = nodes
	return p
}

func on(action v1beta1.Action, kinds ...string) v1beta1.Rule {
	return v1beta1.Rule{Kinds: kinds, Action: action}
}
