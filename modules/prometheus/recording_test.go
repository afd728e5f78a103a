package prometheus

import (
	"fmt"
	"testing"
	"time"
)

// text is what a process exposes at one time.
func text(lost, age int) string {
	return fmt.Sprintf("# TYPE lifeboat_drained_pods_total counter\nlifeboat_drained_pods_total{outcome=\"lost\"} %d\n"+
		"# TYPE lifeboat_oldest_hook_wait_seconds gauge\nlifeboat_oldest_hook_wait_seconds %d\n"+
		"# TYPE lifeboat_on_hold gauge\nlifeboat_on_hold 2\n# TYPE go_goroutines gauge\ngo_goroutines 9\n", lost, age)
}

func TestRecordingIsStoredAndHeld(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	scrapes := func(texts ...string) []Scrape {
		var all []Scrape
		for i, text := range texts {
			all = append(all, Scrape{Time: start.Add(time.Duration(i) * 5 * time.Second), Labels: map[string]string{"pod": "c-1"}, Text: text})
		}
		return all
	}
	gone := append(scrapes(text(0, 7), ""), Scrape{Time: start.Add(6 * time.Second), Labels: map[string]string{"pod": "c-1"}, Gone: true})
	for name, tc := range map[string]struct {
		recording []Scrape
		after     time.Duration // after the start
		expr      string
		want      string
	}{
		"a counter that grew goes on":  {scrapes(text(0, 0), text(5, 0)), 5*time.Second + time.Minute, `lifeboat_drained_pods_total`, "65"},
		"one that did not stays":       {scrapes(text(5, 0), text(5, 0)), 5*time.Second + time.Hour, `lifeboat_drained_pods_total`, "5"},
		"an age grows with the clock":  {scrapes(text(0, 7)), time.Hour, `lifeboat_oldest_hook_wait_seconds`, "3607"},
		"nothing waits, and ages zero": {scrapes(text(0, 0)), time.Hour, `lifeboat_oldest_hook_wait_seconds`, "0"},
		"other gauges stay":            {scrapes(text(0, 7)), time.Hour, `lifeboat_on_hold`, "2"},
		"a process without an answer":  {scrapes(text(0, 7), ""), 5*time.Second + time.Hour, `up or lifeboat_on_hold`, "0"},
		"its series end at once":       {scrapes(text(0, 7), ""), 5 * time.Second, `absent(lifeboat_on_hold)`, "1"},
		"a target that is no more":     {gone, 6*time.Second + time.Hour, `absent(up)`, "1"},
		"it ends at once":              {gone, 6 * time.Second, `absent(up)`, "1"},
		"before, they are there":       {scrapes(text(0, 7), ""), 4 * time.Second, `lifeboat_on_hold`, "2"},
		"metrics of others are left":   {scrapes(text(0, 7)), 0, `absent(go_goroutines)`, "1"},
		"series have the target":       {scrapes(text(0, 7)), 0, `count(lifeboat_on_hold{pod="c-1"})`, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, err := Store(t.Context(), t.TempDir(), tc.recording, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			q, err := NewEngine().NewInstantQuery(t.Context(), db, nil, tc.expr, start.Add(tc.after))
			if err != nil {
				t.Fatal(err)
			}
			defer q.Close()
			vector, err := q.Exec(t.Context()).Vector()
			if err != nil || len(vector) != 1 || fmt.Sprint(vector[0].F) != tc.want {
				t.Errorf("%s is %v (%v), want %s", tc.expr, vector, err, tc.want)
			}
		})
	}
}
