//go:build e2e

package real

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

var zero = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return zero.Add(time.Duration(seconds * float64(time.Second))) }

// journalText writes the journal of a server from a short form such as "started 0, ready 1.5".
func journalText(events string) string {
	var b strings.Builder
	for item := range strings.SplitSeq(events, ", ") {
		var what string
		var seconds float64
		if _, err := fmt.Sscan(item, &what, &seconds); err != nil {
			panic(fmt.Sprintf("%q: %v", item, err))
		}
		fmt.Fprintf(&b, `{"time":%q,"pod":"web-1","what":%q}`+"\n", at(seconds).Format(time.RFC3339Nano), what)
	}
	return b.String()
}

func TestPodEndChecks(t *testing.T) {
	off := at(40)
	for _, tc := range []struct {
		name, journal string
		// Text in each check's error; "" means no error.
		whole, unasked, cut, shortened string
	}{
		{
			"all is well", "started 0, ready 1, hook-begin 10, hook-end 20, sigterm 20.01, exit 20.02",
			"", "was asked", "not cut", "not cut",
		},
		{
			"not asked", "started 0, ready 1",
			"began 0 times", "", "not cut", "not cut",
		},
		{
			"the power cut the hook", "started 0, ready 1, hook-begin 35",
			"was cut", "was asked", "", "came 0 times",
		},
		{
			"the end of the grace cut the hook", "started 0, ready 1, hook-begin 10, sigterm 36, exit 36.1",
			"was cut", "was asked", "not cut by the power", "",
		},
		{
			"SIGTERM and hook at once", "started 0, ready 1, hook-begin 10, sigterm 15, hook-end 20, exit 20.1",
			"before its hook", "was asked", "not cut", "not cut",
		},
		{
			"a hook that hardly ran", "started 0, ready 1, hook-begin 10, hook-end 11, sigterm 11.1, exit 12",
			"took 1s", "was asked", "not cut", "not cut",
		},
		{
			"SIGTERM after the power went", "started 0, ready 1, hook-begin 28, hook-end 38, sigterm 41, exit 41.1",
			"the power went", "was asked", "not cut", "not cut",
		},
		{
			"started again", "started 0, ready 1, started 5, ready 6, hook-begin 10, hook-end 20, sigterm 20.1, exit 20.2",
			"started 2 times", "was asked", "not cut", "not cut",
		},
	} {
		l, err := parseJournal(journalText(tc.journal))
		if err != nil {
			t.Fatal(err)
		}
		for judge, said := range map[string][2]string{
			"whole":     {text(l.whole(10*time.Second, off)), tc.whole},
			"unasked":   {text(l.unasked()), tc.unasked},
			"cut":       {text(l.cutHook()), tc.cut},
			"shortened": {text(l.shortened(off)), tc.shortened},
		} {
			if got, want := said[0], said[1]; (got == "") != (want == "") || !strings.Contains(got, want) {
				t.Errorf("%s: %s returned %q, want %q in it", tc.name, judge, got, want)
			}
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestParseJournalRejectsBrokenJournals(t *testing.T) {
	for _, broken := range []string{"", journalText("started 0") + `{"time":"2026-`, journalText("started 0, fell-over 1"), journalText("ready 1")} {
		if l, err := parseJournal(broken); err == nil {
			t.Errorf("%q: %+v", broken, l)
		}
	}
}

// parseJournals parses one journal from each short form.
func parseJournals(t *testing.T, journals ...string) []podJournal {
	t.Helper()
	var out []podJournal
	for _, s := range journals {
		l, err := parseJournal(journalText(s))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, l)
	}
	return out
}

func TestSuccessorChecks(t *testing.T) {
	old := parseJournals(t, "started 0, ready 1, hook-begin 10, hook-end 40, sigterm 40.01")[0]
	for _, tc := range []struct {
		name              string
		fresh             []podJournal
		overlaps, follows string
	}{
		{"while the hook runs", parseJournals(t, "started 12, ready 13"), "", "before SIGTERM"},
		{"started in time and ready too late", parseJournals(t, "started 39, ready 41"), "none of 1", "before SIGTERM"},
		{"when the old one has ended", parseJournals(t, "started 42, ready 43"), "none of 1", ""},
		{"never", nil, "none of 0", "no successor"},
	} {
		for judge, said := range map[string][2]string{
			"overlaps": {text(overlaps(old, tc.fresh)), tc.overlaps},
			"follows":  {text(follows(old, tc.fresh)), tc.follows},
		} {
			if got, want := said[0], said[1]; (got == "") != (want == "") || !strings.Contains(got, want) {
				t.Errorf("%s: %s returned %q, want %q in it", tc.name, judge, got, want)
			}
		}
	}
}

func TestReplacedFirstCheck(t *testing.T) {
	parse := func(journals ...string) []podJournal { return parseJournals(t, journals...) }
	for _, tc := range []struct {
		name       string
		old, fresh []podJournal
		says       string
	}{
		{"one after the other", parse("started 0, hook-begin 12", "started 0, hook-begin 15"), parse("started 10, ready 14", "started 10, ready 11"), ""},
		{"the second too soon", parse("started 0, hook-begin 12", "started 0, hook-begin 13"), parse("started 10, ready 14", "started 10, ready 11"), "number 2"},
		{"one too few", parse("started 0, hook-begin 12", "started 0, hook-begin 15"), parse("started 10, ready 14", "started 10"), "1 others"},
		{"never asked", parse("started 0"), parse("started 10, ready 14"), "not asked"},
	} {
		if got := text(replacedFirst(tc.old, tc.fresh)); (got == "") != (tc.says == "") || !strings.Contains(got, tc.says) {
			t.Errorf("%s: %q, want %q in it", tc.name, got, tc.says)
		}
	}
}

func TestTrafficRateAndLongestSilence(t *testing.T) {
	load := traffic{Began: zero, OK: 120, Failed: 4, Kinds: map[string]int64{"refused": 3, "eof": 1}, Slowest: 31, Connections: 124}
	for i := range 30 { // 3 s: 30 a bucket for 1 s, none for 0.7 s, then 10 a bucket
		switch {
		case i < 10:
			load.Buckets = append(load.Buckets, [2]int64{30, 0})
		case i < 17:
			load.Buckets = append(load.Buckets, [2]int64{0, 1})
		default:
			load.Buckets = append(load.Buckets, [2]int64{10, 0})
		}
	}
	for _, tc := range []struct{ from, to, want float64 }{{0, 1, 300}, {2, 3, 100}, {0.5, 1.5, 150}, {1, 1, 0}, {2.9, 3.9, 10}} {
		if got := load.rate(at(tc.from), at(tc.to)); got != tc.want {
			t.Errorf("from %v to %v: %v a second, want %v", tc.from, tc.to, got, tc.want)
		}
	}
	gap, since := load.silence()
	if gap != 700*time.Millisecond || !since.Equal(at(1)) {
		t.Errorf("longest silence %s since %s", gap, since)
	}
	if got, want := load.String(), "4 of 124 failed (1 eof, 3 refused), longest time without a success 700ms, slowest 31 ms, 124 connections"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
