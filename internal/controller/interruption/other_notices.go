package interruption

import (
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

// rebooted reports whether the reboot that decides is over: the node was rebooted since it was
// marked for it.
func (f *facts) rebooted(d policy.Decision) bool {
	return d.Notice.InstanceAction == notice.ActionReboot && f.drain().BootID != "" &&
		nodeindex.Ready(f.node) && f.node.Status.NodeInfo.BootID != f.drain().BootID
}

// nothingLeft reports whether nothing is left to drain for after a reboot. An instance that has to
// be terminated, or whose change was moved, is not done.
func (f *facts) nothingLeft(d policy.Decision) bool {
	return f.rebooted(d) && d.Action != v1beta1.ActionTerminate && !f.isRescheduled(d) &&
		!f.isRetained() && !replacement.IsDetached(f.drain().Replacement)
}

// otherNoticeApplies reports whether another notice than the deciding one still applies. If the node
// exists: its deadline is in the future, it reports a failed status check, or a person asked for it. If
// the node is gone: it is a planned change, and nothing else ends the instance.
func (f *facts) otherNoticeApplies(d policy.Decision) bool {
	if d.InstanceGone || f.node == nil && f.endsInstance(d) {
		return false
	}
	return slices.ContainsFunc(notice.Unanswered(f.in.Spec.Notices, notice.Handled(&f.was)), func(n v1beta1.Notice) bool {
		if n.ID == d.Notice.ID || n.Withdrawn {
			return false
		}
		if f.node == nil {
			return f.isPlanned(&n)
		}
		return n.Kind == notice.KindInstanceStatus || n.Kind == notice.KindRequested || n.Deadline != nil && n.Deadline.Time.After(f.now)
	})
}

// endsInstance reports whether what decides ends the instance: a reclaim, its group, Karpenter or
// Lifeboat.
func (f *facts) endsInstance(d policy.Decision) bool {
	return notice.IsFirm(d.Notice.Deadline) || d.Notice.Kind == notice.KindAutoScalingTermination ||
		f.drain().TerminationTime != nil || f.drain().NodeClaimDeletion != nil
}

// isPlanned reports whether a notice is about a change in the future, which can be moved.
func (f *facts) isPlanned(n *v1beta1.Notice) bool {
	return n.Deadline != nil && n.Deadline.Type == v1beta1.DeadlineSoft && n.Deadline.Time.After(f.now)
}

// nodeReturnTimeout is how long a node that was deleted may take to register again, where nothing says
// when its instance ends.
const nodeReturnTimeout = time.Hour

// awaitsNode reports whether the node is gone and its instance may still run: a node that a
// person or a controller deleted registers again, and what was begun for it still applies.
func (f *facts) awaitsNode(d policy.Decision) bool {
	return f.node == nil && f.now.Before(f.nodeReturnsBy(d))
}

// nodeReturnsBy is until when the record waits for its node; zero: it does not.
func (f *facts) nodeReturnsBy(d policy.Decision) time.Time {
	switch {
	case d.InstanceGone, d.Withdrawn:
		return time.Time{}
	case f.isPlanned(&d.Notice): // the decision's deadline is hard in the last hour
		return d.Notice.Deadline.Time.Time
	case lasts(d) && f.drain().NodeClaimDeletion == nil && f.drain().TerminationTime == nil:
		return f.missingSince.Add(nodeReturnTimeout)
	}
	return time.Time{}
}

// missingNodes remembers since when the node of an Interruption is missing. It is best effort: after a
// restart the wait begins again.
type missingNodes struct {
	mu    sync.Mutex
	since map[string]time.Time // by Interruption
}

// observe notes whether the node of an Interruption exists, and returns since when it is missing.
func (m *missingNodes) observe(name string, exists bool, now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if exists {
		delete(m.since, name)
		return time.Time{}
	}
	if _, known := m.since[name]; !known {
		set(&m.since, name, now)
	}
	return m.since[name]
}

// listed returns the pods that the status lists. When the node is gone, a new node may
// have its name: on EC2 these are DNS names, which are reused.
func (f *facts) listed(pods []*corev1.Pod) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool {
		return !slices.ContainsFunc(record.Pending(f.drain()), func(left v1beta1.PodStatus) bool { return left.UID == pod.UID })
	})
}
