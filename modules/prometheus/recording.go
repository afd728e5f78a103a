package prometheus

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/tsdb"
)

// Scrape is the answer of one process to one request for its metrics.
type Scrape struct {
	Time time.Time `json:"time"`
	// Labels are those of the target, such as job and pod.
	Labels map[string]string `json:"labels"`
	// Text is the exposition; empty: there was no answer.
	Text string `json:"text,omitempty"`
	// Gone is true if there was no request, because the target is no more.
	Gone bool `json:"gone,omitempty"`
}

// ReadRecording reads scrapes, one JSON object on each line, the oldest first.
func ReadRecording(from io.Reader) ([]Scrape, error) {
	var all []Scrape
	dec := json.NewDecoder(bufio.NewReader(from))
	for {
		var s Scrape
		if err := dec.Decode(&s); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading scrape %d: %w", len(all)+1, err)
		}
		all = append(all, s)
	}
}

// holds are the times after the end of a recording at which its last state is sampled: each minute as
// long as an alert can be pending, and then less often.
func holds(hold time.Duration) []time.Duration {
	const pending = 20 * time.Minute
	var all []time.Duration
	for at := time.Minute; at <= hold; {
		all = append(all, at)
		if at += time.Minute; at > pending {
			at += 9 * time.Minute
		}
	}
	return all
}

// Recorded is a database with the samples of a recording, as Prometheus stores them.
type Recorded struct {
	*tsdb.DB
	// Times are those of the scrapes and of the held samples, in order. Scraped is the number of
	// those of scrapes.
	Times   []time.Time
	Scraped int
}

// Store fills a database in dir with a recording. From its end on, the last state is held for the
// given time, so that no test waits for an alert that needs hours: counters grow as fast as in the
// last ten seconds, the age of what waits grows with the clock, and other gauges stay.
func Store(ctx context.Context, dir string, recording []Scrape, hold time.Duration) (*Recorded, error) {
	o := tsdb.DefaultOptions()
	o.MinBlockDuration = (24 * time.Hour).Milliseconds()
	o.MaxBlockDuration, o.RetentionDuration = o.MinBlockDuration, 0
	db, err := tsdb.Open(dir, nil, nil, o, nil)
	if err != nil {
		return nil, fmt.Errorf("opening the database: %w", err)
	}
	r := &Recorded{DB: db}
	if err := r.fill(ctx, recording, hold); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return r, nil
}

func (r *Recorded) fill(ctx context.Context, recording []Scrape, hold time.Duration) error {
	if len(recording) == 0 {
		return errors.New("the recording is empty")
	}
	targets := map[string]*target{}
	for _, s := range recording {
		key := labels.FromMap(s.Labels).String()
		if targets[key] == nil {
			targets[key] = &target{labels: s.Labels, series: map[string]*series{}}
		}
		if err := targets[key].read(s); err != nil {
			return err
		}
		r.addTime(s.Time)
	}
	r.Scraped = len(r.Times)
	end := recording[len(recording)-1].Time
	for _, at := range holds(hold) {
		for _, t := range targets {
			t.hold(end, at)
		}
		r.addTime(end.Add(at))
	}
	app := r.Appender(ctx)
	for _, t := range targets {
		for _, s := range t.series {
			for _, p := range s.points {
				if _, err := app.Append(0, s.labels, p.at.UnixMilli(), p.value); err != nil {
					return fmt.Errorf("storing %s: %w", s.labels, errors.Join(err, app.Rollback()))
				}
			}
		}
	}
	return app.Commit()
}

func (r *Recorded) addTime(at time.Time) {
	if n := len(r.Times); n == 0 || at.Sub(r.Times[n-1]) >= time.Second {
		r.Times = append(r.Times, at)
	}
}

// target is a process that is scraped.
type target struct {
	labels map[string]string
	series map[string]*series
	gone   bool
}

// series are the samples of one series.
type series struct {
	labels  labels.Labels
	counter bool
	points  []point
}

type point struct {
	at    time.Time
	value float64
}

func (t *target) add(at time.Time, ls labels.Labels, counter bool, v float64) {
	key := ls.String()
	if t.series[key] == nil {
		t.series[key] = &series{labels: ls, counter: counter}
	}
	t.series[key].points = append(t.series[key].points, point{at, v})
}

// read adds the samples of a scrape, up, and the marks of series that are no longer there.
func (t *target) read(s Scrape) error {
	if t.gone = s.Gone; !s.Gone {
		up := 1.0
		if s.Text == "" {
			up = 0
		}
		t.add(s.Time, t.named(model.MetricNameLabel, "up"), false, up)
	}
	if err := t.parse(s); err != nil {
		return fmt.Errorf("reading the metrics of %s: %w", s.Labels, err)
	}
	for _, one := range t.series {
		if n := len(one.points); one.points[n-1].at.Before(s.Time) && !value.IsStaleNaN(one.points[n-1].value) {
			one.points = append(one.points, point{s.Time, math.Float64frombits(value.StaleNaN)})
		}
	}
	return nil
}

// parse adds the samples of an exposition.
func (t *target) parse(s Scrape) error {
	p := textparse.NewPromParser([]byte(s.Text), labels.NewSymbolTable(), false)
	counters := map[string]bool{}
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch entry {
		case textparse.EntryType:
			name, typ := p.Type()
			counters[string(name)] = typ == model.MetricTypeCounter || typ == model.MetricTypeHistogram
		case textparse.EntrySeries:
			var ls labels.Labels
			p.Labels(&ls)
			_, _, v := p.Series()
			if name := ls.Get(model.MetricNameLabel); strings.HasPrefix(name, "lifeboat_") {
				t.add(s.Time, t.with(ls), counters[name] || counters[histogramOf(name)], v)
			}
		}
	}
}

// histogramOf is the histogram that a series belongs to.
func histogramOf(name string) string {
	for _, part := range []string{"_bucket", "_sum", "_count"} {
		name = strings.TrimSuffix(name, part)
	}
	return name
}

// with adds the labels of the target to a series.
func (t *target) with(ls labels.Labels) labels.Labels {
	all := ls.Map()
	maps.Copy(all, t.labels)
	return labels.FromMap(all)
}

func (t *target) named(label, of string) labels.Labels { return t.with(labels.FromStrings(label, of)) }

// window is how much of the end of a recording a held state repeats.
const window = 10 * time.Second

// hold adds the samples of a held state, so long after the end of the recording.
func (t *target) hold(end time.Time, after time.Duration) {
	if t.gone {
		return
	}
	for _, s := range t.series {
		last, held := s.heldFrom(end)
		if !held {
			continue
		}
		v := last.value
		switch {
		case s.counter:
			v += s.perSecond(end) * after.Seconds()
		case strings.Contains(s.labels.Get(model.MetricNameLabel), "_oldest_") && v > 0:
			v += after.Seconds()
		}
		s.points = append(s.points, point{end.Add(after), v})
	}
}

// heldFrom returns the last recorded sample, if the series was still there then.
func (s *series) heldFrom(end time.Time) (point, bool) {
	last := point{}
	for _, p := range s.points {
		if !p.at.After(end) {
			last = p
		}
	}
	return last, !value.IsStaleNaN(last.value)
}

// perSecond is how fast a counter grew at the end of the recording.
func (s *series) perSecond(end time.Time) float64 {
	var first, last *point
	for i := range s.points {
		p := &s.points[i]
		if p.at.Before(end.Add(-window)) || p.at.After(end) || value.IsStaleNaN(p.value) {
			continue
		}
		if first == nil {
			first = p
		}
		last = p
	}
	if first == nil || !last.at.After(first.at) || last.value < first.value {
		return 0
	}
	return (last.value - first.value) / last.at.Sub(first.at).Seconds()
}
