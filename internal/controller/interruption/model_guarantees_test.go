package interruption

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/status"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// noticeDue is how long the product may take to handle an accepted notice.
const noticeDue = status.FlushInterval + 2*time.Second

// checkReopened checks that a completed record is reopened only for a notice that it did not have at
// its completion. The clocks that stamped the notices may be wrong.
func (b *bookkeeping) checkReopened(is *v1beta1.Interruption) {
	i := b.inst(is.Name)
	if !slices.ContainsFunc(is.Spec.Notices, func(n v1beta1.Notice) bool { return !i.completed[n.ID] }) {
		b.run.broken(handledOnce, "%s is reopened without a notice that it did not have when it was completed", is.Name)
	}
}

// noteCompletion records which notices a record had when it was completed.
func (b *bookkeeping) noteCompletion(is *v1beta1.Interruption) {
	i := b.inst(is.Name)
	i.completed = map[string]bool{}
	for _, n := range is.Spec.Notices {
		i.completed[n.ID] = true
	}
}

// checkNoticeHandled checks, after a time without faults, that the product has handled an accepted notice:
// its record is not finished and says so, or it was completed with that notice in it.
func (b *bookkeeping) checkNoticeHandled(instance, id string, from time.Time) {
	due := b.quietSpan(latest(from, b.inst(instance).changed), noticeDue+b.run.slack())
	if now := b.run.c.Now(); due.After(now) || b.run.life == nil {
		if now.Before(b.busyUntil) {
			b.run.c.At(latest(due, now.Add(time.Second)), "notice "+id, func() { b.checkNoticeHandled(instance, id, from) })
		}
		return
	}
	in := b.recordOf(instance)
	if in == nil {
		return
	}
	at := slices.IndexFunc(in.Spec.Notices, func(n v1beta1.Notice) bool { return n.ID == id && !n.Withdrawn })
	if at < 0 {
		return
	}
	if meta.IsStatusConditionFalse(in.Status.Conditions, v1beta1.ConditionCorroborated) {
		return // the notice does not count until EC2 confirms it
	}
	b.obliged++
	seen := slices.IndexFunc(in.Spec.Notices, func(n v1beta1.Notice) bool { return n.ID == in.Status.LastNoticeID })
	switch {
	case in.Status.CompletionTime != nil && !b.inst(instance).completed[id]:
		b.run.fail("%s is completed, and %s was accepted since and is not acted on", instance, id)
	case seen < at || in.Status.Decision == nil:
		b.run.fail("the record of %s does not say what is done about %s: decision %+v", instance, id, in.Status.Decision)
	}
}

// checkHandled checks that a planned change or a reclaim counts as handled only after it has
// happened, or when it cannot happen any more.
func (b *bookkeeping) checkHandled(was, is *v1beta1.Interruption) {
	now, i := b.run.c.Now(), b.inst(is.Name)
	for _, n := range is.Spec.Notices {
		if n.Withdrawn || n.Deadline == nil || !n.Deadline.Time.After(now) || !i.off.IsZero() || !i.terminated.IsZero() ||
			isHandledNotice(n, handledIn(was)) || !isHandledNotice(n, handledIn(is)) || b.run.group != nil {
			continue
		}
		c := case_{record: is.DeepCopy(), node: b.nodeOf(is.Name), now: now}
		c.record.Status.History = was.Status.History
		c.policies = b.policies()
		v, _ := c.ask()
		rebooted := n.InstanceAction == notice.ActionReboot && i.booted.After(case_{record: was}.begun())
		lately := now.Sub(i.changed) < behind || now.Sub(b.run.lastPolicyChange()) < behind
		// A reclaim takes the instance before any planned change that is also recorded.
		reclaimed := c.node == nil && (n.Deadline.Type != v1beta1.DeadlineSoft || firm(v.notice.Deadline))
		// An instance whose termination Lifeboat requested counts as alive if it still exists
		// ten minutes later.
		asked := was.Status.Drain != nil && was.Status.Drain.TerminationTime != nil && v.action == v1beta1.ActionTerminate
		if asked || v.instanceGone || rebooted || lately || reclaimed {
			continue
		}
		b.run.fail("%s of %s counts as handled %s before its deadline", n.ID, is.Name, n.Deadline.Time.Sub(now))
	}
}

// checkRestored checks that a node that is drained for a planned reboot is not restored before it.
// An instance that Lifeboat asked EC2 to terminate counts as alive after ten minutes.
func (b *bookkeeping) checkRestored(n *corev1.Node) {
	id := instanceOf(n)
	v, ok := b.decision(id)
	i := b.inst(id)
	if !ok || !i.terminated.IsZero() || !v.drainsNow() || v.notice.InstanceAction != notice.ActionReboot || i.booted.After(i.cordonedLast) ||
		!b.run.c.Now().Before(v.deadline.Time.Time) {
		return
	}
	b.run.fail("node %s is restored %s before its planned reboot", n.Name, v.deadline.Time.Sub(b.run.c.Now()))
}

// checkTerminated checks that the action Terminate has an effect once the firm deadline is over, even
// if the kubelet never confirms that the pods have stopped. Before a soft
// deadline budgets hold pods without limit.
func (b *bookkeeping) checkTerminated(instance string, begun time.Time) {
	in, i, now := b.recordOf(instance), b.inst(instance), b.run.c.Now()
	v, ok := b.decision(instance)
	if !i.terminated.Before(begun) {
		b.obliged++
		b.ended++
		return
	}
	if in == nil || in.Spec.Hold != nil || !ok || v.action != v1beta1.ActionTerminate || v.instanceGone || !i.off.IsZero() || b.nodeOf(instance) == nil ||
		!firm(v.deadline) || !(case_{record: in}).begun().Equal(begun) || !confirmed(v.notice.Kind, in.Spec.Notices) {
		return
	}
	from := latest(i.changed, b.run.lastPolicyChange(), v.deadline.Time.Time)
	if due := b.quietSpan(from, terminateRetry+askWithin+b.run.slack()); due.After(now) || b.run.life == nil {
		b.run.c.At(latest(due, now.Add(time.Second)), "end of "+instance, func() { b.checkTerminated(instance, begun) })
		return
	}
	for _, page := range b.pods {
		if page.instance == instance && page.gone.IsZero() && (respectedHold(page.pod, v.worth()) || mayKeepPods(v)) {
			return
		}
	}
	b.run.fail("%s had to be terminated by %s: %+v", instance, b.at(v.deadline.Time.Time), in.Status.Drain)
}

// confirmed reports whether EC2 confirms a kind of notice in the model, so that Lifeboat may end the
// instance. Its spot requests do. For a scheduled change a poll must have read it, and of the
// other kinds one notice must come from elsewhere than the agent.
func confirmed(kind string, all []v1beta1.Notice) bool {
	return kind == notice.KindSpotInterruption || slices.ContainsFunc(all, func(n v1beta1.Notice) bool {
		switch {
		case n.Kind != kind || n.Withdrawn:
			return false
		case kind == notice.KindScheduledChange:
			return n.Source == notice.SourceEC2
		}
		return n.Source != notice.SourceIMDS
	})
}
