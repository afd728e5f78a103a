package policy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

func TestSelectionOfNodes(t *testing.T) {
	kafka := v1beta1.NodeSelector{NodePools: []string{"kafka", "zookeeper"}}
	tier := v1beta1.NodeSelector{MatchLabels: map[string]string{"tier": "db", "zone": "a"}}
	expression := func(op metav1.LabelSelectorOperator, values ...string) v1beta1.NodeSelector {
		return v1beta1.NodeSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: op, Values: values}}}
	}
	groups := v1beta1.NodeSelector{NodeGroups: []string{"db", "mq"}}
	const selects = "applies: no policy that selects the node has a priority above 0"
	for _, c := range []struct {
		name  string
		nodes v1beta1.NodeSelector
		node  *corev1.Node
		want  string
	}{
		{"an empty selector selects every node", v1beta1.NodeSelector{}, node(nil), selects},
		{"an empty selector selects a node that is unknown", v1beta1.NodeSelector{}, nil, selects},
		{"a node of one of the pools", kafka, ofPool("zookeeper"), selects},
		{"a node of another pool", kafka, ofPool("web"), "does not select the node: it is for NodePools kafka, zookeeper, and the node is of web"},
		{"a node of no pool", kafka, node(nil), "does not select the node: it is for NodePools kafka, zookeeper, and the node is of none"},
		{"a pool of a node that is not there", kafka, nil, "does not select the node: it asks for labels, and the node is not in the cluster to show any"},
		{"a node of a node group of EKS", groups, node(map[string]string{"eks.amazonaws.com/nodegroup": "mq"}), selects},
		{"Lifeboat's own node group comes first", groups, node(map[string]string{"eks.amazonaws.com/nodegroup": "mq", "lifeboat.dev/nodegroup": "web"}), "does not select the node: it is for node groups db, mq, and the node is of web"},
		{"a node of an instance group of kOps", groups, node(map[string]string{"kops.k8s.io/instancegroup": "db"}), selects},
		{"a node of a node group of eksctl", groups, node(map[string]string{"alpha.eksctl.io/nodegroup-name": "db"}), selects},
		{"a node of no node group", groups, ofPool("db"), "does not select the node: it is for node groups db, mq, and the node is of none"},
		{"a node group of a node that is not there", groups, nil, "does not select the node: it asks for labels, and the node is not in the cluster to show any"},
		{"a node with the labels", tier, node(map[string]string{"tier": "db", "zone": "a"}), selects},
		{"a node with another value", tier, node(map[string]string{"tier": "db", "zone": "b"}), "does not select the node: it asks for label zone=a, and the node has zone=b"},
		{"a node without the label", tier, node(map[string]string{"zone": "a"}), "does not select the node: it asks for label tier=db, which the node lacks"},
		{"labels of a node that is not there", tier, nil, "does not select the node: it asks for labels, and the node is not in the cluster to show any"},
		{"an expression that holds", expression(metav1.LabelSelectorOpIn, "db", "mq"), node(map[string]string{"tier": "mq"}), selects},
		{"an expression that does not hold", expression(metav1.LabelSelectorOpIn, "db", "mq"), node(nil), "does not select the node: its labels do not fit tier in (db,mq)"},
		{"an expression of absence", expression(metav1.LabelSelectorOpDoesNotExist), node(nil), selects},
		{"an expression about a node that is not there", expression(metav1.LabelSelectorOpDoesNotExist), nil, "does not select the node: it asks for labels, and the node is not in the cluster to show any"},
		{"an expression that means nothing", expression("Near", "db"), node(nil), `selects no node, since its selector is not valid: nodes.matchExpressions[0]: "Near" is not a valid label selector operator; write operator In or NotIn with values, or Exists or DoesNotExist without`},
		{"all parts have to hold", v1beta1.NodeSelector{NodePools: []string{"kafka"}, MatchLabels: map[string]string{"tier": "db"}}, ofPool("kafka"), "does not select the node: it asks for label tier=db, which the node lacks"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, _ := policy.Decide(policy.Facts{
				Now: noon, Notices: []v1beta1.Notice{spot()}, Node: c.node,
				Policies: []v1beta1.InterruptionPolicy{selecting(named("p", 0), c.nodes)},
			})
			if got := d.Considered[0].Reason; got != c.want {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
			if rules := d.Policy == "p"; rules != (c.want == selects) {
				t.Errorf("policy %q rules", d.Policy)
			}
		})
	}
}

func TestConsideredListsEveryPolicy(t *testing.T) {
	facts := policy.Facts{
		Now: noon, Notices: []v1beta1.Notice{spot()}, Node: ofPool("web"),
		Policies: []v1beta1.InterruptionPolicy{
			named("everyone", 0),
			named("everyone-else", 1),
			named("twin", 10),
			selecting(named("kafka", 50), v1beta1.NodeSelector{NodePools: []string{"kafka"}}),
			selecting(named("broken", 40), v1beta1.NodeSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "Near", Values: []string{"db"}}}}),
			named("careful", 10,
				on(v1beta1.ActionNotify, notice.KindRebalanceRecommendation),
				v1beta1.Rule{Name: "reclaims", Kinds: []string{notice.KindSpotInterruption}, Action: v1beta1.ActionDrain},
				on(v1beta1.ActionIgnore, "*"),
			),
		},
	}
	d, _ := policy.Decide(facts)
	want := []policy.Considered{
		{Policy: "kafka", Reason: "does not select the node: it is for NodePools kafka, and the node is of web"},
		{Policy: "broken", Reason: `selects no node, since its selector is not valid: nodes.matchExpressions[0]: "Near" is not a valid label selector operator; write operator In or NotIn with values, or Exists or DoesNotExist without`},
		{Policy: "careful", Reason: "applies: no policy that selects the node has a priority above 10"},
		{Policy: "careful", Rule: "rule 1", Reason: "is for RebalanceRecommendation, not for SpotInterruption"},
		{Policy: "careful", Rule: "reclaims", Rules: true, Reason: "rules: it is the first of policy careful for SpotInterruption"},
		{Policy: "careful", Rule: "rule 3", Reason: "is not used: rule 2 (reclaims) comes before it"},
		{Policy: "twin", Reason: "is not used: policy careful has the same priority 10 and sorts first"},
		{Policy: "everyone-else", Reason: "is not used: policy careful has priority 10, above its 1"},
		{Policy: "everyone", Reason: "is not used: policy careful has priority 10, above its 0"},
		{Rule: "SpotInterruption", Reason: "is not used: a rule of policy careful applies, and this is the built-in default"},
	}
	if diff := cmp.Diff(want, d.Considered); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if want := "Drain: policy careful, rule 2 (reclaims), is for SpotInterruption"; d.Message != want {
		t.Errorf("message\n got %s\nwant %s", d.Message, want)
	}
}

func TestConsideredEndsWithDefaultRule(t *testing.T) {
	d, _ := policy.Decide(policy.Facts{
		Now: noon, Notices: []v1beta1.Notice{spot()}, Node: ofPool("web"),
		Policies: []v1beta1.InterruptionPolicy{named("hints", 0, on(v1beta1.ActionCordon, notice.KindRebalanceRecommendation))},
	})
	want := []policy.Considered{
		{Policy: "hints", Reason: "applies: no policy that selects the node has a priority above 0"},
		{Policy: "hints", Rule: "rule 1", Reason: "is for RebalanceRecommendation, not for SpotInterruption"},
		{Rule: "SpotInterruption", Rules: true, Reason: "rules: it is the built-in default, since policy hints has no rule for it"},
	}
	if diff := cmp.Diff(want, d.Considered); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
