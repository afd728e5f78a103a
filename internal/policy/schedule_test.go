package policy_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

func after(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

// planned is the decision about a stop at a time, with one rule.
func planned(now, at time.Time, rule v1beta1.Rule) policy.Decision {
	d, _ := policy.Decide(policy.Facts{
		Now: now, Notices: []v1beta1.Notice{scheduled(notice.ActionStop, at)}, Node: node(nil),
		Policies: []v1beta1.InterruptionPolicy{named("p", 0, rule)},
	})
	return d
}

func TestNotBefore(t *testing.T) {
	nightly := window("0 2 * * *", 2*time.Hour, "")
	for _, c := range []struct {
		name      string
		notBefore time.Duration
		window    *v1beta1.Window
		now       string
		deadline  string
		want      string // empty: now
		typ       v1beta1.DeadlineType
		because   string
	}{
		{"a day before", 24 * time.Hour, nil, "2026-03-02T12:00:00Z", "2026-03-12T18:00:00Z", "2026-03-11T18:00:00Z", v1beta1.DeadlineSoft, "it begins at 2026-03-11 18:00 UTC, 24h before the deadline"},
		{"within the day it begins, and the deadline is soft still", 24 * time.Hour, nil, "2026-03-11T18:00:00Z", "2026-03-12T18:00:00Z", "", v1beta1.DeadlineSoft, "the deadline is less than 24h away"},
		{"within the hour the deadline is hard", 24 * time.Hour, nil, "2026-03-12T17:00:00Z", "2026-03-12T18:00:00Z", "", v1beta1.DeadlineHard, "the deadline is less than 24h away"},
		{"less than an hour before", 20 * time.Minute, nil, "2026-03-12T17:30:00Z", "2026-03-12T18:00:00Z", "2026-03-12T17:40:00Z", v1beta1.DeadlineSoft, "it begins at 2026-03-12 17:40 UTC, 20m before the deadline"},
		{"less than an hour before, then", 20 * time.Minute, nil, "2026-03-12T17:40:00Z", "2026-03-12T18:00:00Z", "", v1beta1.DeadlineHard, "the deadline is near"},
		{"the first opening from then on", 36 * time.Hour, nightly, "2026-03-02T12:00:00Z", "2026-03-12T18:00:00Z", "2026-03-12T02:00:00Z", v1beta1.DeadlineSoft, "it begins when its window opens at 2026-03-12 02:00 UTC"},
		{"not an opening before that", 36 * time.Hour, nightly, "2026-03-03T02:30:00Z", "2026-03-12T18:00:00Z", "2026-03-12T02:00:00Z", v1beta1.DeadlineSoft, "it begins when its window opens at 2026-03-12 02:00 UTC"},
		{"in the middle of an opening", 24 * time.Hour, nightly, "2026-03-02T12:00:00Z", "2026-03-12T03:00:00Z", "2026-03-11T03:00:00Z", v1beta1.DeadlineSoft, "it begins at 2026-03-11 03:00 UTC, 24h before the deadline, within its window"},
		{"in the middle of an opening, then", 24 * time.Hour, nightly, "2026-03-11T03:00:00Z", "2026-03-12T03:00:00Z", "", v1beta1.DeadlineSoft, "its window is open until 2026-03-11 04:00 UTC"},
		{"no opening from then on", 12 * time.Hour, nightly, "2026-03-02T12:00:00Z", "2026-03-12T18:00:00Z", "2026-03-12T17:00:00Z", v1beta1.DeadlineSoft, "it begins at 2026-03-12 17:00 UTC, an hour before the deadline, since its window does not open in time"},
		{"an opening in the last hour is too late", 12 * time.Hour, nightly, "2026-03-02T12:00:00Z", "2026-03-12T02:05:00Z", "2026-03-12T01:05:00Z", v1beta1.DeadlineSoft, "an hour before the deadline, since its window does not open in time"},
		{"unless less is enough", 30 * time.Minute, nightly, "2026-03-02T12:00:00Z", "2026-03-12T02:05:00Z", "2026-03-12T02:00:00Z", v1beta1.DeadlineSoft, "it begins when its window opens at 2026-03-12 02:00 UTC"},
		{"unless less is enough, within the hour", 30 * time.Minute, nightly, "2026-03-12T01:40:00Z", "2026-03-12T02:05:00Z", "2026-03-12T02:00:00Z", v1beta1.DeadlineSoft, "it begins when its window opens"},
		{"unless less is enough, and it does not open", 30 * time.Minute, nightly, "2026-03-02T12:00:00Z", "2026-03-12T18:00:00Z", "2026-03-12T17:30:00Z", v1beta1.DeadlineSoft, "30m before the deadline, since its window does not open in time"},
		{"90 minutes are more than an hour", 90 * time.Minute, nightly, "2026-03-02T12:00:00Z", "2026-03-12T18:00:00Z", "2026-03-12T17:00:00Z", v1beta1.DeadlineSoft, "an hour before the deadline, since"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rule := on(v1beta1.ActionDrain, "*")
			rule.NotBefore, rule.Window = after(c.notBefore), c.window
			d := planned(moment(t, c.now), moment(t, c.deadline), rule)
			got := ""
			if !d.NotBefore.IsZero() {
				got = d.NotBefore.UTC().Format(time.RFC3339)
			}
			if got != c.want || d.Deadline.Type != c.typ || !strings.Contains(d.Message, c.because) {
				t.Errorf("not before %q, want %q; deadline %s, want %s; message %q, want %q in it", got, c.want, d.Deadline.Type, c.typ, d.Message, c.because)
			}
		})
	}
}

func TestNotBeforeNeedsSoftDeadline(t *testing.T) {
	rule := on(v1beta1.ActionDrain, "*")
	rule.NotBefore = after(24 * time.Hour)
	for name, n := range map[string]v1beta1.Notice{"a hard deadline": spot(), "no deadline": rebalance()} {
		d, _ := policy.Decide(policy.Facts{Now: noon, Notices: []v1beta1.Notice{n}, Node: node(nil), Policies: []v1beta1.InterruptionPolicy{named("p", 0, rule)}})
		if !d.NotBefore.IsZero() || strings.Contains(d.Message, "24h") {
			t.Errorf("%s: not before %s: %s", name, d.NotBefore, d.Message)
		}
	}
}

func TestTerminationHasTimeout(t *testing.T) {
	sick := build("n", notice.KindInstanceStatus)
	for _, c := range []struct {
		name   string
		notice v1beta1.Notice
		begun  time.Time
		want   string
	}{
		{"before it has begun there is none", sick, time.Time{}, ""},
		{"two minutes after it has begun", sick, noon.Add(-time.Minute), "Hard 12:01:00"},
		{"a notice that has a deadline keeps it", spot(), noon, "Hard 12:02:00"},
		{"a soft one too", rebalance(due(noon.Add(3*time.Hour), v1beta1.DeadlineSoft)), noon, "Soft 15:00:00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			facts := policy.Facts{
				Now: noon, Notices: []v1beta1.Notice{c.notice}, Node: ofPool("web"), Begun: c.begun,
				Policies: []v1beta1.InterruptionPolicy{named("p", 0, on(v1beta1.ActionTerminate, "*"))},
			}
			d, _ := policy.Decide(facts)
			if got := gistOf(d).Deadline; got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			facts.Policies[0].Spec.Rules[0].Action = v1beta1.ActionDrain
			if d, _ := policy.Decide(facts); c.notice.Deadline == nil && d.Deadline != nil {
				t.Errorf("a drain without a deadline has %s", d.Deadline)
			}
		})
	}
}
