package scenario

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
)

// service is a workload whose Ready pods are counted over time.
type service struct {
	namespace string
	selector  labels.Selector
	wanted    int
	levels    []level // since the first notice; only where it changed
}

// level is the number of Ready pods of a service from a time on.
type level struct {
	at            time.Time
	ready, wanted int
}

// Level is the number of Ready and of wanted pods of the interrupted workloads from a time on. A
// surplus in one workload does not compensate for a lack in another.
type Level struct {
	Seconds       float64 // since the first notice
	Ready, Wanted int
}

func (s *service) has(p *podTrack) bool {
	return p.namespace == s.namespace && s.selector.Matches(p.labels)
}

// Wanted records the wanted number of replicas of a workload, and the selector of its pods.
func (w *World) Wanted(t time.Time, kind, namespace, name string, selector labels.Selector, replicas int) {
	key := workloadKey(kind, namespace, name)
	s := w.services[key]
	if s == nil {
		s = &service{}
		w.services[key] = s
	}
	s.namespace, s.selector, s.wanted = namespace, selector, replicas
	w.measure(t)
}

// measure records changes of the number of Ready pods.
func (w *World) measure(t time.Time) {
	if !w.Started() {
		return
	}
	for _, s := range w.services {
		now := level{at: t, ready: w.serving(s.has), wanted: s.wanted}
		if n := len(s.levels); n > 0 && s.levels[n-1].ready == now.ready && s.levels[n-1].wanted == now.wanted {
			continue
		}
		s.levels = append(s.levels, now)
	}
}

// capacity is the number of Ready pods over time of the workloads with pods on the interrupted
// nodes.
func (w *World) capacity() []Level {
	var all []*service
	var times []time.Time
	affected := w.affected()
	for _, s := range w.services {
		if !slices.ContainsFunc(affected, s.has) {
			continue
		}
		all = append(all, s)
		for _, l := range s.levels {
			times = append(times, l.at)
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	var out []Level
	for _, t := range slices.CompactFunc(times, time.Time.Equal) {
		sum := Level{Seconds: t.Sub(w.began).Seconds()}
		for _, s := range all {
			l := s.levelAt(t)
			sum.Ready, sum.Wanted = sum.Ready+min(l.ready, l.wanted), sum.Wanted+l.wanted
		}
		out = append(out, sum)
	}
	return out
}

// levelAt is the level of a service at t; none before its first.
func (s *service) levelAt(t time.Time) level {
	for _, l := range slices.Backward(s.levels) {
		if !l.at.After(t) {
			return l
		}
	}
	return level{}
}

// shortfall returns the lowest number of Ready pods, and the seconds up to end with fewer Ready pods
// than wanted.
func shortfall(levels []Level, end float64) (lowest int, below float64) {
	for i, l := range levels {
		if i == 0 || l.Ready < lowest {
			lowest = l.Ready
		}
		until := end
		if i+1 < len(levels) {
			until = levels[i+1].Seconds
		}
		if l.Ready < l.Wanted {
			below += max(until-l.Seconds, 0)
		}
	}
	return lowest, below
}
