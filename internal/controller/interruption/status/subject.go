package status

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/hooks"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// Subject is what hooks and notifications get as input.
func (u *Update) Subject() hooks.Subject {
	s := hooks.Subject{
		Interruption: u.before.Name, UID: u.before.UID, InstanceID: u.before.Spec.InstanceID, Node: u.after.Status.NodeName,
		Since: record.Since(&u.after.Status), Drain: drainID(&u.after.Status), Kind: u.after.Status.Kind, Phase: u.after.Status.Phase, Drill: record.IsDrill(u.after), Pods: u.Drain().PodCounts,
	}
	if d := u.after.Status.Decision; d != nil {
		s.Policy, s.Reason, s.Message = d.EffectivePolicy, string(d.Action), d.Message
	}
	if d := u.after.Status.Deadline; d != nil {
		s.Deadline = &d.Time.Time
	}
	return s
}

// drainID identifies a drain by its start time; empty: it has not begun.
func drainID(s *v1beta1.InterruptionStatus) string {
	if begun := record.Begun(s); !begun.IsZero() {
		return fmt.Sprint(begun.UnixMicro())
	}
	return ""
}

// ForTimeline begins an update that leaves the drain as it is, such as one of
// status.notifications.
func ForTimeline(in *v1beta1.Interruption, now time.Time) *Update {
	u := &Update{now: now, before: in.DeepCopy(), after: in}
	u.entries = u.before.Status.Timeline
	return u
}

// About sets the node that Kubernetes Events are about; it may be nil.
func (u *Update) About(node *corev1.Node) *Update {
	u.node = node
	return u
}
