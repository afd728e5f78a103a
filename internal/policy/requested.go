package policy

import (
	"fmt"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// isRequested reports whether a person asked for the drain. The person chose the time and the
// action, so no rule of a policy changes them. Its approval, strategy and replacement apply.
func isRequested(n v1beta1.Notice) bool { return n.Kind == notice.KindRequested }

// asRequested makes the action and the time of a rule those that a person asked for.
func (q *matchContext) asRequested(c match) match {
	if !isRequested(q.notice) {
		return c
	}
	if c.action != v1beta1.ActionDrain {
		c.because += fmt.Sprintf("; it says %s, but the request of a person is always Drain", c.action)
		c.action = v1beta1.ActionDrain
	}
	c.window, c.notBefore = nil, 0
	return c
}

// defaultForOthers returns the built-in rule for what AWS does not send, or not yet.
func defaultForOthers(n v1beta1.Notice) defaultRule {
	if isRequested(n) {
		return defaultRule{n.Kind, v1beta1.ActionDrain, true, "a person asked for it"}
	}
	// A kind, a state or a code of a later release.
	return defaultRule{"Unknown", v1beta1.ActionNotify, false, "this release does not know what it means"}
}
