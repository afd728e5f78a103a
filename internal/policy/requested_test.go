package policy_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

func TestRequestIsAlwaysDrainedNow(t *testing.T) {
	asked := build("r", notice.KindRequested, received(noon))
	by := build("r", notice.KindRequested, received(noon), due(noon.Add(3*time.Hour), v1beta1.DeadlineEstimated))
	nightly := on(v1beta1.ActionTerminate, "*")
	nightly.Window, nightly.Strategy = &v1beta1.Window{Schedule: "0 2 * * *", Duration: metav1.Duration{Duration: time.Hour}}, v1beta1.StrategySurge
	approval := on(v1beta1.ActionDrain, notice.KindRequested)
	approval.Approval = v1beta1.ApprovalRequired
	for name, tc := range map[string]struct {
		notice   v1beta1.Notice
		policies []v1beta1.InterruptionPolicy
		strategy v1beta1.Strategy
		awaits   bool
	}{
		"without a policy":                  {asked, nil, v1beta1.StrategySurge, false},
		"with a deadline later":             {by, nil, v1beta1.StrategySurge, false},
		"a policy that ignores everything":  {asked, []v1beta1.InterruptionPolicy{named("p", 1)}, v1beta1.StrategySurge, false},
		"a policy that terminates at night": {by, []v1beta1.InterruptionPolicy{named("p", 1, nightly)}, v1beta1.StrategySurge, false},
		"a policy that requires approval":   {asked, []v1beta1.InterruptionPolicy{named("p", 1, approval)}, v1beta1.StrategySurge, true},
	} {
		d, ok := policy.Decide(policy.Facts{Now: noon, Notices: []v1beta1.Notice{tc.notice}, Node: ofPool("web"), Policies: tc.policies})
		t.Log(d.Notice.ID)
		if !ok || d.Action != v1beta1.ActionDrain || !d.NotBefore.IsZero() || d.Strategy != tc.strategy || d.AwaitsApproval != tc.awaits {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// The group waits for its hooks until they end for good, whichever notice decides.
func TestRequestHidesNoEndOfHooks(t *testing.T) {
	group := build("asg", notice.KindAutoScalingTermination)
	asked := build("r", notice.KindRequested)
	by := func(at time.Time) v1beta1.Notice {
		return build("r", notice.KindRequested, due(at, v1beta1.DeadlineEstimated))
	}
	ends := noon.Add(8 * time.Minute)
	for name, tc := range map[string]struct {
		request  v1beta1.Notice
		extended time.Time // zero: they can be extended for the default time
		want     time.Time
	}{
		"without a time":                      {asked, ends, ends},
		"with a time later":                   {by(noon.Add(6 * time.Hour)), ends, ends},
		"with a time that is over":            {by(noon.Add(-time.Hour)), ends, ends},
		"the hooks can be extended":           {asked, time.Time{}, noon.Add(time.Hour)},
		"they can, and it has a time later":   {by(noon.Add(6 * time.Hour)), time.Time{}, noon.Add(time.Hour)},
		"they cannot, and it has a near time": {by(noon.Add(30 * time.Minute)), ends, ends},
	} {
		t.Run(name, func(t *testing.T) {
			for _, policies := range [][]v1beta1.InterruptionPolicy{nil, {named("p", 1, on(v1beta1.ActionNotify, notice.KindAutoScalingTermination), on(v1beta1.ActionDrain, "*"))}} {
				d, ok := policy.Decide(policy.Facts{Now: noon, Notices: []v1beta1.Notice{group, tc.request}, Node: ofPool("web"), Policies: policies, Extended: true, ExtendedUntil: tc.extended})
				if !ok || d.Action != v1beta1.ActionDrain || d.Deadline == nil || !d.Deadline.Time.Time.Truncate(time.Minute).Equal(tc.want) {
					t.Errorf("%s decides, %s: the end is %v, want %s", d.Notice.ID, d.Action, d.Deadline, tc.want)
				}
			}
		})
	}
}

// A person who drains the node of a terminating instance has a reason for the haste: the time of the request counts for the
// pods, also while another notice decides.
func TestRequestAddsHaste(t *testing.T) {
	group := build("asg", notice.KindAutoScalingTermination, received(noon))
	change := build("change", notice.KindScheduledChange, due(noon.Add(50*time.Minute), v1beta1.DeadlineSoft), func(n *v1beta1.Notice) {
		n.InstanceAction, n.EventTypeCode = notice.ActionStop, "instance-stop"
	})
	by := func(d time.Duration, more ...func(*v1beta1.Notice)) v1beta1.Notice {
		return build("r", notice.KindRequested, append(more, due(noon.Add(d), v1beta1.DeadlineEstimated))...)
	}
	withdrawn := func(n *v1beta1.Notice) { n.Withdrawn = true }
	newer := build("r2", notice.KindRequested, due(noon.Add(40*time.Minute), v1beta1.DeadlineEstimated), func(n *v1beta1.Notice) { n.Time.Time = noon.Add(time.Second) })
	approval := on(v1beta1.ActionDrain, notice.KindRequested)
	approval.Approval = v1beta1.ApprovalRequired
	for name, tc := range map[string]struct {
		notices              []v1beta1.Notice
		rules                []v1beta1.Rule
		retained, unextended bool
		want                 string
	}{
		"earlier than the end of the hooks":      {notices: []v1beta1.Notice{group, by(30 * time.Minute)}, want: "Estimated 12:30:00"},
		"the group retains the instance":         {notices: []v1beta1.Notice{group, by(30 * time.Minute)}, retained: true, want: "Estimated 12:30:00"},
		"the group waits for no hook":            {notices: []v1beta1.Notice{group, by(30 * time.Minute)}, unextended: true, want: "Estimated 12:30:00"},
		"later than the end of the hooks":        {notices: []v1beta1.Notice{group, by(2 * time.Hour)}, want: "Hard 13:00:00"},
		"over":                                   {notices: []v1beta1.Notice{group, by(-time.Minute)}, want: "Hard 13:00:00"},
		"withdrawn":                              {notices: []v1beta1.Notice{group, by(30*time.Minute, withdrawn)}, want: "Hard 13:00:00"},
		"without a time":                         {notices: []v1beta1.Notice{group, build("r", notice.KindRequested)}, want: "Hard 13:00:00"},
		"a newer request has another time":       {notices: []v1beta1.Notice{group, newer, by(30 * time.Minute)}, want: "Estimated 12:40:00"},
		"the request is not approved":            {notices: []v1beta1.Notice{group, by(30 * time.Minute)}, rules: []v1beta1.Rule{approval}, want: "Hard 13:00:00"},
		"earlier than a change in its last hour": {notices: []v1beta1.Notice{change, by(30 * time.Minute)}, want: "Estimated 12:30:00"},
		"later than a change in its last hour":   {notices: []v1beta1.Notice{change, by(55 * time.Minute)}, want: "Hard 12:50:00"},
		"the instance goes before it":            {notices: []v1beta1.Notice{group, spot(), by(30 * time.Minute)}, want: "Hard 12:02:00"},
		"the instance is gone":                   {notices: []v1beta1.Notice{state(notice.StateTerminated, due(noon, v1beta1.DeadlineHard)), by(30 * time.Minute)}, want: "Hard 12:00:00"},
	} {
		t.Run(name, func(t *testing.T) {
			f := policy.Facts{Now: noon, Notices: tc.notices, Node: ofPool("web"), Extended: !tc.unextended, Retained: tc.retained}
			if len(tc.rules) > 0 {
				f.Policies = []v1beta1.InterruptionPolicy{named("p", 1, tc.rules...)}
			}
			d, ok := policy.Decide(f)
			if got := gistOf(d).Deadline; !ok || d.Action != v1beta1.ActionDrain || got != tc.want || d.Notice.Kind == notice.KindRequested {
				t.Errorf("%s decides, %s: the deadline is %s, want %s", d.Notice.ID, d.Action, got, tc.want)
			}
		})
	}
}
