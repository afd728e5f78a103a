package policy

import (
	"fmt"
	"strings"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// A policy that is not valid still selects its nodes. Its restrictions cannot be read, so no
// action begins on these nodes without approval. Only what cannot wait is drained, by the
// built-in default.

// whyGuarded says what an invalid policy that selects the node causes.
func (q *matchContext) whyGuarded() string {
	return fmt.Sprintf("no policy that selects the node has a priority above %d, but it is not valid (%s), "+
		"so the built-in default applies, and needs approval unless the instance goes in any case", q.says.Spec.Priority, strings.Join(q.invalid, "; "))
}

// howToCorrect says what is wrong with the policy and what to do; empty if it is valid.
func (q *matchContext) howToCorrect() string {
	if len(q.invalid) == 0 {
		return ""
	}
	more := ""
	if n := len(q.invalid) - 1; n > 0 {
		more = fmt.Sprintf("; and %d more", n)
	}
	return fmt.Sprintf(" (%s%s): correct it, and see `kubectl describe interruptionpolicy %s`", notice.Cut(q.invalid[0], 200), more, q.says.Name)
}

// guard makes the built-in default wait for approval if it replaces an invalid policy, unless
// the instance terminates in any case.
func (q *matchContext) guard(c match, notices []v1beta1.Notice) match {
	deadline := notice.Deadline(notices)
	switch {
	case len(q.invalid) == 0, !begins(c.action):
	case isTermination(q.notice), notice.IsEstimated(deadline), notice.IsFirm(deadline):
	default:
		c.approval = v1beta1.ApprovalRequired
	}
	return c
}

// effectivePolicy is the policy whose workloads, budget, hooks and notifications apply; nil: none.
// Those of an invalid policy do not apply: an invalid part may change the meaning of the others.
func (q *matchContext) effectivePolicy() *v1beta1.InterruptionPolicy {
	if len(q.invalid) > 0 {
		return nil
	}
	return q.says
}

// begins reports whether an action keeps pods off the node, or moves them.
func begins(a v1beta1.Action) bool {
	return a == v1beta1.ActionCordon || a == v1beta1.ActionDrain || a == v1beta1.ActionTerminate
}
