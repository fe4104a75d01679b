package stat_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/stat"
)

// A process draws series with known mean and quantiles.
type process struct {
	name     string
	draw     func(r *rand.Rand, n int) []float64
	mean     float64
	quantile func(q float64) float64
}

func normalQuantile(q float64) float64 { return math.Sqrt2 * math.Erfinv(2*q-1) }

// exponentials draws independent values.
var exponentials = process{"exponential", exponential, 1, func(q float64) float64 { return -math.Log(1 - q) }}

// autoregressives draws values with the correlation phi between neighbours.
func autoregressives(phi float64) process {
	scale := math.Sqrt(1 - phi*phi)
	return process{fmt.Sprintf("autoregressive %g", phi), func(r *rand.Rand, n int) []float64 {
		out := autoregressive(r, n, phi)
		for i := range out {
			out[i] *= scale
		}
		return out
	}, 0, normalQuantile}
}

// waits draws the waiting times in a queue with one server and the given load, in steady state from the start.
func waits(load float64) process {
	return process{fmt.Sprintf("queue at %g", load), func(r *rand.Rand, n int) []float64 {
		out, wait := make([]float64, n), 0.0
		if r.Float64() < load {
			wait = r.ExpFloat64() / (1 - load)
		}
		for i := range out {
			out[i] = wait
			wait = max(0, wait+r.ExpFloat64()-r.ExpFloat64()/load)
		}
		return out
	}, load / (1 - load), func(q float64) float64 { return max(0, math.Log(load/(1-q))/(1-load)) }}
}

// seriesOf returns the series and distribution of observations one second apart.
func seriesOf(xs []float64) (*stat.Series, stat.Distribution) {
	s, d := &stat.Series{}, &stat.Digest{}
	for i, x := range xs {
		s.Add(time.Duration(i)*time.Second, x)
	}
	d.Add(xs...)
	return s, d.Distribution()
}

// A tally counts how many intervals were given, and how many contained the true value.
type tally struct{ given, held, tries int }

func (c *tally) add(b stat.Interval, truth float64) {
	c.tries++
	if b.Warning == "" {
		c.given++
		if b.Low <= truth && truth <= b.High {
			c.held++
		}
	}
}

func (c *tally) share() float64 { return float64(c.held) / float64(max(c.given, 1)) }

// wrong returns the share of runs with an interval that misses the true value.
func (c *tally) wrong() float64 { return float64(c.given-c.held) / float64(c.tries) }

// intervals tallies the intervals of the mean (key 0) and of quantiles.
func intervals(p process, n, tries int, quantiles ...float64) map[float64]*tally {
	out := map[float64]*tally{0: {}}
	for try := range tries {
		s, d := seriesOf(p.draw(rand.New(rand.NewPCG(uint64(try), uint64(n))), n))
		intervals := s.Intervals(d, nil)
		out[0].add(intervals.Mean, p.mean)
		for _, q := range quantiles {
			if out[q] == nil {
				out[q] = &tally{}
			}
			out[q].add(intervals.Quantile(q), p.quantile(q))
		}
	}
	return out
}

// If nearly every run yields an interval, the interval contains the true value in about 95 % of the runs. No
// statistic has a wrong interval in much more than 5 % of the runs. The limits leave room for the random variation of
// a few hundred runs. make test-coverage uses thousands of runs and all processes.
func TestIntervalsHold(t *testing.T) {
	for _, c := range []struct {
		process
		n int
	}{{exponentials, 100}, {autoregressives(0.9), 2000}, {waits(0.6), 2000}} {
		for q, got := range intervals(c.process, c.n, 300, 0.5, 0.9, 0.99) {
			checkTally(t, c.process, c.n, q, got, 0.915, 0.985, 0.1)
		}
	}
}

// mostlyGiven is the share of runs with an interval above which the coverage is not biased by the choice to give an
// interval.
const mostlyGiven = 0.95

func checkTally(t *testing.T, p process, n int, q float64, got *tally, least, most, wrong float64) {
	t.Helper()
	given, what := float64(got.given)/float64(got.tries), "mean"
	if q > 0 {
		what = fmt.Sprintf("p%g", 100*q)
	}
	t.Logf("%-20s %6d %-4s held %.3f of %.3f that are given; false in %.3f of all", p.name, n, what, got.share(), given, got.wrong())
	if given >= mostlyGiven && (got.share() < least || got.share() > most) || got.wrong() > wrong {
		t.Errorf("%s, %d observations, %s: %.3f of the intervals hold, %.3f are false", p.name, n, what, got.share(), got.wrong())
	}
}

func TestWarnings(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	at := func(n int, effectiveBins int, draw func(i int) float64) (*stat.Series, stat.Distribution) {
		s, d := &stat.Series{}, &stat.Digest{}
		for i := range n {
			x := draw(i)
			s.Add(time.Duration(i%effectiveBins)*time.Second, x)
			d.Add(x)
		}
		return s, d.Distribution()
	}
	for _, c := range []struct {
		name             string
		n, effectiveBins int
		draw             func(int) float64
		q                float64 // 0 means the mean
		want             stat.Warning
	}{
		{"nothing", 0, 1, nil, 0, stat.TooFew},
		{"five values", 5, 5, func(int) float64 { return r.ExpFloat64() }, 0, stat.TooFew},
		{"p99 of 50", 50, 50, func(int) float64 { return r.ExpFloat64() }, 0.99, stat.TooFew},
		{"p99 of 3000", 3000, 3000, func(int) float64 { return r.ExpFloat64() }, 0.99, ""},
		{"a burst", 500, 1, func(int) float64 { return r.ExpFloat64() }, 0, stat.Burst},
		{"median of a burst", 500, 1, func(int) float64 { return r.ExpFloat64() }, 0.5, stat.Burst},
		{"a trend", 1000, 1000, func(i int) float64 { return float64(i) + r.Float64() }, 0, stat.Correlated},
		{"median of a trend", 1000, 1000, func(i int) float64 { return float64(i) + r.Float64() }, 0.5, stat.Correlated},
		{"equal values", 20, 20, func(int) float64 { return 7 }, 0.99, ""},
	} {
		intervals := func() stat.Intervals { s, d := at(c.n, c.effectiveBins, c.draw); return s.Intervals(d, nil) }()
		got := intervals.Mean
		if c.q > 0 {
			got = intervals.Quantile(c.q)
		}
		if got.Warning != c.want || (got.Warning == "") == math.IsInf(got.Low, 0) {
			t.Errorf("%s: %+v, want the warning %q", c.name, got, c.want)
		}
	}
}

// If the values of one burst are equal, the burst counts as about one observation.
func TestClusters(t *testing.T) {
	s, d, r := &stat.Series{}, &stat.Digest{}, rand.New(rand.NewPCG(6, 6))
	for i := range 300 {
		level := r.NormFloat64()
		for range 100 {
			x := level + 0.1*r.NormFloat64()
			s.Add(time.Duration(i)*time.Second, x)
			d.Add(x)
		}
	}
	intervals := s.Intervals(d.Distribution(), nil)
	median := intervals.Quantile(0.5)
	if got := intervals.Mean.Effective; got < 150 || got > 600 {
		t.Errorf("mean: %v effective of 30000, want about 300", got)
	}
	if got := median.Effective; got < 150 || got > 600 {
		t.Errorf("median: %v effective of 30000, want about 300", got)
	}
}

// A series depends neither on the order of its observations nor on the order of merges, however long it becomes.
func TestSeriesMerge(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	type one struct {
		at time.Duration
		x  float64
	}
	var all []one
	for i := range 2000 {
		all = append(all, one{time.Duration(i*i) * time.Millisecond, r.ExpFloat64() - 0.1})
	}
	sum := func(parts int) stat.Intervals {
		r.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
		d, series := &stat.Digest{}, make([]stat.Series, parts)
		for i, o := range all {
			series[i%parts].Add(o.at, o.x)
			d.Add(o.x)
		}
		for i := range parts - 1 {
			series[parts-1].Merge(&series[i])
		}
		return series[parts-1].Intervals(d.Distribution(), nil)
	}
	whole := sum(1)
	for parts := 2; parts < 5; parts++ {
		got := sum(parts)
		if got.Mean != whole.Mean || got.Quantile(0.9) != whole.Quantile(0.9) || got.Quantile(0.5) != whole.Quantile(0.5) {
			t.Errorf("%d parts: %+v, want %+v", parts, got.Mean, whole.Mean)
		}
	}
}

// Trend rarely finds a trend in series without one, even if neighbours are correlated, and finds the trend in series
// with one.
func TestTrend(t *testing.T) {
	tries := 400
	if testing.Short() {
		tries = 120
	}
	for _, p := range []process{exponentials, autoregressives(0.5), waits(0.6)} {
		wrong, found := 0, 0
		for try := range tries {
			xs := p.draw(rand.New(rand.NewPCG(uint64(try), 11)), 2000)
			s, _ := seriesOf(xs)
			if s.Trend(stat.TrendWaves) {
				wrong++
			}
			for i := range xs {
				xs[i] += 4 * float64(i) / 2000
			}
			if s, _ := seriesOf(xs); s.Trend(stat.TrendWaves) {
				found++
			}
		}
		if wrong > tries/40 || found < tries*3/4 {
			t.Errorf("%s: %d of %d have a trend, and %d of those that truly have one", p.name, wrong, tries, found)
		}
	}
}

func TestWarmUp(t *testing.T) {
	found := 0
	for try := range uint64(50) {
		xs := exponential(rand.New(rand.NewPCG(try, 12)), 500)
		for i := range 40 {
			xs[i] += 8
		}
		if got := stat.WarmUp(xs); got >= 40 && got <= 50 {
			found++
		}
	}
	if found < 45 {
		t.Errorf("the first 40 of 500 are apart: found in %d of 50 tries", found)
	}
	if got := stat.WarmUp(exponential(rand.New(rand.NewPCG(1, 12)), 20)); got != 0 {
		t.Errorf("of 20: got %d", got)
	}
}

// If the number of arrivals is fixed, a burst is balanced by fewer arrivals elsewhere. Intervals computed without
// this knowledge are too wide and nearly always contain the true value.
func TestPacedCoverage(t *testing.T) {
	const n, length, window, tries = 800, 800 * time.Second, 4 * time.Second, 400
	truth := 1 + float64(n-1)*(float64(window)/float64(length)) // including the request itself
	held, wide := map[bool]int{}, map[bool]float64{}
	for try := range tries {
		r := rand.New(rand.NewPCG(uint64(try), 9))
		at := make([]time.Duration, n)
		for i := range at {
			at[i] = time.Duration(r.Int64N(int64(length)))
		}
		slices.Sort(at)
		s, d, first := &stat.Series{}, &stat.Digest{}, 0
		for i, now := range at {
			for now-at[first] > window {
				first++
			}
			near := float64(i - first + 1)
			if now < window { // as many requests before the run as at its end
				near += float64(n) - float64(sort.Search(n, func(k int) bool { return at[k] >= length-window+now }))
			}
			x := near + r.NormFloat64()
			s.Add(now, x)
			d.Add(x)
		}
		for _, paced := range []bool{false, true} {
			by := s
			if !paced {
				by = nil
			}
			got := s.Intervals(d.Distribution(), by).Mean
			wide[paced] += got.High - got.Low
			if got.Low <= truth && truth <= got.High {
				held[paced]++
			}
		}
	}
	if share := float64(held[true]) / tries; share < 0.92 || share > 0.98 {
		t.Errorf("%.3f of the intervals hold, want 0.95", share)
	}
	if share := float64(held[false]) / tries; share < 0.99 {
		t.Errorf("%.3f of those that do not know of the pace hold: then it need not be known", share)
	}
	if ratio := wide[true] / wide[false]; ratio > 0.7 {
		t.Errorf("with the pace known intervals are %.2f times as wide", ratio)
	}
}
