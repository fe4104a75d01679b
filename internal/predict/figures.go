package predict

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/sim/step"
	"github.com/tacho-bench/tacho/stat"
)

// Figures are the metrics of a level that are compared. Times are in milliseconds;
// 0 means unknown.
type Figures [figures]float64

// The figures.
const (
	TTFT = iota
	ttft50
	TTFT99
	TPOT
	ITL
	E2EL
	Throughput // requests/s
	tokensPerEvent
	serverTPOT // measured by the server
	head       // until the first byte of the answer
	stall1     // a gap in which one other request got its first token
	stall2     // two to seven other requests
	stall8     // eight or more
	earliest   // until the first token among requests sent together
	tpot99
	itl99
	e2el99
	figures
)

// FigureNames are the labels of the figures.
var FigureNames = [figures]string{
	"TTFT", "TTFT p50", "TTFT p99", "TPOT", "ITL", "E2EL", "requests/s", "tokens/event", "server's TPOT", "head", "gap with one prompt", "with two to seven", "with eight and more", "first of those sent together", "TPOT p99", "ITL p99", "E2EL p99",
}

// A gatherer is a Sink that computes figures, with the formulas of package metric.
type gatherer struct {
	n                  int
	ttft               []float64
	began              []began
	tpot, itl, e2el    mean
	tails              bool // compute p99 of TPOT, ITL and E2EL, which takes time
	tpots, itls, e2els []float64
	serverTPOT, head   mean
	firsts             []time.Duration
	stalls             [][2]time.Duration
	tokens, events     int
	firstSent, lastEnd time.Duration
}

// began is when a request was sent and when its answer began.
type began struct{ sent, first time.Duration }

// earliest is the mean time until the first token among requests sent together.
func (g *gatherer) earliest() float64 {
	slices.SortFunc(g.began, func(a, b began) int { return cmp.Compare(a.sent, b.sent) })
	near := time.Duration(stat.Sample(g.ttft).Quantile(0.5) / 10 * 1e6)
	var m mean
	for i := 0; i < len(g.began); {
		from, soonest, last := g.began[i].sent, g.began[i].first, g.began[i].sent
		for ; i < len(g.began) && g.began[i].sent <= last+near; i++ {
			last = g.began[i].sent
			soonest = min(soonest, g.began[i].first)
		}
		m.add(inMs(soonest - from))
	}
	return m.value()
}

type mean struct {
	sum float64
	n   int
}

func (m *mean) add(x float64) { m.sum += x; m.n++ }

func (m *mean) value() float64 { return m.sum / max(float64(m.n), 1) }

// Add implements tacho.Sink.
func (g *gatherer) Add(r *tacho.Record) error {
	if !r.OK() || len(r.Events) == 0 {
		return nil
	}
	if g.n == 0 || r.Sent < g.firstSent {
		g.firstSent = r.Sent
	}
	g.lastEnd = max(g.lastEnd, r.Last())
	g.n++
	metric.TTFT.Of(r, func(x float64) { g.ttft = append(g.ttft, x) })
	g.began = append(g.began, began{r.Sent, r.First()})
	metric.TPOT.Of(r, g.tpot.add)
	metric.E2EL.Of(r, g.e2el.add)
	if g.tails {
		metric.TPOT.Of(r, func(x float64) { g.tpots = append(g.tpots, x) })
		metric.ITL.Of(r, func(x float64) { g.itls = append(g.itls, x) })
		metric.E2EL.Of(r, func(x float64) { g.e2els = append(g.e2els, x) })
	}
	g.addGaps(r)
	g.tokens += r.Output
	g.events += len(r.Events)
	if r.Head >= 0 {
		g.head.add(float64(r.Head-r.Sent) / 1e6)
	}
	if r.Server != nil && r.Output > 1 && r.Server.Decode > 0 {
		g.serverTPOT.sum += float64(r.Server.Decode) / 1e6
		g.serverTPOT.n += r.Output - 1
	}
	return nil
}

// addGaps keeps a gap if it is long enough to contain a prefill.
func (g *gatherer) addGaps(r *tacho.Record) {
	g.firsts = append(g.firsts, r.First())
	for i := 1; i < len(r.Events); i++ {
		gap := [2]time.Duration{r.Events[i-1].At, r.Events[i].At}
		g.itl.add(float64(gap[1]-gap[0]) / 1e6)
		if gap[1]-gap[0] > leastStall {
			g.stalls = append(g.stalls, gap)
		}
	}
}

// leastStall is longer than any step without a prompt.
const leastStall = 10 * time.Millisecond

// oneStep is the maximum distance between the arrivals of tokens of one step.
const oneStep = 2 * time.Millisecond

// stallFigures are the mean waits of other requests during prefills, by the number
// of prompts. Gaps that end together are one observation.
func (g *gatherer) stallFigures(f *Figures) {
	slices.Sort(g.firsts)
	slices.SortFunc(g.stalls, func(a, b [2]time.Duration) int { return cmp.Compare(a[1], b[1]) })
	var by [3]mean
	var distinct [3]int
	var last [3]time.Duration
	for _, gap := range g.stalls {
		from, _ := slices.BinarySearch(g.firsts, gap[0]+oneStep)
		to, _ := slices.BinarySearch(g.firsts, gap[1]+oneStep)
		kind := 0
		switch n := to - from; {
		case n == 0:
			continue
		case n >= 8:
			kind = 2
		case n >= 2:
			kind = 1
		}
		by[kind].add(inMs(gap[1] - gap[0]))
		if distinct[kind] == 0 || gap[1] > last[kind]+oneStep {
			distinct[kind]++
		}
		last[kind] = gap[1]
	}
	for i, m := range by {
		if distinct[i] >= fewestStalls {
			f[stall1+i] = m.value()
		}
	}
}

// fewestStalls is the minimum number of observations for a mean.
const fewestStalls = 30

// Close implements tacho.Sink.
func (g *gatherer) Close() error { return nil }

func (g *gatherer) figures() (f Figures) {
	if g.n == 0 {
		return f
	}
	slices.Sort(g.ttft)
	s := stat.Sample(g.ttft)
	f[TTFT], f[ttft50], f[TTFT99] = s.Mean(), s.Quantile(0.5), s.Quantile(0.99)
	f[TPOT], f[ITL], f[E2EL] = g.tpot.value(), g.itl.value(), g.e2el.value()
	f[Throughput] = float64(g.n) / (g.lastEnd - g.firstSent).Seconds()
	f[tokensPerEvent] = float64(g.tokens) / float64(g.events)
	f[serverTPOT], f[head] = g.serverTPOT.value(), g.head.value()
	f[earliest] = g.earliest()
	g.stallFigures(&f)
	for at, values := range map[int][]float64{tpot99: g.tpots, itl99: g.itls, e2el99: g.e2els} {
		if len(values) > 0 {
			slices.Sort(values)
			f[at] = stat.Sample(values).Quantile(0.99)
		}
	}
	return f
}

// A MeasuredLevel is a level of a run: its requests and its measurements.
type MeasuredLevel struct {
	Name     string
	Limit    int // concurrency of a closed loop; open loop if 0
	Measured Figures

	sent     []sent  // in order
	distinct float64 // effective number of independent TTFT observations
	windows  []window
	waves    []wave
	trains   []train
	intake   intake
	most     int     // maximum number of answers decoded together
	tokens   int     // maximum number of their tokens
	inFlight int     // requests in flight at the maximum
	excluded string  // reason to exclude the level
	report   bool    // only the summary is known
	extra    int     // events of an answer in addition to its tokens
	drafted  drafted // evidence of speculative decoding
	kvTokens float64 // size of the KV cache in tokens, from the server's metrics page; unknown if 0
}

// sent is a request as the model needs it.
type sent struct {
	at                     time.Duration
	prompt, cached, output int
}

// readLevel reads a measured level. Failed requests are skipped.
func readLevel(name string, l *outcome.Level) (*MeasuredLevel, error) {
	s := &MeasuredLevel{Name: name}
	g := gatherer{tails: true}
	var w watcher
	var times []time.Duration
	for r, err := range l.Records() {
		if err != nil {
			return nil, err
		}
		if !r.OK() || r.Sent == tacho.Never || len(r.Events) == 0 {
			continue
		}
		if err := g.Add(r); err != nil {
			return nil, err
		}
		w.add(r)
		s.drafted.add(r)
		for i := range r.Events {
			times = append(times, r.Events[i].At)
		}
		q := sent{at: r.Sent, prompt: r.Input, output: max(r.Output, 1)}
		if r.Usage != nil {
			q.cached = r.Usage.Cached
			if r.Usage.Prompt > 0 {
				q.prompt = r.Usage.Prompt
			}
		}
		s.sent = append(s.sent, q)
	}
	if len(s.sent) == 0 {
		return nil, fmt.Errorf("%s: no request succeeded", name)
	}
	slices.SortFunc(s.sent, func(a, b sent) int { return int(a.at - b.at) })
	s.Measured = g.figures()
	s.distinct = float64(s.together())
	s.windows = w.finish()
	s.waves = w.waves()
	s.trains = w.trains()
	s.intake = w.intake()
	s.most, s.tokens, s.inFlight = w.peaks(s.sent)
	if longest, next := w.silence(times); longest > leastSilence && longest > 5*next {
		s.excluded = fmt.Sprintf("a stall of %.1f s, more than five times longer than any other", longest/1000)
	}
	s.serverTPOT(&l.Summary)
	s.kvTokens = w.kvTokens(l)
	if limit := cmp.Or(l.Concurrency, l.Summary.Config.MaxConcurrency); limit > 0 && len(s.sent) > limit {
		s.Limit = limit
	}
	return s, nil
}

// leastSilence is the minimum length of a stall in ms.
const leastSilence = 300

// together is the number of bursts: requests sent within a tenth of the median TTFT
// belong together.
func (s *MeasuredLevel) together() int {
	near := time.Duration(s.Measured[ttft50] / 10 * 1e6)
	n, last := 1, s.sent[0].at
	for _, q := range s.sent {
		if q.at > last+near {
			n++
		}
		last = q.at
	}
	return n
}

// serverTPOT reads the server's TPOT from its metrics page.
func (s *MeasuredLevel) serverTPOT(sum *metric.Summary) {
	for _, page := range sum.Instruments {
		if page.TPOTMillis != nil {
			s.Measured[serverTPOT] = *page.TPOTMillis
		}
	}
}

// Predict simulates the same requests on an engine.
func (s *MeasuredLevel) Predict(ctx context.Context, p step.Profile, seed uint64) (Figures, error) {
	return s.predict(ctx, p, seed, gatherer{})
}

func (s *MeasuredLevel) predict(ctx context.Context, p step.Profile, seed uint64, g gatherer) (Figures, error) {
	server, err := step.NewServer(p, seed)
	if err != nil {
		return Figures{}, err
	}
	err = Run(ctx, Stage{
		Arrivals: s.arrivals(), Limit: s.Limit, Source: s, Server: server,
		Cached: func(q *tacho.Request) int { return s.sent[q.Session].cached },
	}, &g)
	f := g.figures()
	if s.extra > 0 { // TPOT is per token, not per event
		tokens := float64(g.tokens) / max(float64(g.n), 1)
		f[TPOT] *= (tokens - 1) / max(tokens-1-float64(s.extra), 1)
	}
	return f, err
}

func (s *MeasuredLevel) arrivals() iter.Seq2[uint64, time.Duration] {
	return func(yield func(uint64, time.Duration) bool) {
		for i, q := range s.sent {
			at := tacho.ASAP
			if s.Limit == 0 || i < s.Limit { // users start at their measured times
				at = q.at
			}
			if !yield(uint64(i), at) {
				return
			}
		}
	}
}

// Session implements tacho.Source.
func (s *MeasuredLevel) Session(i uint64) (tacho.Session, error) {
	if i >= uint64(len(s.sent)) {
		return tacho.Session{}, io.EOF
	}
	q := s.sent[i]
	return tacho.Session{ID: i, Turns: []tacho.Turn{{Request: tacho.Request{
		Session: i, InputTokens: q.prompt, MaxTokens: q.output + s.extra, IgnoreEOS: true,
	}}}}, nil
}

// RelativeError is the relative error of each figure.
func (f Figures) RelativeError(measured Figures) (out Figures) {
	for i := range f {
		out[i] = math.NaN()
		if f[i] > 0 && measured[i] > 0 {
			out[i] = f[i]/measured[i] - 1
		}
	}
	return out
}
