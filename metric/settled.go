package metric

import (
	"fmt"
	"math"
	"time"

	"github.com/tacho-bench/tacho/stat"
)

// Settled is the time window of the confidence intervals. A run begins with an empty server and ends
// with a draining one, and both phases are faster than the steady state. So the window excludes one
// horizon at each end. The horizon is the p95 of E2EL: after this time, nearly all requests sent before
// have finished.
type Settled struct {
	FromS    float64 `json:"start_s"`
	ToS      float64 `json:"end_s"`
	HorizonS float64 `json:"horizon_s"`
	Requests int     `json:"requests"` // sent in the window

	RequestsPerS         float64   `json:"requests_per_s"` // successful requests that ended in the window
	RequestsInterval     *Interval `json:"requests_per_s_interval"`
	GoodPerS             *float64  `json:"good_requests_per_s,omitempty"` // nil if there are no conditions of a good request
	GoodInterval         *Interval `json:"good_requests_per_s_interval,omitempty"`
	OutputTokensPerS     float64   `json:"output_tokens_per_s"` // tokens that arrived in the window
	OutputTokensInterval *Interval `json:"output_tokens_per_s_interval"`
}

const (
	horizonQuantile = 0.95 // quantile of E2EL
	settledParts    = 128  // parts of the window to measure the variation of throughput; many more than waves
)

// settled returns the window between two times without the horizon at the ends of the run.
func (a *Accumulator) settled(sents []*marks, from, to time.Duration) *stat.Window {
	var took []float64
	for _, m := range sents {
		if m.ok {
			took = append(took, float64(m.finished()-m.sent))
		}
	}
	h := time.Duration(stat.New(took).Quantile(horizonQuantile))
	last := sents[len(sents)-1].sent
	return &stat.Window{From: from + h, To: min(to, last-h), Horizon: h, Requests: &a.series[indexE2EL]}
}

// queueMemory returns how long a queue remembers its length. In heavy traffic a wait with the standard deviation w, at a
// rate of random arrivals and with random service times, is forgotten after about 4 x rate x w^2 (a reflected Brownian
// motion). A batch in which requests slow each other down forgets its size sooner, after half of rate x w^2, where w is the standard
// deviation of E2EL. Only the part of a variance that neighbours share is of queue or batch. from is the end of the warm-up.
func (a *Accumulator) queueMemory(sents []*marks, from time.Duration) time.Duration {
	var values []float64
	for _, m := range sents {
		if m.ok {
			values = append(values, float64(m.finished()-m.sent))
		}
	}
	if cut := stat.WarmUp(values); cut > 0 && float64(cut) < startShare*float64(len(sents)) {
		from = max(from, sents[cut].sent) // a start that is too gradual for a note
	}
	first, to := sents[0].sent, sents[len(sents)-1].sent
	rate := float64(a.sampling.weight()*len(sents)) / max((to-first).Seconds(), 1e-9)
	slow := func(i int) float64 { return a.series[i].SlowVariance(from, to) * 1e-6 } // in s^2
	return time.Duration(min(rate*max(4*slow(indexTTFT), slow(indexE2EL)/2), 1e9) * 1e9)
}

// unsettled returns why requests in a window were not in steady state, or "" if they were. If the reason is a trend,
// it also returns the trend.
func (a *Accumulator) unsettled(s *Summary, sents []*marks, st *stat.Window) (string, *Trend) {
	if growth, grew := s.Backlog.growth(); grew && growth > 0.05 {
		return OverSaturate, nil
	}
	if need := stat.MinHorizons * st.Horizon; st.To-st.From < need {
		first, last := sents[0].sent, sents[len(sents)-1].sent
		longer := float64(last-first+need-(st.To-st.From)) / float64(max(last-first, 1))
		return fmt.Sprintf("%s (E2EL p95 %s): run longer (--num-prompts %d)", ShortRun, Duration(1e3*st.Horizon.Seconds()), roundUp(longer*float64(a.sents.n))), nil
	}
	if t := trendOf(sents, st); t != nil {
		return StillMoving, t
	}
	if memories := st.Memories(); memories < stat.MinMemories {
		return fmt.Sprintf("%s (%s): run longer (--num-prompts %d)", LongMemory, Duration(1e3*st.Memory.Seconds()), roundUp(stat.MinMemories/memories*float64(a.sents.n))), nil
	}
	return "", nil
}

// trendOf returns nil if E2EL does not rise or fall significantly in a window, or changes by less than trendShare.
func trendOf(sents []*marks, st *stat.Window) *Trend {
	var all stat.Series
	var first, last []float64
	third := (st.To - st.From) / 3
	for _, m := range sents {
		if !m.ok || m.sent < st.From || m.sent >= st.To {
			continue
		}
		took := millis(m.finished() - m.sent)
		all.Add(m.sent-st.From, took)
		switch {
		case m.sent < st.From+third:
			first = append(first, took)
		case m.sent >= st.To-third:
			last = append(last, took)
		}
	}
	t := &Trend{stat.New(first).Mean(), stat.New(last).Mean()}
	if t.share() < trendShare || !all.Trend(st.Waves()) {
		return nil
	}
	return t
}

// roundUp rounds up to two significant digits.
func roundUp(x float64) int {
	unit := math.Pow(10, math.Floor(math.Log10(max(x, 1)))-1)
	return int(math.Ceil(x/unit) * unit)
}

// measureSettled measures the throughput in a window. The throughput of an open loop has no interval, because it is
// served at the rate it sends; its goodput has one.
func (a *Accumulator) measureSettled(sents []*marks, st *stat.Window, closed bool) *Settled {
	each := float64(a.sampling.weight())
	parts := func() []float64 { return make([]float64, settledParts) }
	sent, ended, good, tokens := parts(), parts(), parts(), parts()
	count := func(parts []float64, at time.Duration, n float64) {
		if at >= st.From && at < st.To {
			parts[int(settledParts*(at-st.From)/(st.To-st.From))] += n
		}
	}
	out := &Settled{FromS: st.From.Seconds(), ToS: st.To.Seconds(), HorizonS: st.Horizon.Seconds()}
	for _, m := range sents {
		count(sent, m.sent, each)
		if m.good {
			count(good, m.finished(), each)
		}
		if m.ok {
			count(ended, m.finished(), each)
		}
	}
	n, arrival := a.arrivals.ordered()
	for i := range n {
		one, events := arrival(i)
		if events > 0 {
			count(tokens, one.at, float64(one.tokens)/tokenParts)
		}
	}
	rate := func(counts []float64, has bool) (perS float64, in *Interval) {
		perS = total(counts) / (st.To - st.From).Seconds()
		if !has {
			return perS, &Interval{Value: &perS, Warning: stat.Offered}
		}
		in = interval(st.RateInterval(counts, sent), 0)
		in.Value = &perS
		return perS, in
	}
	out.Requests = int(total(sent))
	out.RequestsPerS, out.RequestsInterval = rate(ended, closed)
	out.OutputTokensPerS, out.OutputTokensInterval = rate(tokens, closed)
	if len(a.Goodput) > 0 {
		perS, in := rate(good, true)
		out.GoodPerS, out.GoodInterval = &perS, in
	}
	return out
}

func total(xs []float64) (sum float64) {
	for _, x := range xs {
		sum += x
	}
	return sum
}
