// Package publish exports the metrics of a running benchmark: as a page for Prometheus, and to a collector over
// OTLP.
package publish

import (
	"slices"
	"sort"
	"strconv"
	"sync"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/exposition"
	"github.com/tacho-bench/tacho/metric"
)

// An Exporter aggregates the metrics of a run so far. It is a sink for the records of the run.
type Exporter struct {
	began time.Time
	about About
	to    *Collector // nil if nothing is pushed

	instance string // service.instance.id

	mu      sync.Mutex
	run     []exposition.Label // name of the run, a label of every metric; empty until known
	levels  []*level
	scraped bool          // the page was scraped
	last    chan struct{} // closed by the first scrape after the end of the run; nil before the end
}

// Counts are the counters of a level that include running requests.
type Counts struct{ Started, Finished, OutputTokens int64 }

// A Level is a level to be published.
type Level struct {
	Name string
	Now  func() Counts // returns the current counters
}

// level holds the metrics of one level.
type level struct {
	Level    // Now is nil after the end of the level
	number   int
	labels   []exposition.Label
	last     Counts
	outcomes map[string]float64
	input    float64
	hists    []*histogram
	genAI    genAI
}

// attributes identify the level in OTLP.
func (l *level) attributes() []exposition.Attribute {
	number := exposition.Attribute{Key: "tacho.level.number", Value: l.number}
	if l.Name == "" {
		return []exposition.Attribute{number}
	}
	return []exposition.Attribute{{Key: "tacho.level.name", Value: l.Name}, number}
}

// shown lists the metrics with a histogram.
var shown = []*metric.Metric{metric.TTFT, metric.TPOT, metric.ITL, metric.E2EL}

// New returns the Exporter of a run. to is the collector for Push, or nil.
func New(began time.Time, about About, to *Collector) *Exporter {
	return &Exporter{began: began, about: about, to: to, instance: newInstance()}
}

// Name sets the name of the run, which separates the series of concurrent runs.
func (b *Exporter) Name(run string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.run = []exposition.Label{{Name: "run", Value: run}}
}

// Begin starts a level.
func (b *Exporter) Begin(starting Level) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end()
	l := &level{Level: starting, number: len(b.levels) + 1, outcomes: map[string]float64{"ok": 0}, genAI: genAI{}}
	l.labels = append(slices.Clone(b.run), exposition.Label{Name: "level", Value: l.Name}, exposition.Label{Name: "number", Value: strconv.Itoa(l.number)})
	for range shown {
		l.hists = append(l.hists, newHistogram(fine, true))
	}
	b.levels = append(b.levels, l)
}

// End ends the current level.
func (b *Exporter) End() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end()
}

func (b *Exporter) end() {
	if n := len(b.levels); n > 0 {
		b.levels[n-1].counts()
		b.levels[n-1].Now = nil
	}
}

// counts returns the counters of the level, current or final.
func (l *level) counts() Counts {
	if l.Now != nil {
		l.last = l.Now()
	}
	return l.last
}

// Add implements tacho.Sink.
func (b *Exporter) Add(r *tacho.Record) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.levels) == 0 {
		return nil
	}
	l := b.levels[len(b.levels)-1]
	what := "ok"
	if r.Failure != nil {
		what = string(r.Failure.Cause)
	}
	l.outcomes[what]++
	l.input += float64(r.Input)
	for i, m := range shown {
		m.Of(r, func(ms float64) { l.hists[i].add(ms / 1e3) })
	}
	if b.to != nil {
		l.genAI.add(&b.about, r, b.to.Exponential)
	}
	return nil
}

// Close implements tacho.Sink.
func (b *Exporter) Close() error { b.End(); return nil }

// families returns the metrics of tacho itself. of returns the point of a histogram.
func (b *Exporter) families(of func(h *histogram) exposition.Point) []exposition.Family {
	const requests, tokens = "{request}", "{token}"
	out := []exposition.Family{
		{Name: "tacho_run", Kind: exposition.Gauge, Help: "1, with the properties of the run as labels", Points: []exposition.Point{{Labels: slices.Concat(b.run, b.about.Labels), Value: 1}}},
		b.family("tacho_requests_started", exposition.Counter, requests, "requests sent", func(l *level) float64 { return float64(l.counts().Started) }),
		b.family("tacho_requests_in_flight", exposition.Gauge, requests, "requests in flight", func(l *level) float64 {
			c := l.counts()
			return float64(max(c.Started-c.Finished, 0))
		}),
		b.family("tacho_input_tokens", exposition.Counter, tokens, "prompt tokens of finished requests", func(l *level) float64 { return l.input }),
		b.family("tacho_output_tokens", exposition.Counter, tokens, "output tokens received, including requests in flight", func(l *level) float64 { return float64(l.counts().OutputTokens) }),
		b.outcomes(),
	}
	for i, m := range shown {
		f := exposition.Family{Name: "tacho_" + m.Name + "_seconds", Unit: "seconds", Kind: exposition.Histogram, Help: m.Title + ": " + m.Doc}
		for _, l := range b.levels {
			p := of(l.hists[i])
			p.Labels = l.labels
			f.Points = append(f.Points, p)
		}
		out = append(out, f)
	}
	return out
}

// page returns the metrics for Prometheus.
func (b *Exporter) page() []exposition.Family {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.families(func(h *histogram) exposition.Point { return h.merged(h.isShown) })
}

// export returns the metrics for a collector.
func (b *Exporter) export() []exposition.Family {
	b.mu.Lock()
	defer b.mu.Unlock()
	own := b.families(func(h *histogram) exposition.Point { return h.merged(isCoarse) })
	return append(b.conventions(), own...)
}

// family returns a family with one value per level.
func (b *Exporter) family(name string, kind exposition.Kind, unit, help string, of func(*level) float64) exposition.Family {
	f := exposition.Family{Name: name, Kind: kind, UCUM: unit, Help: help}
	for _, l := range b.levels {
		f.Points = append(f.Points, exposition.Point{Labels: l.labels, Value: of(l)})
	}
	return f
}

// outcomes counts the finished requests by outcome.
func (b *Exporter) outcomes() exposition.Family {
	f := exposition.Family{Name: "tacho_requests", Kind: exposition.Counter, UCUM: "{request}", Help: "finished requests by outcome: ok, or the cause of the failure"}
	for _, l := range b.levels {
		var names []string
		for name := range l.outcomes {
			names = append(names, name)
		}
		sort.Strings(names)
		for _, name := range names {
			labels := append(l.labels[:len(l.labels):len(l.labels)], exposition.Label{Name: "outcome", Value: name})
			f.Points = append(f.Points, exposition.Point{Labels: labels, Value: l.outcomes[name]})
		}
	}
	return f
}
