package view

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// facts are sentences about an interruption, besides its decision.
func facts(in *v1alpha1.Interruption, now time.Time) []Fact {
	all := []Fact{}
	add := func(label, text string, tone Tone) {
		if text != "" {
			all = append(all, Fact{Label: label, Text: text, Tone: tone})
		}
	}
	add("now", record.Message(in), Plain)
	if d := in.Status.Deadline; d != nil {
		add("deadline", DeadlineText(d.Type), Plain)
	}
	if hold := record.Hold(in, now); hold != nil {
		add("held", record.HoldGate(hold).Why, Warn)
	}
	if a := in.Spec.Approval; a != nil {
		add("approval", said("approved", a), Plain)
	}
	if r := record.Drain(&in.Status).Replacement; r != nil {
		tone := Plain
		if r.Phase == v1alpha1.ReplacementFailed {
			tone = Bad
		}
		add("replacement", string(r.Phase)+": "+r.Message, tone)
	}
	if l := in.Status.LifecycleHooks; l != nil {
		add("lifecycle hook", l.Message, Plain)
	}
	for _, n := range in.Status.Notifications {
		if n.Message != "" {
			add("notification", fmt.Sprintf("%s failed: %s", n.Name, n.Message), Bad)
		}
	}
	for _, typ := range []string{v1alpha1.ConditionWiringDegraded, v1alpha1.ConditionCorroborated} {
		bad := typ == v1alpha1.ConditionWiringDegraded
		if c := meta.FindStatusCondition(in.Status.Conditions, typ); c != nil && (c.Status == "True") == bad {
			add(typ, c.Message, Warn)
		}
	}
	add("error", record.Drain(&in.Status).TerminationMessage, Bad)
	return all
}

// DeadlineText says whether a deadline can move.
func DeadlineText(t v1alpha1.DeadlineType) string {
	switch t {
	case v1alpha1.DeadlineHard:
		return "hard: it cannot move"
	case v1alpha1.DeadlineEstimated:
		return "estimated: the instance is shutting down, and pods keep their grace period"
	}
	return "soft: no pod is forced to leave until it is near"
}

func said(what string, a *v1alpha1.UserAction) string {
	text := fmt.Sprintf("%s %s at %s", a.By, what, a.Time.UTC().Format(time.RFC3339))
	if a.Note != "" {
		text += " (" + a.Note + ")"
	}
	return text
}

// ReasonTone returns how an entry of the timeline is highlighted.
func ReasonTone(reason string) Tone {
	switch reason {
	case v1alpha1.ReasonPodLost, v1alpha1.ReasonProtectionOverridden, v1alpha1.ReasonHookFailed, v1alpha1.ReasonReplacementFailed:
		return Bad
	case v1alpha1.ReasonNoticeReceived, v1alpha1.ReasonEvictionBlocked, v1alpha1.ReasonAwaitingApproval, v1alpha1.ReasonOnHold,
		v1alpha1.ReasonQueued, v1alpha1.ReasonPostponed, v1alpha1.ReasonPaused, v1alpha1.ReasonNotifyFailed, v1alpha1.ReasonTerminated:
		return Warn
	case v1alpha1.ReasonDrained, v1alpha1.ReasonCompleted, v1alpha1.ReasonNodeRestored, v1alpha1.ReasonApproved,
		v1alpha1.ReasonReleased, v1alpha1.ReasonResumed, v1alpha1.ReasonHookSucceeded, v1alpha1.ReasonSurged:
		return Good
	}
	return Plain
}
