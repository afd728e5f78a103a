package record

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// blockedAfter is how long a drain may make no progress before it counts as blocked. The successor of
// a pod is waited for five minutes, and a budget recovers within the time that a pod takes to start.
const blockedAfter = 15 * time.Minute

// pastLastCallSlack is the time that the controller has to ask a pod after its last call.
const pastLastCallSlack = 5 * time.Second

// Blocked returns since when a drain has made no progress, and what it waits for; zero: it is not
// blocked. Only a drain that no deadline ends can be: a budget, or do-not-disrupt, can hold its pods for
// ever. Holds, pauses and approvals are waits that a person has chosen.
func Blocked(in *v1beta1.Interruption, now time.Time) (since time.Time, why string) {
	d := Drain(&in.Status)
	if notice.Finished(in) || d.StartTime == nil || d.PodCounts.Waiting == 0 || d.PodCounts.Leaving > 0 || !waitsWithoutEnd(in.Status.Deadline, now) ||
		Hold(in, now) != nil || IsPaused(in) || meta.IsStatusConditionFalse(in.Status.Conditions, v1beta1.ConditionCorroborated) {
		return time.Time{}, ""
	}
	since = d.StartTime.Time
	for i := range in.Status.Timeline {
		if e := &in.Status.Timeline[i]; movesPods(e.Reason) && e.Time.After(since) {
			since = e.Time.Time
		}
	}
	if now.Sub(since) < blockedAfter {
		return time.Time{}, ""
	}
	return since, fmt.Sprintf("no deadline ends this drain, and no pod has left: %d wait, such as %s", d.PodCounts.Waiting, WaitsFor(in))
}

// waitsWithoutEnd reports whether pods wait for their budgets as long as necessary. The deadline of a
// planned change becomes hard when it is near.
func waitsWithoutEnd(d *v1beta1.Deadline, now time.Time) bool {
	return d == nil || !notice.IsFirm(d) && d.Time.Time.Before(now)
}

// movesPods reports whether a timeline entry says that a pod moved.
func movesPods(reason string) bool {
	switch reason {
	case v1beta1.ReasonEvicted, v1beta1.ReasonDeleted, v1beta1.ReasonSurged, v1beta1.ReasonPodTerminated, v1beta1.ReasonProtectionOverridden:
		return true
	}
	return false
}

// PastLastCall counts the pods that wait to be asked to leave although their last call is over: each of
// them loses grace with every second.
func PastLastCall(in *v1beta1.Interruption, now time.Time) int {
	if notice.Finished(in) || in.Status.Decision == nil || !Drains(in.Status.Decision.Action) {
		return 0
	}
	n := 0
	for _, p := range Pending(Drain(&in.Status)) {
		// A pause or a refusal leaves a pod that is due unasked.
		if waits := p.EvictionTime == nil && p.State != v1beta1.PodLeaving && p.State != v1beta1.PodLost; waits && p.LastCallTime != nil && now.Sub(p.LastCallTime.Time) > pastLastCallSlack {
			n++
		}
	}
	return n
}
