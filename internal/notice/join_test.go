package notice_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record/recordtest"
)

// byAgent changes the source of a notice to the node's agent.
func byAgent(n *v1beta1.Notice) { n.Source, n.ID = notice.SourceIMDS, "agent-"+n.ID }

// A record that other sources have filled has room for the agent, and an agent that reports
// new notices without end does not remove theirs.
func TestFullRecordKeepsRoomForAgent(t *testing.T) {
	var recorded []v1beta1.Notice
	for i := range 3 * notice.MaxPerInstance {
		recorded, _ = notice.Join(recorded, received(fmt.Sprint("q", i), i))
	}
	others := slices.Clone(recorded)
	for i := range 3 * notice.MaxPerInstance {
		recorded, _ = notice.Join(recorded, received(fmt.Sprint(i), i, byAgent))
		if len(recorded) > notice.MaxPerInstance {
			t.Fatalf("%d notices on record", len(recorded))
		}
	}
	kept := slices.DeleteFunc(slices.Clone(recorded), func(n v1beta1.Notice) bool { return n.Source == notice.SourceIMDS })
	if diff := cmp.Diff(ids(others), ids(kept)); diff != "" {
		t.Errorf("notices of other sources after the agent wrote (-before +after)\n%s", diff)
	}
	if got := len(recorded) - len(kept); got != notice.MaxFromAgent || !strings.HasSuffix(recorded[len(recorded)-1].ID, "-95") {
		t.Errorf("%d notices of the agent, the last is %s", got, recorded[len(recorded)-1].ID)
	}
}

func TestFullRecordDropsLeastRelevantNotice(t *testing.T) {
	const share = notice.MaxPerInstance - notice.MaxFromAgent
	stopped := received("old-stop", 0, state(notice.StateStopped))
	for name, tc := range map[string]struct {
		first, second v1beta1.Notice // the others came later
		since         time.Time
		dropped       string
	}{
		"a stop of an earlier life before a standing plan": {stopped, received("plan", 10, soft(900)), after(5), "old-stop"},
		"a standing plan rules":                            {received("plan", 0, soft(900)), received("next", 1), time.Time{}, "next"},
		"a withdrawn notice before an older one":           {received("old", 0), received("over", 1, withdrawn), time.Time{}, "over"},
		"of an earlier life before a withdrawn one":        {received("over", 10, withdrawn), received("old", 0), after(5), "old"},
		"the oldest": {received("old", 0), received("next", 1), time.Time{}, "old"},
	} {
		t.Run(name, func(t *testing.T) {
			recorded := []v1beta1.Notice{tc.first, tc.second}
			for i := range share - 2 {
				recorded = append(recorded, received(fmt.Sprint("later", i), 20+i))
			}
			got, changed := notice.JoinSince(recorded, received("new", 99), tc.since)
			want := slices.DeleteFunc(append(ids(recorded), "new"), func(id string) bool { return id == tc.dropped })
			if diff := cmp.Diff(want, ids(got)); !changed || diff != "" {
				t.Errorf("changed %t (-want +got)\n%s", changed, diff)
			}
		})
	}
}

// Received times come from several clocks. These functions keep their order.
func TestReceivedTimesOfSkewedClocks(t *testing.T) {
	at := func(s int) metav1.MicroTime { return metav1.NewMicroTime(after(s)) }
	for name, tc := range map[string]struct{ received, since, want time.Time }{
		"after the completion":              {after(10), after(5), after(10)},
		"before it":                         {after(1), after(5), after(5).Add(time.Microsecond)},
		"at the same moment":                {after(5), after(5), after(5).Add(time.Microsecond)},
		"nothing was completed":             {after(1), time.Time{}, after(1)},
		"the completion is in the future":   {after(1), after(3600), after(3600).Add(time.Microsecond)},
		"the notice is from the far future": {after(9999), after(5), after(9999)},
	} {
		if got := notice.ReceivedAfter(metav1.NewMicroTime(tc.received), tc.since); !got.Time.Equal(tc.want) {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}

	ahead := received("ahead", 0)
	ahead.ReceivedTime = at(600)
	if got := notice.Received(&ahead, after(5)); !got.Equal(after(5)) {
		t.Errorf("received at %s, which is in the future", got)
	}
	if got := notice.Received(&ahead, after(700)); !got.Equal(after(600)) {
		t.Errorf("received at %s, which is not what is recorded", got)
	}

	in := &v1beta1.Interruption{Spec: v1beta1.InterruptionSpec{Notices: []v1beta1.Notice{received("a", 0), ahead}}}
	recordtest.Complete(in, after(5), "a", ahead.ID)
	if !notice.Finished(in) {
		t.Error("a completed record is not finished, because an agent's clock is ahead")
	}
	late := received("late", 6)
	late.ReceivedTime = notice.ReceivedAfter(late.ReceivedTime, notice.Completed(in.Status.History))
	in.Spec.Notices = append(in.Spec.Notices, late)
	if notice.Finished(in) {
		t.Error("a notice that was added after the completion counts as handled")
	}
}

func TestCompleted(t *testing.T) {
	completed := func(history ...v1beta1.HistoryEntry) v1beta1.InterruptionStatus {
		return v1beta1.InterruptionStatus{History: history}
	}
	end := func(s int, outcome v1beta1.Outcome) v1beta1.HistoryEntry {
		return v1beta1.HistoryEntry{Outcome: outcome, EndTime: metav1.NewMicroTime(after(s))}
	}
	for name, tc := range map[string]struct {
		status v1beta1.InterruptionStatus
		want   time.Time
	}{
		"never":           {v1beta1.InterruptionStatus{}, time.Time{}},
		"completed":       {completed(end(5, v1beta1.OutcomeCompleted)), after(5)},
		"cancelled":       {completed(end(5, v1beta1.OutcomeCancelled)), after(5)},
		"completed again": {completed(end(5, v1beta1.OutcomeCompleted), end(9, v1beta1.OutcomeCompleted)), after(9)},
		"handled since":   {completed(end(5, v1beta1.OutcomeCompleted), end(9, v1beta1.OutcomeHandled)), after(5)},
	} {
		if got := notice.Completed(tc.status.History); !got.Equal(tc.want) {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
