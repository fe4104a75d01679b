package metric

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/stat"
)

// defaultSteadyThreshold is the share of the concurrency limit above which a closed loop counts as
// full.
const defaultSteadyThreshold = 0.95

// A SteadyState describes the steady state of a run. It is an addition to the figures of the whole run
// and never replaces them.
type SteadyState struct {
	Window *Window `json:"window"`            // nil if there is none
	WhyNot string  `json:"why_not,omitempty"` // why there is no window
	Little *Little `json:"little"`            // while a closed loop was full, or while requests were sent at a rate; nil for a burst
	WarmUp *WarmUp `json:"warm_up"`           // nil if the first requests were like the others

	Trend        *Trend   `json:"trend,omitempty"`         // nil if latencies did not rise or fall significantly
	Settled      *Settled `json:"settled"`                 // the window of the confidence intervals; nil if there are none
	WhyUnsettled string   `json:"why_unsettled,omitempty"` // why there are no confidence intervals
}

// Reasons for a missing steady state.
const (
	AllAtOnce    = "all requests were sent in one burst"
	TooShort     = "too few requests"
	NeverFull    = "the concurrency limit was never reached"
	OverSaturate = "the server fell behind and its queue grew until the end"
	StillMoving  = "latencies were still rising or falling at the end"
	ShortRun     = "the run was too short for its latencies"
	LongMemory   = "the queue remembers its length for too long"
	ShortWindow  = "the steady state was too short"
	LittleIsOff  = "Little's law is off by more than 10 %"
)

// A Window is the steady state of a run. In a closed loop it extends from the first to the last time
// with at least Least requests in flight. At a request rate it is the window of Settled.
type Window struct {
	FromS     float64 `json:"start_s"`
	ToS       float64 `json:"end_s"`
	Threshold float64 `json:"threshold,omitempty"`       // share of the limit
	Least     int     `json:"least_in_flight,omitempty"` // Threshold x limit
	Requests  int     `json:"requests"`                  // sent in the window
	Completed int     `json:"completed"`                 // successful requests that ended in the window
	Share     float64 `json:"share"`                     // Requests / all requests sent

	RequestsPerS     float64          `json:"requests_per_s"`
	InputTokensPerS  float64          `json:"input_tokens_per_s"` // of requests sent in the window
	OutputTokensPerS float64          `json:"output_tokens_per_s"`
	Dists            `json:"metrics"` // ttft, tpot and e2el of successful requests sent in the window
}

// Little checks Little's law: the mean number of requests in flight is the arrival rate times the mean
// latency. If the two sides differ, the run was not in steady state, or requests are missing.
type Little struct {
	InFlight      float64 `json:"mean_in_flight"`
	SentPerS      float64 `json:"sent_per_s"`
	LatencyMillis float64 `json:"mean_latency_ms"` // from sent to end, of these requests, including failed ones
	Off           float64 `json:"off"`             // SentPerS x latency / InFlight - 1
}

// A WarmUp is a start that differs from the rest of the run.
type WarmUp struct {
	Metric      string  `json:"metric"`
	Requests    int     `json:"requests"` // number of first requests
	FirstMillis float64 `json:"first_ms"` // mean of the first requests
	RestMillis  float64 `json:"rest_ms"`
	Excess      float64 `json:"excess_share"` // sum over the first requests of value - RestMillis / sum of all values
}

// A Trend is a significant rise or fall of E2EL during the window of the confidence intervals.
type Trend struct {
	FirstMillis float64 `json:"first_ms"` // mean of the requests sent in the first third of the window
	LastMillis  float64 `json:"last_ms"`  // mean of the requests sent in the last third
}

// share returns the size of the change, relative to the first third.
func (t *Trend) share() float64 {
	if t.FirstMillis <= 0 {
		return 0
	}
	return math.Abs(t.LastMillis/t.FirstMillis - 1)
}

// Text describes the start in words.
func (w *WarmUp) Text() string {
	word := "slower"
	if w.FirstMillis < w.RestMillis {
		word = "faster"
	}
	return fmt.Sprintf("the first %s requests were %s (mean %s %s, then %s)", Integer(w.Requests), word, strings.ToUpper(w.Metric), Duration(w.FirstMillis), Duration(w.RestMillis))
}

const (
	steadyMin   = 30   // minimum number of requests
	shortWindow = 0.1  // share of the run
	littleOff   = 0.1  // maximum error of Little's law; above it, requests active at the ends of the window matter too much
	warmUpTimes = 1.1  // minimum ratio of the latencies of the first requests and the others
	startShare  = 0.2  // share of the run; a later change is not a warm-up
	trendShare  = 0.05 // minimum change of latencies that counts as a trend
	minStart    = 5    // minimum number of requests that must differ; a single one is random variation
)

// steady returns nil if no request was sent. It also returns the window of the confidence intervals.
func (a *Accumulator) steady(s *Summary) (*SteadyState, balanced) {
	c := &s.Config
	sents := a.inOrder()
	if len(sents) == 0 {
		return nil, balanced{why: stat.TooFew}
	}
	out := &SteadyState{}
	closed := c.RequestRate <= 0 && c.MaxConcurrency > 0
	if c.RequestRate <= 0 && (!closed || a.sents.n <= c.MaxConcurrency) && sents[len(sents)-1].sent-sents[0].sent < sents[0].end-sents[0].sent {
		out.WhyNot, out.WhyUnsettled = AllAtOnce, AllAtOnce
		return out, balanced{why: stat.Burst}
	}
	if len(sents) < steadyMin {
		out.WhyNot, out.WhyUnsettled = TooShort, TooShort
		return out, balanced{why: stat.TooFew}
	}
	var first int
	out.WarmUp, first = warmUp(sents)
	from, to := sents[0].sent, sents[len(sents)-1].sent
	var w *Window
	if closed {
		w, from, to = fullWindow(c, sents, a.sampling.weight(), from, to)
	}
	st := a.settled(sents, from, to)
	if out.WarmUp != nil {
		from, st.From = max(from, sents[first].sent), max(st.From, sents[first].sent)
		out.WarmUp.Requests *= a.sampling.weight()
	}
	if !closed {
		st.Memory = a.queueMemory(sents, from)
	}
	out.WhyUnsettled, out.Trend = a.unsettled(s, sents, st)
	switch {
	case closed && w == nil:
		out.WhyNot, out.WhyUnsettled = NeverFull, NeverFull
	case closed && out.Trend != nil:
		out.WhyNot = StillMoving
	case !closed:
		w = &Window{}
		if out.WhyNot = out.WhyUnsettled; st.To > st.From {
			from, to = st.From, st.To
		}
	}
	out.Little = little(sents, a.sampling.weight(), from, to)
	if w != nil && out.WhyNot == "" {
		out.WhyNot = unreliable(c, sents, out.Little, to-from)
	}
	if out.WhyNot == "" {
		a.measureWindow(w, c, sents, from, to)
		out.Window = w
	}
	if out.WhyUnsettled = cmp.Or(out.WhyNot, out.WhyUnsettled); out.WhyUnsettled != "" {
		return out, balanced{why: stat.Unsteady}
	}
	st.Fixed = fixedNumber(s)
	out.Settled = a.measureSettled(sents, st, closed)
	return out, balanced{Window: st}
}

// inOrder returns the requests that were sent, in the order of their send times.
func (a *Accumulator) inOrder() []*marks {
	sents := make([]*marks, 0, len(a.marks))
	for i := range a.marks {
		if m := &a.marks[i]; m.sent != tacho.Never {
			sents = append(sents, m)
		}
	}
	slices.SortFunc(sents, func(a, b *marks) int {
		return cmp.Or(cmp.Compare(a.sent, b.sent), cmp.Compare(a.end, b.end), cmp.Compare(a.first, b.first))
	})
	return sents
}

// unreliable returns why the figures of a window would mislead, or "" if they do not. The minimum
// length of a window is configured, or a tenth of the run.
func unreliable(c *Config, sents []*marks, law *Little, length time.Duration) string {
	last := slices.MaxFunc(sents, func(a, b *marks) int { return cmp.Compare(a.end, b.end) }).end
	least := shortWindow * last.Seconds()
	if c.SteadyMinS != nil {
		least = *c.SteadyMinS
	}
	switch {
	case length.Seconds() < least:
		return ShortWindow
	case law != nil && math.Abs(law.Off) > littleOff:
		return LittleIsOff
	}
	return ""
}

// fullWindow returns the time in which a closed loop is full, with vllm-bench's definition: successful
// requests, up to their last token. Each element of sents represents each requests.
func fullWindow(c *Config, sents []*marks, each int, from, to time.Duration) (*Window, time.Duration, time.Duration) {
	threshold := cmp.Or(c.SteadyThreshold, defaultSteadyThreshold)
	w := &Window{Threshold: threshold, Least: max(int(math.Ceil(threshold*float64(c.MaxConcurrency))), 1)}
	least := (w.Least + each - 1) / each
	var begins, ends []time.Duration
	for _, m := range sents {
		if m.ok {
			begins, ends = append(begins, m.sent), append(ends, m.finished())
		}
	}
	slices.Sort(ends)
	up, down := tacho.Never, tacho.Never
	for i, k := 0, 0; k < len(ends); {
		if i < len(begins) && begins[i] < ends[k] { // if times are equal, the end comes first
			if i++; i-k == least && up == tacho.Never {
				up = begins[i-1]
			}
			continue
		}
		if k++; i-k == least-1 && up != tacho.Never {
			down = ends[k-1]
		}
	}
	if up == tacho.Never {
		return nil, from, to
	}
	return w, up, down
}

// finished returns when a request had all of its tokens.
func (m *marks) finished() time.Duration {
	if m.last == tacho.Never {
		return m.end
	}
	return m.last
}

// measureWindow fills in the results of a window.
func (a *Accumulator) measureWindow(w *Window, c *Config, sents []*marks, from, to time.Duration) {
	w.FromS, w.ToS = from.Seconds(), to.Seconds()
	in := func(at time.Duration) bool { return at >= from && at < to }
	dists := []struct {
		*Metric
		digest stat.Digest
	}{{Metric: TTFT}, {Metric: TPOT}, {Metric: E2EL}}
	input := 0
	for _, m := range sents {
		if m.ok && in(m.finished()) {
			w.Completed++
		}
		if !in(m.sent) {
			continue
		}
		w.Requests++
		if !m.ok {
			continue
		}
		input += int(m.input)
		dists[2].digest.Add(millis(m.finished() - m.sent))
		if m.first != tacho.Never {
			dists[0].digest.Add(millis(m.first - m.sent))
			if m.output > 1 {
				dists[1].digest.Add(millis(m.last-m.first) / float64(m.output-1))
			}
		}
	}
	w.Share = float64(w.Requests) / float64(len(sents))
	each := a.sampling.weight()
	w.Requests, w.Completed, input = w.Requests*each, w.Completed*each, input*each
	if seconds := (to - from).Seconds(); seconds > 0 {
		w.RequestsPerS = float64(w.Completed) / seconds
		w.InputTokensPerS, w.OutputTokensPerS = float64(input)/seconds, a.arrivals.tokens(from, to)/seconds
	}
	for i := range dists {
		d := Dist{Name: dists[i].Name, Unit: dists[i].Unit}
		d.fill(&dists[i].digest, dists[i].digest.Distribution(), c.Percentiles)
		w.Dists = append(w.Dists, d)
	}
}

// little returns nil if no time passed. Each element of sents represents each requests.
func little(sents []*marks, each int, from, to time.Duration) *Little {
	span := (to - from).Seconds()
	n, inFlight, latency := 0, 0.0, 0.0
	for _, m := range sents {
		inFlight += max(min(m.end, to)-max(m.sent, from), 0).Seconds()
		if m.sent >= from && m.sent < to {
			n, latency = n+1, latency+(m.end-m.sent).Seconds()
		}
	}
	if span <= 0 || n == 0 || inFlight == 0 {
		return nil
	}
	return &Little{InFlight: float64(each) * inFlight / span, SentPerS: float64(each*n) / span, LatencyMillis: 1e3 * latency / float64(n), Off: latency/inFlight - 1}
}

// warmUp finds the first requests that differ from the others: without them, the variance of the mean is minimal
// (MSER-5). It examines TTFT, and E2EL if TTFT does not differ. The first requests are reported if they were visibly
// slower or faster. first is the number of requests to leave out.
func warmUp(sents []*marks) (w *WarmUp, first int) {
	if w, first = startOf(sents, TTFT, (*marks).streamed, func(m *marks) time.Duration { return m.first }); w != nil {
		return w, first
	}
	return startOf(sents, E2EL, func(m *marks) bool { return m.ok }, (*marks).finished)
}

// startOf examines one metric, which is the time from sent to end.
func startOf(sents []*marks, metric *Metric, has func(*marks) bool, end func(*marks) time.Duration) (*WarmUp, int) {
	var values []float64
	var at []int // indices into sents
	for i, m := range sents {
		if has(m) {
			values, at = append(values, millis(end(m)-m.sent)), append(at, i)
		}
	}
	cut := stat.WarmUp(values)
	if cut == 0 || !isStart(values, cut) {
		return nil, 0
	}
	w := &WarmUp{Metric: metric.Name, Requests: cut, FirstMillis: stat.New(slices.Clone(values[:cut])).Mean(), RestMillis: stat.New(slices.Clone(values[cut:])).Mean()}
	excess := float64(cut) * (w.FirstMillis - w.RestMillis)
	w.Excess = excess / max(excess+float64(len(values))*w.RestMillis, math.SmallestNonzeroFloat64)
	return w, at[cut]
}

// isStart reports whether the first values are a warm-up: the change is early, the very first values
// differ as much as the others before the change, and no later part of the run does. A pause in the
// middle of a run is not a warm-up.
func isStart(values []float64, cut int) bool {
	mean := func(xs []float64) float64 { return stat.New(slices.Clone(xs)).Mean() }
	if float64(cut) > startShare*float64(len(values)) {
		return false
	}
	start, rest := mean(values[:cut]), mean(values[cut:])
	unlike := func(v float64) bool { return v > warmUpTimes*rest }
	asUnlike := func(v float64) bool { return v >= start }
	if start < rest {
		unlike = func(v float64) bool { return v*warmUpTimes < rest }
		asUnlike = func(v float64) bool { return v <= start }
	}
	if !unlike(start) || !unlike(mean(values[:min(minStart, cut)])) {
		return false
	}
	for later := range slices.Chunk(values[cut:], cut) {
		if len(later) == cut && asUnlike(mean(later)) {
			return false
		}
	}
	return true
}
