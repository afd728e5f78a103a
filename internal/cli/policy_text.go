package cli

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/hooks"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// formatClock formats a time for people, with the date if it is more than an hour
// away.
func formatClock(t, now time.Time) string {
	layout := "2006-01-02 15:04 MST"
	if d := t.Sub(now); d > -time.Hour && d < time.Hour {
		layout = "15:04:05 MST"
	}
	return t.UTC().Format(layout)
}

// approvalLine describes the state of the approval. It is empty if none is
// required and none was given.
func (w *observed) approvalLine(s *session, d policy.Decision) string {
	say := w.policy.Approval
	switch {
	case d.AwaitsApproval && !d.Begun.IsZero():
		return "the policy requires one, but the drain started before that and continues"
	case d.AwaitsApproval && d.ProceedsAt.IsZero():
		return fmt.Sprintf("pending: run `%s approve %s`", s.name, w.name())
	case d.AwaitsApproval:
		return fmt.Sprintf("pending: run `%s approve %s`; without an approval it starts %s", s.name, w.name(), terminal.Relative(d.ProceedsAt, w.now))
	case say != nil && d.Approved:
		return "given by " + statementText(say, w.now)
	}
	return ""
}

// statementText returns who made a statement, when, and the note.
func statementText(say *v1beta1.UserAction, now time.Time) string {
	text := say.By + " " + terminal.Relative(say.Time.Time, now)
	if say.Note != "" {
		text += ": " + say.Note
	}
	return text
}

// holding returns the hold that is in force at the given time, or nil.
func (w *observed) holding(at time.Time) *v1beta1.UserAction {
	if w.record == nil {
		return nil
	}
	return record.Hold(w.record, at)
}

func (w *observed) holdLine() string {
	hold := w.holding(w.now)
	if hold == nil {
		return ""
	}
	text := "by " + statementText(hold, w.now)
	if hold.Until != nil {
		text += fmt.Sprintf("; it expires %s", terminal.Relative(hold.Until.Time, w.now))
	}
	return text
}

// gates returns what all pods wait for when the drain starts: a hold, a
// replacement, and the BeforeDrain hooks in order. It assumes that each hook
// takes its whole timeout.
func (w *observed) gates(d policy.Decision, begins time.Time) []drain.Gate {
	var gates []drain.Gate
	if hold := w.holding(begins); hold != nil {
		gates = append(gates, record.HoldGate(hold))
	}
	if d.InstanceGone {
		return gates
	}
	if gate, waits := w.replaceGate(d, begins); waits {
		gates = append(gates, gate)
	}
	if gate, waits := record.DeregistrationGate(d, w.recordStatus(), begins); waits {
		gates = append(gates, gate)
	}
	at := begins
	for i := range d.Hooks {
		h := &d.Hooks[i]
		if h.When != v1beta1.HookBeforeDrain {
			continue
		}
		gate, waits := w.hookGate(h, at)
		if !waits {
			continue
		}
		gates = append(gates, gate)
		if gate.Until.IsZero() {
			break // the hooks after it do not start
		}
		at = gate.Until
	}
	return gates
}

// hookGate returns the gate of a BeforeDrain hook that starts at the given
// time. It assumes that the hook takes its whole timeout.
func (w *observed) hookGate(h *v1beta1.Hook, begins time.Time) (drain.Gate, bool) {
	status := w.hookStatus(h.Name)
	gate, waits := record.HookGate(h, status, w.approvedAt(), w.name())
	switch {
	case !waits, status != nil && status.State == v1beta1.HookFailed:
		return gate, waits
	case status == nil:
		gate.Until = begins.Add(hooks.Timeout(*h))
	default:
		gate.Until = status.StartTime.Add(hooks.Timeout(*h))
	}
	if !gate.Until.After(begins) {
		gate.Until = begins.Add(hooks.Timeout(*h))
	}
	return gate, true
}

// replacementStatus returns the progress of the replacement. It is nil if the
// policy wants none, or Lifeboat has not requested one yet.
func (w *observed) replacementStatus(d policy.Decision) *v1beta1.ReplacementStatus {
	if w.record == nil || w.supposed || d.Replacement != v1beta1.ReplacementBefore {
		return nil
	}
	return record.Drain(&w.record.Status).Replacement
}

// replacementLine returns the policy's setting and the progress of the
// replacement.
func replacementLine(word v1beta1.Replacement, s *v1beta1.ReplacementStatus) string {
	if s == nil {
		return string(word)
	}
	return fmt.Sprintf("%s: %s (%s)", word, s.Message, s.Reason)
}

// hookStatus returns the progress of a hook, or nil if it has not started.
func (w *observed) hookStatus(name string) *v1beta1.HookStatus {
	if w.record == nil || w.supposed {
		return nil
	}
	return record.Hook(record.Drain(&w.record.Status).Hooks, name)
}

// loadBalancersLine says for how long pods wait for load balancers, or how the wait ended.
func (w *observed) loadBalancersLine(d policy.Decision) string {
	if d.Deregistering == 0 {
		return ""
	}
	text := "pods wait up to " + terminal.Duration(d.Deregistering) + " until they have deregistered the instance"
	if ended := record.Drain(w.recordStatus()).Deregistration; ended != "" {
		text += "; the wait ended: " + ended
	}
	return text
}

// recordStatus returns the status of the record; empty for a hypothetical notice.
func (w *observed) recordStatus() *v1beta1.InterruptionStatus {
	if w.record == nil || w.supposed {
		return &v1beta1.InterruptionStatus{}
	}
	return &w.record.Status
}

// approvedAt returns the time of the latest approval, or zero.
func (w *observed) approvedAt() time.Time {
	if w.policy.Approval == nil {
		return time.Time{}
	}
	return w.policy.Approval.Time.Time
}

// failedHook returns the hook whose failure holds the drain, or nil.
func (w *observed) failedHook(d policy.Decision) *v1beta1.Hook {
	for i := range d.Hooks {
		h := &d.Hooks[i]
		if record.Holds(h, w.hookStatus(h.Name), w.approvedAt()) {
			return h
		}
	}
	return nil
}

func workloadLine(i int, x *v1beta1.Workload) string {
	var parts []string
	if len(x.Namespaces) > 0 {
		parts = append(parts, "in namespace "+strings.Join(x.Namespaces, " or "))
	}
	if x.Selector != nil {
		parts = append(parts, "with "+metav1.FormatLabelSelector(x.Selector))
	}
	if len(x.MatchOwnerKinds) > 0 {
		parts = append(parts, "controlled by "+strings.Join(x.MatchOwnerKinds, " or "))
	}
	does := []string{}
	if x.Order != "" {
		does = append(does, "order "+string(x.Order))
	}
	if x.Strategy != "" {
		does = append(does, "strategy "+string(x.Strategy))
	}
	name := x.Name
	if name == "" {
		name = fmt.Sprintf("workload %d", i+1)
	}
	return fmt.Sprintf("%s: pods %s: %s", name, strings.Join(parts, ", "), strings.Join(does, ", "))
}

func (w *observed) hookLine(h *v1beta1.Hook) string {
	what := "webhook"
	if h.Job != nil {
		what = "Job in " + namespaceOf(h.Job)
	}
	text := fmt.Sprintf("%s, %s: %s, up to %s", h.Name, h.When, what, terminal.Duration(hooks.Timeout(*h)))
	if h.Retries > 0 {
		text += fmt.Sprintf(", retried up to %s", times(int(h.Retries)))
	}
	if h.OnFailure == v1beta1.HookHold {
		text += "; if it fails, the drain waits for an approval"
	} else {
		text += "; if it fails, the drain continues"
	}
	if status := w.hookStatus(h.Name); status != nil {
		text += fmt.Sprintf(". State: %s", status.State)
		if status.Message != "" {
			text += ": " + status.Message
		}
	}
	return text
}

func namespaceOf(j *v1beta1.HookJob) string {
	if j.Namespace == "" {
		return "the namespace of hooks"
	}
	return "namespace " + j.Namespace
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func notificationLine(n *v1beta1.Notification) string {
	if len(n.Reasons) == 0 {
		return n.Name + ": the default reasons"
	}
	return n.Name + ": " + strings.Join(n.Reasons, ", ")
}
