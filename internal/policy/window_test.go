package policy_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

func window(schedule string, duration time.Duration, zone string) *v1beta1.Window {
	return &v1beta1.Window{Schedule: schedule, Duration: metav1.Duration{Duration: duration}, TimeZone: zone}
}

func TestWindows(t *testing.T) {
	nightly := window("0 2 * * *", 2*time.Hour, "")
	berlin := window("30 2 * * *", time.Hour, "Europe/Berlin")
	newYork := window("30 1 * * *", time.Hour, "America/New_York")
	for _, c := range []struct {
		name     string
		window   *v1beta1.Window
		now      string
		deadline string // soft, unless it ends with !
		want     string // empty: now
		because  string
	}{
		{"inside it begins now", nightly, "2026-03-02T03:00:00Z", "", "", "its window is open until 2026-03-02 04:00 UTC"},
		{"it opens on the second", nightly, "2026-03-02T02:00:00Z", "", "", "its window is open until 2026-03-02 04:00 UTC"},
		{"a second before it opens", nightly, "2026-03-02T01:59:59Z", "", "2026-03-02T02:00:00Z", "it begins when its window opens at 2026-03-02 02:00 UTC"},
		{"the last second inside", nightly, "2026-03-02T03:59:59Z", "", "", "open until"},
		{"it closes on the second", nightly, "2026-03-02T04:00:00Z", "", "2026-03-03T02:00:00Z", "opens at 2026-03-03 02:00 UTC"},
		{"before a soft deadline it waits", nightly, "2026-03-02T12:00:00Z", "2026-03-03T03:00:00Z", "2026-03-03T02:00:00Z", "opens at"},
		{"it does not wait for a window that opens in the last hour", nightly, "2026-03-02T12:00:00Z", "2026-03-03T02:59:59Z", "2026-03-03T01:59:59Z", "since its window does not open in time"},
		{"in the last hour it begins in a window that is open", nightly, "2026-03-03T02:30:00Z", "2026-03-03T03:00:00Z", "", "its window is open until 2026-03-03 04:00 UTC"},
		{"it does not wait for a window that opens at a soft deadline", nightly, "2026-03-02T12:00:00Z", "2026-03-03T02:00:00Z", "2026-03-03T01:00:00Z", "it begins at 2026-03-03 01:00 UTC, an hour before the deadline, since its window does not open in time"},
		{"it does not wait for a window that opens after a soft deadline", nightly, "2026-03-02T12:00:00Z", "2026-03-02T18:00:00Z", "2026-03-02T17:00:00Z", "an hour before the deadline"},
		{"near a soft deadline it begins now", nightly, "2026-03-02T17:00:00Z", "2026-03-02T18:00:00Z", "", "the deadline is near, since its window does not open in time"},
		{"without a window it begins an hour before a soft deadline", nil, "2026-03-02T12:00:00Z", "2026-03-12T18:00:00Z", "2026-03-12T17:00:00Z", "it begins at 2026-03-12 17:00 UTC, an hour before the deadline"},
		{"without a window it begins now where a soft deadline is near", nil, "2026-03-12T17:00:00Z", "2026-03-12T18:00:00Z", "", "the deadline is near"},
		{"a hard deadline waits for no window", nightly, "2026-03-02T12:00:00Z", "2026-03-05T12:00:00Z!", "", "its window does not count, since the deadline is hard"},
		{"a window across midnight is open before it", window("0 23 * * *", 3*time.Hour, ""), "2026-03-02T23:30:00Z", "", "", "open until 2026-03-03 02:00 UTC"},
		{"a window across midnight is open after it", window("0 23 * * *", 3*time.Hour, ""), "2026-03-03T01:30:00Z", "", "", "open until 2026-03-03 02:00 UTC"},
		{"a window of days is open on the last", window("0 0 * * SAT", 48*time.Hour, ""), "2026-03-08T23:59:00Z", "", "", "open until 2026-03-09 00:00 UTC"},
		{"windows that overlap never close", window("*/5 * * * *", time.Hour, ""), "2026-03-02T12:03:00Z", "", "", "open until"},
		{"a zone shifts it", window("0 2 * * *", time.Hour, "Europe/Berlin"), "2026-03-02T00:30:00Z", "", "2026-03-02T01:00:00Z", "opens at 2026-03-02 02:00 CET"},

		// Berlin, 29 March 2026: 02:00 CET becomes 03:00 CEST.
		{"in Berlin the day before the hour is skipped", berlin, "2026-03-28T00:00:00Z", "", "2026-03-28T01:30:00Z", "02:30 CET"},
		{"in Berlin an opening in the skipped hour is an hour later", berlin, "2026-03-28T23:00:00Z", "", "2026-03-29T01:30:00Z", "2026-03-29 03:30 CEST"},
		{"in Berlin a window from the skipped hour stays open", window("30 2 * * *", 2*time.Hour, "Europe/Berlin"), "2026-03-29T03:29:00Z", "", "", "open until 2026-03-29 05:30 CEST"},
		{"in Berlin a window from the skipped hour closes", window("30 2 * * *", 2*time.Hour, "Europe/Berlin"), "2026-03-29T03:30:00Z", "", "2026-03-30T00:30:00Z", "2026-03-30 02:30 CEST"},
		{"in Berlin a short window from the skipped hour opens", window("59 2 * * *", 5*time.Minute, "Europe/Berlin"), "2026-03-29T02:00:00Z", "", "", "open until 2026-03-29 04:04 CEST"},
		{"in Berlin a window across the skipped hour keeps its length", window("30 1 * * *", 2*time.Hour, "Europe/Berlin"), "2026-03-29T02:29:00Z", "", "", "open until 2026-03-29 04:30 CEST"},
		// Berlin, 25 October 2026: 03:00 CEST becomes 02:00 CET.
		{"in Berlin the hour that comes twice opens first in summer time", berlin, "2026-10-24T23:00:00Z", "", "2026-10-25T00:30:00Z", "2026-10-25 02:30 CEST"},
		{"in Berlin the hour that comes twice opens again in winter time", window("30 2 * * *", 10*time.Minute, "Europe/Berlin"), "2026-10-25T00:45:00Z", "", "2026-10-25T01:30:00Z", "2026-10-25 02:30 CET"},
		// New York, 8 March 2026: 02:00 EST becomes 03:00 EDT; 1 November: back.
		{"in New York a window that opens before the change is open after it", newYork, "2026-03-08T07:15:00Z", "", "", "open until 2026-03-08 03:30 EDT"},
		{"in New York an opening in the skipped hour is an hour later", window("0 2 * * *", time.Hour, "America/New_York"), "2026-03-08T05:00:00Z", "", "2026-03-08T07:00:00Z", "2026-03-08 03:00 EDT"},
		{"a day of the month or a day of the week is enough", window("0 2 1 * MON", time.Hour, ""), "2026-03-01T12:00:00Z", "", "2026-03-02T02:00:00Z", "2026-03-02 02:00 UTC"},
		{"in New York the hour that comes twice opens first in summer time", newYork, "2026-11-01T04:00:00Z", "", "2026-11-01T05:30:00Z", "2026-11-01 01:30 EDT"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := rebalance()
			if at, hard := strings.CutSuffix(c.deadline, "!"); at != "" {
				typ := v1beta1.DeadlineSoft
				if hard {
					typ = v1beta1.DeadlineHard
				}
				due(moment(t, at), typ)(&n)
			}
			rule := on(v1beta1.ActionDrain, "*")
			rule.Window = c.window
			d, _ := policy.Decide(policy.Facts{
				Now: moment(t, c.now), Notices: []v1beta1.Notice{n}, Node: node(nil),
				Policies: []v1beta1.InterruptionPolicy{named("p", 0, rule)},
			})
			if d.Policy != "p" {
				t.Fatalf("the policy does not rule: %+v", d.Considered)
			}
			got := ""
			if !d.NotBefore.IsZero() {
				got = d.NotBefore.UTC().Format(time.RFC3339)
			}
			if got != c.want || !strings.Contains(d.Message, c.because) {
				t.Errorf("not before %q, want %q; message %q, want %q in it", got, c.want, d.Message, c.because)
			}
		})
	}
}

func moment(t *testing.T, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// Compares Decide with a minute-by-minute simulation of a window, over the days around both
// changes of the clock.
func TestWindowsMatchMinuteByMinuteSearch(t *testing.T) {
	for _, zone := range []string{"Europe/Berlin", "America/New_York", "UTC", "Asia/Kolkata", "Australia/Lord_Howe"} {
		location, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		for _, day := range []time.Time{time.Date(2026, 3, 7, 20, 0, 0, 0, time.UTC), time.Date(2026, 3, 28, 20, 0, 0, 0, time.UTC), time.Date(2026, 10, 24, 20, 0, 0, 0, time.UTC), time.Date(2026, 10, 31, 20, 0, 0, 0, time.UTC)} {
			rule := on(v1beta1.ActionDrain, "*")
			rule.Window = window("15 1 * * *", 75*time.Minute, zone)
			facts := policy.Facts{Notices: []v1beta1.Notice{rebalance()}, Node: node(nil), Policies: []v1beta1.InterruptionPolicy{named("p", 0, rule)}}
			for facts.Now = day; facts.Now.Before(day.Add(14 * time.Hour)); facts.Now = facts.Now.Add(5 * time.Minute) {
				open := false
				for back := range 75 {
					wall := facts.Now.Add(-time.Duration(back) * time.Minute).In(location)
					open = open || (wall.Hour() == 1 && wall.Minute() == 15)
				}
				d, _ := policy.Decide(facts)
				if d.NotBefore.IsZero() != open {
					t.Fatalf("%s %s: open %t, but not before %s", zone, facts.Now.In(location), open, d.NotBefore)
				}
				if !open && (d.NotBefore.In(location).Hour() != 1 || d.NotBefore.In(location).Minute() != 15 || !d.NotBefore.After(facts.Now)) {
					t.Fatalf("%s %s: not before %s", zone, facts.Now.In(location), d.NotBefore.In(location))
				}
			}
		}
	}
}
