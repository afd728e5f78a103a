package nodegroup

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Reasons of conditions.
const (
	reasonThere     = "GroupThere"
	reasonMissing   = "GroupMissing"
	reasonUnread    = "NotRead"
	reasonInPlace   = "InPlace"
	reasonWrong     = "HooksWrong"
	reasonOperator  = "OperatorOwned"
	reasonInSync    = "InSync"
	reasonObserved  = "ObservedOnly"
	reasonChanging  = "Changing"
	reasonWaiting   = "Waiting"
	reasonDenied    = "NotAllowed"
	reasonBusy      = "AWSBusy"
	reasonFailed    = "ChangeFailed"
	reasonShared    = "SharedWithAnother"
	reasonElsewhere = "OtherCluster"
	reasonLookedAt  = "LookedAfter"
	reasonBroken    = "SomethingIsBroken"
	reasonDeleting  = "DeletionWaits"
	longestMessage  = 32768 // metav1.Condition
	isTrue          = metav1.ConditionTrue
	isFalse         = metav1.ConditionFalse
	isUnknown       = metav1.ConditionUnknown
	operatorOwned   = "operator-owned"
	hooksUnknown    = "hooks-unknown"
	poolWithoutHook = "pool-without-hook"
)

// conditionState is the content of a condition.
type conditionState struct {
	status          metav1.ConditionStatus
	reason, message string
}

// conditions sets the conditions from the result of a pass.
func conditions(g *v1beta1.NodeGroup, s passState, now time.Time) {
	all := map[string]conditionState{
		v1beta1.ConditionFound:      s.found(),
		v1beta1.ConditionHooksReady: s.hooks(),
		v1beta1.ConditionSynced:     s.synced(),
	}
	all[v1beta1.ConditionReady] = s.ready(all)
	for _, name := range []string{v1beta1.ConditionReady, v1beta1.ConditionFound, v1beta1.ConditionHooksReady, v1beta1.ConditionSynced} {
		what := all[name]
		meta.SetStatusCondition(&g.Status.Conditions, metav1.Condition{
			Type: name, Status: what.status, Reason: what.reason, Message: notice.Cut(what.message, longestMessage),
			ObservedGeneration: g.Generation, LastTransitionTime: metav1.NewTime(now),
		})
	}
}

func (s passState) found() conditionState {
	name := s.wanted.Group
	switch {
	case s.otherOwner != "":
		return conditionState{isUnknown, reasonShared, "not read: see Synced"}
	case !s.known && s.err != nil:
		return conditionState{isUnknown, reasonUnread, fmt.Sprintf("cannot read Auto Scaling group %s: %v", name, s.err)}
	case !s.known:
		return conditionState{isUnknown, reasonUnread, fmt.Sprintf("Auto Scaling group %s has not been read yet", name)}
	case !s.observed.Exists:
		f, _ := s.finding("group-missing")
		return conditionState{isFalse, reasonMissing, sentences(f.Problem, fixText(f))}
	case s.err != nil:
		return conditionState{isTrue, reasonThere, fmt.Sprintf("Auto Scaling group %s exists; cannot read its current settings: %v", name, s.err)}
	}
	return conditionState{isTrue, reasonThere, fmt.Sprintf("Auto Scaling group %s exists", name)}
}

func (s passState) hooks() conditionState {
	if !s.known || !s.observed.Exists {
		return conditionState{isUnknown, reasonUnread, "the hooks are unknown because the group is unknown"}
	}
	if f, owned := s.finding(operatorOwned); owned {
		return conditionState{isFalse, reasonOperator, f.Problem}
	}
	if f, ok := s.finding(hooksUnknown); ok {
		return conditionState{isUnknown, reasonUnread, sentences(f.Problem, fixText(f))}
	}
	for _, f := range s.plan.Findings {
		if f.Severity == finding.Broken && (strings.HasPrefix(f.ID, "launch-hook-") || strings.HasPrefix(f.ID, "terminate-hook-") || f.ID == poolWithoutHook) {
			return conditionState{isFalse, reasonWrong, sentences(f.Problem, fixText(f))}
		}
	}
	return conditionState{isTrue, reasonInPlace, fmt.Sprintf("hook %s holds launches, hook %s holds terminations", s.wanted.Launch.Name, s.wanted.Terminate.Name)}
}

func (s passState) synced() conditionState {
	management := s.wanted.Management
	foreign, elsewhere := s.finding(nodegroup.OtherCluster)
	switch {
	case s.otherOwner != "":
		return conditionState{isFalse, reasonShared, fmt.Sprintf("NodeGroup %s already manages Auto Scaling group %s: delete one of the two", s.otherOwner, s.wanted.Group)}
	case !s.known:
		return conditionState{isUnknown, reasonUnread, "Lifeboat changes nothing until the group can be read"}
	case errors.As(s.failed, &notVisibleError{}):
		return conditionState{isFalse, reasonChanging, s.failed.Error()}
	case cloud.IsDenied(s.failed):
		return conditionState{isFalse, reasonDenied, s.failed.Error()}
	case cloud.IsBusy(s.failed):
		return conditionState{isFalse, reasonBusy, "retrying soon: " + s.failed.Error()}
	case s.failed != nil:
		return conditionState{isFalse, reasonFailed, "retrying: " + s.failed.Error()}
	case elsewhere:
		return conditionState{isFalse, reasonElsewhere, sentences(foreign.Problem, fixText(foreign))}
	case len(s.plan.Steps) > 0:
		var parts []string
		for _, step := range s.plan.Steps {
			parts = append(parts, step.String())
		}
		return conditionState{isFalse, reasonChanging, "applied, waiting to observe: " + strings.Join(parts, ", ")}
	case len(s.plan.Held) > 0:
		return conditionState{isFalse, reasonWaiting, strings.Join(s.plan.Held, "; ")}
	case management == v1beta1.ManageNothing:
		return conditionState{isTrue, reasonObserved, "management is Observe: Lifeboat does not change the group"}
	case management == v1beta1.ManageHooks:
		return conditionState{isTrue, reasonInSync, "the hooks are correct; management is Hooks: Lifeboat changes nothing else of the group"}
	}
	return conditionState{isTrue, reasonInSync, "the group matches the spec"}
}

// ready is computed from the other conditions and from broken findings.
func (s passState) ready(all map[string]conditionState) conditionState {
	if s.ending != "" {
		return conditionState{isFalse, reasonDeleting, s.ending}
	}
	if s.otherOwner != "" {
		return all[v1beta1.ConditionSynced]
	}
	for _, name := range []string{v1beta1.ConditionFound, v1beta1.ConditionSynced, v1beta1.ConditionHooksReady} {
		// Lifeboat does not manage the hooks of a group that has another owner.
		if c := all[name]; c.status != isTrue && c.reason != reasonOperator {
			return conditionState{isFalse, c.reason, c.message}
		}
	}
	if i := slices.IndexFunc(s.plan.Findings, func(f finding.Finding) bool { return f.Severity == finding.Broken }); i >= 0 {
		f := s.plan.Findings[i]
		return conditionState{isFalse, reasonBroken, sentences(f.Problem, fixText(f))}
	}
	return conditionState{isTrue, reasonLookedAt, "instances are held until their nodes are ready, and until they are drained"}
}

func (s passState) finding(id string) (finding.Finding, bool) {
	i := slices.IndexFunc(s.plan.Findings, func(f finding.Finding) bool { return f.ID == id })
	if i < 0 {
		return finding.Finding{}, false
	}
	return s.plan.Findings[i], true
}

// fixText says how to fix a finding.
func fixText(f finding.Finding) string {
	if f.Fix == "" {
		return ""
	}
	return "To fix: " + f.Fix
}
