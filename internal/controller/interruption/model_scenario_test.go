package interruption

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/model"
)

// scheduleEvents draws what happens to the nodes.
func (r *modelRun) scheduleEvents() {
	names := r.nodeNames()
	for i, name := range names[2:] {
		s := &instanceScenario{modelRun: r, node: name, instance: fmt.Sprintf("i-%d", i+2), at: r.c.Now().Add(r.c.Between(0, 40*time.Second))}
		if r.c.Chance(.4) { // all at once
			s.at = r.c.Now().Add(10 * time.Second)
		}
		s.draw()
	}
	r.scheduleOthers(names)
}

// scheduleOthers draws changes by people and other controllers.
func (r *modelRun) scheduleOthers(names []string) {
	for range r.c.Rand.IntN(6) {
		name, at := pick(r, names...), r.c.Now().Add(r.c.Between(0, 5*time.Minute))
		lasts := r.c.Between(10*time.Second, 10*time.Minute)
		do := pick(r,
			func() { r.bookkeeping.change(name, func(n *corev1.Node) { n.Labels["touched"] = "yes" }) },
			func() {
				r.bookkeeping.change(name, func(n *corev1.Node) {
					n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "pressure", Effect: corev1.TaintEffectPreferNoSchedule})
				})
			},
			func() { r.bookkeeping.uncordon(name) },
			func() { r.bookkeeping.deleteRecord(name) },
			r.changePolicy, r.changePolicy,
			func() { r.bookkeeping.setStatement(name, approves) }, func() { r.bookkeeping.setStatement(name, approves) },
			func() { r.bookkeeping.setStatement(name, holdsFor(lasts)) },
			func() { r.bookkeeping.setStatement(name, releases) },
		)
		r.c.At(at, "a user", do)
	}
}

func (r *modelRun) changePolicy() {
	key := model.Key{Kind: "InterruptionPolicy", Name: "policy0"}
	r.bookkeeping.policyChanged = r.c.Now()
	if r.Get(key) == nil {
		if _, err := r.Create(r.drawPolicy("policy0")); err != nil {
			panic(err)
		}
	} else if r.c.Chance(.5) {
		r.Remove(key)
	} else {
		r.Put(r.drawPolicy("policy0"))
	}
	r.note("policy0 changed by others")
}

// instanceScenario is what happens to one instance.
type instanceScenario struct {
	*modelRun
	node, instance string
	at             time.Time
	serial         int
	// sink takes the notices instead of the intake, in tests that only need those.
	sink func(notice.Notice, time.Time)
}

func (s *instanceScenario) draw() {
	switch s.c.Rand.IntN(8) {
	case 0, 1, 2:
		s.spot()
	case 3:
		s.rebalance()
	case 4:
		s.planned()
	case 5:
		s.planned()
		s.at = s.at.Add(s.c.Between(0, 10*time.Minute))
		s.spot()
	case 6:
		s.state(notice.StateStopping, s.at)
		s.off(s.at.Add(s.c.Between(5*time.Second, time.Minute)))
	default:
		n := s.notice(notice.KindInstanceStatus, s.at)
		n.Source = notice.SourceEC2
		s.send(n, s.at.Add(time.Second))
		s.kubeletDies(s.at)
		s.until(s.at.Add(2 * time.Hour))
	}
	if s.c.Chance(.2) {
		s.rebalance()
	}
	if s.c.Chance(.15) { // an instance that survived is interrupted again
		s.at = s.at.Add(s.c.Between(12*time.Minute, time.Hour))
		s.spot()
	}
}

func (s *instanceScenario) notice(kind string, at time.Time) notice.Notice {
	s.serial++
	at = at.Truncate(time.Second)
	return notice.Notice{InstanceID: s.instance, Notice: v1beta1.Notice{
		ID: fmt.Sprintf("%s-%s-%d", kind, s.instance, s.serial), Kind: kind, Source: s.source(), Time: metav1.NewTime(at),
	}}
}

// send delivers a notice, sometimes twice.
func (s *instanceScenario) send(n notice.Notice, at time.Time) {
	if s.sink != nil {
		s.sink(n, at)
		return
	}
	s.note("at %.1f: %s, deadline %v", at.Sub(modelEpoch).Seconds(), n.ID, n.Deadline)
	s.deliver(at, s.instance, n, 1)
	if s.c.Chance(.2) {
		s.deliver(at.Add(s.c.Between(0, 20*time.Second)), s.instance, n, 15)
	}
	if n.Deadline != nil {
		s.until(n.Deadline.Time.Time)
	}
}

// until keeps the run going until well after a time.
func (s *instanceScenario) until(at time.Time) {
	if end := at.Add(150 * time.Minute); end.After(s.horizon) {
		s.horizon = end
	}
	if end := at.Add(20 * time.Minute); end.After(s.bookkeeping.busyUntil) {
		s.bookkeeping.busyUntil = end
	}
}

func (s *instanceScenario) spot() {
	n := s.notice(notice.KindSpotInterruption, s.at)
	deadline := n.Time.Add(2 * time.Minute)
	n.Deadline, n.InstanceAction = deadlineAt(deadline, v1beta1.DeadlineHard), pick(s.modelRun, "terminate", "stop")
	late := pick(s.modelRun, time.Second, 3*time.Second, 20*time.Second, 100*time.Second, 125*time.Second)
	s.send(n, s.at.Add(late))
	if s.c.Chance(.85) {
		s.off(deadline.Add(s.c.Between(0, 3*time.Second)))
	}
}

func (s *instanceScenario) rebalance() {
	n := s.notice(notice.KindRebalanceRecommendation, s.at)
	s.send(n, s.at.Add(s.c.Between(0, 5*time.Second)))
	s.until(s.at.Add(2 * time.Hour))
}

func (s *instanceScenario) planned() {
	n := s.notice(notice.KindScheduledChange, s.at)
	due := s.at.Add(pick(s.modelRun, 5*time.Minute, 20*time.Minute, 90*time.Minute, 5*time.Hour)).Truncate(time.Second)
	n.Subject, n.InstanceAction = "arn:"+s.instance, pick(s.modelRun, "stop", "stop", "reboot", "maintain", "")
	n.Deadline = deadlineAt(due, v1beta1.DeadlineSoft)
	n.Source = pick(s.modelRun, notice.SourceQueue, notice.SourceEC2, notice.SourceEC2) // the poll confirms what a message says
	s.send(n, s.at.Add(time.Second))
	s.reboots(due)
	s.vanishes(due)
	for range pick(s.modelRun, 0, 0, 1, 2) {
		again := s.notice(notice.KindScheduledChange, s.at.Add(s.c.Between(10*time.Second, due.Sub(s.at))))
		again.Subject, again.InstanceAction = n.Subject, n.InstanceAction
		again.Source = n.Source
		due = due.Add(pick(s.modelRun, -2*time.Minute, 10*time.Minute, 2*time.Hour))
		again.Deadline = deadlineAt(due, v1beta1.DeadlineSoft)
		again.Withdrawn = s.c.Chance(.5)
		s.send(again, again.Time.Add(time.Second))
		if again.Withdrawn {
			return
		}
		n = again
	}
	switch n.InstanceAction {
	case notice.ActionReboot:
		s.c.At(due, "reboot", func() { s.bookkeeping.powerOff(s.node, s.instance) })
		s.c.At(due.Add(90*time.Second), "reboot", func() { s.bookkeeping.powerOn(s.node, s.instance, "second") })
	case notice.ActionStop:
		if s.c.Chance(.7) {
			s.off(due)
		}
	}
}

func (s *instanceScenario) state(state string, at time.Time) {
	n := s.notice(notice.KindInstanceStateChange, at)
	n.Source, n.InstanceState, n.Deadline = notice.SourceQueue, state, shutdownDeadline(state, n.Time.Time)
	if s.c.Chance(.2) { // as an earlier release recorded it
		n.Deadline = deadlineAt(n.Time.Time, v1beta1.DeadlineHard)
	}
	s.send(n, at.Add(s.c.Between(time.Second, 5*time.Second)))
}

// off ends the instance, and usually its node. Another instance may get its name.
func (s *instanceScenario) off(at time.Time) {
	s.c.At(at, "power", func() { s.bookkeeping.powerOff(s.node, s.instance) })
	if s.c.Chance(.6) {
		s.state(pick(s.modelRun, notice.StateTerminated, notice.StateTerminated, notice.StateStopped), at.Add(s.c.Between(0, 20*time.Second)))
	}
	s.until(at)
	if s.c.Chance(.2) {
		return
	}
	gone := at.Add(s.c.Between(45*time.Second, 5*time.Minute))
	s.c.At(gone, "node", func() {
		if n := s.Node(s.node); n != nil && instanceOf(n) == s.instance {
			s.note("node %s is gone", s.node)
			s.RemoveNode(s.node)
		}
	})
	if s.c.Chance(.25) {
		s.c.At(gone.Add(s.c.Between(2*time.Second, time.Minute)), "namesake", func() {
			if s.Node(s.node) != nil {
				return
			}
			s.note("another instance is node %s", s.node)
			s.AddNode(s.modelNode(s.node, s.instance+"b"))
			a := s.drawApp("late-" + s.node)
			s.Run(a, []string{s.node})
		})
	}
}
