package page

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/stat"
)

// shares are the cumulative shares at which curves have values: evenly spaced up to p90,
// then evenly spaced in nines up to p99.99.
var shares = func() (all []float64) {
	for i := range 120 {
		all = append(all, math.Round(float64(i)/120*0.9*1e6)/1e6)
	}
	for i := range 80 {
		all = append(all, math.Round((1-math.Pow(10, -(1+3*float64(i)/79)))*1e6)/1e6)
	}
	return all
}()

// curveMetrics are the metrics drawn as curves.
var curveMetrics = metric.Classic

// sendLag is the delay that the client itself adds.
var sendLag = metric.Named("send_lag")

// limits bound the data of a level on a page.
type limits struct {
	bins  int // time bins
	rows  int // bytes of the timeline
	items int // groups, servers, kinds of failure
}

// limitsFor divides a page among its levels.
func limitsFor(levels int) limits {
	levels = max(levels, 1)
	return limits{bins: min(240, max(24, 6000/levels)), rows: 2_400_000 / levels, items: min(200, max(6, 800/levels))}
}

// gather reads the records of a run once and returns the pictures of its first n levels.
// A picture is nil if there are no records.
func gather(from *outcome.Run, n int, limits limits) ([]*picture, error) {
	pictures, byStage := make([]*picture, n), map[int]*gatherer{}
	for i := range from.Levels[:n] {
		byStage[from.Levels[i].Index] = newGatherer(&from.Levels[i], limits)
	}
	if from.Records != nil {
		for rec, err := range from.Records() {
			if err != nil {
				return nil, err
			}
			if g := byStage[rec.Stage]; g != nil {
				g.add(rec)
			}
		}
	}
	for i := range from.Levels[:n] {
		l := &from.Levels[i]
		g := byStage[l.Index]
		switch {
		case from.Records != nil:
		case l.Records != nil: // results of other tools may have records per level only
			g = newGatherer(l, limits)
			for rec, err := range l.Records() {
				if err != nil {
					return nil, err
				}
				g.add(rec)
			}
		default:
			continue
		}
		pictures[i] = g.picture()
	}
	return pictures, nil
}

// A gatherer builds the picture of a level from a stream of records, in bounded memory.
type gatherer struct {
	level  *outcome.Level
	curves []curveGatherer // one for each of curveMetrics
	bins   []bin
	width  time.Duration // width of a bin
	length lengths
	rows   rowSampler
}

// perBin is the least mean number of requests in a bin. With fewer, the counts of a
// steady load vary so much that they look like outages.
const perBin = 8

// leastBins is the least number of bins of a level with few requests.
const leastBins = 8

// roundWidth returns the next of 1, 2 and 5 times a power of ten. Bins of such a width
// start at round times.
func roundWidth(d time.Duration) time.Duration {
	for step := int64(1); ; step *= 10 {
		for _, by := range []int64{1, 2, 5} {
			if width := time.Duration(by * step); width >= d {
				return width
			}
		}
	}
}

// newGatherer returns a gatherer for a level. A bin is about one second long; short
// levels have shorter bins.
func newGatherer(l *outcome.Level, limits limits) *gatherer {
	s := &l.Summary
	seconds := min(max(s.DurationS, 0), 1e9) // results of other tools may contain any number
	n := min(max(int(math.Round(seconds)), 24), limits.bins, max(s.Requests/perBin, leastBins))
	width := roundWidth(time.Duration(seconds*1e9)/time.Duration(n) + 1)
	n = int(time.Duration(seconds*1e9)/width) + 1
	g := &gatherer{level: l, curves: make([]curveGatherer, len(curveMetrics)), bins: make([]bin, n), rows: rowSampler{budget: limits.rows, stride: 1, worst: make([]worst, n)}}
	g.width = width
	g.length = newLengths(s)
	return g
}

// add adds a record.
func (g *gatherer) add(r *tacho.Record) {
	for i, m := range curveMetrics {
		m.Of(r, g.curves[i].add)
	}
	sent := sentAt(r)
	at := &g.bins[g.bin(r.Due)]
	at.asked++
	sendLag.Of(r, at.lag.add)
	end := &g.bins[g.bin(r.End)]
	if r.OK() {
		end.served++
	} else if r.Failure.Cause != tacho.Canceled {
		end.failed++
	}
	g.addInFlight(sent, r.End)
	if r.OK() && len(r.Events) > 0 {
		ttft := millis(r.First() - sent)
		g.bins[g.bin(sent)].ttft.add(ttft)
		g.length.add(metric.InputTokens(r), ttft)
		each := float64(r.Output) / float64(len(r.Events))
		for i := range r.Events {
			b := &g.bins[g.bin(r.Events[i].At)]
			b.tokens += each
			if i > 0 {
				b.itl.add(millis(r.Events[i].At - r.Events[i-1].At))
			}
		}
	}
	g.rows.add(r, g.bin(sent))
}

// bin returns the index of the bin at a time.
func (g *gatherer) bin(at time.Duration) int { return min(max(int(at/g.width), 0), len(g.bins)-1) }

// addInFlight adds a request's time in flight to each bin that it overlaps.
func (g *gatherer) addInFlight(from, to time.Duration) {
	for i, last := g.bin(from), g.bin(to); i <= last; i++ {
		start := time.Duration(i) * g.width
		if part := min(to, start+g.width) - max(from, start); part > 0 {
			g.bins[i].flight += part
		}
	}
}

// sentAt returns when a request was sent, or should have been sent.
func sentAt(r *tacho.Record) time.Duration {
	for _, t := range []time.Duration{r.Sent, r.Start, r.Slot} {
		if t != tacho.Never {
			return t
		}
	}
	return r.Due
}

func millis(d time.Duration) float64 { return float64(d) / 1e6 }

// A bin counts the events in one interval of time.
type bin struct {
	asked, served, failed int
	tokens                float64
	flight                time.Duration // sum over all requests
	ttft, itl, lag        band
}

// A band collects the distribution of a value.
type band struct{ digest *stat.Digest }

func (b *band) add(v float64) {
	if b.digest == nil {
		b.digest = &stat.Digest{Limit: 1 << 12}
	}
	b.digest.Add(v)
}

// at returns the minimum, the quantiles and the maximum, or nil if there are no values.
func (b *band) at(quantiles ...float64) []float64 {
	if b.digest == nil || b.digest.N() == 0 {
		return nil
	}
	d := b.digest.Distribution()
	out := []float64{brief(b.digest.Min())}
	for _, q := range quantiles {
		out = append(out, brief(d.Quantile(q)))
	}
	return append(out, brief(b.digest.Max()))
}

// brief rounds v to the digits that a page shows.
func brief(v float64) float64 {
	out, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 5, 64), 64)
	if err != nil {
		return 0
	}
	return out
}

// A histogram counts values in bins of equal width on a log axis, from one nanosecond
// to more than a day.
const (
	perDecade  = 16
	leastPower = -6 // power of ten of the first bin, in ms
	decades    = 15
)

// A curveGatherer builds the curve of a metric.
type curveGatherer struct {
	digest stat.Digest
	counts [perDecade * decades]int
}

func (c *curveGatherer) add(v float64) {
	c.digest.Add(v)
	at := int((math.Log10(max(v, math.Pow10(leastPower))) - leastPower) * perDecade)
	c.counts[min(at, len(c.counts)-1)]++
}

// curve returns nil if there are no values.
func (c *curveGatherer) curve() *curve {
	n := c.digest.N()
	if n == 0 {
		return nil
	}
	d := c.digest.Distribution()
	out := &curve{Exact: c.digest.Exact()}
	for _, s := range shares {
		if s <= 1-0.5/float64(n) { // n values cannot resolve higher shares
			out.Values = append(out.Values, brief(d.Quantile(s)))
		}
	}
	out.Values = append(out.Values, brief(c.digest.Max()))
	used := func(n int) bool { return n > 0 }
	low := slices.IndexFunc(c.counts[:], used)
	out.From, out.Counts = low+leastPower*perDecade, c.counts[low:]
	for out.Counts[len(out.Counts)-1] == 0 {
		out.Counts = out.Counts[:len(out.Counts)-1]
	}
	return out
}

// lengths collects TTFT by the length of the prompt.
type lengths struct {
	low, width float64
	bands      []band
}

func newLengths(s *metric.Summary) lengths {
	stats := s.Dist(metric.Named("input_tokens")).Stats
	if stats == nil || stats.Max <= stats.Min {
		return lengths{}
	}
	n := max(1, min(24, int(stats.Max-stats.Min)+1, s.Completed/10))
	return lengths{low: stats.Min, width: (stats.Max - stats.Min + 1) / float64(n), bands: make([]band, n)}
}

func (l *lengths) add(input int, ttft float64) {
	if len(l.bands) == 0 {
		return
	}
	at := int((float64(input) - l.low) / l.width)
	l.bands[min(max(at, 0), len(l.bands)-1)].add(ttft)
}

func (l *lengths) list() (out []lengthBand) {
	for i := range l.bands {
		if spread := l.bands[i].at(0.5, 0.95); spread != nil {
			from := l.low + float64(i)*l.width
			out = append(out, lengthBand{brief(from), brief(from + l.width - 1), l.bands[i].digest.N(), spread})
		}
	}
	return slices.Clip(out)
}
