package tracing

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	commonpb "go.opentelemetry.io/proto/slim/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/slim/otlp/trace/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// MaxPods is the number of pods of a node that get a span. Pods that were lost come first, and
// then those that took the longest.
const MaxPods = 100

// Spans returns the spans of an interruption that is finished, the root first; nil if it is not.
// Times that the record does not have give no span.
func Spans(in *v1beta1.Interruption) []*tracepb.Span {
	if in.Status.CompletionTime == nil {
		return nil
	}
	s := newHistory(in, record.FirstNotice(in), in.Status.CompletionTime.Time)
	root := s.root(in)
	decided := s.when(in, v1beta1.ReasonDecided)
	decision := in.Status.Decision
	if decision == nil {
		decision = &v1beta1.Decision{}
	}
	if !decided.IsZero() {
		s.add(root, spanDecide, spanDecide, s.begin, decided, text(attrAction, decision.Action), text(attrPolicy, decision.Policy),
			text(attrRule, decision.Rule), text(attrStrategy, decision.Strategy), text(attrReason, decision.Message))
	}
	s.addWaits(in, root)
	if record.Drains(decision.Action) || decision.Action == v1beta1.ActionCordon {
		if cordoned := s.when(in, v1beta1.ReasonCordoned); !cordoned.IsZero() {
			s.add(root, spanCordon, spanCordon, cmp.Or(decided, s.begin), cordoned, text(attrNode, record.NodeName(in)))
		}
	}
	s.addDrain(in, root)
	s.addEnd(in, root)
	return s.spans
}

// root adds the span of the whole interruption. Its events are the timeline.
func (s *history) root(in *v1beta1.Interruption) *tracepb.Span {
	status, pods := &in.Status, record.Drain(&in.Status).PodCounts
	root := s.add(nil, spanInterruption, spanInterruption, s.begin, s.end,
		text(attrName, in.Name), text(attrInstance, in.Spec.InstanceID), text(attrNode, record.NodeName(in)),
		text(attrKind, status.Kind), text(attrPhase, status.Phase), truth(attrDrill, record.IsDrill(in)))
	if d := status.Deadline; d != nil {
		root.Attributes = append(root.Attributes, instant(attrDeadline, d.Time.Time), text(attrDeadlineType, d.Type))
	}
	if status.Drain != nil {
		root.Attributes = append(root.Attributes, number(attrPods, pods.Total), number(attrPodsMoved, pods.Moved), number(attrPodsLost, pods.Lost))
	}
	if pods.Lost > 0 {
		failed(root, fmt.Sprintf("%d pods were lost", pods.Lost))
	}
	for i := range status.Timeline {
		if e := &status.Timeline[i]; !e.Time.Time.Before(s.begin) {
			root.Events = append(root.Events, &tracepb.Span_Event{
				Name: e.Reason, TimeUnixNano: nanoseconds(e.Time.Time), Attributes: []*commonpb.KeyValue{text(attrMessage, e.Message)},
			})
		}
	}
	slices.SortStableFunc(root.Events, func(a, b *tracepb.Span_Event) int { return cmp.Compare(a.GetTimeUnixNano(), b.GetTimeUnixNano()) })
	return root
}

// when is the time of the first timeline entry with a reason, or zero.
func (s *history) when(in *v1beta1.Interruption, reasons ...string) time.Time {
	return s.first(in, s.begin, reasons...)
}

// first is the time of the first timeline entry with a reason from a time on, or zero.
func (s *history) first(in *v1beta1.Interruption, from time.Time, reasons ...string) time.Time {
	var found time.Time
	for i := range in.Status.Timeline {
		e := &in.Status.Timeline[i]
		if slices.Contains(reasons, e.Reason) && !e.Time.Time.Before(from) && (found.IsZero() || e.Time.Time.Before(found)) {
			found = e.Time.Time
		}
	}
	return found
}

// addWaits adds what the interruption waited for before the drain. A wait without a recorded end
// lasted until the end.
func (s *history) addWaits(in *v1beta1.Interruption, root *tracepb.Span) {
	for _, wait := range []struct {
		what string
		from string
		to   []string
	}{
		{"approval", v1beta1.ReasonAwaitingApproval, []string{v1beta1.ReasonApproved, v1beta1.ReasonCordoned}},
		{"hold", v1beta1.ReasonOnHold, []string{v1beta1.ReasonReleased}},
		{"pause", v1beta1.ReasonPaused, []string{v1beta1.ReasonResumed}},
		{"budget", v1beta1.ReasonQueued, []string{v1beta1.ReasonCordoned}},
	} {
		if from := s.when(in, wait.from); !from.IsZero() {
			s.add(root, spanWait, spanWait+"/"+wait.what, from, cmp.Or(s.first(in, from, wait.to...), s.end), text(attrWaitsFor, wait.what))
		}
	}
}

// addDrain adds the replacement, the hooks and the pods.
func (s *history) addDrain(in *v1beta1.Interruption, root *tracepb.Span) {
	drain := in.Status.Drain
	if drain == nil {
		return
	}
	s.addReplacement(drain.Replacement, root)
	drained := s.when(in, v1beta1.ReasonDrained)
	parent := root
	if begun := record.Begun(&in.Status); !begun.IsZero() {
		parent = s.add(root, spanDrain, spanDrain, later(begun, s.begin), cmp.Or(drained, s.end),
			number(attrPods, drain.PodCounts.Total), number(attrPodsMoved, drain.PodCounts.Moved), number(attrPodsLost, drain.PodCounts.Lost))
	}
	for i := range drain.Hooks {
		s.addHook(&drain.Hooks[i], parent)
	}
	pods := record.Pods(in)
	slices.SortStableFunc(pods, func(a, b record.PodHistory) int {
		return cmp.Or(-cmp.Compare(rank(a), rank(b)), -cmp.Compare(a.Gone.Sub(a.Asked), b.Gone.Sub(b.Asked)), cmp.Compare(a.Pod, b.Pod))
	})
	added := 0
	for i := range pods[:min(len(pods), MaxPods)] {
		if s.addPod(&pods[i], parent) {
			added++
		}
	}
	if missing := int(drain.PodCounts.Total) - added; missing > 0 {
		parent.Attributes = append(parent.Attributes, number(attrPodsWithoutSpan, missing))
	}
}

// rank is higher for pods that need a reader's attention.
func rank(p record.PodHistory) int {
	switch {
	case p.State == v1beta1.PodLost:
		return 3
	case p.State != v1beta1.PodLeft:
		return 2
	case p.Overridden:
		return 1
	}
	return 0
}

// addPod adds the span of a pod, from when it was asked to leave until it was gone. It reports
// false if the record has no time of it.
func (s *history) addPod(p *record.PodHistory, parent *tracepb.Span) bool {
	outcome := outcomeMoved
	switch {
	case p.State == v1beta1.PodLost:
		outcome = outcomeLost
	case p.State != v1beta1.PodLeft:
		outcome = outcomeStayed
	}
	namespace, name, _ := strings.Cut(p.Pod, "/")
	end := p.Gone
	if end.IsZero() && outcome == outcomeStayed {
		end = s.end
	}
	span := s.add(parent, spanPod, spanPod+"/"+p.Pod, cmp.Or(p.Asked, p.Surged, p.Gone), end,
		text(attrNamespace, namespace), text(attrPod, name), text(attrOutcome, outcome), text(attrReason, p.Reason),
		truth(attrOverridden, p.Overridden), instant(attrLastCall, p.LastCall), truth(attrSurged, !p.Surged.IsZero()))
	if span == nil {
		return false
	}
	if p.Grace > 0 {
		span.Attributes = append(span.Attributes, number(attrGrace, int64(p.Grace.Seconds())))
	}
	if outcome == outcomeLost {
		failed(span, p.Reason)
	}
	return true
}

func (s *history) addReplacement(r *v1beta1.ReplacementStatus, root *tracepb.Span) {
	if r == nil || r.StartTime == nil {
		return
	}
	span := s.add(root, spanReplace, spanReplace, r.StartTime.Time, timeOr(r.ReadyTime, s.end), text(attrPhase, r.Phase), text(attrReason, r.Message),
		text(attrReplacement, cmp.Or(r.NodeName, r.Name, r.InstanceID)), number(attrTries, r.Tries))
	if r.Phase == v1beta1.ReplacementFailed {
		failed(span, r.Message)
	}
}

func (s *history) addHook(h *v1beta1.HookStatus, parent *tracepb.Span) {
	span := s.add(parent, spanHook, spanHook+"/"+h.Name, h.StartTime.Time, timeOr(h.CompletionTime, s.end), text(attrHook, h.Name), text(attrPhase, h.State),
		number(attrTries, h.Try), text(attrReason, h.Message))
	if h.State == v1beta1.HookFailed {
		failed(span, h.Message)
	}
}

// addEnd adds the lifecycle hooks of the group, the termination, and the wait for the end of the
// instance.
func (s *history) addEnd(in *v1beta1.Interruption, root *tracepb.Span) {
	if l := in.Status.LifecycleHooks; l != nil && l.WaitingSince != nil {
		s.add(root, spanLifecycle, spanLifecycle, l.WaitingSince.Time, timeOr(l.CompletedTime, s.end), text(attrGroup, l.Group), number(attrHeartbeats, l.Heartbeats), text(attrReason, l.Message))
	}
	drain := record.Drain(&in.Status)
	if d := drain.NodeClaimDeletion; d != nil {
		s.add(root, spanTerminate, spanTerminate+"/nodeclaim", d.Time.Time, timeOr(d.DeletedTime, s.end), text(attrBy, "Karpenter"), text(attrNodeClaim, d.NodeClaim), text(attrReason, d.Message))
	}
	if at := drain.TerminationTime; at != nil {
		span := s.add(root, spanTerminate, spanTerminate, at.Time, s.end, text(attrBy, "EC2"), text(attrReason, drain.TerminationMessage))
		if drain.TerminationMessage != "" {
			failed(span, drain.TerminationMessage)
		}
	}
	if drained := s.when(in, v1beta1.ReasonDrained); !drained.IsZero() {
		s.add(root, spanComplete, spanComplete, drained, s.end)
	}
}
