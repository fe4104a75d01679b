// Package exposition encodes metric families for monitoring systems: OpenMetrics, the older text format and the
// Protobuf format of Prometheus, and OTLP.
package exposition

import (
	"bufio"
	"io"
	"math"
	"strconv"
	"strings"
)

// A Kind is the type of a metric family.
type Kind string

// Kinds of metric families.
const (
	Gauge     Kind = "gauge"
	Counter   Kind = "counter"
	Histogram Kind = "histogram"
	Summary   Kind = "summary"
)

// A Family is one metric with all its points.
type Family struct {
	Name   string // ends in the unit; without _total
	Help   string
	Unit   string // OpenMetrics name, for example seconds; may be empty
	UCUM   string // unit in OTLP, for example {token}; may be empty if Unit is seconds
	Kind   Kind
	Points []Point
}

// A Label is a name and a value that identify a point.
type Label struct{ Name, Value string }

// A Point is one value or one distribution of a family.
type Point struct {
	Labels     []Label
	Attributes []Attribute // only in OTLP, in addition to the labels
	Value      float64     // value of a gauge or counter

	// Fields of a distribution.
	Count     uint64
	Sum       float64
	Bounds    []float64  // histogram: upper bound of each bucket except the last, in ascending order
	Counts    []uint64   // histogram: number of values in each bucket, not cumulative; one more than Bounds
	Quantiles []Quantile // summary

	// Exponential holds the same distribution in finer buckets, or is nil.
	Exponential *Exponential
}

// An Exponential is a distribution in buckets of equal relative width. Counts[i] is the number of values above
// base^(Offset+i) up to base^(Offset+i+1), with the base 2^(2^-Scale). Zero counts values that are not positive.
type Exponential struct {
	Scale  int
	Zero   uint64
	Offset int
	Counts []uint64
}

// A Quantile is the value at one quantile.
type Quantile struct{ Quantile, Value float64 }

// OpenMetricsType is the media type of WriteOpenMetrics.
const OpenMetricsType = "application/openmetrics-text; version=1.0.0; charset=utf-8"

// PrometheusType is the media type of WritePrometheus.
const PrometheusType = "text/plain; version=0.0.4; charset=utf-8"

// WriteOpenMetrics writes families in OpenMetrics 1.0.
func WriteOpenMetrics(w io.Writer, families []Family) error {
	out := bufio.NewWriter(w) // Flush returns the first error
	for i := range families {
		f := &families[i]
		t := text{out: out, family: f}
		t.line("# TYPE ", f.Name, " ", string(f.Kind))
		if f.Unit != "" {
			t.line("# UNIT ", f.Name, " ", f.Unit)
		}
		t.line("# HELP ", f.Name, " ", escape(f.Help))
		t.points("_total")
	}
	_, _ = out.WriteString("# EOF\n")
	return out.Flush()
}

// WritePrometheus writes families in the Prometheus format before OpenMetrics: counters use their full name
// everywhere, without units and without an end marker.
func WritePrometheus(w io.Writer, families []Family) error {
	out := bufio.NewWriter(w)
	for i := range families {
		f := families[i]
		if f.Kind == Counter {
			f.Name += "_total"
		}
		t := text{out: out, family: &f}
		t.line("# HELP ", f.Name, " ", escape(f.Help))
		t.line("# TYPE ", f.Name, " ", string(f.Kind))
		t.points("")
	}
	return out.Flush()
}

// text writes the points of one family.
type text struct {
	out    *bufio.Writer
	family *Family
}

func (t text) line(parts ...string) {
	for _, p := range parts {
		_, _ = t.out.WriteString(p)
	}
	_ = t.out.WriteByte('\n')
}

func (t text) points(ofCounter string) {
	for i := range t.family.Points {
		p := &t.family.Points[i]
		switch t.family.Kind {
		case Counter:
			t.sample(ofCounter, p.Labels, p.Value)
		case Gauge:
			t.sample("", p.Labels, p.Value)
		case Histogram:
			t.buckets(p)
			t.total(p)
		case Summary:
			for _, r := range p.Quantiles {
				t.sample("", with(p.Labels, "quantile", number(r.Quantile)), r.Value)
			}
			t.total(p)
		}
	}
}

// buckets writes the cumulative count for each bound.
func (t text) buckets(p *Point) {
	var below uint64
	for i, n := range p.Counts {
		below += n
		bound := math.Inf(1)
		if i < len(p.Bounds) {
			bound = p.Bounds[i]
		}
		t.sample("_bucket", with(p.Labels, "le", number(bound)), float64(below))
	}
}

func (t text) total(p *Point) {
	t.sample("_count", p.Labels, float64(p.Count))
	t.sample("_sum", p.Labels, p.Sum)
}

func (t text) sample(suffix string, labels []Label, value float64) {
	var b strings.Builder
	b.WriteString(t.family.Name + suffix)
	separator := "{"
	for _, l := range labels {
		b.WriteString(separator + l.Name + `="` + escape(l.Value) + `"`)
		separator = ","
	}
	if len(labels) > 0 {
		b.WriteByte('}')
	}
	t.line(b.String(), " ", number(value))
}

// with returns a copy of labels with one more label.
func with(labels []Label, name, value string) []Label {
	return append(labels[:len(labels):len(labels)], Label{name, value})
}

var escapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// escape escapes a label value.
func escape(s string) string { return escapes.Replace(valid(s)) }

// valid replaces bytes that are not UTF-8, because they would make the whole page invalid.
func valid(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

// number formats a value. OpenMetrics requires a decimal point in bounds and quantiles, so their text form is
// unique.
func number(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "+Inf"
	case math.IsInf(v, -1):
		return "-Inf"
	case math.IsNaN(v):
		return "NaN"
	}
	s := strconv.FormatFloat(v, 'g', -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}
