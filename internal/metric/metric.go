// Package metric declares metrics as data. Each package with metrics has one table of them, from
// which a test writes docs/reference/metrics.md.
package metric

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Type is a type of Prometheus metrics.
type Type string

// The types.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// Definition declares one metric.
type Definition struct {
	Name string
	Type Type
	// Unit is what the value counts, such as seconds or pods.
	Unit string
	// Help is the meaning, in one or two sentences.
	Help   string
	Labels []Label
	// Buckets are the upper limits of a histogram.
	Buckets []float64
	// Lazy says that a series exists only after its first event, because there are too many
	// combinations of label values.
	Lazy bool
}

// Label is a label of a metric. Its values are never ids of instances, nodes or messages.
type Label struct {
	Name string
	// Values are all values. Empty: Meaning says where they come from, and what limits their
	// number.
	Values  []string
	Meaning string
}

// OneOf is a label with a closed list of values.
func OneOf(name string, values ...string) Label { return Label{Name: name, Values: values} }

// Open is a label whose values are not known to the code.
func Open(name, meaning string) Label { return Label{Name: name, Meaning: meaning} }

// Strings converts values of a string type to label values.
func Strings[T ~string](values ...T) []string {
	out := make([]string, 0, len(values))
	for _, v := range values {
		out = append(out, string(v))
	}
	return out
}

// NewCounters returns a counter with labels. Alerts need a counter to exist before its first event,
// so all series of a closed metric begin at zero.
func (d *Definition) NewCounters() *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.Name, Help: d.Help}, d.labelNames())
	for _, values := range d.combinations() {
		c.WithLabelValues(values...)
	}
	return c
}

// NewCounter returns a counter without labels.
func (d *Definition) NewCounter() prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: d.Name, Help: d.Help})
}

// NewGauges returns a gauge with labels.
func (d *Definition) NewGauges() *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: d.Name, Help: d.Help}, d.labelNames())
}

// NewGauge returns a gauge that calls a function.
func (d *Definition) NewGauge(value func() float64) prometheus.GaugeFunc {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: d.Name, Help: d.Help}, value)
}

// NewHistograms returns a histogram with labels.
func (d *Definition) NewHistograms() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(d.histogram(), d.labelNames())
}

// NewHistogram returns a histogram without labels.
func (d *Definition) NewHistogram() prometheus.Histogram {
	return prometheus.NewHistogram(d.histogram())
}

// Desc returns the description for a collector that makes the values when it is read.
func (d *Definition) Desc() *prometheus.Desc {
	return prometheus.NewDesc(d.Name, d.Help, d.labelNames(), nil)
}

func (d *Definition) histogram() prometheus.HistogramOpts {
	return prometheus.HistogramOpts{Name: d.Name, Help: d.Help, Buckets: d.Buckets}
}

func (d *Definition) labelNames() []string {
	names := make([]string, 0, len(d.Labels))
	for _, l := range d.Labels {
		names = append(names, l.Name)
	}
	return names
}

// combinations returns all combinations of label values; none if they are not known.
func (d *Definition) combinations() [][]string {
	if d.Lazy || len(d.Labels) == 0 {
		return nil
	}
	all := [][]string{nil}
	for _, l := range d.Labels {
		var longer [][]string
		for _, values := range all {
			for _, v := range l.Values {
				longer = append(longer, append(values[:len(values):len(values)], v))
			}
		}
		all = longer
	}
	return all
}

// Register registers the metrics of a package; what names them in the error. A nil registerer
// registers nothing.
func Register(registerer prometheus.Registerer, what string, collectors ...prometheus.Collector) error {
	if registerer == nil {
		return nil
	}
	for _, c := range collectors {
		if err := registerer.Register(c); err != nil {
			return fmt.Errorf("registering the metrics of %s: %w", what, err)
		}
	}
	return nil
}
