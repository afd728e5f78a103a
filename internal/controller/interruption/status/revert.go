package status

import (
	"slices"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// RevertEvicted reverts all pods that were marked as evicted.
func (u *Update) RevertEvicted() {
	for _, left := range u.pendingPods() {
		u.revertEvicted(left)
	}
	u.podEvents = nil
}

// revertEvicted reverts a pod that was marked as evicted, and removes its events.
func (u *Update) revertEvicted(left *v1beta1.PodStatus) {
	was, marked := u.markedEvicted[left.UID]
	if !marked {
		return
	}
	pod := left.UID
	*left = was
	delete(u.markedEvicted, pod)
	isEviction := func(e event) bool {
		return e.pod != nil && e.pod.UID == pod && slices.Contains([]string{v1beta1.ReasonProtectionOverridden, v1beta1.ReasonDeleted, v1beta1.ReasonEvicted}, e.Reason)
	}
	u.writtenEvents, u.events, u.timelineDirty = slices.DeleteFunc(u.writtenEvents, isEviction), slices.DeleteFunc(u.events, isEviction), true
}
