package policy

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Validate returns what is wrong with a policy, each problem a sentence that
// says what to write; none if it can be put in force. It finds what the CRD's
// own rules cannot see, such as kinds that this release does not know, and what
// they do see again, for policies that were stored before there were any.
func Validate(spec v1alpha1.InterruptionPolicySpec) []string {
	problems := checkNodes(spec.Nodes)
	if len(spec.Rules) == 0 {
		problems = append(problems, "it has no rules: write at least one, or delete the policy")
	}
	for i, r := range spec.Rules {
		for _, problem := range checkRule(r) {
			problems = append(problems, fmt.Sprintf("%s: %s", placed(i, r), problem))
		}
	}
	return problems
}

func checkNodes(nodes v1alpha1.NodeSelector) []string {
	var problems []string
	if slices.Contains(nodes.NodePools, "") {
		problems = append(problems, "nodes.nodePools has an empty name: write the name of a Karpenter NodePool, or remove the entry")
	}
	if _, err := labels.ValidatedSelectorFromSet(nodes.MatchLabels); err != nil {
		problems = append(problems, fmt.Sprintf("nodes.matchLabels: %v", err))
	}
	for i, e := range nodes.MatchExpressions {
		one := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{e}}
		if _, err := metav1.LabelSelectorAsSelector(one); err != nil {
			problems = append(problems, fmt.Sprintf("nodes.matchExpressions[%d]: %v; write operator In or NotIn with values, or Exists or DoesNotExist without", i, err))
		}
	}
	return problems
}

func checkRule(r v1alpha1.Rule) []string {
	var problems []string
	if len(r.Kinds) == 0 {
		problems = append(problems, fmt.Sprintf("it has no kinds: write %s", knownKinds()))
	}
	for _, kind := range r.Kinds {
		if kind != "*" && !slices.Contains(notice.Kinds(), kind) {
			problems = append(problems, fmt.Sprintf("unknown kind %q: write %s", kind, knownKinds()))
		}
	}
	actions := []v1alpha1.Action{v1alpha1.ActionIgnore, v1alpha1.ActionNotify, v1alpha1.ActionCordon, v1alpha1.ActionDrain}
	if !slices.Contains(actions, r.Action) {
		problems = append(problems, fmt.Sprintf("unknown action %q: write Ignore, Notify, Cordon or Drain", r.Action))
	}
	worths := []v1alpha1.DoNotDisrupt{"", v1alpha1.DoNotDisruptRespect, v1alpha1.DoNotDisruptUntilLastCall, v1alpha1.DoNotDisruptIgnore}
	if !slices.Contains(worths, r.DoNotDisrupt) {
		problems = append(problems, fmt.Sprintf("unknown doNotDisrupt %q: write Respect, UntilLastCall or Ignore", r.DoNotDisrupt))
	}
	if r.Window == nil {
		return problems
	}
	if r.Action == v1alpha1.ActionIgnore || r.Action == v1alpha1.ActionNotify {
		problems = append(problems, fmt.Sprintf("a window makes no sense with action %s: remove it, or write Cordon or Drain", r.Action))
	}
	_, wrong := understand(*r.Window)
	return append(problems, wrong...)
}

func knownKinds() string {
	return strings.Join(notice.Kinds(), ", ") + `, or "*" for all`
}
