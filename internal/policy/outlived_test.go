package policy_test

import (
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

// An instance that EC2 took back may run again. Its record still has the first reclaim if the API server refused the write
// that completes it.
func TestOutlivedReclaimDoesNotDecide(t *testing.T) {
	old := spot(due(noon.Add(-time.Hour), v1beta1.DeadlineHard))
	again := build("spot-2", notice.KindSpotInterruption, due(noon.Add(2*time.Minute), v1beta1.DeadlineHard))
	recent := build("spot-3", notice.KindSpotInterruption, due(noon.Add(-time.Minute), v1beta1.DeadlineHard))
	for _, c := range []struct {
		name    string
		notices []v1beta1.Notice
		decides string
		end     time.Time
	}{
		{"beside one that is due", []v1beta1.Notice{old, again}, "spot-2", again.Deadline.Time.Time},
		{"alone", []v1beta1.Notice{old}, "spot-1", old.Deadline.Time.Time},
		{"one that has just passed", []v1beta1.Notice{recent, again}, "spot-3", recent.Deadline.Time.Time},
	} {
		d, ok := policy.Decide(policy.Facts{Now: noon, Node: ofPool("a"), Notices: c.notices})
		if !ok || d.Notice.ID != c.decides || !d.Deadline.Time.Time.Equal(c.end) {
			t.Errorf("%s: %t, %s decides, the end is %v", c.name, ok, d.Notice.ID, d.Deadline)
		}
	}
}
