package policy_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

// gist is the part of a decision that most cases check.
type gist struct {
	Action   v1beta1.Action
	Policy   string
	Rule     string
	Deadline string // "type time"
	Gone     bool
	Until    string
}

func gistOf(d policy.Decision) gist {
	g := gist{Action: d.Action, Policy: d.Policy, Rule: d.Rule, Gone: d.InstanceGone}
	if d.Deadline != nil {
		g.Deadline = string(d.Deadline.Type) + " " + d.Deadline.Time.UTC().Format("15:04:05")
	}
	if !d.Until.IsZero() {
		g.Until = d.Until.UTC().Format("15:04:05")
	}
	return g
}

func TestDefaultsApplyWithoutPolicy(t *testing.T) {
	for _, c := range []struct {
		name    string
		notices []v1beta1.Notice
		want    gist
		message string
	}{
		{
			name:    "a spot interruption drains by its deadline",
			notices: []v1beta1.Notice{spot()},
			want:    gist{Action: v1beta1.ActionDrain, Rule: "SpotInterruption", Deadline: "Hard 12:02:00"},
			message: "Drain: built-in default for SpotInterruption, since no policy selects the node; EC2 takes the instance back",
		},
		{
			name:    "a rebalance recommendation marks the node for an hour",
			notices: []v1beta1.Notice{rebalance()},
			want:    gist{Action: v1beta1.ActionNotify, Rule: "RebalanceRecommendation", Until: "13:00:00"},
			message: "Notify: built-in default for RebalanceRecommendation, since no policy selects the node; the instance is only at risk",
		},
		{
			name:    "an instance that is stopping is drained at once",
			notices: []v1beta1.Notice{state(notice.StateStopping)},
			want:    gist{Action: v1beta1.ActionDrain, Rule: "InstanceStateChange", Deadline: "Estimated 12:02:00"},
			message: "Drain: built-in default for InstanceStateChange (stopping), since no policy selects the node; the instance is going or gone",
		},
		{
			name:    "an instance that is shutting down is drained at once",
			notices: []v1beta1.Notice{state(notice.StateShuttingDown)},
			want:    gist{Action: v1beta1.ActionDrain, Rule: "InstanceStateChange", Deadline: "Estimated 12:02:00"},
			message: "Drain: built-in default for InstanceStateChange (shutting-down), since no policy selects the node; the instance is going or gone",
		},
		{
			name:    "records of earlier releases say that a stopping instance is gone already",
			notices: []v1beta1.Notice{state(notice.StateStopping, due(noon, v1beta1.DeadlineHard))},
			want:    gist{Action: v1beta1.ActionDrain, Rule: "InstanceStateChange", Deadline: "Estimated 12:02:00"},
			message: "Drain: built-in default for InstanceStateChange (stopping), since no policy selects the node; the instance is going or gone",
		},
		{
			name:    "a source that knows the instance better is believed",
			notices: []v1beta1.Notice{state(notice.StateShuttingDown, due(noon.Add(5*time.Minute), v1beta1.DeadlineEstimated))},
			want:    gist{Action: v1beta1.ActionDrain, Rule: "InstanceStateChange", Deadline: "Estimated 12:05:00"},
			message: "Drain: built-in default for InstanceStateChange (shutting-down), since no policy selects the node; the instance is going or gone",
		},
		{
			name:    "an instance that has stopped is cleaned up",
			notices: []v1beta1.Notice{state(notice.StateStopped)},
			want:    gist{Action: v1beta1.ActionDrain, Rule: "InstanceStateChange", Deadline: "Hard 12:00:00", Gone: true},
			message: "Drain: built-in default for InstanceStateChange (stopped), since no policy selects the node; the instance is going or gone",
		},
		{
			name:    "a terminated instance is cleaned up",
			notices: []v1beta1.Notice{state(notice.StateTerminated, due(noon.Add(-time.Minute), v1beta1.DeadlineHard))},
			want:    gist{Action: v1beta1.ActionDrain, Rule: "InstanceStateChange", Deadline: "Hard 11:59:00", Gone: true},
			message: "Drain: built-in default for InstanceStateChange (terminated), since no policy selects the node; the instance is going or gone",
		},
		{
			name:    "a state that this release does not know is only reported",
			notices: []v1beta1.Notice{state("meditating")},
			want:    gist{Action: v1beta1.ActionNotify, Rule: "Unknown", Until: "13:00:00"},
			message: "Notify: built-in default for InstanceStateChange (meditating), since no policy selects the node; this release does not know what it means",
		},
		{
			name:    "a kind that this release does not know is only reported",
			notices: []v1beta1.Notice{build("x", "SolarFlare", due(noon.Add(time.Hour), v1beta1.DeadlineSoft))},
			want:    gist{Action: v1beta1.ActionNotify, Rule: "Unknown", Deadline: "Soft 13:00:00"},
			message: "Notify: built-in default for SolarFlare, since no policy selects the node; this release does not know what it means; the deadline is near",
		},
		{
			name: "a notice without a time counts from when it came",
			notices: []v1beta1.Notice{rebalance(func(n *v1beta1.Notice) {
				n.Time.Time = time.Time{}
			})},
			want:    gist{Action: v1beta1.ActionNotify, Rule: "RebalanceRecommendation", Until: "13:00:01"},
			message: "Notify: built-in default for RebalanceRecommendation, since no policy selects the node; the instance is only at risk",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, ok := policy.Decide(policy.Facts{Now: noon, Notices: c.notices, Node: node(nil)})
			if !ok {
				t.Fatal("no notice counts")
			}
			if diff := cmp.Diff(c.want, gistOf(d)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if d.Message != c.message {
				t.Errorf("message\n got %s\nwant %s", d.Message, c.message)
			}
			if d.DoNotDisrupt != v1beta1.DoNotDisruptUntilLastCall || !d.NotBefore.IsZero() {
				t.Errorf("do-not-disrupt %s, not before %s", d.DoNotDisrupt, d.NotBefore)
			}
		})
	}
}

func TestRulingNotice(t *testing.T) {
	for _, c := range []struct {
		name    string
		notices []v1beta1.Notice
		handled []string
		rules   string // its id; empty: none counts
		want    gist
	}{
		{name: "without a notice there is no decision"},
		{
			name:    "an urgent notice overtakes a soft one",
			notices: []v1beta1.Notice{rebalance(), spot()},
			rules:   "spot-1",
			want:    gist{Action: v1beta1.ActionDrain, Rule: "SpotInterruption", Deadline: "Hard 12:02:00"},
		},
		{
			name:    "a soft one that comes later changes nothing",
			notices: []v1beta1.Notice{spot(), rebalance(received(noon.Add(time.Minute)))},
			rules:   "spot-1",
			want:    gist{Action: v1beta1.ActionDrain, Rule: "SpotInterruption", Deadline: "Hard 12:02:00"},
		},
		{
			name:    "a shutdown overtakes the spot notice whose deadline is later than its estimate",
			notices: []v1beta1.Notice{spot(due(noon.Add(time.Hour), v1beta1.DeadlineHard)), state(notice.StateShuttingDown)},
			rules:   "state-shutting-down",
			want:    gist{Action: v1beta1.ActionDrain, Rule: "InstanceStateChange", Deadline: "Estimated 12:02:00"},
		},
		{
			name:    "a hard deadline that is no later than the estimate stays in force",
			notices: []v1beta1.Notice{state(notice.StateShuttingDown), spot()},
			rules:   "spot-1",
			want:    gist{Action: v1beta1.ActionDrain, Rule: "SpotInterruption", Deadline: "Hard 12:02:00"},
		},
		{
			name:    "a shutdown overtakes a change that is planned for later",
			notices: []v1beta1.Notice{build("soft", notice.KindScheduledChange, due(noon.Add(time.Minute), v1beta1.DeadlineSoft)), state(notice.StateStopping)},
			rules:   "state-stopping",
			want:    gist{Action: v1beta1.ActionDrain, Rule: "InstanceStateChange", Deadline: "Estimated 12:02:00"},
		},
		{
			name:    "the end is known once the instance is off: the estimate counts no more",
			notices: []v1beta1.Notice{state(notice.StateShuttingDown), state(notice.StateTerminated, due(noon.Add(3*time.Minute), v1beta1.DeadlineHard))},
			rules:   "state-terminated",
			want:    gist{Action: v1beta1.ActionDrain, Rule: "InstanceStateChange", Deadline: "Hard 12:03:00", Gone: true},
		},
		{
			name:    "the end overtakes all",
			notices: []v1beta1.Notice{state(notice.StateTerminated), spot(due(noon.Add(-time.Minute), v1beta1.DeadlineHard)), rebalance()},
			rules:   "state-terminated",
			want:    gist{Action: v1beta1.ActionDrain, Rule: "InstanceStateChange", Deadline: "Hard 11:59:00", Gone: true},
		},
		{
			name:    "notices that an earlier interruption has answered do not count",
			notices: []v1beta1.Notice{state(notice.StateStopped), rebalance(received(noon.Add(time.Hour)))},
			handled: []string{"state-stopped"},
			rules:   "rebalance-1",
			want:    gist{Action: v1beta1.ActionNotify, Rule: "RebalanceRecommendation", Until: "13:00:00"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, ok := policy.Decide(policy.Facts{Now: noon, Notices: c.notices, Answered: c.handled, Node: node(nil)})
			if ok != (c.rules != "") || d.Notice.ID != c.rules {
				t.Fatalf("got %q, %t; want %q", d.Notice.ID, ok, c.rules)
			}
			if diff := cmp.Diff(c.want, gistOf(d)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestRulingRule(t *testing.T) {
	drains := on(v1beta1.ActionDrain, "*")
	for _, c := range []struct {
		name     string
		policies []v1beta1.InterruptionPolicy
		want     gist
	}{
		{
			name:     "the highest priority rules",
			policies: []v1beta1.InterruptionPolicy{named("a", 1), named("z", 2, drains), named("b", -1)},
			want:     gist{Action: v1beta1.ActionDrain, Policy: "z", Rule: "rule 1"},
		},
		{
			name:     "of equals the name that sorts first rules",
			policies: []v1beta1.InterruptionPolicy{named("b", 1), named("a", 1, drains), named("c", 1)},
			want:     gist{Action: v1beta1.ActionDrain, Policy: "a", Rule: "rule 1"},
		},
		{
			name: "the first rule for the kind rules",
			policies: []v1beta1.InterruptionPolicy{named("a", 1,
				on(v1beta1.ActionIgnore, notice.KindSpotInterruption),
				v1beta1.Rule{Name: "hints", Kinds: []string{notice.KindSpotInterruption, notice.KindRebalanceRecommendation}, Action: v1beta1.ActionCordon},
				drains,
			)},
			want: gist{Action: v1beta1.ActionCordon, Policy: "a", Rule: "hints", Until: "13:00:00"},
		},
		{
			name: "where the policy has no rule for it the defaults rule and not the next policy",
			policies: []v1beta1.InterruptionPolicy{
				named("a", 2, on(v1beta1.ActionIgnore, notice.KindSpotInterruption)),
				named("b", 1, drains),
			},
			want: gist{Action: v1beta1.ActionNotify, Rule: "RebalanceRecommendation", Until: "13:00:00"},
		},
		{
			name:     "where the policy is not valid the defaults rule and not the next policy",
			policies: []v1beta1.InterruptionPolicy{named("a", 2, on("Explode", "*")), named("b", 1, drains)},
			want:     gist{Action: v1beta1.ActionNotify, Rule: "RebalanceRecommendation", Until: "13:00:00"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 2 {
				d, _ := policy.Decide(policy.Facts{Now: noon, Notices: []v1beta1.Notice{rebalance()}, Node: node(nil), Policies: c.policies})
				if diff := cmp.Diff(c.want, gistOf(d)); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
				last := len(c.policies) - 1 // and in reverse order
				c.policies[0], c.policies[last] = c.policies[last], c.policies[0]
			}
		})
	}
}

func TestDoNotDisruptIsTakenFromRule(t *testing.T) {
	for given, want := range map[v1beta1.DoNotDisrupt]v1beta1.DoNotDisrupt{
		"":                                v1beta1.DoNotDisruptUntilLastCall,
		v1beta1.DoNotDisruptUntilLastCall: v1beta1.DoNotDisruptUntilLastCall,
		v1beta1.DoNotDisruptRespect:       v1beta1.DoNotDisruptRespect,
		v1beta1.DoNotDisruptIgnore:        v1beta1.DoNotDisruptIgnore,
	} {
		rule := on(v1beta1.ActionDrain, "*")
		rule.DoNotDisrupt = given
		d, _ := policy.Decide(policy.Facts{Now: noon, Notices: []v1beta1.Notice{spot()}, Node: node(nil), Policies: []v1beta1.InterruptionPolicy{named("a", 0, rule)}})
		if d.DoNotDisrupt != want {
			t.Errorf("%q: got %s, want %s", given, d.DoNotDisrupt, want)
		}
	}
}

func TestOnlyMarkWithoutDeadlineExpires(t *testing.T) {
	soft := rebalance(due(noon.Add(time.Hour), v1beta1.DeadlineSoft))
	for _, c := range []struct {
		name   string
		notice v1beta1.Notice
		action v1beta1.Action
		want   string
	}{
		{"Notify without a deadline ends", rebalance(), v1beta1.ActionNotify, "13:00:00"},
		{"Cordon without a deadline ends", rebalance(), v1beta1.ActionCordon, "13:00:00"},
		{"Drain does not end on its own", rebalance(), v1beta1.ActionDrain, ""},
		{"Ignore has nothing to end", rebalance(), v1beta1.ActionIgnore, ""},
		{"Cordon with a soft deadline lasts", soft, v1beta1.ActionCordon, ""},
		{"Notify with a hard deadline lasts", spot(), v1beta1.ActionNotify, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, _ := policy.Decide(policy.Facts{Now: noon, Notices: []v1beta1.Notice{c.notice}, Node: node(nil), Policies: []v1beta1.InterruptionPolicy{named("a", 0, on(c.action, "*"))}})
			if got := gistOf(d).Until; got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
