package policy_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

func say(about string, at time.Time) *v1beta1.UserAction {
	return &v1beta1.UserAction{By: "ann@example.com", Time: metav1.NewMicroTime(at), About: about}
}

func TestApproval(t *testing.T) {
	const asks = "Drain: policy db, rule 1, is for ScheduledChange; it waits for approval (`lifeboat approve ip-10-0-0-1`)"
	in12Days := noon.Add(12 * 24 * time.Hour)
	stop := scheduled(notice.ActionStop, in12Days)
	soon := scheduled(notice.ActionStop, noon.Add(30*time.Minute))
	for _, c := range []struct {
		name       string
		notice     v1beta1.Notice
		unanswered v1beta1.Unanswered
		say        *v1beta1.UserAction
		since      time.Time
		awaits     bool
		proceedsAt time.Time
		message    string
	}{
		{
			name: "it is not approved", notice: stop, awaits: true,
			message: asks + ", without which nothing is done; once approved it begins at 2026-03-14 11:00 UTC, an hour before the deadline",
		},
		{
			name: "it is not approved, and the deadline has become hard", notice: soon, unanswered: v1beta1.UnansweredWait, awaits: true,
			message: asks + ", without which nothing is done; the deadline is near",
		},
		{
			name: "an unapproved reclaim waits too", notice: spot(), awaits: true,
			message: "Drain: policy db, rule 1, is for SpotInterruption; it waits for approval (`lifeboat approve ip-10-0-0-1`), without which nothing is done",
		},
		{
			name: "silence is consent an hour before the deadline", notice: stop, unanswered: v1beta1.UnansweredProceed,
			awaits: true, proceedsAt: in12Days.Add(-time.Hour),
			message: asks + " until 2026-03-14 11:00 UTC, and then goes ahead without; once approved it begins at 2026-03-14 11:00 UTC, an hour before the deadline",
		},
		{
			name: "silence was consent", notice: soon, unanswered: v1beta1.UnansweredProceed,
			message: "Drain: policy db, rule 1, is for ScheduledChange; not approved in time, so it proceeds without approval; the deadline is near",
		},
		{
			name: "there is no time to ask", notice: spot(), unanswered: v1beta1.UnansweredProceed,
			message: "Drain: policy db, rule 1, is for SpotInterruption; not approved in time, so it proceeds without approval",
		},
		{
			name: "without a deadline silence is consent an hour after the notice", notice: rebalance(), unanswered: v1beta1.UnansweredProceed,
			awaits: true, proceedsAt: noon.Add(time.Hour),
			message: "Drain: policy db, rule 1, is for RebalanceRecommendation; it waits for approval (`lifeboat approve ip-10-0-0-1`) until 2026-03-02 13:00 UTC, and then goes ahead without",
		},
		{
			name: "a user has approved it", notice: stop, say: say("ScheduledChange instance-event-1", noon),
			message: "Drain: policy db, rule 1, is for ScheduledChange; ann@example.com has approved it; it begins at 2026-03-14 11:00 UTC, an hour before the deadline",
		},
		{
			name: "a user has approved another change", notice: stop, say: say("ScheduledChange instance-event-2", noon), awaits: true,
			message: asks + ", without which nothing is done; once approved it begins at 2026-03-14 11:00 UTC, an hour before the deadline",
		},
		{
			name: "an approval of the kind is not one of the change", notice: stop, say: say("ScheduledChange", noon), awaits: true,
			message: asks + ", without which nothing is done; once approved it begins at 2026-03-14 11:00 UTC, an hour before the deadline",
		},
		{
			name: "a kind without a subject is approved as such", notice: spot(), say: say("SpotInterruption", noon),
			message: "Drain: policy db, rule 1, is for SpotInterruption; ann@example.com has approved it",
		},
		{
			name: "an approval of an earlier interruption does not count", notice: spot(), since: noon, say: say("SpotInterruption", noon), awaits: true,
			message: "Drain: policy db, rule 1, is for SpotInterruption; it waits for approval (`lifeboat approve ip-10-0-0-1`), without which nothing is done",
		},
		{
			name: "what is gone is cleaned up without", notice: state(notice.StateTerminated),
			message: "Drain: policy db, rule 1, is for InstanceStateChange; it needs no approval any more, since the instance is gone",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			rule := on(v1beta1.ActionDrain, "*")
			rule.Approval, rule.IfUnanswered = v1beta1.ApprovalRequired, c.unanswered
			d, _ := policy.Decide(policy.Facts{
				Now: noon, Notices: []v1beta1.Notice{c.notice}, Node: node(nil), Approval: c.say, Since: c.since,
				Policies: []v1beta1.InterruptionPolicy{named("db", 0, rule)},
			})
			if d.AwaitsApproval != c.awaits || !d.ProceedsAt.Equal(c.proceedsAt) {
				t.Errorf("awaits %t, proceeds at %s; want %t, %s", d.AwaitsApproval, d.ProceedsAt, c.awaits, c.proceedsAt)
			}
			if d.Message != c.message {
				t.Errorf("message\n got %s\nwant %s", d.Message, c.message)
			}
		})
	}
}

// Rules with approval None and the defaults do not wait for approval.
func TestRulesWithoutApprovalDoNotWait(t *testing.T) {
	rule := on(v1beta1.ActionDrain, notice.KindSpotInterruption)
	rule.Approval = v1beta1.ApprovalNone
	for _, n := range []v1beta1.Notice{spot(), rebalance()} {
		d, _ := policy.Decide(policy.Facts{Now: noon, Notices: []v1beta1.Notice{n}, Node: node(nil), Policies: []v1beta1.InterruptionPolicy{named("p", 0, rule)}})
		if d.AwaitsApproval || d.About != n.Kind {
			t.Errorf("%s: awaits %t, about %q", n.Kind, d.AwaitsApproval, d.About)
		}
	}
}

// A window that opens after the approval is used.
func TestLateApprovalWaitsForNextWindow(t *testing.T) {
	rule := on(v1beta1.ActionDrain, "*")
	rule.Approval, rule.Window = v1beta1.ApprovalRequired, window("0 2 * * *", 2*time.Hour, "")
	facts := policy.Facts{
		Notices: []v1beta1.Notice{scheduled(notice.ActionStop, noon.Add(12*24*time.Hour))}, Node: node(nil),
		Policies: []v1beta1.InterruptionPolicy{named("db", 0, rule)},
	}
	facts.Now = noon.Add(13 * time.Hour)
	if d, _ := policy.Decide(facts); !d.AwaitsApproval || !d.NotBefore.Equal(noon.Add(14*time.Hour)) {
		t.Errorf("before the window: awaits %t, not before %s", d.AwaitsApproval, d.NotBefore)
	}
	facts.Now = noon.Add(15 * time.Hour)
	if d, _ := policy.Decide(facts); !d.AwaitsApproval || !d.NotBefore.IsZero() {
		t.Errorf("in the window: awaits %t, not before %s", d.AwaitsApproval, d.NotBefore)
	}
	facts.Now = noon.Add(17 * time.Hour)
	facts.Approval = say("ScheduledChange instance-event-1", facts.Now)
	if d, _ := policy.Decide(facts); d.AwaitsApproval || !d.NotBefore.Equal(noon.Add(38*time.Hour)) {
		t.Errorf("approved after the window: awaits %t, not before %s", d.AwaitsApproval, d.NotBefore)
	}
}

// AWS Health and EC2's own scheduled events report the same change, each with its own id.
func TestApprovalCoversAllNoticesOfChange(t *testing.T) {
	due := noon.Add(12 * 24 * time.Hour)
	health := scheduled(notice.ActionStop, due)
	health.ID, health.Subject = "health", "arn:aws:health:event"
	poll := func(what string, at time.Time) v1beta1.Notice {
		n := scheduled(what, at)
		n.ID, n.Subject, n.Source, n.Time = "ec2", "instance-event-1", notice.SourceEC2, metav1.NewTime(noon.Add(time.Minute))
		return n
	}
	withdrawn := health
	withdrawn.Withdrawn = true
	for name, tc := range map[string]struct {
		first, second v1beta1.Notice
		awaits        bool
	}{
		"the same change":                    {health, poll(notice.ActionStop, due), false},
		"a little earlier":                   {health, poll(notice.ActionStop, due.Add(-time.Hour)), false},
		"another day":                        {health, poll(notice.ActionStop, due.Add(-24*time.Hour)), true},
		"a reboot":                           {health, poll(notice.ActionReboot, due), true},
		"what was approved was called off":   {withdrawn, poll(notice.ActionStop, due), true},
		"what was approved is all there was": {health, health, false},
	} {
		d, ok := policy.Decide(policy.Facts{
			Now: noon, Notices: []v1beta1.Notice{tc.first, tc.second}, Node: node(nil), Approval: say("ScheduledChange arn:aws:health:event", noon),
			Policies: []v1beta1.InterruptionPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "db"}, Spec: v1beta1.InterruptionPolicySpec{
				Rules: []v1beta1.Rule{{Kinds: []string{"*"}, Action: v1beta1.ActionDrain, Approval: v1beta1.ApprovalRequired}},
			}}},
		})
		if !ok || d.AwaitsApproval != tc.awaits || d.Approved == tc.awaits {
			t.Errorf("%s: awaits %t, approved %t; notice %s rules", name, d.AwaitsApproval, d.Approved, d.Notice.ID)
		}
	}
}
