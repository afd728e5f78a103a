package interruption

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/model"
)

// The worlds of people: persons request drains and withdraw them, the cloud plans changes weeks ahead and
// moves, closes, reopens and repeats them, messages are hours late, status checks recover, nodes register
// again, and the API server refuses writes. Several of these happen to each instance, in any order.

// scheduleUserEvents draws what people and the cloud do to the nodes, over hours and days.
func (r *modelRun) scheduleUserEvents() {
	names := r.nodeNames()
	for i, name := range names[2:] {
		s := &instanceScenario{modelRun: r, node: name, instance: fmt.Sprintf("i-%d", i+2)}
		for range 1 + r.c.Rand.IntN(4) {
			s.at = r.c.Now().Add(pick(r, 10*time.Second, r.c.Between(0, 3*time.Minute), r.c.Between(0, 2*time.Hour), r.c.Between(0, 8*time.Hour)))
			s.events()
		}
		if r.c.Chance(.3) {
			s.registersAgain(r.c.Now().Add(r.c.Between(10*time.Second, 2*time.Hour)))
		}
	}
	for range r.c.Rand.IntN(4) {
		r.flaps(r.c.Now().Add(r.c.Between(0, 40*time.Minute)))
	}
	for range 1 + r.c.Rand.IntN(3) {
		r.c.At(r.c.Now().Add(r.c.Between(10*time.Minute, 5*time.Hour)), "a user", pick(r, r.liftBudget, r.liftHolds))
	}
	for range r.c.Rand.IntN(4) {
		name, lasts := pick(r, names[2:]...), r.c.Between(10*time.Second, 10*time.Minute)
		do := pick(r,
			func() { r.bookkeeping.approveOne(name) }, func() { r.bookkeeping.approveOne(name) },
			func() { r.bookkeeping.uncordon(name) },
			func() { r.bookkeeping.state(name, holdsFor(lasts)) },
			r.changePolicy,
		)
		r.c.At(r.c.Now().Add(r.c.Between(0, 3*time.Hour)), "a user", do)
	}
}

func (s *instanceScenario) events() {
	switch s.c.Rand.IntN(10) {
	case 0, 1, 2:
		s.request()
	case 3, 4:
		s.plan()
	case 5:
		s.latePlan()
	case 6, 7:
		s.checkFails()
	default:
		s.spot()
	}
}

// request is a person's request, which that person may withdraw, before or after its time. It returns the
// id of the notice.
func (s *instanceScenario) request() string {
	by := pick(s.modelRun, 0, 0, 0, 5*time.Minute, 20*time.Minute, time.Hour, 6*time.Hour, 24*time.Hour)
	n := s.notice(notice.KindRequested, s.at)
	n.Source, n.ReceivedTime, n.Time = notice.SourceUser, metav1.NewMicroTime(s.at.Truncate(time.Microsecond)), metav1.NewTime(s.at)
	if by > 0 {
		n.Deadline = &v1beta1.Deadline{Time: metav1.NewTime(s.at.Add(by).Truncate(time.Second)), Type: v1beta1.DeadlineEstimated}
	}
	s.note("at %.1f: %s, by %s", s.at.Sub(modelEpoch).Seconds(), n.ID, by)
	s.c.At(s.at, "a user", func() { s.bookkeeping.putRequest(s.node, s.instance, n.Notice) })
	s.until(s.at.Add(by))
	if s.c.Chance(.6) {
		lasts := s.c.Between(20*time.Second, pick(s.modelRun, 5*time.Minute, time.Hour, 10*time.Hour))
		s.c.At(s.at.Add(lasts), "a user", func() { s.bookkeeping.withdrawRequest(s.instance, n.ID) })
		s.until(s.at.Add(lasts))
	}
	return n.ID
}

// putRequest writes a request, as the command drain does. It writes none beside an open one.
func (b *bookkeeping) putRequest(node, instance string, n v1beta1.Notice) {
	of, in := b.run.Node(node), b.recordOf(instance)
	switch {
	case of == nil || instanceOf(of) != instance:
		return
	case in == nil:
		in = &v1beta1.Interruption{ObjectMeta: metav1.ObjectMeta{Name: instance}, Spec: v1beta1.InterruptionSpec{
			InstanceID: instance, NodeName: node, NodeUID: of.UID, Notices: []v1beta1.Notice{n},
		}}
		if _, err := b.run.Create(in); err != nil {
			panic(err)
		}
		return
	case slices.ContainsFunc(in.Spec.Notices, func(m v1beta1.Notice) bool {
		return m.Kind == notice.KindRequested && !m.Withdrawn && !slices.Contains(handledIn(in), m.ID)
	}):
		return
	}
	in = in.DeepCopy()
	if done := in.Status.CompletionTime; done != nil && !n.ReceivedTime.After(done.Time) {
		n.ReceivedTime = metav1.NewMicroTime(done.Add(time.Microsecond))
	}
	in.Spec.Notices = append(in.Spec.Notices, n)
	b.run.Put(in)
}

// withdrawRequest writes a withdrawal, as the command uncordon does.
func (b *bookkeeping) withdrawRequest(instance, id string) {
	in := b.recordOf(instance)
	if in == nil || slices.Contains(handledIn(in), id) {
		return
	}
	in = in.DeepCopy()
	for i := range in.Spec.Notices {
		if n := &in.Spec.Notices[i]; n.ID == id && !n.Withdrawn {
			n.Withdrawn = true
			b.run.note("%s is withdrawn", id)
			b.run.Put(in)
			return
		}
	}
}

// plan is a change that the cloud plans, days or weeks ahead. It may be moved, closed and opened again, and
// updated after it was done.
func (s *instanceScenario) plan() {
	due := s.at.Add(pick(s.modelRun, 20*time.Minute, 3*time.Hour, 26*time.Hour, 3*24*time.Hour, 12*24*time.Hour)).Truncate(time.Second)
	n := s.planned1(pick(s.modelRun, "stop", "stop", "reboot", "reboot", "maintain"), due)
	s.send(n, s.at.Add(pick(s.modelRun, time.Second, time.Second, s.c.Between(0, 3*time.Hour))))
	open := true
	for range pick(s.modelRun, 0, 0, 1, 2, 3) {
		again := n
		again.Time = metav1.NewTime(n.Time.Add(s.c.Between(10*time.Second, max(due.Sub(n.Time.Time)/2, 20*time.Second))).Truncate(time.Second))
		if open && s.c.Chance(.5) {
			due = due.Add(pick(s.modelRun, -2*time.Minute, 10*time.Minute, 2*time.Hour, 7*24*time.Hour))
			again.Deadline = &v1beta1.Deadline{Time: metav1.NewTime(due), Type: v1beta1.DeadlineSoft}
		} else {
			open = !open
		}
		again.Withdrawn = !open
		n = s.update(again, again.Time.Add(pick(s.modelRun, time.Second, s.c.Between(0, time.Hour))))
	}
	if !open {
		return
	}
	switch n.InstanceAction {
	case notice.ActionReboot:
		s.c.At(due, "reboot", func() { s.bookkeeping.powerOff(s.node, s.instance) })
		s.c.At(due.Add(90*time.Second), "reboot", func() { s.bookkeeping.powerOn(s.node, s.instance, "second") })
	case notice.ActionStop:
		if s.c.Chance(.4) {
			s.off(due)
			return
		}
	}
	for range pick(s.modelRun, 0, 1, 1, 2) { // the cloud repeats what is done, or says that it is
		after := n
		after.Time = metav1.NewTime(due.Add(s.c.Between(3*time.Minute, 3*time.Hour)).Truncate(time.Second))
		after.Withdrawn = s.c.Chance(.3)
		n = s.update(after, after.Time.Add(time.Second))
	}
}

func (s *instanceScenario) planned1(action string, due time.Time) notice.Notice {
	n := s.notice(notice.KindScheduledChange, s.at)
	n.Subject, n.InstanceAction = fmt.Sprintf("arn:%s:%d", s.instance, s.serial), action
	n.Source = pick(s.modelRun, notice.SourceQueue, notice.SourceEC2)
	n.Deadline = &v1beta1.Deadline{Time: metav1.NewTime(due), Type: v1beta1.DeadlineSoft}
	return n
}

// update sends a later notice about the same subject.
func (s *instanceScenario) update(n notice.Notice, at time.Time) notice.Notice {
	s.serial++
	n.ID = fmt.Sprintf("%s-%s-%d", n.Kind, s.instance, s.serial)
	s.send(n, at)
	return n
}

// latePlan is the first message about a change whose date has passed.
func (s *instanceScenario) latePlan() {
	n := s.planned1(pick(s.modelRun, "stop", "reboot"), s.at.Add(-pick(s.modelRun, 2*time.Minute, 8*time.Minute, 40*time.Minute, 5*time.Hour)).Truncate(time.Second))
	s.send(n, s.at.Add(time.Second))
	s.until(s.at.Add(time.Hour))
}

// checkFails is a status check that fails, and may pass again.
func (s *instanceScenario) checkFails() {
	n := s.notice(notice.KindInstanceStatus, s.at)
	n.Source, n.Subject = notice.SourceEC2, "instance-status"
	s.send(n, s.at.Add(time.Second))
	s.until(s.at.Add(2 * time.Hour))
	if s.c.Chance(.3) {
		s.kubeletDies(s.at)
		return
	}
	for range pick(s.modelRun, 1, 1, 3) {
		n.Time = metav1.NewTime(n.Time.Add(s.c.Between(20*time.Second, pick(s.modelRun, 4*time.Minute, 40*time.Minute))).Truncate(time.Second))
		n.Withdrawn = !n.Withdrawn
		n = s.update(n, n.Time.Add(time.Second))
	}
	s.until(n.Time.Add(2 * time.Hour))
}

// registersAgain deletes a node's object while its instance runs on. The same instance registers with
// another UID, or another one takes the name.
func (s *instanceScenario) registersAgain(at time.Time) {
	s.c.At(at, "vanish", func() {
		n := s.Node(s.node)
		if n == nil || instanceOf(n) != s.instance || s.Off(s.node) {
			return
		}
		again := s.bookkeeping.as[s.node].DeepCopy()
		again.UID, again.ResourceVersion = "", ""
		s.note("node %s deleted by others", s.node)
		s.RemoveNode(s.node)
		other := s.c.Chance(.2)
		s.c.After(s.c.Between(45*time.Second, 2*time.Minute), "register", func() {
			switch {
			case s.Node(s.node) != nil:
			case other:
				s.note("another instance is node %s", s.node)
				s.AddNode(s.modelNode(s.node, s.instance+"b"))
				s.Run(s.drawApp(fmt.Sprintf("late-%d-%s", s.c.Rand.IntN(1000), s.node)), []string{s.node})
			case s.bookkeeping.inst(s.instance).off.IsZero():
				s.note("node %s registers again", s.node)
				s.AddNode(again)
			}
		})
	})
}

// flaps makes a pod unready for some time: its budget counts fewer healthy pods, and may allow as many
// disruptions as before.
func (r *modelRun) flaps(at time.Time) {
	lasts := r.c.Between(30*time.Second, 15*time.Minute)
	r.c.At(at, "probe", func() {
		pods := r.Pods(func(p *corev1.Pod) bool { return p.DeletionTimestamp == nil && model.IsReady(p) && !isStaying(p) })
		if len(pods) == 0 {
			return
		}
		p := pick(r, pods...)
		r.note("pod %s/%s is not Ready for %s", p.Namespace, p.Name, lasts)
		r.SetPodReady(p, false)
		r.bookkeeping.pods[p.UID].flapped = true
		r.c.After(lasts, "probe", func() { r.SetPodReady(p, true) })
	})
}

// liftBudget deletes a budget, as a person does who finds that it blocks a drain.
func (r *modelRun) liftBudget() {
	var all []model.Key
	r.Each("PodDisruptionBudget", func(o client.Object) { all = append(all, model.KeyOf(o)) })
	if len(all) == 0 {
		return
	}
	slices.SortFunc(all, func(a, b model.Key) int { return strings.Compare(a.String(), b.String()) })
	key := pick(r, all...)
	r.note("%s deleted by others", key)
	r.Remove(key)
}

// liftHolds removes the annotations that hold the pods of a namespace.
func (r *modelRun) liftHolds() {
	namespace := pick(r, "default", "other")
	r.note("the pods of %s are not held any more", namespace)
	for _, p := range r.Pods(func(p *corev1.Pod) bool {
		return p.Namespace == namespace && len(p.Annotations) > 0 && p.Labels[v1beta1.LabelSurged] == ""
	}) {
		if a := r.App(p.Labels["app"]); a != nil {
			a.Annotations = nil
		}
		p = p.DeepCopy()
		p.Annotations = nil
		r.Put(p)
	}
}

// approveOne approves one of the notices about a node.
func (b *bookkeeping) approveOne(name string) {
	b.state(name, func(in *v1beta1.Interruption, s v1beta1.UserAction) {
		s.About = subjectOf(pick(b.run, in.Spec.Notices...))
		in.Spec.Approval = &s
	})
}

// state changes what a person says about the record of a node.
func (b *bookkeeping) state(name string, what func(*v1beta1.Interruption, v1beta1.UserAction)) {
	n := b.run.Node(name)
	if n == nil {
		return
	}
	in := b.recordOf(instanceOf(n))
	if in == nil || len(in.Spec.Notices) == 0 {
		return
	}
	in = in.DeepCopy()
	what(in, v1beta1.UserAction{By: "ann", Time: metav1.NewMicroTime(b.run.c.Now())})
	b.run.note("statement about %s: approval %v, hold %v", name, in.Spec.Approval, in.Spec.Hold)
	b.run.Put(in)
}
