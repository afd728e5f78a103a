package nodegroup

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/finding"
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

// said is what is said of a condition.
type said struct {
	status          metav1.ConditionStatus
	reason, message string
}

// conditions says how it stands, in sentences.
func conditions(g *v1alpha1.NodeGroup, s standing, now time.Time) {
	all := map[string]said{
		v1alpha1.ConditionFound:      s.found(),
		v1alpha1.ConditionHooksReady: s.hooks(),
		v1alpha1.ConditionSynced:     s.synced(),
	}
	all[v1alpha1.ConditionReady] = s.ready(all)
	for _, name := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionFound, v1alpha1.ConditionHooksReady, v1alpha1.ConditionSynced} {
		what := all[name]
		meta.SetStatusCondition(&g.Status.Conditions, metav1.Condition{
			Type: name, Status: what.status, Reason: what.reason, Message: notice.Cut(what.message, longestMessage),
			ObservedGeneration: g.Generation, LastTransitionTime: metav1.NewTime(now),
		})
	}
}

func (s standing) found() said {
	name := s.wanted.Group
	switch {
	case s.elder != "":
		return said{isUnknown, reasonShared, "not looked at: see Synced"}
	case !s.known && s.err != nil:
		return said{isUnknown, reasonUnread, fmt.Sprintf("Auto Scaling group %s could not be read: %v", name, s.err)}
	case !s.known:
		return said{isUnknown, reasonUnread, fmt.Sprintf("Auto Scaling group %s was not read yet", name)}
	case !s.observed.Exists:
		f, _ := s.finding("group-missing")
		return said{isFalse, reasonMissing, sentences(f.Problem, mend(f))}
	case s.err != nil:
		return said{isTrue, reasonThere, fmt.Sprintf("Auto Scaling group %s is there; its settings could not be read anew: %v", name, s.err)}
	}
	return said{isTrue, reasonThere, fmt.Sprintf("Auto Scaling group %s is there", name)}
}

func (s standing) hooks() said {
	if !s.known || !s.observed.Exists {
		return said{isUnknown, reasonUnread, "its hooks are not known as long as the group is not"}
	}
	if f, owned := s.finding(operatorOwned); owned {
		return said{isFalse, reasonOperator, f.Problem}
	}
	if f, ok := s.finding(hooksUnknown); ok {
		return said{isUnknown, reasonUnread, sentences(f.Problem, mend(f))}
	}
	for _, f := range s.plan.Findings {
		if f.Severity == finding.Broken && (strings.HasPrefix(f.ID, "launch-hook-") || strings.HasPrefix(f.ID, "terminate-hook-") || f.ID == poolWithoutHook) {
			return said{isFalse, reasonWrong, sentences(f.Problem, mend(f))}
		}
	}
	return said{isTrue, reasonInPlace, fmt.Sprintf("launches are held by %s, terminations by %s", s.wanted.Launch.Name, s.wanted.Terminate.Name)}
}

func (s standing) synced() said {
	management := s.wanted.Management
	switch {
	case s.elder != "":
		return said{isFalse, reasonShared, fmt.Sprintf("NodeGroup %s stands for Auto Scaling group %s already: delete one of the two", s.elder, s.wanted.Group)}
	case !s.known:
		return said{isUnknown, reasonUnread, "nothing is changed as long as the group could not be read"}
	case errors.As(s.failed, &inVainError{}):
		return said{isFalse, reasonChanging, s.failed.Error()}
	case cloud.IsDenied(s.failed):
		return said{isFalse, reasonDenied, s.failed.Error()}
	case cloud.IsBusy(s.failed):
		return said{isFalse, reasonBusy, "it is tried again in a moment: " + s.failed.Error()}
	case s.failed != nil:
		return said{isFalse, reasonFailed, "it is tried again: " + s.failed.Error()}
	case len(s.plan.Steps) > 0:
		var parts []string
		for _, step := range s.plan.Steps {
			parts = append(parts, step.String())
		}
		return said{isFalse, reasonChanging, "done a moment ago, and looked at again: " + strings.Join(parts, ", ")}
	case len(s.plan.Held) > 0:
		return said{isFalse, reasonWaiting, strings.Join(s.plan.Held, "; ")}
	case management == v1alpha1.ManageNothing:
		return said{isTrue, reasonObserved, "management is Observe: nothing of the group is changed"}
	case management == v1alpha1.ManageHooks:
		return said{isTrue, reasonInSync, "the hooks are as they have to be; management is Hooks: nothing else of the group is changed"}
	}
	return said{isTrue, reasonInSync, "the group is as declared"}
}

// ready is computed from the others, and from what else is broken.
func (s standing) ready(all map[string]said) said {
	if s.ending != "" {
		return said{isFalse, reasonDeleting, s.ending}
	}
	if s.elder != "" {
		return all[v1alpha1.ConditionSynced]
	}
	for _, name := range []string{v1alpha1.ConditionFound, v1alpha1.ConditionSynced, v1alpha1.ConditionHooksReady} {
		// Nobody but its owner puts the hooks of a group that has one.
		if c := all[name]; c.status != isTrue && c.reason != reasonOperator {
			return said{isFalse, c.reason, c.message}
		}
	}
	if i := slices.IndexFunc(s.plan.Findings, func(f finding.Finding) bool { return f.Severity == finding.Broken }); i >= 0 {
		f := s.plan.Findings[i]
		return said{isFalse, reasonBroken, sentences(f.Problem, mend(f))}
	}
	return said{isTrue, reasonLookedAt, "instances are held until their nodes are ready, and until they are drained"}
}

func (s standing) finding(id string) (finding.Finding, bool) {
	i := slices.IndexFunc(s.plan.Findings, func(f finding.Finding) bool { return f.ID == id })
	if i < 0 {
		return finding.Finding{}, false
	}
	return s.plan.Findings[i], true
}

// mend says what to do about a finding.
func mend(f finding.Finding) string {
	if f.Fix == "" {
		return ""
	}
	return "What to do: " + f.Fix
}
