package autoscaling_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	emu "github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// If only the queue reported a notice, it is withdrawn once the group's list has shown the instance in
// service for longer than the list may lag. This holds for each notice.
func TestQueueNoticeIsWithdrawn(t *testing.T) {
	a := newAccount(t)
	ids := a.group("workers", emu.InService, emu.InService, emu.InService)
	a.nodes(ids)
	brings := func(id, token string, ago time.Duration, drill bool) {
		t.Helper()
		at := time.Now().Add(-ago)
		_, err := a.Recorder().Record(t.Context(), notice.Notice{InstanceID: id, DrillID: "d-1", Notice: v1beta1.Notice{
			ID: token, Subject: token, Kind: notice.KindAutoScalingTermination, Source: notice.SourceQueue, Drill: drill,
			InstanceAction: notice.ActionTerminate, LifecycleHook: &v1beta1.LifecycleHookInvocation{Group: "workers", Name: "drain", Token: token},
			Time: metav1.NewTime(at), ReceivedTime: metav1.NewMicroTime(at),
		}})
		a.must(err)
	}
	stands := func(id, token string) bool {
		for _, n := range a.Notices(id) {
			if n.ID == token {
				return !n.Withdrawn
			}
		}
		return false
	}
	a.PermitDrill("d-1", ids[1])
	brings(ids[0], "first", 5*time.Minute, false)
	brings(ids[1], "drill", 5*time.Minute, true)
	brings(ids[2], "fresh", 0, false)
	a.start(10 * time.Millisecond)
	a.Until("it is taken back", func() bool { return !stands(ids[0], "first") })
	brings(ids[0], "second", 3*time.Minute, false)
	a.Until("the next is taken back", func() bool { return !stands(ids[0], "second") })
	a.Spent()
	a.rounds(10)
	if reads, writes := a.Spent(); reads+writes != 0 {
		t.Errorf("%d reads and %d writes for what is taken back", reads, writes)
	}
	if !stands(ids[1], "drill") || !stands(ids[2], "fresh") {
		t.Errorf("a drill, or what the list may not know of yet, was taken back: %v, %v", a.Notices(ids[1]), a.Notices(ids[2]))
	}
}

// An instance returns to its warm pool, serves again with a new node, and
// returns again within the record's TTL.
func TestSecondReturnToPoolIsRecorded(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarts %t", restarts), func(t *testing.T) {
			a := newAccount(t)
			id := a.group("workers", emu.InService)[0]
			a.must(a.groups.PutPool("workers", emu.WarmPool{ReuseOnScaleIn: true}))
			a.AddNode(id)
			stop := a.start(10 * time.Millisecond)
			a.rounds(4)
			a.must(a.groups.Attach("workers", id, "Warmed:Pending:Wait"))
			a.Until("the first return is on record", func() bool { return len(a.Notices(id)) == 1 })
			first := a.Notices(id)[0]
			a.Finish(id)
			a.must(a.Kube.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + id}}))
			a.must(a.groups.Attach("workers", id, "Warmed:Stopped"))
			a.rounds(4)
			a.must(a.Kube.Create(t.Context(), &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: "node-" + id, UID: "another"}, Spec: corev1.NodeSpec{ProviderID: "aws:///eu-west-1a/" + id},
			}))
			a.must(a.groups.Attach("workers", id, emu.InService))
			a.rounds(4)
			if restarts {
				stop()
				stop = a.start(10 * time.Millisecond)
				a.rounds(4)
			}
			a.must(a.groups.Attach("workers", id, "Warmed:Pending:Wait"))
			a.Until("the second return is on record", func() bool { return a.Notices(id)[0].ID != first.ID })
			if restarts {
				stop()
				a.start(10 * time.Millisecond)
			}
			a.rounds(4)
			a.Spent()
			a.rounds(10)
			if reads, writes := a.Spent(); writes != 0 || reads != 0 || len(a.Notices(id)) != 1 {
				t.Errorf("%d reads and %d writes for what is known, on record %v", reads, writes, a.IDs(id))
			}
		})
	}
}
