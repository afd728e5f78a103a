package cli

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/drill"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

const (
	// recordTimeout is the time within which Lifeboat must record the notice after it
	// was sent. EventBridge can take several seconds.
	recordTimeout = time.Minute
	// endTimeout is how long an interruption may take after the instance is gone.
	endTimeout = 5 * time.Minute
	// restoreAfter is how long lifeboatd waits after the deadline of an instance
	// that still runs, and atRiskPeriod how long a node counts as at risk. Then
	// lifeboatd restores the node.
	restoreAfter = 10 * time.Minute
	atRiskPeriod = time.Hour
)

// outcome is the result of the interruption of one target.
type outcome struct {
	InstanceID string            `json:"instanceID"`
	Node       string            `json:"node,omitempty"`
	Phase      v1beta1.Phase     `json:"phase"`
	Pods       v1beta1.PodCounts `json:"pods"`
	// SecondsTaken is the time from the first notice to the end; 0 while it is
	// in progress.
	SecondsTaken float64 `json:"secondsTaken"`
	// Message says what it waits for, or how it ended.
	Message string `json:"message,omitempty"`
}

// drillWatch waits until Lifeboat has handled a drill.
type drillWatch struct {
	session *session
	cluster cluster
	targets []drill.Target
	kind    string
	// waitForEnd says to wait until the node is gone or has recovered. Otherwise it
	// waits until no pod is left to move.
	waitForEnd bool
	// limit is the maximum time for that.
	limit time.Duration
	// before holds the ids of the notices that existed before the drill.
	before map[string]bool
	// latest is the newest version of each instance's record that has a notice
	// of the drill.
	latest map[string]*v1beta1.Interruption
	events *timeline
}

// beforeDrill records the existing notices, so that they are not mistaken for
// the drill's.
func (s *session) beforeDrill(ctx context.Context, it *drilling) (*drillWatch, error) {
	c, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	var all v1beta1.InterruptionList
	if err := c.list(ctx, "interruptions", &all); err != nil {
		return nil, err
	}
	w := &drillWatch{
		session: s, cluster: c, targets: it.targets, kind: it.flags.of.Name, waitForEnd: it.flags.until == untilCompleted, limit: it.maxWait(),
		before: map[string]bool{}, latest: map[string]*v1beta1.Interruption{}, events: newTimeline(),
	}
	for i := range all.Items {
		for _, n := range all.Items[i].Spec.Notices {
			w.before[n.ID] = true
		}
		w.events.news(&all.Items[i])
	}
	return w, nil
}

// maxWait returns the maximum time that the drill may take.
func (it *drilling) maxWait() time.Duration {
	f := it.flags
	lead := max(f.lead, drill.Lead) + endTimeout
	switch {
	case it.isRecommendation():
		return f.delay + lead
	case f.via == viaFIS || f.until == untilDrained:
		return lead
	case f.of.Lead == 0:
		return lead + atRiskPeriod
	}
	return lead + restoreAfter
}

// run waits until every target's interruption has reached its goal. It prints
// the timeline if show is set. It fails if Lifeboat records no notice in time,
// takes too long or loses a pod.
func (w *drillWatch) run(ctx context.Context, progress *terminal.Progress, show bool) ([]outcome, error) {
	progress.Step("waiting for Lifeboat to record the notice")
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	recordTimer := time.AfterFunc(recordTimeout, func() {
		cancel(fmt.Errorf("no notice was recorded within %s: check that lifeboatd runs, and run `%s doctor` to check the EventBridge rules and the queue",
			terminal.Duration(recordTimeout), w.session.name))
	})
	defer recordTimer.Stop()
	limitTimer := time.AfterFunc(w.limit, func() {
		cancel(fmt.Errorf("the interruption did not finish within %s after the notice; run `%s watch` to see its progress", terminal.Duration(w.limit), w.session.name))
	})
	defer limitTimer.Stop()

	err := w.cluster.listWatch(limited, listWatchOptions{
		onChange: func(in *v1beta1.Interruption) bool {
			w.update(in, progress, show)
			if len(w.latest) == len(w.targets) {
				recordTimer.Stop()
			}
			return w.allReachedGoal()
		},
		onListed: w.allReachedGoal,
		warn:     func(text string) { progress.Print(w.session.err, text+"\n") },
	})
	if ctx.Err() == nil && limited.Err() != nil {
		err = context.Cause(limited)
	}
	if err != nil {
		return w.outcomes(), err
	}
	w.printOutcomes(progress)
	return w.outcomes(), w.verdict()
}

// printOutcomes prints the final state of each target.
func (w *drillWatch) printOutcomes(progress *terminal.Progress) {
	if w.session.isJSON() {
		return
	}
	for _, o := range w.outcomes() {
		name := record.NodeName(w.latest[o.InstanceID])
		text := fmt.Sprintf("%s is %s", name, o.Phase)
		if o.Message != "" {
			text += ": " + o.Message
		}
		if o.Phase == v1beta1.PhaseAwaitingApproval {
			text += fmt.Sprintf("\nrun `%s explain %s` to see which policy requires it", w.session.name, name)
		}
		if o.Phase == v1beta1.PhaseScheduled {
			text += fmt.Sprintf("\nnothing happens to it until then; run `%s watch %s` to follow it", w.session.name, name)
		}
		progress.Print(w.session.out, text+"\n")
	}
}

func (w *drillWatch) update(in *v1beta1.Interruption, progress *terminal.Progress, show bool) {
	if !w.isTarget(in) {
		return
	}
	if show {
		for _, e := range w.events.news(in) {
			progress.Print(w.session.out, e.line(w.session.out))
		}
	}
	if !w.hasDrillNotice(in) {
		return
	}
	w.latest[in.Spec.InstanceID] = in
	pods := record.Drain(&in.Status).PodCounts
	if w.waitForEnd && record.IsSettled(in) {
		progress.Step("%s: %s; %s", record.NodeName(in), in.Status.Phase, record.Message(in))
		return
	}
	progress.Step("%s: %s, %d of %d pods moved", record.NodeName(in), in.Status.Phase, pods.Moved, pods.Total)
}

func (w *drillWatch) isTarget(in *v1beta1.Interruption) bool {
	for _, t := range w.targets {
		if t.InstanceID == in.Spec.InstanceID {
			return true
		}
	}
	return false
}

// hasDrillNotice reports whether the record has a notice of the drill. A spot drill
// also causes a rebalance recommendation, which does not count.
func (w *drillWatch) hasDrillNotice(in *v1beta1.Interruption) bool {
	for _, n := range in.Spec.Notices {
		if n.Kind == w.kind && !w.before[n.ID] {
			return true
		}
	}
	return false
}

// allReachedGoal reports whether every target has reached the goal of the wait.
func (w *drillWatch) allReachedGoal() bool {
	for _, t := range w.targets {
		if in := w.latest[t.InstanceID]; in == nil || !w.reachedGoal(in) {
			return false
		}
	}
	return true
}

// reachedGoal reports whether a record has reached the goal of the wait: its end, or
// no pod left to move. A record that waits for its start time also counts,
// because that can be weeks away.
func (w *drillWatch) reachedGoal(in *v1beta1.Interruption) bool {
	switch {
	case isPostponed(in):
		return true
	case w.waitForEnd:
		return record.IsSeen(in) && (record.IsCompleted(in) || in.Status.Phase == v1beta1.PhaseCancelled)
	}
	return record.IsSettled(in)
}

// isPostponed reports whether the action waits for its start time, or for a
// person. One that is queued is not postponed, because it starts when another
// drain ends.
func isPostponed(in *v1beta1.Interruption) bool {
	if !record.IsSeen(in) {
		return false
	}
	ready := meta.FindStatusCondition(in.Status.Conditions, v1beta1.ConditionReady)
	waits := ready != nil && ready.Reason == v1beta1.ReasonWaiting
	return in.Status.Phase == v1beta1.PhaseAwaitingApproval || (in.Status.Phase == v1beta1.PhaseScheduled && waits)
}

func (w *drillWatch) outcomes() []outcome {
	var all []outcome
	for _, t := range w.targets {
		o := outcome{InstanceID: t.InstanceID, Node: t.Node}
		if in := w.latest[t.InstanceID]; in != nil {
			o.Phase, o.Pods, o.Message = in.Status.Phase, record.Drain(&in.Status).PodCounts, record.Message(in)
			if done := in.Status.CompletionTime; done != nil {
				o.SecondsTaken = done.Sub(record.FirstNotice(in)).Round(time.Millisecond).Seconds()
			}
		}
		all = append(all, o)
	}
	return all
}

func (w *drillWatch) verdict() error {
	lost := map[types.UID]int32{}
	for _, in := range w.latest {
		lost[in.UID] = record.Drain(&in.Status).PodCounts.Lost
	}
	return lostError(lost)
}
