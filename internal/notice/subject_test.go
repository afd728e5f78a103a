package notice_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// news is a source's notice about one scheduled change.
func news(id string, issued int, more ...func(*v1beta1.Notice)) v1beta1.Notice {
	n := received(id, issued)
	n.Kind, n.Subject, n.Source = notice.KindScheduledChange, "arn:event", notice.SourceQueue
	for _, change := range more {
		change(&n)
	}
	return n
}

func withdrawn(n *v1beta1.Notice) { n.Withdrawn = true }

func TestNewerNoticeReplacesOlder(t *testing.T) {
	other := func(change func(*v1beta1.Notice)) v1beta1.Notice { return news("b", 5, change) }
	for name, tc := range map[string]struct {
		second  v1beta1.Notice
		want    string
		changed bool
	}{
		"newer news replaces":           {news("b", 5), "b", true},
		"news of the same second too":   {news("b", 3), "b", true},
		"older news changes nothing":    {news("b", 1), "a", false},
		"the same news changes nothing": {news("a", 5), "a", false},
		"another subject joins":         {other(func(n *v1beta1.Notice) { n.Subject = "arn:other" }), "ab", true},
		"another source joins":          {other(func(n *v1beta1.Notice) { n.Source = notice.SourceEC2 }), "ab", true},
		"another kind joins":            {other(func(n *v1beta1.Notice) { n.Kind = notice.KindHealthIssue }), "ab", true},
		"what has no subject joins":     {other(func(n *v1beta1.Notice) { n.Subject = "" }), "ab", true},
	} {
		got, changed := notice.Join([]v1beta1.Notice{news("a", 3)}, tc.second)
		if strings.Join(ids(got), "") != tc.want || changed != tc.changed {
			t.Errorf("%s: %s, changed %v; want %s, %v", name, ids(got), changed, tc.want, tc.changed)
		}
	}
}

// The queue keeps no order, so the opening may arrive after the closing. AWS Health's times have whole
// seconds, and one event about many instances can be updated several times in a second.
func TestClosedEventStaysClosed(t *testing.T) {
	opened, closed := news("a", 1, soft(60)), news("b", 2, soft(60), withdrawn)
	sameSecond := news("c", 1, soft(60), withdrawn)
	for _, order := range [][]v1beta1.Notice{{opened, closed}, {closed, opened}, {opened, sameSecond}, {sameSecond, opened}} {
		var record []v1beta1.Notice
		for _, n := range order {
			record, _ = notice.Join(record, n)
		}
		if !notice.AllWithdrawn(record, time.Time{}) {
			t.Errorf("%s counts", ids(record))
		}
		if _, ok := notice.Ruling(record); ok || notice.Deadline(record) != nil {
			t.Errorf("%s rules", ids(record))
		}
	}
}

func TestAllWithdrawn(t *testing.T) {
	gone := news("a", 1, withdrawn)
	if notice.AllWithdrawn(nil, time.Time{}) {
		t.Error("there was no notice, so none was withdrawn")
	}
	if notice.AllWithdrawn([]v1beta1.Notice{gone, received("b", 2, hard(5))}, time.Time{}) {
		t.Error("a reclaim stands")
	}
	if notice.AllWithdrawn([]v1beta1.Notice{gone}, after(100)) {
		t.Error("it was taken back before")
	}
}

// If the group lists the instance as in service, earlier events about its termination from any
// source are withdrawn, and nothing else.
func TestReturnToServiceWithdrawsEvents(t *testing.T) {
	ends := func(source string, change ...func(*v1beta1.Notice)) v1beta1.Notice {
		n := received(source, 1, change...)
		n.Kind, n.Source = notice.KindAutoScalingTermination, source
		return n
	}
	recorded := []v1beta1.Notice{
		ends(notice.SourceQueue), ends(notice.SourceIMDS), ends("drill", func(n *v1beta1.Notice) { n.Drill = true }), received("rebalance", 1),
	}
	serves := received("serves", 5, withdrawn)
	serves.Kind, serves.Source = notice.KindAutoScalingTermination, notice.SourceAutoScaling
	joined, _ := notice.Join(recorded, serves)
	for i, want := range []bool{true, true, false, false, true} {
		if joined[i].Withdrawn != want {
			t.Errorf("%s: withdrawn %t", joined[i].ID, joined[i].Withdrawn)
		}
	}
	agent := serves
	agent.Source = notice.SourceIMDS
	if joined, _ := notice.Join(recorded, agent); joined[0].Withdrawn {
		t.Error("an agent took back what the queue has brought")
	}
}
