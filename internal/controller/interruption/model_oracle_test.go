package interruption

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// The oracle implements docs/guides/policy.md for the model's worlds. It is written from that
// guide and shares no code with the product. It knows only what the worlds can contain: three
// window schedules, no event type codes, no hooks.

// verdict is the expected decision about an instance.
type verdict struct {
	notice          v1beta1.Notice // the deciding notice
	action          v1beta1.Action
	effectivePolicy *v1beta1.InterruptionPolicy // nil: no policy selects the node
	rule            v1beta1.Rule
	deadline        *v1beta1.Deadline
	notBefore       time.Time // zero: it may begin now
	awaits          bool      // a person must approve it first
	proceedsAt      time.Time // when it begins unapproved; zero: never
	instanceGone    bool
	withdrawn       bool
	begun           time.Time // when the drain began for its subject; zero: it has not
}

// case_ is the input of the oracle.
type case_ struct {
	record   *v1beta1.Interruption
	node     *corev1.Node
	policies []v1beta1.InterruptionPolicy
	now      time.Time
}

// ask returns the verdict; false: no notice is valid.
func (c case_) ask() (verdict, bool) {
	var standing []v1beta1.Notice
	withdrawn := false
	for _, n := range c.record.Spec.Notices {
		if isHandledNotice(n, handledIn(c.record)) {
			continue
		}
		if n.Withdrawn {
			withdrawn = true
			continue
		}
		standing = append(standing, withShutdown(n))
	}
	if len(standing) == 0 {
		return verdict{action: v1beta1.ActionIgnore, withdrawn: true}, withdrawn
	}
	if ahead := slices.DeleteFunc(slices.Clone(standing), c.survived); len(ahead) > 0 {
		standing = ahead
	}
	first := c.about(standing, standing)
	if first.drainsNow() || first.instanceGone {
		return c.hastened(first, standing), true
	}
	// A notice without an action now does not hide one that drains the node now. One with a firm
	// deadline hides all but a person's request.
	rest := standing
	if firm(first.notice.Deadline) && first.notice.Kind != notice.KindRequested {
		rest = slices.DeleteFunc(slices.Clone(standing), func(n v1beta1.Notice) bool { return n.Kind != notice.KindRequested })
	}
	for len(rest) > 0 {
		v := c.about(standing, rest)
		if v.drainsNow() {
			return c.hastened(v, standing), true
		}
		rest = slices.DeleteFunc(slices.Clone(rest), func(n v1beta1.Notice) bool { return n.ID == v.notice.ID })
	}
	return first, true
}

// survived reports whether the cloud announced an end of the instance for ten minutes ago, and did not report it.
func (c case_) survived(n v1beta1.Notice) bool {
	return n.Deadline != nil && n.Deadline.Type == v1beta1.DeadlineHard && n.Kind != notice.KindInstanceStateChange &&
		n.LifecycleHook == nil && c.now.Sub(n.Deadline.Time.Time) >= 10*time.Minute
}

// isHandledNotice reports whether a notice is handled. Of a planned change each update with the same
// start and action is.
func isHandledNotice(n v1beta1.Notice, handled []string) bool {
	if slices.Contains(handled, n.ID) {
		return true
	}
	if n.Kind != notice.KindScheduledChange || n.Subject == "" || n.Deadline == nil || n.Withdrawn {
		return false
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{n.Source, n.Subject, n.InstanceAction, strconv.FormatInt(n.Deadline.Time.Unix(), 10)}, "\n")))
	return slices.Contains(handled, fmt.Sprintf("change-%x", sum[:8]))
}

// withShutdown sets the deadline of a shutdown notice as the guide says: an estimate of two
// minutes while the instance shuts down, and now once it is off.
func withShutdown(n v1beta1.Notice) v1beta1.Notice {
	if n.Kind != notice.KindInstanceStateChange {
		return n
	}
	switch n.InstanceState {
	case "stopping", "shutting-down":
		if n.Deadline == nil || n.Deadline.Type != v1beta1.DeadlineEstimated {
			n.Deadline = deadlineAt(n.Time.Add(2*time.Minute), v1beta1.DeadlineEstimated)
		}
	case "stopped", "terminated":
		if n.Deadline == nil || n.Deadline.Type != v1beta1.DeadlineHard {
			n.Deadline = deadlineAt(n.Time.Time, v1beta1.DeadlineHard)
		}
	}
	return n
}

// shutdownDeadline is the deadline that a message about the state of an instance carries.
func shutdownDeadline(state string, at time.Time) *v1beta1.Deadline {
	if state == "stopping" || state == "shutting-down" {
		return deadlineAt(at.Add(2*time.Minute), v1beta1.DeadlineEstimated)
	}
	return deadlineAt(at, v1beta1.DeadlineHard)
}

func deadlineAt(t time.Time, typ v1beta1.DeadlineType) *v1beta1.Deadline {
	return &v1beta1.Deadline{Time: metav1.NewTime(t), Type: typ}
}

func isOff(n v1beta1.Notice) bool {
	return n.Kind == notice.KindInstanceStateChange && (n.InstanceState == "stopped" || n.InstanceState == "terminated")
}

func firm(d *v1beta1.Deadline) bool { return d != nil && d.Type != v1beta1.DeadlineSoft }

func (v *verdict) drains() bool {
	return !v.withdrawn && (v.action == v1beta1.ActionDrain || v.action == v1beta1.ActionTerminate)
}

func (v *verdict) drainsNow() bool {
	return v.drains() && (v.notBefore.IsZero() && !v.awaits || !v.begun.IsZero())
}

// about is the verdict if one of some notices decides. The machine ends at the earliest time that any
// standing notice states.
func (c case_) about(standing, notices []v1beta1.Notice) verdict {
	v := verdict{notice: ruling(notices)}
	v.begun = c.servedSince(v.notice)
	v.instanceGone = slices.ContainsFunc(standing, isOff)
	v.effectivePolicy = effectivePolicy(c.policies, c.node)
	v.rule = c.ruleOf(v.notice)
	v.action = v.rule.Action
	v.deadline = c.deadlineOf(&v, notices)
	v.notBefore = c.beginning(&v)
	if c.wasMoved(&v) {
		v.begun = time.Time{}
	}
	if v.notBefore.IsZero() {
		v.deadline = c.inLastHour(v.notice, v.deadline)
	}
	if v.drains() || v.action == v1beta1.ActionCordon {
		v.deadline = c.firstEnd(&v, standing)
	}
	c.consent(&v)
	return v
}

// wasMoved reports whether the cloud moved the change since the action began, so far that it would not
// have begun yet.
func (c case_) wasMoved(v *verdict) bool {
	was, is := c.record.Status.Deadline, v.notice.Deadline
	return !v.notBefore.IsZero() && was != nil && is != nil && is.Time.After(was.Time.Time)
}

// inLastHour makes the date of a planned change hard in its last hour.
func (c case_) inLastHour(n v1beta1.Notice, d *v1beta1.Deadline) *v1beta1.Deadline {
	if d == nil || firm(d) || c.now.Before(d.Time.Add(-time.Hour)) || !c.now.Before(d.Time.Time) ||
		n.Kind != notice.KindScheduledChange || n.InstanceAction == "" || n.InstanceAction == "maintain" {
		return d
	}
	return deadlineAt(d.Time.Time, v1beta1.DeadlineHard)
}

// firstEnd is the end of the machine: what decides may end it, or another standing notice earlier.
func (c case_) firstEnd(v *verdict, standing []v1beta1.Notice) *v1beta1.Deadline {
	best := v.deadline
	if v.notice.Kind == notice.KindRequested && best != nil && !best.Time.After(c.now) {
		best = nil
	}
	for _, n := range standing {
		d := c.inLastHour(n, n.Deadline)
		if n.Kind == notice.KindAutoScalingTermination {
			d = c.extended(c.servedSince(n), standing, d)
		}
		if n.ID == v.notice.ID || n.Kind == notice.KindRequested || !firm(d) || v.instanceGone && d.Type == v1beta1.DeadlineEstimated {
			continue
		}
		firmer := best != nil && best != v.deadline && d.Time.Equal(&best.Time) && d.Type == v1beta1.DeadlineHard
		if best == nil || !firm(best) || d.Time.Before(&best.Time) || firmer {
			best = d
		}
	}
	if best == nil {
		return v.deadline
	}
	return best
}

// hastened is a verdict whose deadline a person's request makes earlier.
func (c case_) hastened(v verdict, standing []v1beta1.Notice) verdict {
	asked := slices.DeleteFunc(slices.Clone(standing), func(n v1beta1.Notice) bool { return n.Kind != notice.KindRequested })
	if len(asked) == 0 || v.instanceGone || v.notice.Kind == notice.KindRequested {
		return v
	}
	if v.notice.Kind != notice.KindAutoScalingTermination && !firm(v.deadline) {
		return v // it can be moved, and a pause stops it
	}
	r := c.about(standing, asked)
	if by := r.notice.Deadline; by != nil && r.drainsNow() && by.Time.After(c.now) && (v.deadline == nil || by.Time.Before(&v.deadline.Time)) {
		v.deadline = by
	}
	return v
}

// ruling is the deciding notice.
func ruling(notices []v1beta1.Notice) v1beta1.Notice {
	rank := func(n v1beta1.Notice) int {
		switch {
		case n.Kind == notice.KindRequested:
			return 4
		case isOff(n):
			return 0
		case firm(n.Deadline):
			return 1
		case n.Kind == notice.KindAutoScalingTermination:
			return 2
		case n.Deadline != nil:
			return 3
		}
		return 4
	}
	best := notices[0]
	for _, n := range notices[1:] {
		switch {
		case rank(n) != rank(best):
			if rank(n) < rank(best) {
				best = n
			}
		case rank(n) < 4 && n.Deadline != nil && best.Deadline != nil && !n.Deadline.Time.Equal(&best.Deadline.Time):
			if n.Deadline.Time.Before(&best.Deadline.Time) {
				best = n
			}
		case rank(n) < 4 && n.Deadline != nil && best.Deadline != nil && n.Deadline.Type != best.Deadline.Type:
			if n.Deadline.Type == v1beta1.DeadlineHard {
				best = n
			}
		case !n.Time.Before(&best.Time):
			best = n
		}
	}
	return best
}

// effectivePolicy is the policy that applies to a node.
func effectivePolicy(policies []v1beta1.InterruptionPolicy, n *corev1.Node) *v1beta1.InterruptionPolicy {
	var best *v1beta1.InterruptionPolicy
	for i := range policies {
		p := &policies[i]
		if !selects(p, n) {
			continue
		}
		if best == nil || p.Spec.Priority > best.Spec.Priority || p.Spec.Priority == best.Spec.Priority && p.Name < best.Name {
			best = p
		}
	}
	return best
}

func selects(p *v1beta1.InterruptionPolicy, n *corev1.Node) bool {
	of := p.Spec.Nodes
	if n == nil {
		return len(of.MatchLabels) == 0 && len(of.NodePools) == 0
	}
	for key, value := range of.MatchLabels {
		if n.Labels[key] != value {
			return false
		}
	}
	return len(of.NodePools) == 0 || slices.Contains(of.NodePools, n.Labels["karpenter.sh/nodepool"])
}

// ruleFor is the first rule of the policy for a notice, or the default.
func (c case_) ruleFor(p *v1beta1.InterruptionPolicy, n v1beta1.Notice) v1beta1.Rule {
	if p != nil {
		for _, r := range p.Spec.Rules {
			if slices.Contains(r.Kinds, n.Kind) || slices.Contains(r.Kinds, "*") {
				return r
			}
		}
	}
	switch n.Kind {
	case notice.KindSpotInterruption, notice.KindInstanceStateChange, notice.KindAutoScalingTermination:
		return v1beta1.Rule{Action: v1beta1.ActionDrain}
	case notice.KindScheduledChange:
		if n.InstanceAction == "stop" || n.InstanceAction == "reboot" {
			return v1beta1.Rule{Action: v1beta1.ActionDrain}
		}
	}
	return v1beta1.Rule{Action: v1beta1.ActionNotify}
}

// deadlineOf is the effective deadline: the earliest firm one, or else the earliest. A drain
// without a deadline gets its own.
func (c case_) deadlineOf(v *verdict, notices []v1beta1.Notice) *v1beta1.Deadline {
	var best *v1beta1.Deadline
	for _, n := range notices {
		d := n.Deadline
		if d == nil || n.Kind == notice.KindRequested || v.instanceGone && d.Type == v1beta1.DeadlineEstimated {
			continue
		}
		sooner := best != nil && (d.Time.Before(&best.Time) || d.Time.Equal(&best.Time) && d.Type == v1beta1.DeadlineHard)
		if best == nil || firm(d) && !firm(best) || firm(d) == firm(best) && sooner {
			best = d
		}
	}
	switch begun := v.begun; {
	case v.notice.Kind == notice.KindRequested && v.drains():
		return v.notice.Deadline
	case v.notice.Kind == notice.KindAutoScalingTermination && v.drains():
		return c.extended(begun, notices, best)
	case best == nil && v.action == v1beta1.ActionTerminate && !begun.IsZero() && !c.held():
		return deadlineAt(latest(begun, c.released()).Add(2*time.Minute).Truncate(time.Second), v1beta1.DeadlineHard)
	}
	return best
}

// servedSince is when the drain began to serve the subject of a notice; zero: it does not. An instance that is
// stopping continues what was begun. One change can be reported by two sources.
func (c case_) servedSince(n v1beta1.Notice) time.Time {
	d := c.record.Status.Drain
	if d == nil || d.StartTime == nil {
		return time.Time{}
	}
	serves := d.Subject == "" || d.Subject == subjectOf(n) || n.Kind == notice.KindInstanceStateChange
	for _, other := range c.record.Spec.Notices {
		if subjectOf(other) == d.Subject && other.Kind == n.Kind && (other.InstanceAction == "reboot") == (n.InstanceAction == "reboot") &&
			other.Deadline != nil && n.Deadline != nil && other.Deadline.Time.Sub(n.Deadline.Time.Time).Abs() <= time.Hour {
			serves = true
		}
	}
	switch {
	case !serves:
		return time.Time{}
	case d.SubjectTime != nil:
		return d.SubjectTime.Time
	}
	return d.StartTime.Time
}

// begun is when the drain began; zero: there is none.
func (c case_) begun() time.Time {
	if d := c.record.Status.Drain; d != nil && d.StartTime != nil {
		return d.StartTime.Time
	}
	return time.Time{}
}

// handledIn are the keys of the notices that need nothing any more.
func handledIn(in *v1beta1.Interruption) (keys []string) {
	for _, e := range in.Status.History {
		keys = append(keys, e.HandledNotices...)
	}
	return keys
}

// endedBefore is when the interruption before this one was over; zero: there was none.
func endedBefore(in *v1beta1.Interruption) (at time.Time) {
	for _, e := range in.Status.History {
		over := e.Outcome == v1beta1.OutcomeCompleted || e.Outcome == v1beta1.OutcomeCancelled
		if over && (in.Status.CompletionTime == nil || e.EndTime.Before(in.Status.CompletionTime)) {
			at = e.EndTime.Time
		}
	}
	return at
}

// activeHold is a person's hold of this interruption, or nil.
func (c case_) activeHold() *v1beta1.UserAction {
	hold := c.record.Spec.Hold
	if hold == nil || c.isFuture(hold) || !hold.Time.After(endedBefore(c.record)) {
		return nil
	}
	return hold
}

// isFuture reports whether a person's clock, or forgery, is more than five minutes ahead.
func (c case_) isFuture(a *v1beta1.UserAction) bool { return a.Time.After(c.now.Add(5 * time.Minute)) }

func (c case_) held() bool {
	hold := c.activeHold()
	return hold != nil && (hold.Until == nil || hold.Until.After(c.now))
}

// released is when the last hold ended. In the model's worlds a hold ends only when it expires.
func (c case_) released() time.Time {
	if hold := c.activeHold(); hold != nil && hold.Until != nil && hold.Until.Time.Before(c.now) {
		return hold.Until.Time
	}
	return time.Time{}
}

// consent sets whether the rule needs an approval that is missing.
func (c case_) consent(v *verdict) {
	if v.rule.Approval != v1beta1.ApprovalRequired || v.instanceGone {
		return
	}
	say := c.record.Spec.Approval
	if say != nil && !c.isFuture(say) && say.About == subjectOf(v.notice) && say.Time.After(endedBefore(c.record)) {
		return
	}
	if v.rule.IfUnanswered == v1beta1.UnansweredProceed {
		v.proceedsAt = v.notice.Time.Add(time.Hour)
		if v.deadline != nil {
			v.proceedsAt = v.deadline.Time.Add(-time.Hour)
		}
		if !v.proceedsAt.After(c.now) {
			v.proceedsAt = time.Time{}
			return
		}
	}
	v.awaits = true
}

// subjectOf is the subject that an approval names.
func subjectOf(n v1beta1.Notice) string { return strings.TrimSpace(n.Kind + " " + n.Subject) }

// share is how many of the nodes a budget allows at the same time.
func share(b *v1beta1.Budget, nodes int) int {
	text, isPercent := strings.CutSuffix(b.MaxConcurrent.String(), "%")
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	if isPercent {
		n = (n*nodes + 99) / 100
	}
	return max(n, 1)
}
