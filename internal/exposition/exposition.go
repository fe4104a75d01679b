// Package exposition writes families of metrics in the forms that monitoring
// reads: OpenMetrics, the older text of Prometheus, and OTLP as JSON.
package exposition

import (
	"bufio"
	"io"
	"math"
	"strconv"
	"strings"
)

// A Kind is what a family counts.
type Kind string

// The kinds of families.
const (
	Gauge     Kind = "gauge"
	Counter   Kind = "counter"
	Histogram Kind = "histogram"
	Summary   Kind = "summary"
)

// A Family is one metric with all its points.
type Family struct {
	Name   string // with its unit at the end, and without _total
	Help   string
	Unit   string // as OpenMetrics names it: seconds; may be empty
	Kind   Kind
	Points []Point
}

// A Label is one name and value that tell a point from others.
type Label struct{ Name, Value string }

// A Point is one value of a family, or one distribution.
type Point struct {
	Labels []Label
	Value  float64 // of a gauge or a counter

	// Of a distribution.
	Count  uint64
	Sum    float64
	Bounds []float64 // of a histogram: the highest value of each bucket but the last, in order
	Counts []uint64  // values in each bucket, alone; one more than Bounds
	Ranks  []Rank    // of a summary
}

// A Rank is the value at one quantile.
type Rank struct{ Quantile, Value float64 }

// OpenMetricsType is the media type of WriteOpenMetrics.
const OpenMetricsType = "application/openmetrics-text; version=1.0.0; charset=utf-8"

// PrometheusType is the media type of WritePrometheus.
const PrometheusType = "text/plain; version=0.0.4; charset=utf-8"

// WriteOpenMetrics writes families as OpenMetrics 1.0 has them.
func WriteOpenMetrics(w io.Writer, families []Family) error {
	out := bufio.NewWriter(w) // keeps the first error for Flush
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

// WritePrometheus writes families as Prometheus read them before OpenMetrics: a
// counter has its whole name everywhere, and there are no units and no end.
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
			for _, r := range p.Ranks {
				t.sample("", with(p.Labels, "quantile", number(r.Quantile)), r.Value)
			}
			t.total(p)
		}
	}
}

// buckets counts, for each bound, all values up to it.
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
	for i, l := range labels {
		b.WriteByte(",{"[btoi(i == 0)])
		b.WriteString(l.Name + `="` + escape(l.Value) + `"`)
	}
	if len(labels) > 0 {
		b.WriteByte('}')
	}
	t.line(b.String(), " ", number(value))
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// with is a list of labels with one more; the list stays as it is.
func with(labels []Label, name, value string) []Label {
	return append(labels[:len(labels):len(labels)], Label{name, value})
}

var escapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// escape makes a text safe between quotes. Bytes that are no UTF-8 would spoil
// the whole page, so a sign stands for them.
func escape(s string) string { return escapes.Replace(strings.ToValidUTF8(s, "\ufffd")) }

// number writes a value. OpenMetrics has bounds and quantiles with a point in
// them, so that they mean the same as text everywhere.
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
