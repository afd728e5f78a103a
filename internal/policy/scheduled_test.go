package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

func scheduled(action string, at time.Time, more ...func(*v1beta1.Notice)) v1beta1.Notice {
	n := build("s", notice.KindScheduledChange, due(at, v1beta1.DeadlineSoft))
	n.InstanceAction, n.Subject = action, "instance-event-1"
	for _, change := range more {
		change(&n)
	}
	return n
}

func TestScheduledChanges(t *testing.T) {
	in12Days := noon.Add(12 * 24 * time.Hour)
	for name, tc := range map[string]struct {
		notice    v1beta1.Notice
		action    v1beta1.Action
		deadline  v1beta1.DeadlineType
		notBefore time.Time
	}{
		"a stop in 12 days waits for its last hour": {scheduled(notice.ActionStop, in12Days), v1beta1.ActionDrain, v1beta1.DeadlineSoft, in12Days.Add(-time.Hour)},
		"a stop in an hour begins, and is hard":     {scheduled(notice.ActionStop, noon.Add(time.Hour)), v1beta1.ActionDrain, v1beta1.DeadlineHard, time.Time{}},
		"a stop that is overdue begins, not hard":   {scheduled(notice.ActionTerminate, noon.Add(-time.Hour)), v1beta1.ActionDrain, v1beta1.DeadlineSoft, time.Time{}},
		"a reboot is drained before":                {scheduled(notice.ActionReboot, noon.Add(time.Minute)), v1beta1.ActionDrain, v1beta1.DeadlineHard, time.Time{}},
		"maintenance only marks, and stays soft":    {scheduled(notice.ActionMaintain, noon.Add(time.Minute)), v1beta1.ActionNotify, v1beta1.DeadlineSoft, time.Time{}},
		"maintenance in 12 days marks nothing yet":  {scheduled(notice.ActionMaintain, in12Days), v1beta1.ActionNotify, v1beta1.DeadlineSoft, in12Days.Add(-time.Hour)},
		"what is not known is only reported":        {scheduled("", noon.Add(time.Minute)), v1beta1.ActionNotify, v1beta1.DeadlineSoft, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			d, ok := policy.Decide(policy.Facts{Now: noon, Notices: []v1beta1.Notice{tc.notice}, Node: node(nil)})
			if !ok || d.Action != tc.action || d.Deadline.Type != tc.deadline || !d.NotBefore.Equal(tc.notBefore) {
				t.Errorf("%s, %s deadline, not before %s; want %s, %s, %s", d.Action, d.Deadline.Type, d.NotBefore, tc.action, tc.deadline, tc.notBefore)
			}
		})
	}
}

func TestWithdrawnNoticesRestoreNode(t *testing.T) {
	withdrawn := func(n *v1beta1.Notice) { n.Withdrawn, n.EventTypeCode = true, "instance-stop" }
	gone := scheduled(notice.ActionStop, noon.Add(time.Hour), withdrawn)
	d, ok := policy.Decide(policy.Facts{Now: noon, Notices: []v1beta1.Notice{gone}, Node: node(nil)})
	if !ok || !d.Withdrawn || !strings.Contains(d.Message, "AWS has taken back ScheduledChange (instance-stop)") {
		t.Errorf("decision %+v, %v", d, ok)
	}
	asked := build("request-1", notice.KindRequested, func(n *v1beta1.Notice) { n.Withdrawn = true })
	d, ok = policy.Decide(policy.Facts{Now: noon, Notices: []v1beta1.Notice{asked}, Node: node(nil)})
	if !ok || !d.Withdrawn || d.Message != "Ignore: the request is withdrawn" {
		t.Errorf("a person's request: decision %+v, %v", d, ok)
	}
	d, ok = policy.Decide(policy.Facts{Now: noon, Notices: []v1beta1.Notice{spot(), gone}, Node: node(nil)})
	if !ok || d.Withdrawn || d.Notice.Kind != notice.KindSpotInterruption {
		t.Errorf("beside a reclaim: decision %+v, %v", d, ok)
	}
	if d, ok = policy.Decide(policy.Facts{Now: noon, Answered: []string{gone.ID}, Notices: []v1beta1.Notice{gone}}); ok {
		t.Errorf("what an earlier interruption has answered: decision %+v", d)
	}
}

// A notice with an earlier deadline but no action, now or ever, must not hide it.
func TestNoticeThatDrainsNowTakesPrecedence(t *testing.T) {
	in12Days := noon.Add(12 * 24 * time.Hour)
	sick := build("sick", notice.KindInstanceStatus)
	stop := scheduled(notice.ActionStop, noon.Add(time.Hour))
	planned := scheduled(notice.ActionStop, in12Days, func(n *v1beta1.Notice) { n.ID = "planned" })
	maintenance := scheduled(notice.ActionMaintain, noon.Add(time.Minute), func(n *v1beta1.Notice) { n.ID = "maintenance" })
	tomorrow := scheduled(notice.ActionStop, noon.Add(24*time.Hour), func(n *v1beta1.Notice) { n.ID = "tomorrow" })
	deaf := named("deaf", 0, on(v1beta1.ActionIgnore, notice.KindSpotInterruption), on(v1beta1.ActionDrain, notice.KindInstanceStatus))
	asking := on(v1beta1.ActionDrain, notice.KindScheduledChange)
	asking.Approval = v1beta1.ApprovalRequired
	replaces := []v1beta1.InterruptionPolicy{named("replaces", 0, on(v1beta1.ActionTerminate, notice.KindInstanceStatus))}
	for name, tc := range map[string]struct {
		notices  []v1beta1.Notice
		policies []v1beta1.InterruptionPolicy
		rules    string
		next     time.Time
	}{
		"a sick instance, though a change is planned":        {[]v1beta1.Notice{planned, sick}, replaces, "sick", in12Days.Add(-time.Hour)},
		"a stop, though there is maintenance before":         {[]v1beta1.Notice{maintenance, stop}, nil, "s", time.Time{}},
		"a stop tomorrow, after maintenance":                 {[]v1beta1.Notice{maintenance, tomorrow}, nil, "maintenance", noon.Add(23 * time.Hour)},
		"the first of two that are planned":                  {[]v1beta1.Notice{planned, tomorrow}, nil, "tomorrow", in12Days.Add(-time.Hour)},
		"a hint does not drain, and waits for a planned one": {[]v1beta1.Notice{planned, rebalance()}, nil, "planned", time.Time{}},
		"a reclaim that is ignored is, whatever else is":     {[]v1beta1.Notice{spot(), sick}, []v1beta1.InterruptionPolicy{deaf}, "spot-1", time.Time{}},
		"a sick instance, though a change awaits approval":   {[]v1beta1.Notice{stop, sick}, []v1beta1.InterruptionPolicy{named("asking", 0, asking, on(v1beta1.ActionDrain, "*"))}, "sick", time.Time{}},
		"not once the instance is gone":                      {[]v1beta1.Notice{state(notice.StateStopped), sick}, []v1beta1.InterruptionPolicy{named("deaf", 0, on(v1beta1.ActionIgnore, notice.KindInstanceStateChange))}, "state-stopped", time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			d, ok := policy.Decide(policy.Facts{Now: noon, Notices: tc.notices, Policies: tc.policies, Node: ofPool("web")})
			if !ok || d.Notice.ID != tc.rules || !d.Next.Equal(tc.next) {
				t.Errorf("%s rules (%s), next %s; want %s, %s", d.Notice.ID, d.Message, d.Next, tc.rules, tc.next)
			}
		})
	}
}
