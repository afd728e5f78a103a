package autoscaling_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	emu "github.com/lifeboat-dev/lifeboat/internal/awsemu/autoscaling"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// What the queue alone has brought is taken back once the group's list has had the
// instance in service for longer than events are ahead of it, each time.
func TestWhatTheQueueBroughtIsTakenBack(t *testing.T) {
	a := newAccount(t)
	ids := a.group("workers", emu.InService, emu.InService, emu.InService)
	a.nodes(ids)
	brings := func(id, token string, ago time.Duration, drill bool) {
		t.Helper()
		at := time.Now().Add(-ago)
		_, err := a.Recorder().Record(t.Context(), notice.Notice{InstanceID: id, Notice: v1alpha1.Notice{
			ID: token, Subject: token, Kind: notice.KindAutoScalingTermination, Source: notice.SourceQueue, Drill: drill,
			InstanceAction: notice.ActionTerminate, Hook: &v1alpha1.HookFiring{Group: "workers", Name: "drain", Token: token},
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
