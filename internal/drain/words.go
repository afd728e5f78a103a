package drain

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
)

// longestReason is the limit of the Interruption's status.
const longestReason = 512

// clock formats a time that is minutes away.
func clock(t time.Time) string { return t.UTC().Format("15:04:05") + " UTC" }

// date formats a time that may be days away.
func date(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") + " UTC" }

// seconds formats a duration in whole seconds, like grace periods.
func seconds(d time.Duration) string { return fmt.Sprintf("%d s", int64(d/time.Second)) }

// successorWait is successorTimeout for people.
func successorWait() string { return fmt.Sprintf("%d min", int64(successorTimeout/time.Minute)) }

// timing says which grace the pod gets, and whether it fits. It does not count down: the record would be
// written again in each pass in which nothing else changed.
func (s *planContext) timing(c *podState, cut *int64) string {
	switch {
	case s.deadline.IsZero():
		return "grace " + seconds(c.grace)
	case cut != nil:
		return fmt.Sprintf("it gets %d s of its grace of %s, since the deadline %s", *cut, seconds(c.grace), s.whenDeadline())
	}
	spare := s.deadline.Sub(s.now) - c.grace
	switch {
	case s.estimated && spare < 0:
		return fmt.Sprintf("it keeps its grace of %s, since the end of the instance %s is an estimate", seconds(c.grace), s.whenEnd())
	case spare < 0:
		return fmt.Sprintf("grace %s, though the deadline %s", seconds(c.grace), s.whenDeadline())
	}
	return fmt.Sprintf("grace %s ends before the deadline at %s", seconds(c.grace), clock(s.deadline))
}

// whenEnd names the estimated end of the instance.
func (s *planContext) whenEnd() string {
	if !s.now.Before(s.deadline) {
		return "(" + clock(s.deadline) + ", which has passed)"
	}
	return "(" + clock(s.deadline) + ")"
}

func (s *planContext) whenDeadline() string {
	if !s.now.Before(s.deadline) {
		return "passed at " + clock(s.deadline)
	}
	return "comes at " + clock(s.deadline)
}

// byItsTurn is the end of the reason of a pod that waits for something without a known end.
func (s *planContext) byItsTurn(c *podState) string {
	if c.turn.IsZero() {
		return ""
	}
	return fmt.Sprintf("; at %s at the latest", clock(c.turn))
}

// untilWhen says how long something holds the pod: until it expires (zero if unknown), or until
// its turn.
func (s *planContext) untilWhen(c *podState, until time.Time) string {
	switch {
	case !until.IsZero() && (c.turn.IsZero() || until.Before(c.turn)):
		return "until " + date(until)
	case c.turn.IsZero():
		return s.withoutDeadline()
	case c.turn.Before(c.lastCall):
		return fmt.Sprintf("until %s, before its last call at %s: %s", clock(c.turn), clock(c.lastCall), c.whyEarlier())
	}
	return "until its last call at " + clock(c.lastCall)
}

// atTheLatest is the end of the reason of a pod that waits for a budget.
func (s *planContext) atTheLatest(c *podState) string {
	if c.lastCall.IsZero() {
		return s.withoutDeadline()
	}
	return fmt.Sprintf("if that lasts it is deleted at its last call at %s", clock(c.lastCall))
}

// withoutDeadline says why nothing is overridden.
func (s *planContext) withoutDeadline() string {
	if d := s.facts.Deadline; d != nil {
		return fmt.Sprintf("the deadline at %s is soft, so nothing is overridden", date(d.Time.Time))
	}
	return "there is no deadline, so nothing is overridden"
}

// brief shortens a message from elsewhere, so that it fits into a reason.
func brief(why string) string {
	const enough = 160
	if r := []rune(why); len(r) > enough {
		return string(r[:enough-1]) + "…"
	}
	return why
}

func finalizers(pod *corev1.Pod) string {
	if len(pod.Finalizers) == 0 {
		return "its kubelet has not confirmed that it stopped"
	}
	return "its finalizers hold it: " + strings.Join(pod.Finalizers, ", ")
}

// clip shortens a reason to the limit of the status, at a character boundary.
func clip(reason string) string {
	reason = strings.ToValidUTF8(reason, "?")
	if utf8.RuneCountInString(reason) <= longestReason {
		return reason
	}
	return string([]rune(reason)[:longestReason-1]) + "…"
}

// whyZero explains the state of a budget that allows no disruption.
func (b *budget) whyZero() string {
	if b.SyncFailed != "" {
		return "it cannot be computed: " + b.SyncFailed
	}
	counts := fmt.Sprintf("%d of %d pods healthy, %d needed", b.CurrentHealthy, b.ExpectedPods, b.DesiredHealthy)
	if b.atATime() == 0 {
		counts += ", so it never allows any"
	}
	return counts
}

func (b *budget) title() string { return "PodDisruptionBudget " + b.Name }

func disruptions(n int32) string {
	if n == 1 {
		return "1 disruption"
	}
	return fmt.Sprintf("%d disruptions", n)
}

func names(budgets []*budget) []string {
	var all []string
	for _, b := range budgets {
		all = append(all, b.Name)
	}
	return all
}
