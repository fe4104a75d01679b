package predict

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"tacho/metric"
	"tacho/outcome"
)

// SeeAll reads the levels of a run. Where requests are not at hand, as in a report,
// they are made up so that they have the sums that it states.
func SeeAll(name string, r *outcome.Run) (Set, error) {
	set := Set{Name: name}
	var shape *answers // of a report
	for i := range r.Levels {
		l := &r.Levels[i]
		label := name
		if l.Value != "" {
			label += " " + l.Value
		}
		see := func() (*Seen, error) { return see(label, l) }
		if l.Records == nil {
			if shape == nil {
				shape = &answers{spread: outputSpread(r.Levels), extra: extraEvents(r.Levels)}
			}
			see = func() (*Seen, error) { return seeReport(label, l, *shape) }
		}
		s, err := see()
		if err != nil {
			return set, err
		}
		set.Levels = append(set.Levels, s)
	}
	if len(set.Levels) == 0 {
		return set, fmt.Errorf("%s: it has no level", name)
	}
	stoodStill(set.Levels)
	return set, nil
}

// answers are what a report leaves open about the answers.
type answers struct {
	spread float64 // of their lengths: the standard deviation as a share of the mean
	extra  int     // events of each beyond its tokens, such as the end of sequence
}

// extraEvents is how many events an answer has beyond its tokens: TPOT is by tokens
// and ITL by events.
func extraEvents(levels []outcome.Level) int {
	var all []float64
	for i := range levels {
		s := &levels[i].Summary
		tpot, itl := said(s, metric.TPOT), said(s, metric.ITL)
		if tokens := float64(s.Tokens.Output) / float64(s.Completed); tpot > 0 && itl > 0 && tokens > 2 {
			all = append(all, (tpot/itl-1)*(tokens-1))
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return min(2, int(math.Round(max(0, all[len(all)/2]))))
}

// stoodStill finds reports of bursts in which the server stood still: requests that
// waited longer than those of a larger burst of such prompts, which had more to wait
// for.
func stoodStill(levels []*Seen) {
	for _, s := range levels {
		for _, larger := range levels {
			if s.burst() && larger.burst() && len(larger.sent) > len(s.sent) && math.Abs(math.Log(meanPrompt([]*Seen{s})/meanPrompt([]*Seen{larger}))) < 0.1 &&
				s.Measured[TTFT] > longerWait*larger.Measured[TTFT] {
				s.why = fmt.Sprintf("its requests waited for %.1f s, and those of a burst of %d only for %.1f s: the server stood still", s.Measured[TTFT]/1000, len(larger.sent), larger.Measured[TTFT]/1000)
			}
		}
	}
}

// longerWait is by how much a smaller burst must wait longer.
const longerWait = 1.05

// burst says whether it is the report of a burst.
func (s *Seen) burst() bool { return s.report && s.Limit == 0 && s.distinct == 1 }

// said is a mean that a report states; 0: it does not.
func said(s *metric.Summary, m *metric.Metric) float64 {
	if d := s.Dist(m); d.Stats != nil && !math.IsNaN(d.Stats.Mean) {
		return d.Stats.Mean
	}
	return 0
}

// saidAt is a percentile that a report states; 0: it does not.
func saidAt(s *metric.Summary, m *metric.Metric, percentile float64) float64 {
	d := s.Dist(m)
	if d.Stats == nil {
		return 0
	}
	for _, p := range d.Stats.Percentiles {
		if p.P == percentile && !math.IsNaN(p.Value) {
			return p.Value
		}
	}
	if percentile == 50 && !math.IsNaN(d.Stats.Median) {
		return d.Stats.Median
	}
	return 0
}

// outputSpread is the standard deviation of the lengths of outputs, as a share of
// their mean. Reports give only sums; but a burst ends with its longest answer, and
// how much longer that is than the mean tells it. Towards the end fewer and fewer
// are written, and a token takes less and less, down to what the smallest burst has.
func outputSpread(levels []outcome.Level) float64 {
	alone := math.Inf(1)
	for i := range levels {
		if tpot := said(&levels[i].Summary, metric.TPOT); tpot > 0 {
			alone = min(alone, tpot)
		}
	}
	var all []float64
	for i := range levels {
		s := &levels[i].Summary
		n := s.Completed
		tpot := said(s, metric.TPOT)
		if n < 4 || n > 64 || tpot == 0 || levels[i].Rate > 0 || levels[i].Concurrency > 0 {
			continue
		}
		meanOutput := float64(s.Tokens.Output) / float64(n)
		longer := (1000*s.DurationS - said(s, metric.TTFT) - tpot*meanOutput) / ((tpot + alone) / 2)
		all = append(all, max(0, longer/normalQuantile(n-1, n)/meanOutput))
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return min(all[len(all)/2], 1)
}

// normalQuantile is the middle of the i-th of n equal parts of a standard normal
// distribution.
func normalQuantile(i, n int) float64 {
	return math.Sqrt2 * math.Erfinv(2*(float64(i)+0.5)/float64(n)-1)
}

// seeReport makes up the requests of a level of which only a summary is known.
func seeReport(name string, l *outcome.Level, shape answers) (*Seen, error) {
	sum := &l.Summary
	n := sum.Completed
	if n == 0 || sum.Tokens.Input == 0 || sum.Tokens.Output == 0 || sum.DurationS == 0 {
		return nil, errors.New(name + ": the report states no requests, tokens or duration, so nothing can be fitted to it")
	}
	s := &Seen{Name: name, distinct: 1, report: true, extra: shape.extra}
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	outputs := lengths(n, sum.Tokens.Output, shape.spread, rng)
	at := s.arrivalTimes(l, rng)
	for i := range n {
		prompt := sum.Tokens.Input / n
		if i < sum.Tokens.Input%n {
			prompt++
		}
		s.sent = append(s.sent, sent{at: at[i], prompt: max(prompt, 1), output: outputs[i]})
	}
	m := &s.Measured
	m[TTFT], m[TPOT], m[ITL], m[E2EL] = said(sum, metric.TTFT), said(sum, metric.TPOT), said(sum, metric.ITL), said(sum, metric.E2EL)
	m[ttft50], m[TTFT99] = saidAt(sum, metric.TTFT, 50), saidAt(sum, metric.TTFT, 99)
	m[tpot99], m[itl99], m[e2el99] = saidAt(sum, metric.TPOT, 99), saidAt(sum, metric.ITL, 99), saidAt(sum, metric.E2EL, 99)
	m[Throughput] = float64(n) / sum.DurationS
	s.serverTPOT(sum)
	s.most, s.flying = n, n
	if m[TPOT] > 0 { // by Little's law so many were written at once
		output := float64(sum.Tokens.Output) / float64(n)
		decoding := sum.DurationS
		if s.burst() && s.together99() {
			decoding = max(decoding-m[TTFT]/1000, decoding/10)
		}
		running := min(float64(n), max(1, float64(n)*m[TPOT]*output/1000/decoding))
		if s.Limit == 0 && s.distinct == 1 {
			s.most = min(n, int(math.Ceil(running))) // at least; a burst that ends together has no more
		}
		s.windows = slices.Repeat([]window{s.meanWindow(running, output, sum.DurationS)}, 4)
	}
	return s, nil
}

// meanWindow is the mean of all windows of a report: prompts were read until the
// last request got its first token, and each answer was preceded by one.
func (s *Seen) meanWindow(running, output, durationS float64) window {
	prompt := meanPrompt([]*Seen{s})
	w := window{took: windowEvents * s.Measured[TPOT], tokens: windowEvents, running: running, context: running * (prompt + output/2)}
	if s.burst() && len(s.sent) > 1 && !s.together99() {
		w.mixed = min(1, s.Measured[TTFT99]/1000/durationS)
		w.prompts = w.mixed * windowEvents * running / output
		w.promptTokens = w.prompts * prompt
		w.pairs = w.promptTokens * prompt / 2
	}
	return w
}

// arrivalTimes are when requests went: by the rate that the report names, or, where
// answers took far less than the whole, by the rate that they must have had; else
// all at once.
func (s *Seen) arrivalTimes(l *outcome.Level, rng *rand.Rand) []time.Duration {
	sum := &l.Summary
	at := make([]time.Duration, sum.Completed)
	s.Limit = cmp.Or(l.Concurrency, sum.Config.MaxConcurrency)
	took := (said(sum, metric.TTFT) + said(sum, metric.TPOT)*float64(sum.Tokens.Output)/float64(sum.Completed)) / 1000
	rate := cmp.Or(l.Rate, sum.Config.RequestRate)
	if s.Limit > 0 || rate == 0 && 4*took > sum.DurationS || sum.Completed == 1 {
		return at
	}
	span := sum.DurationS - took
	if rate > 0 {
		span = float64(sum.Completed) / rate
	}
	x := make([]float64, len(at))
	for i := 1; i < len(x); i++ {
		x[i] = x[i-1] + rng.ExpFloat64()
	}
	for i := range at {
		at[i] = time.Duration(x[i] / x[len(x)-1] * span * 1e9)
	}
	s.distinct = float64(len(at))
	return at
}

// lengths are n lengths with that sum, normal about their mean, in any order.
func lengths(n, total int, spread float64, rng *rand.Rand) []int {
	out := make([]int, n)
	mean, sum := float64(total)/float64(n), 0
	for i := range out {
		out[i] = max(1, int(math.Round(mean*(1+spread*normalQuantile(i, n)))))
		sum += out[i]
	}
	for i := 0; sum != total && total >= n; i = (i + 1) % n { // what rounding and cutting left over
		if sum < total {
			out[i]++
			sum++
		} else if out[i] > 1 {
			out[i]--
			sum--
		}
	}
	rng.Shuffle(n, func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}
