package interruption

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// planned is what AWS Health says of a change of the instance.
func planned(id, what string, at time.Time) v1beta1.Notice {
	n := spot()
	n.ID, n.Kind, n.InstanceAction, n.Subject = id, notice.KindScheduledChange, what, "arn:aws:health:event"
	n.Deadline = notice.At(at, v1beta1.DeadlineSoft)
	n.EventTypeCode = "AWS_EC2_INSTANCE_STOP_SCHEDULED"
	return n
}

// same fails the test if the node has changed.
func (w *world) same(before *corev1.Node) {
	w.t.Helper()
	if diff := cmp.Diff(before, w.node(), cmpopts.IgnoreFields(metav1.ObjectMeta{}, "ResourceVersion"), cmpopts.EquateEmpty()); diff != "" {
		w.t.Errorf("the node is not as it was (-was +is):\n%s", diff)
	}
}

func TestScheduledStopChangesNothingToday(t *testing.T) {
	before, due := node("a", instance), start.Add(12*24*time.Hour)
	w := newWorld(t, recordOf(planned("h1", notice.ActionStop, due)), before, pod("web-1"))
	w.settle(time.Second)
	w.same(before)
	got := w.record().Status
	if got.Phase != v1beta1.PhaseScheduled || !got.Deadline.Time.Equal(&metav1.Time{Time: due}) || len(record.Pending(record.Drain(&got))) > 0 {
		t.Errorf("phase %s, deadline %v, pods %v", got.Phase, got.Deadline, record.Pending(record.Drain(&got)))
	}
	if want := due.Add(-time.Hour).Sub(w.now); w.wake != want {
		t.Errorf("looks again in %s, want %s", w.wake, want)
	}

	w.settle(w.wake)
	if !mutate.IsMarked(w.node(), mutate.MarkInterrupted) || len(w.evictions) != 1 {
		t.Errorf("an hour before: evictions %v", w.evictions)
	}
}

func TestClosedChangeIsCancelled(t *testing.T) {
	before := node("a", instance)
	w := newWorld(t, recordOf(planned("h1", notice.ActionStop, start.Add(30*time.Minute))), before, pod("web-1"))
	w.settle(time.Second)
	if !mutate.IsMarked(w.node(), mutate.MarkInterrupted) {
		t.Fatal("not begun")
	}
	closed := planned("h2", notice.ActionStop, start.Add(30*time.Minute))
	closed.Withdrawn = true
	w.addNotices(closed)
	w.settle(time.Minute)
	w.same(before)
	if got := w.record().Status; got.Phase != v1beta1.PhaseCancelled || got.CompletionTime == nil || record.Drain(&got).PodCounts.Waiting != 0 {
		t.Errorf("phase %s, completed %v, pods %+v", got.Phase, got.CompletionTime, record.Drain(&got).PodCounts)
	}
}

func TestClosedChangeStaysCompleted(t *testing.T) {
	w := newWorld(t, recordOf(planned("h1", notice.ActionStop, start.Add(time.Minute))), node("a", instance))
	w.settle(time.Second)
	w.addNotices(stateChange(notice.StateTerminated, start.Add(time.Minute)))
	w.remove(w.node())
	w.settle(2 * time.Minute)
	closed := planned("h2", notice.ActionStop, start.Add(time.Minute))
	closed.Withdrawn = true
	w.addNotices(closed)
	w.settle(time.Minute)
	if got := w.record().Status.Phase; got != v1beta1.PhaseCompleted {
		t.Errorf("phase %s", got)
	}
}

func TestRebootedNodeIsRestored(t *testing.T) {
	before := node("a", instance)
	before.Status.NodeInfo.BootID = "first"
	w := newWorld(t, recordOf(planned("h1", notice.ActionReboot, start.Add(30*time.Minute))), before)
	w.settle(time.Second)
	w.settle(31 * time.Minute)
	if !mutate.IsMarked(w.node(), mutate.MarkInterrupted) {
		t.Error("put back although it was not rebooted")
	}
	n := w.node()
	n.Status.NodeInfo.BootID, before.Status.NodeInfo.BootID = "second", "second"
	if err := w.client.Status().Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	w.settle(time.Minute)
	w.same(before)
	if got := w.record().Status.Phase; got != v1beta1.PhaseCompleted {
		t.Errorf("phase %s", got)
	}
}

// A reboot before a planned stop must not cancel the handling of the stop.
func TestStopAfterAReboot(t *testing.T) {
	before, due := node("a", instance), start.Add(12*24*time.Hour)
	before.Status.NodeInfo.BootID = "first"
	stop := planned("h1", notice.ActionStop, due)
	stop.Subject = "another event"
	w := newWorld(t, recordOf(stop, planned("h2", notice.ActionReboot, start.Add(30*time.Minute))), before, pod("web-1"))
	w.settle(time.Second)
	if !mutate.IsMarked(w.node(), mutate.MarkInterrupted) {
		t.Fatal("not cordoned for the reboot")
	}
	w.stopped("web-1")
	n := w.node()
	n.Status.NodeInfo.BootID, before.Status.NodeInfo.BootID = "second", "second"
	if err := w.client.Status().Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	w.settle(31 * time.Minute)
	w.same(before)
	if got := w.record().Status; got.Phase != v1beta1.PhaseScheduled || got.CompletionTime != nil || !got.Deadline.Time.Time.Equal(due) {
		t.Errorf("phase %s, completed %v, deadline %v", got.Phase, got.CompletionTime, got.Deadline)
	}
	calledOff := planned("h3", notice.ActionStop, due)
	calledOff.Subject, calledOff.Withdrawn = "another event", true
	off := w.record()
	notices, _ := notice.Join(off.Spec.Notices, calledOff)
	d, ok := policy.Decide(policy.Facts{Now: w.now, Notices: notices, Answered: handledIn(off), Node: n})
	if !ok || !d.Withdrawn {
		t.Errorf("if it were cancelled: decision %+v, %v", d, ok)
	}
	w.settle(12*24*time.Hour - 32*time.Minute)
	if !mutate.IsMarked(w.node(), mutate.MarkInterrupted) {
		t.Error("not cordoned for the stop")
	}
}

func TestMaintenanceKeepsMarkUntilWindowEnds(t *testing.T) {
	before, n := node("a", instance), planned("h1", notice.ActionMaintain, start.Add(2*time.Hour))
	end := metav1.NewTime(start.Add(4 * time.Hour))
	n.EndTime = &end
	w := newWorld(t, recordOf(n), before, pod("web-1"))
	w.settle(time.Second)
	w.same(before)
	w.settle(2 * time.Hour)
	if !mutate.IsMarked(w.node(), mutate.MarkAtRisk) || w.record().Status.Phase != v1beta1.PhaseNotified {
		t.Errorf("not marked; phase %s", w.record().Status.Phase)
	}
	w.settle(2*time.Hour + 10*time.Minute)
	w.same(before)
	if len(w.evictions) > 0 {
		t.Errorf("evictions %v", w.evictions)
	}
}

func TestDrillsAreReported(t *testing.T) {
	n := spot()
	n.Drill = true
	w := newWorld(t, recordOf(n), node("a", instance))
	recorder := events.NewFakeRecorder(100)
	w.loop.Events = recorder
	w.settle(time.Second)
	close(recorder.Events)
	if len(recorder.Events) == 0 {
		t.Fatal("no events")
	}
	for text := range recorder.Events {
		if !strings.Contains(text, "Drill: ") {
			t.Errorf("event %q does not say that it is a drill", text)
		}
	}
}

// A sick instance is drained now, although a change is planned for later.
func TestPlannedChangeDoesNotHideFailingInstance(t *testing.T) {
	t.Parallel()
	sick := v1beta1.Notice{
		ID: "sick", Kind: notice.KindInstanceStatus, Source: "ec2", Subject: "instance status", EventTypeCode: "instance status",
		Time: metav1.NewTime(start), ReceivedTime: metav1.NewMicroTime(start.Add(time.Second)),
	}
	n := node("a", instance)
	n.Labels["karpenter.sh/nodepool"] = "pool"
	w := newWorld(t, recordOf(planned("h1", notice.ActionStop, start.Add(12*24*time.Hour)), sick), n, pod("web-1"), team(func(s *v1beta1.InterruptionPolicySpec) {
		s.Rules = []v1beta1.Rule{{Kinds: []string{notice.KindInstanceStatus}, Action: v1beta1.ActionTerminate}}
	}))
	w.settle(2 * time.Second)
	if s := w.record().Status; s.Decision.Action != v1beta1.ActionTerminate || len(w.asked) == 0 {
		t.Errorf("phase %s, %s: %s", s.Phase, s.Kind, s.Decision.Message)
	}
}

func TestIgnoredChangeDoesNotHideStop(t *testing.T) {
	t.Parallel()
	end := metav1.NewTime(start.Add(6 * time.Hour))
	maintenance := planned("m1", notice.ActionMaintain, start.Add(2*time.Hour))
	maintenance.Subject, maintenance.EventTypeCode, maintenance.EndTime = "ev-1", "system-maintenance", &end
	reboot := planned("m1", notice.ActionReboot, start.Add(2*time.Hour+55*time.Minute))
	reboot.Subject, reboot.EventTypeCode = "ev-1", "system-reboot"
	for name, tc := range map[string]struct {
		first v1beta1.Notice
		rules []v1beta1.Rule
	}{
		"maintenance that only marks": {maintenance, nil},
		"a reboot that is ignored": {reboot, []v1beta1.Rule{
			{Kinds: []string{"ScheduledChange"}, EventTypeCodes: []string{"*reboot*"}, Action: v1beta1.ActionIgnore},
			{Kinds: []string{"ScheduledChange"}, Action: v1beta1.ActionDrain},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stop := planned("h1", notice.ActionStop, start.Add(3*time.Hour))
			objects := []client.Object{recordOf(tc.first, stop), node("a", instance), pod("web-1")}
			if tc.rules != nil {
				objects = append(objects, team(func(s *v1beta1.InterruptionPolicySpec) { s.Rules = tc.rules }))
			}
			w := newWorld(t, objects...)
			for w.now.Before(start.Add(2*time.Hour+time.Minute)) && len(w.asked) == 0 {
				w.settle(max(w.wake, time.Second))
			}
			if len(w.asked) == 0 || w.now.Before(start.Add(2*time.Hour)) {
				s := w.record().Status
				t.Errorf("at %s %d pods were asked: phase %s: %s", w.now, len(w.asked), s.Phase, s.Decision.Message)
			}
		})
	}
}
