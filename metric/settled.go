package metric

import (
	"fmt"
	"math"
	"time"

	"tacho/stat"
)

// Settled is the time that intervals are of. A run begins with an empty server and ends with
// one that empties, and both are faster than the steady state. So the requests of one horizon
// at each end are left out. The horizon is the p95 of E2EL: after that time nearly
// all requests are over that were sent before.
type Settled struct {
	FromS    float64 `json:"start_s"`
	ToS      float64 `json:"end_s"`
	HorizonS float64 `json:"horizon_s"`
	Requests int     `json:"requests"` // sent in it

	RequestsPerS         float64   `json:"requests_per_s"` // successes that ended in it
	RequestsInterval     *Interval `json:"requests_per_s_interval"`
	OutputTokensPerS     float64   `json:"output_tokens_per_s"` // that came in it
	OutputTokensInterval *Interval `json:"output_tokens_per_s_interval"`
}

const (
	horizonQuantile = 0.95 // of E2EL
	settledParts    = 128  // into which the time is cut to see how throughput varies: many more than waves are looked at
)

// settled is the time between two moments without what depends on the ends of the run.
func (a *Accumulator) settled(sents []*marks, from, to time.Duration) *stat.Stretch {
	var took []float64
	for _, m := range sents {
		if m.ok {
			took = append(took, float64(m.over()-m.sent))
		}
	}
	h := time.Duration(stat.New(took).Quantile(horizonQuantile))
	last := sents[len(sents)-1].sent
	return &stat.Stretch{From: from + h, To: min(to, last-h), Horizon: h, Requests: &a.series[indexE2EL]}
}

// unsettled is why requests of a stretch were not in balance; empty: they were.
func (a *Accumulator) unsettled(s *Summary, sents []*marks, st *stat.Stretch) string {
	if growth, grew := s.Backlog.growth(); grew && growth > 0.05 {
		return OverSaturate
	}
	if need := stat.LeastHorizons * st.Horizon; st.To-st.From < need {
		first, last := sents[0].sent, sents[len(sents)-1].sent
		longer := float64(last-first+need-(st.To-st.From)) / float64(max(last-first, 1))
		return fmt.Sprintf("%s (E2EL p95 %.3g s): run longer (--num-prompts %d)", ShortRun, st.Horizon.Seconds(), roundUp(longer*float64(a.sents.n)))
	}
	var latencies stat.Series
	for _, m := range sents {
		if m.ok && m.sent >= st.From && m.sent < st.To {
			latencies.Add(m.sent-st.From, millis(m.over()-m.sent))
		}
	}
	if latencies.Trend() {
		return StillMoving
	}
	return ""
}

// roundUp rounds up to two digits.
func roundUp(x float64) int {
	unit := math.Pow(10, math.Floor(math.Log10(max(x, 1)))-1)
	return int(math.Ceil(x/unit) * unit)
}

// measureSettled is what a stretch gave. Only the throughput of a closed loop has an
// interval: requests at a rate are served at that rate.
func (a *Accumulator) measureSettled(sents []*marks, st *stat.Stretch, closed bool) *Settled {
	each := float64(a.thinned.of())
	sent, ended, tokens := make([]float64, settledParts), make([]float64, settledParts), make([]float64, settledParts)
	count := func(parts []float64, at time.Duration, n float64) {
		if at >= st.From && at < st.To {
			parts[int(settledParts*(at-st.From)/(st.To-st.From))] += n
		}
	}
	out := &Settled{FromS: st.From.Seconds(), ToS: st.To.Seconds(), HorizonS: st.Horizon.Seconds()}
	for _, m := range sents {
		count(sent, m.sent, each)
		if m.ok {
			count(ended, m.over(), each)
		}
	}
	n, arrival := a.arrivals.ordered()
	for i := range n {
		one, events := arrival(i)
		if events > 0 {
			count(tokens, one.at, float64(one.tokens)/tokenParts)
		}
	}
	rate := func(counts []float64) (perS float64, in *Interval) {
		perS = total(counts) / (st.To - st.From).Seconds()
		if !closed {
			return perS, &Interval{Value: &perS, Warning: stat.Offered}
		}
		in = interval(st.SureRate(counts, sent), 0)
		in.Value = &perS
		return perS, in
	}
	out.Requests = int(total(sent))
	out.RequestsPerS, out.RequestsInterval = rate(ended)
	out.OutputTokensPerS, out.OutputTokensInterval = rate(tokens)
	return out
}

func total(xs []float64) (sum float64) {
	for _, x := range xs {
		sum += x
	}
	return sum
}
