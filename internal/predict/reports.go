package predict

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

// ReadLevels reads the levels of a run. If the requests are not available, as in a
// report, it generates requests with the stated sums.
func ReadLevels(name string, r *outcome.Run) (Set, error) {
	set := Set{Name: name}
	var shape *answers // of a report
	for i := range r.Levels {
		l := &r.Levels[i]
		label := name
		if l.Value != "" {
			label += " " + l.Value
		}
		see := func() (*MeasuredLevel, error) { return readLevel(label, l) }
		if l.Records == nil {
			if shape == nil {
				shape = &answers{spread: outputSpread(r.Levels), extra: extraEvents(r.Levels)}
			}
			see = func() (*MeasuredLevel, error) { return readReport(label, l, *shape) }
		}
		s, err := see()
		if err != nil {
			return set, err
		}
		set.Levels = append(set.Levels, s)
	}
	if len(set.Levels) == 0 {
		return set, fmt.Errorf("%s: the run has no levels", name)
	}
	markStalled(set.Levels)
	return set, nil
}

// answers are properties of the answers that a report does not state.
type answers struct {
	spread float64 // standard deviation of the lengths, relative to the mean
	extra  int     // events of each answer in addition to its tokens, such as the end of sequence
}

// extraEvents is the number of events of an answer in addition to its tokens. It
// follows from TPOT, which is per token, and ITL, which is per event.
func extraEvents(levels []outcome.Level) int {
	var all []float64
	for i := range levels {
		s := &levels[i].Summary
		tpot, itl := reportedMean(s, metric.TPOT), reportedMean(s, metric.ITL)
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

// markStalled finds reports of bursts with a stall of the server: their requests
// waited longer than the requests of a larger burst with similar prompts.
func markStalled(levels []*MeasuredLevel) {
	for _, s := range levels {
		for _, larger := range levels {
			if s.burst() && larger.burst() && len(larger.sent) > len(s.sent) && math.Abs(math.Log(meanPrompt([]*MeasuredLevel{s})/meanPrompt([]*MeasuredLevel{larger}))) < 0.1 &&
				s.Measured[TTFT] > longerWait*larger.Measured[TTFT] {
				s.excluded = fmt.Sprintf("requests waited for %.1f s, but in a larger burst of %d only for %.1f s (server stall)", s.Measured[TTFT]/1000, len(larger.sent), larger.Measured[TTFT]/1000)
			}
		}
	}
}

// longerWait is the minimum ratio of the waits.
const longerWait = 1.05

// burst reports whether the level is the report of a burst.
func (s *MeasuredLevel) burst() bool { return s.report && s.Limit == 0 && s.distinct == 1 }

// reportedMean is a mean stated by a report, or 0 if it is missing.
func reportedMean(s *metric.Summary, m *metric.Metric) float64 {
	if d := s.Dist(m); d.Stats != nil && !math.IsNaN(d.Stats.Mean) {
		return d.Stats.Mean
	}
	return 0
}

// reportedPercentile is a percentile stated by a report, or 0 if it is missing.
func reportedPercentile(s *metric.Summary, m *metric.Metric, percentile float64) float64 {
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

// outputSpread is the standard deviation of output lengths relative to their mean.
// Reports only give sums, but a burst ends with its longest answer, so the spread
// follows from how much longer that answer is than the mean. Towards the end fewer
// answers are decoded, and a token takes less time, down to the time in the
// smallest burst.
func outputSpread(levels []outcome.Level) float64 {
	alone := math.Inf(1)
	for i := range levels {
		if tpot := reportedMean(&levels[i].Summary, metric.TPOT); tpot > 0 {
			alone = min(alone, tpot)
		}
	}
	var all []float64
	for i := range levels {
		s := &levels[i].Summary
		n := s.Completed
		tpot := reportedMean(s, metric.TPOT)
		if n < 4 || n > 64 || tpot == 0 || levels[i].Rate > 0 || levels[i].Concurrency > 0 {
			continue
		}
		meanOutput := float64(s.Tokens.Output) / float64(n)
		longer := (1000*s.DurationS - reportedMean(s, metric.TTFT) - tpot*meanOutput) / ((tpot + alone) / 2)
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

// readReport generates the requests of a level with only a summary.
func readReport(name string, l *outcome.Level, shape answers) (*MeasuredLevel, error) {
	sum := &l.Summary
	n := sum.Completed
	if n == 0 || sum.Tokens.Input == 0 || sum.Tokens.Output == 0 || sum.DurationS == 0 {
		return nil, errors.New(name + ": the report has no requests, tokens or duration to fit to")
	}
	s := &MeasuredLevel{Name: name, distinct: 1, report: true, extra: shape.extra}
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
	m[TTFT], m[TPOT], m[ITL], m[E2EL] = reportedMean(sum, metric.TTFT), reportedMean(sum, metric.TPOT), reportedMean(sum, metric.ITL), reportedMean(sum, metric.E2EL)
	m[ttft50], m[TTFT99] = reportedPercentile(sum, metric.TTFT, 50), reportedPercentile(sum, metric.TTFT, 99)
	m[tpot99], m[itl99], m[e2el99] = reportedPercentile(sum, metric.TPOT, 99), reportedPercentile(sum, metric.ITL, 99), reportedPercentile(sum, metric.E2EL, 99)
	m[Throughput] = float64(n) / sum.DurationS
	s.serverTPOT(sum)
	s.most, s.inFlight = n, n
	if m[TPOT] > 0 { // by Little's law
		output := float64(sum.Tokens.Output) / float64(n)
		decoding := sum.DurationS
		if s.burst() && s.together99() {
			decoding = max(decoding-m[TTFT]/1000, decoding/10)
		}
		running := min(float64(n), max(1, float64(n)*m[TPOT]*output/1000/decoding))
		if s.Limit == 0 && s.distinct == 1 {
			s.most = min(n, int(math.Ceil(running))) // a lower bound; a burst that ends together has no more
		}
		s.windows = slices.Repeat([]window{s.meanWindow(running, output, sum.DurationS)}, 4)
	}
	return s, nil
}

// meanWindow is the mean of all windows of a report. Prompts were prefilled until
// the last request got its first token, one for each answer.
func (s *MeasuredLevel) meanWindow(running, output, durationS float64) window {
	prompt := meanPrompt([]*MeasuredLevel{s})
	w := window{took: windowEvents * s.Measured[TPOT], tokens: windowEvents, running: running, context: running * (prompt + output/2)}
	if s.burst() && len(s.sent) > 1 && !s.together99() {
		w.mixed = min(1, s.Measured[TTFT99]/1000/durationS)
		w.prompts = w.mixed * windowEvents * running / output
		w.promptTokens = w.prompts * prompt
		w.pairs = w.promptTokens * prompt / 2
	}
	return w
}

// arrivalTimes are the send times: at the rate stated by the report, or, if answers
// took far less than the run, at the implied rate; otherwise all at time zero.
func (s *MeasuredLevel) arrivalTimes(l *outcome.Level, rng *rand.Rand) []time.Duration {
	sum := &l.Summary
	at := make([]time.Duration, sum.Completed)
	s.Limit = cmp.Or(l.Concurrency, sum.Config.MaxConcurrency)
	took := (reportedMean(sum, metric.TTFT) + reportedMean(sum, metric.TPOT)*float64(sum.Tokens.Output)/float64(sum.Completed)) / 1000
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

// lengths are n lengths with the given sum, normal about their mean, in random
// order.
func lengths(n, total int, spread float64, rng *rand.Rand) []int {
	out := make([]int, n)
	mean, sum := float64(total)/float64(n), 0
	for i := range out {
		out[i] = max(1, int(math.Round(mean*(1+spread*normalQuantile(i, n)))))
		sum += out[i]
	}
	for i := 0; sum != total && total >= n; i = (i + 1) % n { // distribute the error of rounding and cutting
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
