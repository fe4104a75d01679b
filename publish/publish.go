// Package publish hands the figures of a run to monitoring while it goes on: on
// a page that Prometheus reads, and to a collector that speaks OTLP.
package publish

import (
	"slices"
	"sort"
	"strconv"
	"sync"
	"time"

	"tacho"
	"tacho/internal/exposition"
	"tacho/metric"
)

// A Board has the figures of a run so far. It is a sink of its records.
type Board struct {
	began time.Time
	about []exposition.Label

	mu      sync.Mutex
	run     []exposition.Label // the name of the run, once it is known: a label of every figure
	levels  []*level
	scraped bool          // the page was read
	last    chan struct{} // closed when the page is read after the end of the run; nil before the end
}

// Counts are what is known of a level before its requests end.
type Counts struct{ Started, Finished, OutputTokens int64 }

// level has the figures of one level.
type level struct {
	labels   []exposition.Label
	now      func() Counts // nil once it is over
	last     Counts
	outcomes map[string]float64
	input    float64
	hists    []histogram
}

// shown are the metrics that have a histogram.
var shown = []*metric.Metric{metric.TTFT, metric.TPOT, metric.ITL, metric.E2EL}

// bounds are those of every histogram, in seconds: ten in each decade, from a tenth of
// a millisecond to 800 s. Prometheus interpolates within a bucket, so a quantile is off
// by less than the bucket's width, which is a quarter of the value.
var bounds = func() (out []float64) {
	for tens := 1e-4; tens < 1e3; tens *= 10 {
		for _, step := range []float64{1, 1.25, 1.6, 2, 2.5, 3.15, 4, 5, 6.3, 8} {
			v, _ := strconv.ParseFloat(strconv.FormatFloat(tens*step, 'g', 3, 64), 64) // 0.0016, and not 0.0016000000000000001
			out = append(out, v)
		}
	}
	return out
}()

type histogram struct {
	counts []uint64
	count  uint64
	sum    float64
}

func (h *histogram) add(v float64) {
	h.counts[sort.SearchFloat64s(bounds, v)]++
	h.count++
	h.sum += v
}

// New is the board of a run. About says what run it is.
func New(began time.Time, about ...exposition.Label) *Board {
	return &Board{began: began, about: about}
}

// Name gives the run its name, by which the figures of two runs at once are different
// series.
func (b *Board) Name(run string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.run = []exposition.Label{{Name: "run", Value: run}}
}

// Begin opens a level. Now tells what is under way in it.
func (b *Board) Begin(name string, now func() Counts) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end()
	l := &level{now: now, outcomes: map[string]float64{"ok": 0}, hists: make([]histogram, len(shown))}
	l.labels = append(slices.Clone(b.run), exposition.Label{Name: "level", Value: name}, exposition.Label{Name: "number", Value: strconv.Itoa(len(b.levels) + 1)})
	for i := range l.hists {
		l.hists[i].counts = make([]uint64, len(bounds)+1)
	}
	b.levels = append(b.levels, l)
}

// End closes the level that runs.
func (b *Board) End() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end()
}

func (b *Board) end() {
	if n := len(b.levels); n > 0 {
		b.levels[n-1].counts()
		b.levels[n-1].now = nil
	}
}

// counts are the level's, now or when it ended.
func (l *level) counts() Counts {
	if l.now != nil {
		l.last = l.now()
	}
	return l.last
}

// Add implements tacho.Sink.
func (b *Board) Add(r *tacho.Record) error {
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
	return nil
}

// Close implements tacho.Sink.
func (b *Board) Close() error { b.End(); return nil }

// families are all the figures as they are now.
func (b *Board) families() []exposition.Family {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := []exposition.Family{
		{Name: "tacho_run", Kind: exposition.Gauge, Help: "1, with what the run is", Points: []exposition.Point{{Labels: slices.Concat(b.run, b.about), Value: 1}}},
		b.family("tacho_requests_started", exposition.Counter, "requests sent", func(l *level) float64 { return float64(l.counts().Started) }),
		b.family("tacho_requests_in_flight", exposition.Gauge, "requests under way", func(l *level) float64 {
			c := l.counts()
			return float64(max(c.Started-c.Finished, 0))
		}),
		b.family("tacho_input_tokens", exposition.Counter, "tokens of the prompts of requests that ended", func(l *level) float64 { return l.input }),
		b.family("tacho_output_tokens", exposition.Counter, "tokens received, of requests under way too", func(l *level) float64 { return float64(l.counts().OutputTokens) }),
		b.outcomes(),
	}
	for i, m := range shown {
		f := exposition.Family{Name: "tacho_" + m.Name + "_seconds", Unit: "seconds", Kind: exposition.Histogram, Help: m.Title + ": " + m.Doc}
		for _, l := range b.levels {
			h := &l.hists[i]
			f.Points = append(f.Points, exposition.Point{Labels: l.labels, Bounds: bounds, Counts: append([]uint64(nil), h.counts...), Count: h.count, Sum: h.sum})
		}
		out = append(out, f)
	}
	return out
}

// family has one value for each level.
func (b *Board) family(name string, kind exposition.Kind, help string, of func(*level) float64) exposition.Family {
	f := exposition.Family{Name: name, Kind: kind, Help: help}
	for _, l := range b.levels {
		f.Points = append(f.Points, exposition.Point{Labels: l.labels, Value: of(l)})
	}
	return f
}

// outcomes counts the requests that ended, by how.
func (b *Board) outcomes() exposition.Family {
	f := exposition.Family{Name: "tacho_requests", Kind: exposition.Counter, Help: "requests that ended, by how: ok, or the cause of the failure"}
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
