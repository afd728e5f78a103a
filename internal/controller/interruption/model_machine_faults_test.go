package interruption

import (
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// drawMachineFaults draws the faults of machines and their clocks.
func (r *modelRun) drawMachineFaults(ch *chaos) {
	for _, share := range []*float64{&ch.reboots, &ch.kubelets, &ch.vanishing} {
		if r.c.Chance(.4) {
			*share = .5
		}
	}
	if r.c.Chance(.3) {
		ch.hangs = .3
	}
	if r.c.Chance(.3) {
		ch.skew = pick(r, -5*time.Minute, -20*time.Second, 10*time.Second, time.Minute, 5*time.Minute)
	}
}

// source is the source of a notice. Another replica, with its own clock, records those of agents.
func (r *modelRun) source() string {
	if r.chaos.skew != 0 && r.c.Chance(.6) {
		return notice.SourceIMDS
	}
	return notice.SourceQueue
}

// reboots reboots a node once before its planned change.
func (s *instanceScenario) reboots(due time.Time) {
	if !s.c.Chance(s.chaos.reboots) {
		return
	}
	at := s.at.Add(s.c.Between(10*time.Second, due.Sub(s.at)-3*time.Minute))
	s.c.At(at, "early reboot", func() {
		if s.bookkeeping.inst(s.instance).off.IsZero() {
			s.bookkeeping.powerOff(s.node, s.instance)
			s.c.After(90*time.Second, "early reboot", func() { s.bookkeeping.powerOn(s.node, s.instance, "early") })
		}
	})
}

// vanishes deletes a node's object while its instance runs on; it registers again.
func (s *instanceScenario) vanishes(due time.Time) {
	if !s.c.Chance(s.chaos.vanishing) {
		return
	}
	at := s.at.Add(s.c.Between(10*time.Second, due.Sub(s.at)-4*time.Minute))
	s.c.At(at, "vanish", func() {
		n := s.Node(s.node)
		if n == nil || instanceOf(n) != s.instance || s.Off(s.node) {
			return
		}
		again := s.bookkeeping.as[s.node].DeepCopy()
		again.UID, again.ResourceVersion = "", ""
		s.note("node %s deleted by others", s.node)
		s.RemoveNode(s.node)
		s.c.After(s.c.Between(45*time.Second, 2*time.Minute), "register", func() {
			if s.Node(s.node) == nil && s.bookkeeping.inst(s.instance).off.IsZero() {
				s.note("node %s registers again", s.node)
				s.AddNode(again)
			}
		})
	})
}

// kubeletDies stops a kubelet some time before or after at.
func (s *instanceScenario) kubeletDies(at time.Time) {
	if !s.c.Chance(s.chaos.kubelets) {
		return
	}
	s.c.At(at.Add(s.c.Between(-2*time.Minute, 2*time.Minute)), "kubelet", func() {
		if n := s.Node(s.node); n != nil && instanceOf(n) == s.instance && !s.Off(s.node) {
			s.note("the kubelet of %s dies", s.node)
			s.StopKubelet(s.node)
		}
	})
}

// powerOn ends a reboot.
func (b *bookkeeping) powerOn(name, instance, bootID string) {
	if n := b.run.Node(name); n == nil || instanceOf(n) != instance || !b.inst(instance).terminated.IsZero() {
		return
	}
	b.run.note("%s (%s) has booted: %s", name, instance, bootID)
	i := b.inst(instance)
	i.off, i.booted = time.Time{}, b.run.c.Now()
	b.run.PowerOn(name, bootID)
}
