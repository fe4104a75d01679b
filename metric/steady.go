package metric

import (
	"cmp"
	"math"
	"slices"
	"time"

	"tacho"
	"tacho/stat"
)

// defaultSteadyThreshold is the part of the concurrency limit from which on a
// closed loop is full.
const defaultSteadyThreshold = 0.95

// A SteadyState is whether a run was in balance: when, and what it gave then.
// It stands beside the figures of the whole run and never in their place.
type SteadyState struct {
	Window *Window `json:"window"`            // nil: there is none
	WhyNot string  `json:"why_not,omitempty"` // there is none
	Little *Little `json:"little"`            // while a closed loop was full, or while requests were sent at a rate; nil where all left at once
	WarmUp *WarmUp `json:"warm_up"`           // nil: the first requests were like the others

	Settled      *Settled `json:"settled"`                 // what intervals are of; nil: there are none
	WhyUnsettled string   `json:"why_unsettled,omitempty"` // there are none
}

// Why there is no window.
const (
	AllAtOnce    = "requests left at once"
	TooShort     = "too few requests"
	NeverFull    = "the limit was never reached"
	OverSaturate = "the server fell behind all the time: its queue grew to the end"
	StillMoving  = "latencies still rose or fell at the end"
	ShortRun     = "the run was too short beside its requests"
	ShortWindow  = "the time in balance was too short to rely on"
	LittleIsOff  = "Little's law is off by more than a tenth"
)

// A Window is the time in which a run was in balance: with a limit and no rate,
// from when as many requests as Least were first in flight until they were for
// the last time; at a rate, that of Settled.
type Window struct {
	FromS     float64 `json:"start_s"`
	ToS       float64 `json:"end_s"`
	Threshold float64 `json:"threshold,omitempty"`       // of the limit
	Least     int     `json:"least_in_flight,omitempty"` // Threshold x limit
	Requests  int     `json:"requests"`                  // sent in it
	Completed int     `json:"completed"`                 // successes that ended in it
	Share     float64 `json:"share"`                     // Requests of all that were sent

	RequestsPerS     float64          `json:"requests_per_s"`
	InputTokensPerS  float64          `json:"input_tokens_per_s"` // of requests sent in it
	OutputTokensPerS float64          `json:"output_tokens_per_s"`
	Dists            `json:"metrics"` // ttft, tpot and e2el of successful requests sent in it
}

// Little is Little's law: so many requests are in flight as come in a second,
// times the seconds that each takes. Where the two sides differ, the system was
// not in balance, or requests were lost sight of.
type Little struct {
	InFlight      float64 `json:"mean_in_flight"`
	SentPerS      float64 `json:"sent_per_s"`
	LatencyMillis float64 `json:"mean_latency_ms"` // from sent to end, of those requests, failed ones too
	Off           float64 `json:"off"`             // SentPerS x latency / InFlight - 1
}

// A WarmUp is a start that was unlike the rest.
type WarmUp struct {
	Metric      string  `json:"metric"`
	Requests    int     `json:"requests"` // the first to be sent
	FirstMillis float64 `json:"first_ms"` // mean of these
	RestMillis  float64 `json:"rest_ms"`
}

const (
	steadyMin   = 30  // requests, below which nothing can be said
	shortWindow = 0.1 // of the run
	littleOff   = 0.1 // beyond which what was under way at both ends of a window counts too much
	warmUpTimes = 1.1 // that the first requests took as long as the others, or the others as they
	startShare  = 0.2 // of the run: a change after that is none of its start
	startLeast  = 5   // requests at the very start that must be unlike the rest: one alone is random variation
)

// steady is nil where no request was sent. It also says when intervals are told of.
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
		return out, balanced{why: stat.AtOnce}
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
		w, from, to = fullWindow(c, sents, a.thinned.of(), from, to)
	}
	st := a.settled(sents, from, to)
	if out.WarmUp != nil {
		st.From = max(st.From, sents[first].sent)
		out.WarmUp.Requests *= a.thinned.of()
	}
	out.WhyUnsettled = a.unsettled(s, sents, st)
	switch {
	case closed && w == nil:
		out.WhyNot, out.WhyUnsettled = NeverFull, NeverFull
	case !closed:
		w = &Window{}
		if out.WhyNot = out.WhyUnsettled; st.To > st.From {
			from, to = st.From, st.To
		}
	}
	out.Little = little(sents, a.thinned.of(), from, to)
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
	return out, balanced{Stretch: st}
}

// inOrder are the requests that were sent, in the order of their sending.
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

// unreliable is why figures of a window would mislead; empty if they do not. A window
// is as long as asked for, or a tenth of the run.
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

// fullWindow is the time in which a closed loop is full, as vllm-bench has it:
// of successful requests, up to their last token.
// Each of sents stands for so many.
func fullWindow(c *Config, sents []*marks, each int, from, to time.Duration) (*Window, time.Duration, time.Duration) {
	threshold := cmp.Or(c.SteadyThreshold, defaultSteadyThreshold)
	w := &Window{Threshold: threshold, Least: max(int(math.Ceil(threshold*float64(c.MaxConcurrency))), 1)}
	least := (w.Least + each - 1) / each
	var begins, ends []time.Duration
	for _, m := range sents {
		if m.ok {
			begins, ends = append(begins, m.sent), append(ends, m.over())
		}
	}
	slices.Sort(ends)
	up, down := tacho.Never, tacho.Never
	for i, k := 0, 0; k < len(ends); {
		if i < len(begins) && begins[i] < ends[k] { // of one moment, the end comes first
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

// over is when a request had all of its tokens.
func (m *marks) over() time.Duration {
	if m.last == tacho.Never {
		return m.end
	}
	return m.last
}

// measureWindow fills in what a window gave.
func (a *Accumulator) measureWindow(w *Window, c *Config, sents []*marks, from, to time.Duration) {
	w.FromS, w.ToS = from.Seconds(), to.Seconds()
	in := func(at time.Duration) bool { return at >= from && at < to }
	dists := []struct {
		*Metric
		digest stat.Digest
	}{{Metric: TTFT}, {Metric: TPOT}, {Metric: E2EL}}
	input := 0
	for _, m := range sents {
		if m.ok && in(m.over()) {
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
		dists[2].digest.Add(millis(m.over() - m.sent))
		if m.first != tacho.Never {
			dists[0].digest.Add(millis(m.first - m.sent))
			if m.output > 1 {
				dists[1].digest.Add(millis(m.last-m.first) / float64(m.output-1))
			}
		}
	}
	w.Share = float64(w.Requests) / float64(len(sents))
	each := a.thinned.of()
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

// little is nil where no time passed. Each of sents stands for so many.
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

// warmUp finds how many of the first requests are unlike the others: without
// them the mean of the others is surest (MSER-5, on the time to the first token,
// or to the end where there are no tokens). They are named if they are a start that
// took visibly longer, or shorter. first is how many of all requests to leave out.
func warmUp(sents []*marks) (w *WarmUp, first int) {
	w = &WarmUp{Metric: E2EL.Name}
	if slices.ContainsFunc(sents, (*marks).streamed) {
		w.Metric = TTFT.Name
	}
	var values []float64
	var at []int // of all requests
	for i, m := range sents {
		switch {
		case !m.ok:
		case w.Metric == E2EL.Name:
			values, at = append(values, millis(m.over()-m.sent)), append(at, i)
		case m.streamed():
			values, at = append(values, millis(m.first-m.sent)), append(at, i)
		}
	}
	cut := stat.WarmUp(values)
	if cut == 0 {
		return nil, 0
	}
	w.Requests, w.FirstMillis, w.RestMillis = cut, stat.New(slices.Clone(values[:cut])).Mean(), stat.New(slices.Clone(values[cut:])).Mean()
	if !isStart(values, cut) {
		return nil, at[cut]
	}
	return w, at[cut]
}

// isStart says whether the first values are a start that is unlike the rest: the
// change is early, the very first values are as unlike as the others before the
// change, and no later stretch is. A pause in the middle of a run is no start.
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
	if !unlike(start) || !unlike(mean(values[:min(startLeast, cut)])) {
		return false
	}
	for later := range slices.Chunk(values[cut:], cut) {
		if len(later) == cut && asUnlike(mean(later)) {
			return false
		}
	}
	return true
}
