package view

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// facts are sentences about an interruption, besides its decision.
func facts(in *v1beta1.Interruption, now time.Time) []Fact {
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
		if r.Phase == v1beta1.ReplacementFailed {
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
	for _, typ := range []string{v1beta1.ConditionWiringDegraded, v1beta1.ConditionCorroborated} {
		bad := typ == v1beta1.ConditionWiringDegraded
		if c := meta.FindStatusCondition(in.Status.Conditions, typ); c != nil && (c.Status == "True") == bad {
			add(typ, c.Message, Warn)
		}
	}
	add("error", record.Drain(&in.Status).TerminationMessage, Bad)
	return all
}

// DeadlineText says whether a deadline can move.
func DeadlineText(t v1beta1.DeadlineType) string {
	switch t {
	case v1beta1.DeadlineHard:
		return "hard: it cannot move"
	case v1beta1.DeadlineEstimated:
		return "estimated: the instance is shutting down, and pods keep their grace period"
	}
	return "soft: no pod is forced to leave until it is near"
}

func said(what string, a *v1beta1.UserAction) string {
	text := fmt.Sprintf("%s %s at %s", a.By, what, a.Time.UTC().Format(time.RFC3339))
	if a.Note != "" {
		text += " (" + a.Note + ")"
	}
	return text
}

// ReasonTone returns how an entry of the timeline is highlighted.
func ReasonTone(reason string) Tone {
	switch reason {
	case v1beta1.ReasonPodLost, v1beta1.ReasonProtectionOverridden, v1beta1.ReasonHookFailed, v1beta1.ReasonReplacementFailed:
		return Bad
	case v1beta1.ReasonNoticeReceived, v1beta1.ReasonEvictionBlocked, v1beta1.ReasonAwaitingApproval, v1beta1.ReasonOnHold,
		v1beta1.ReasonQueued, v1beta1.ReasonPostponed, v1beta1.ReasonPaused, v1beta1.ReasonNotifyFailed, v1beta1.ReasonTerminated:
		return Warn
	case v1beta1.ReasonDrained, v1beta1.ReasonCompleted, v1beta1.ReasonNodeRestored, v1beta1.ReasonApproved,
		v1beta1.ReasonReleased, v1beta1.ReasonResumed, v1beta1.ReasonHookSucceeded, v1beta1.ReasonSurged:
		return Good
	}
	return Plain
}
