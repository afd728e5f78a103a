package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Bounds of notBefore; the CRD has the same.
const (
	shortestNotBefore = time.Minute
	longestNotBefore  = 365 * 24 * time.Hour
)

// Bounds of drainTimeout; the CRD has the same. A lifecycle hook can be extended
// for 48 hours at most (Amazon EC2 Auto Scaling API Reference, LifecycleHook).
const (
	shortestDrainTimeout = time.Minute
	longestDrainTimeout  = 48 * time.Hour
)

// Validate returns the problems of a policy, each a sentence that says where it is and what to
// write; none if the policy can be used. It finds what the CRD's rules cannot see, such as kinds
// that this release does not know. It also repeats the CRD's rules, for policies that were
// stored before the CRD had them.
func Validate(spec v1beta1.InterruptionPolicySpec) []string {
	found := checkNodes(spec.Nodes)
	if len(spec.Rules) == 0 {
		found.add(noRules)
	}
	for i, r := range spec.Rules {
		found.at(describeRule(i, r), checkRule(r))
	}
	found = append(found, checkSettings(spec)...)
	return found
}

// ValidateNodes returns the problems of a policy's selector. Such a policy selects no node.
func ValidateNodes(spec v1beta1.InterruptionPolicySpec) []string { return checkNodes(spec.Nodes) }

func checkNodes(nodes v1beta1.NodeSelector) problems {
	var found problems
	if slices.Contains(nodes.NodePools, "") {
		found.add(nodesEmptyPool)
	}
	if slices.Contains(nodes.NodeGroups, "") {
		found.add(nodesEmptyGroup)
	}
	if _, err := labels.ValidatedSelectorFromSet(nodes.MatchLabels); err != nil {
		found.add(nodesLabels, err)
	}
	for i, e := range nodes.MatchExpressions {
		one := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{e}}
		if _, err := metav1.LabelSelectorAsSelector(one); err != nil {
			found.add(nodesExpressions, i, err)
		}
	}
	return found
}

func checkRule(r v1beta1.Rule) problems {
	var found problems
	if len(r.Kinds) == 0 {
		found.add(noKinds, knownKinds())
	}
	for _, kind := range r.Kinds {
		if kind != "*" && !slices.Contains(kinds(), kind) {
			found.add(unknownKind, kind, knownKinds())
		}
	}
	if slices.Contains(r.EventTypeCodes, "") {
		found.add(emptyCode)
	}
	found = append(found, checkWords(r)...)
	found = append(found, checkSense(r)...)
	if d := r.NotBefore; d != nil && (d.Duration < shortestNotBefore || d.Duration > longestNotBefore) {
		found.add(notBeforeRange)
	}
	if d := r.DrainTimeout; d != nil && (d.Duration < shortestDrainTimeout || d.Duration > longestDrainTimeout) {
		found.add(drainTimeoutRange)
	}
	if r.Window != nil {
		_, wrong := parseWindow(*r.Window)
		found.at("window", wrong)
	}
	return found
}

// checkWords finds values that this release does not know.
func checkWords(r v1beta1.Rule) problems {
	var found problems
	among(&found, r.Action, unknownAction,
		v1beta1.ActionIgnore, v1beta1.ActionNotify, v1beta1.ActionCordon, v1beta1.ActionDrain, v1beta1.ActionTerminate)
	among(&found, r.Approval, unknownApproval, "", v1beta1.ApprovalRequired, v1beta1.ApprovalNone)
	among(&found, r.IfUnanswered, unknownUnanswered, "", v1beta1.UnansweredWait, v1beta1.UnansweredProceed)
	among(&found, r.DoNotDisrupt, unknownWorth,
		"", v1beta1.DoNotDisruptRespect, v1beta1.DoNotDisruptUntilLastCall, v1beta1.DoNotDisruptIgnore)
	among(&found, r.Strategy, unknownStrategy, "", v1beta1.StrategyEvict, v1beta1.StrategySurge)
	among(&found, r.Replacement, unknownReplace, "", v1beta1.ReplacementBefore, v1beta1.ReplacementNone)
	return found
}

// among finds a value that is not one of the known ones.
func among[T ~string](found *problems, word T, f form, known ...T) {
	if !slices.Contains(known, word) {
		found.add(f, word)
	}
}

// checkSense finds fields that have no effect together with the rest of the rule.
func checkSense(r v1beta1.Rule) problems {
	var found problems
	moves := r.Action == v1beta1.ActionDrain || r.Action == v1beta1.ActionTerminate
	begins := moves || r.Action == v1beta1.ActionCordon
	requires := r.Approval == v1beta1.ApprovalRequired
	for _, c := range []struct {
		field string
		given bool
		sense bool
		form  form
	}{
		{"window", r.Window != nil, begins, noSenseBegin},
		{"notBefore", r.NotBefore != nil, begins, noSenseBegin},
		{"approval", requires, begins, noSenseBegin},
		{"strategy", r.Strategy != "", moves, noSenseMove},
		{"replacement", r.Replacement != "", moves, noSenseMove},
		{"drainTimeout", r.DrainTimeout != nil, moves, noSenseMove},
	} {
		if c.given && !c.sense {
			found.add(c.form, c.field)
		}
	}
	unbounded := r.Action == v1beta1.ActionTerminate || slices.Contains(r.Kinds, "*") || slices.Contains(r.Kinds, notice.KindAutoScalingTermination)
	if r.DrainTimeout != nil && moves && !unbounded {
		found.add(noSenseDrainTime)
	}
	if r.IfUnanswered != "" && !requires {
		found.add(noSenseUnanswered)
	}
	return found
}

// kinds are the kinds that a rule can be for.
func kinds() []string { return append(notice.Kinds(), notice.KindRequested) }

func knownKinds() string {
	return strings.Join(kinds(), ", ") + `, or "*" for all`
}

// entry is the path to an entry of a list: by its name, or by its index.
func entry(list string, i int, name string) string {
	if name != "" {
		return fmt.Sprintf("%s[%s]", list, name)
	}
	return fmt.Sprintf("%s[%d]", list, i)
}
