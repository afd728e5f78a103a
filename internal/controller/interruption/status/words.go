package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// summary is a sentence about the result.
func (u *Update) summary() string {
	pods := u.Drain().PodCounts
	if d := u.after.Status.Decision; !record.Drains(d.Action) || len(u.after.Status.Conditions) > 0 &&
		meta.FindStatusCondition(u.after.Status.Conditions, v1beta1.ConditionDrained) == nil {
		return "nothing is left to do"
	}
	text := fmt.Sprintf("%d of %d pods moved, %d lost", pods.Moved, pods.Total, pods.Lost)
	if a := u.after.Status.LifecycleHooks; a != nil && a.ReturnsToWarmPool && a.CompletedTime != nil {
		text += "; the instance went back to the warm pool of group " + a.Group
	}
	return text
}

// slack says how much time was left before the deadline.
func (u *Update) slack() string {
	deadline := u.pass.Decision.Deadline
	if deadline == nil {
		return ""
	}
	left := deadline.Time.Sub(u.now).Round(time.Second)
	if left < 0 {
		return fmt.Sprintf(", %s after the deadline", -left)
	}
	return fmt.Sprintf(", %s before the deadline", left)
}

// departure names a pod that left, with the time that it took.
func departure(left v1beta1.PodStatus, now time.Time) string {
	if left.EvictionTime == nil || left.GraceSeconds == nil {
		return podName(left)
	}
	took := now.Sub(left.EvictionTime.Time).Round(time.Second)
	return fmt.Sprintf("%s (%s of %ds grace)", podName(left), took, *left.GraceSeconds)
}

func podName(left v1beta1.PodStatus) string { return left.Namespace + "/" + left.Name }

// text says what happened to the pods of the group.
func (g *podGroup) text() string {
	if len(slices.Compact(slices.Clone(g.whats))) == 1 {
		return fmt.Sprintf("%s (%d pods: %s)", g.whats[0], len(g.names), strings.Join(g.names, ", "))
	}
	each := make([]string, len(g.names))
	for i, name := range g.names {
		each[i] = name + " " + g.whats[i]
	}
	return fmt.Sprintf("%d pods: %s", len(each), strings.Join(each, "; "))
}

// Clip shortens a message to what the CRD takes.
func Clip(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}
