package notice_test

import (
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

func TestMissedByQueue(t *testing.T) {
	from := func(source, kind string, at int) v1beta1.Notice {
		n := received(source+kind, at)
		n.Source, n.Kind = source, kind
		return n
	}
	spot, plan := notice.KindSpotInterruption, notice.KindScheduledChange
	gone := from(notice.SourceEC2, spot, 1)
	gone.Withdrawn = true
	ends := func(source, state string) []v1beta1.Notice {
		n := from(source, notice.KindAutoScalingTermination, 1)
		n.EventTypeCode = state
		return []v1beta1.Notice{n}
	}
	for name, tc := range map[string]struct {
		notices []v1beta1.Notice
		since   time.Time
		kind    string
		within  time.Duration
	}{
		"there was no notice":                       {},
		"only the queue reported":                   {notices: []v1beta1.Notice{from(notice.SourceQueue, spot, 1)}},
		"only the agent reported":                   {notices: []v1beta1.Notice{from(notice.SourceIMDS, spot, 1)}, kind: spot, within: 15 * time.Second},
		"the queue reported too":                    {notices: []v1beta1.Notice{from(notice.SourceIMDS, spot, 1), from(notice.SourceQueue, spot, 9)}},
		"the queue reported another kind":           {notices: []v1beta1.Notice{from(notice.SourceQueue, notice.KindInstanceStateChange, 1), from(notice.SourceEC2, spot, 2)}, kind: spot, within: 15 * time.Second},
		"the queue reported before since":           {notices: []v1beta1.Notice{from(notice.SourceQueue, spot, 1), from(notice.SourceEC2, spot, 50)}, since: after(30), kind: spot, within: 15 * time.Second},
		"the first that is due":                     {notices: []v1beta1.Notice{from(notice.SourceEC2, plan, 1), from(notice.SourceIMDS, spot, 2)}, kind: spot, within: 15 * time.Second},
		"AWS Health takes its time":                 {notices: []v1beta1.Notice{from(notice.SourceEC2, plan, 1)}, kind: plan, within: time.Hour},
		"EventBridge does not report status checks": {notices: []v1beta1.Notice{from(notice.SourceEC2, notice.KindInstanceStatus, 1)}},
		"a withdrawn notice is not missed":          {notices: []v1beta1.Notice{gone}},
		"a group waits for its hook":                {notices: ends(notice.SourceAutoScaling, "Terminating:Wait"), kind: notice.KindAutoScalingTermination, within: time.Minute},
		"it returns one, and waits for its hook":    {notices: ends(notice.SourceAutoScaling, "Warmed:Pending:Wait"), kind: notice.KindAutoScalingTermination, within: time.Minute},
		"load balancers deregister first":           {notices: ends(notice.SourceAutoScaling, "Terminating")},
		"no hook held it":                           {notices: ends(notice.SourceAutoScaling, "Terminating:Proceed")},
		"a final state from the agent":              {notices: ends(notice.SourceIMDS, "Terminated")},
		"a hook state from the agent":               {notices: ends(notice.SourceIMDS, "Terminating:Wait")},
	} {
		t.Run(name, func(t *testing.T) {
			got, missing := notice.MissedByQueue(tc.notices, tc.since)
			if got.Kind != tc.kind || missing != (tc.kind != "") || got.Due.Sub(got.ReceivedTime) != tc.within {
				t.Errorf("%+v, %v; want %q within %s", got, missing, tc.kind, tc.within)
			}
		})
	}
}
