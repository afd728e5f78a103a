package policy

import (
	"slices"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// machineEnd returns the deadline of a drain or cordon, and when to decide again about it. own is that
// of what decides. The machine ends at the earliest time that any standing notice states firmly,
// no matter which notice decides. A person's request can only ask for more haste than that.
func machineEnd(f Facts, ruling v1beta1.Notice, own *v1beta1.Deadline, standing []v1beta1.Notice) (*v1beta1.Deadline, time.Time) {
	var firm []v1beta1.Notice
	var next time.Time
	for _, n := range standing {
		if n.Withdrawn {
			continue
		}
		if n.Deadline = f.endStatedBy(n, standing); n.ID == ruling.ID {
			n.Deadline = nil // own is its deadline
		}
		switch {
		case n.ID == ruling.ID && notice.InstanceGone([]v1beta1.Notice{n}):
			firm = append(firm, n)
		case notice.IsFirm(n.Deadline):
			firm = append(firm, n)
		case n.Deadline != nil && disturbs(n) && f.Now.Before(n.Deadline.Time.Add(-lead)):
			next = soonest(next, n.Deadline.Time.Add(-lead))
		}
	}
	end := notice.Deadline(firm)
	switch {
	case end == nil:
		return own, next
	case !notice.IsFirm(own), isRequested(ruling) && !own.Time.After(f.Now), end.Time.Before(&own.Time):
		return end, next
	}
	return own, next
}

// hasten makes the deadline of a drain the time of a person's request, where another notice decides and
// the machine ends later. Nothing ends at that time, so it shortens no grace period. A time that is over
// asks for nothing any more. A planned change keeps its soft deadline: a pause must still stop it.
func hasten(f Facts, d Decision, standing []v1beta1.Notice) Decision {
	if isRequested(d.Notice) || d.InstanceGone || !isTermination(d.Notice) && !notice.IsFirm(d.Deadline) {
		return d
	}
	request, ok := decideOn(f, standing, requests(standing))
	by := request.Notice.Deadline
	switch {
	case !ok, by == nil, !by.Time.After(f.Now), d.Deadline != nil && !by.Time.Before(&d.Deadline.Time):
	case !request.drainsNow(): // it is not approved
		d.Next = soonest(d.Next, request.ProceedsAt)
	default:
		d.Deadline, d.Next = by.DeepCopy(), soonest(d.Next, by.Time.Time)
	}
	return d
}

// endStatedBy returns when the instance ends as a notice says: a change that is near is as hard as a
// reclaim, and a group waits for its hooks.
func (f *Facts) endStatedBy(n v1beta1.Notice, standing []v1beta1.Notice) *v1beta1.Deadline {
	switch {
	case isTermination(n) && f.Extended:
		q := &matchContext{node: f.Node, notice: n}
		c := q.match(f.Policies)
		return c.extended(*f, f.begunFor(n), standing, n.Deadline)
	case n.Deadline == nil || n.Kind != notice.KindScheduledChange:
		return n.Deadline
	}
	return harden(n, n.Deadline, startTime{}, f.Now)
}

// begunFor is when the drain began to serve a notice; zero: it does not. An instance that is stopping
// continues what was begun.
func (f *Facts) begunFor(n v1beta1.Notice) time.Time {
	if !f.servesSubject(n) {
		return time.Time{}
	}
	return f.Begun
}

// servesSubject reports whether what was done to the node was done for the subject of a notice.
func (f *Facts) servesSubject(n v1beta1.Notice) bool {
	switch {
	case f.BegunFor == "":
		return !f.Begun.IsZero()
	case f.BegunFor == about(n), isGoing(n):
		return true
	}
	return slices.ContainsFunc(f.Notices, func(other v1beta1.Notice) bool { return about(other) == f.BegunFor && sameChange(other, n) })
}

// continues reports whether the action continues what was begun for the same subject. It does not if the
// cloud moved the change so far that the action would not have begun yet: it waits for its time or for an approval.
func (f *Facts) continues(n v1beta1.Notice, waits bool) bool {
	moved := waits && n.Deadline != nil && f.BegunDeadline != nil && n.Deadline.Time.After(f.BegunDeadline.Time.Time)
	return f.servesSubject(n) && !moved
}
