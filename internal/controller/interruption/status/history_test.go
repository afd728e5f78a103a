package status

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// A planned change that moves again and again fills the history.
func TestFullHistoryForgetsNeitherTheLastEndNorHandledNotices(t *testing.T) {
	now := time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
	in := &v1beta1.Interruption{Spec: v1beta1.InterruptionSpec{Notices: []v1beta1.Notice{{ID: "first"}, {ID: "second"}, {ID: "third"}}}}
	u := NewUpdate(in, now)
	u.addHistory(v1beta1.HistoryEntry{Outcome: v1beta1.OutcomeHandled, EndTime: MicroTime(now)}, "first")
	u.addHistory(v1beta1.HistoryEntry{Outcome: v1beta1.OutcomeCompleted, EndTime: MicroTime(now)}, "second")
	for i := range 40 {
		at := MicroTime(now.Add(time.Duration(i) * time.Hour))
		postponed := v1beta1.HistoryEntry{Outcome: v1beta1.OutcomePostponed, StartTime: &at, EndTime: at}
		u.addHistory(postponed)
		u.addHistory(postponed) // by a pass that repeats the end
	}
	s := u.Status()
	if len(s.History) != maxHistory {
		t.Errorf("%d entries, want %d", len(s.History), maxHistory)
	}
	if got := record.Since(s); !got.Equal(now) {
		t.Errorf("the last interruption ended at %s, want %s", got, now)
	}
	handled := notice.Handled(s)
	slices.Sort(handled)
	if got := fmt.Sprint(handled); got != "[first second]" {
		t.Errorf("handled %s", got)
	}
}

func TestHistoryKeepsHandledNoticesAsLongAsTheSpecHasThem(t *testing.T) {
	in := &v1beta1.Interruption{Spec: v1beta1.InterruptionSpec{Notices: []v1beta1.Notice{{ID: "here"}}}}
	in.Status.History = []v1beta1.HistoryEntry{{Outcome: v1beta1.OutcomeHandled, EndTime: metav1.NowMicro(), HandledNotices: []string{"here", "dropped"}}}
	u := NewUpdate(in, time.Now())
	u.pruneHandled()
	if got := fmt.Sprint(notice.Handled(u.Status())); got != "[here]" {
		t.Errorf("handled %s", got)
	}
}

// A node was only marked as at risk, and the mark is taken back in each pass: that is no reason for an entry, or for a write.
func TestMarkAloneIsNoHistory(t *testing.T) {
	in := &v1beta1.Interruption{}
	in.Status.Drain = &v1beta1.DrainStatus{Kind: notice.KindSpotInterruption, Subject: notice.KindSpotInterruption}
	u := NewUpdate(in, time.Now())
	u.endDrain(v1beta1.OutcomeReleased)
	if got := u.Status().History; len(got) != 0 {
		t.Errorf("history %+v", got)
	}
}
