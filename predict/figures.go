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

	"tacho"
	"tacho/metric"
	"tacho/outcome"
	"tacho/sim/step"
	"tacho/stat"
)

// Figures are what a level is compared by. Times are in milliseconds; 0 is a
// figure that nobody knows.
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
	serverTPOT // as the server measured it
	head       // until the first byte of the answer
	stall1     // a gap in which one other request got its first token
	stall2     // two to seven others
	stall8     // eight and more
	earliest   // until the first token of any of those that were sent together
	tpot99
	itl99
	e2el99
	figures
)

// FigureNames are their names, for people.
var FigureNames = [figures]string{
	"TTFT", "TTFT p50", "TTFT p99", "TPOT", "ITL", "E2EL", "requests/s", "tokens/event", "server's TPOT", "head", "gap with one prompt", "with two to seven", "with eight and more", "first of those sent together", "TPOT p99", "ITL p99", "E2EL p99",
}

// A gatherer is a Sink that gathers figures. The formulas are metric's.
type gatherer struct {
	n                  int
	ttft               []float64
	began              []began
	tpot, itl, e2el    mean
	tails              bool // p99 of TPOT, ITL and E2EL are wanted: they take time
	tpots, itls, e2els []float64
	serverTPOT, head   mean
	firsts             []time.Duration
	stalls             [][2]time.Duration
	tokens, events     int
	firstSent, lastEnd time.Duration
}

// began is when a request was sent and when its answer began.
type began struct{ sent, first time.Duration }

// earliest is how long those that are sent together wait until one of them gets a
// token, on average.
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

// addGaps keeps the gaps that are long enough for a prompt to have been read in
// them.
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

// leastStall is a gap that no step without a prompt has.
const leastStall = 10 * time.Millisecond

// oneStep is how far apart the tokens of one step may arrive.
const oneStep = 2 * time.Millisecond

// stallFigures are how long others wait while prompts are read: by how many. Gaps
// that end together are one observation.
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

// fewestStalls is how many it takes to speak of a mean.
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

// A Seen is a level that was measured: what was sent, and what came of it.
type Seen struct {
	Name     string
	Limit    int // of a closed loop; 0: requests went when they went
	Measured Figures

	sent     []sent  // in order
	distinct float64 // how many independent observations their times to the first token are
	windows  []window
	waves    []wave
	trains   []train
	intake   intake
	most     int     // answers that were written at once
	tokens   int     // that these had at most
	flying   int     // requests in flight when most were written
	why      string  // it tells nothing of the server
	report   bool    // only its summary is known
	extra    int     // events of an answer beyond its tokens
	drafted  drafted // what its events say of drafts
	kvTokens float64 // room for keys and values, by the server's metrics page; 0 unknown
}

// sent is a request as the model needs to know it.
type sent struct {
	at                     time.Duration
	prompt, cached, output int
}

// see reads a measured level. Failed requests are left out.
func see(name string, l *outcome.Level) (*Seen, error) {
	s := &Seen{Name: name}
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
	s.most, s.tokens, s.flying = w.peaks(s.sent)
	if longest, next := w.silence(times); longest > leastSilence && longest > 5*next {
		s.why = fmt.Sprintf("nothing came for %.1f s, and never else for a fifth of that", longest/1000)
	}
	s.serverTPOT(&l.Summary)
	s.kvTokens = w.kvTokens(l)
	if limit := cmp.Or(l.Concurrency, l.Summary.Config.MaxConcurrency); limit > 0 && len(s.sent) > limit {
		s.Limit = limit
	}
	return s, nil
}

// leastSilence is how long nothing may come, in ms, before that is a stall.
const leastSilence = 300

// together is how many times requests were sent: those that went within a
// tenth of their time to the first token went together.
func (s *Seen) together() int {
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

// serverTPOT takes the server's own word from its metrics page.
func (s *Seen) serverTPOT(sum *metric.Summary) {
	for _, page := range sum.Instruments {
		if page.TPOTMillis != nil {
			s.Measured[serverTPOT] = *page.TPOTMillis
		}
	}
}

// Predict is what the engine would have made of the same requests.
func (s *Seen) Predict(ctx context.Context, p step.Profile, seed uint64) (Figures, error) {
	return s.predict(ctx, p, seed, gatherer{})
}

func (s *Seen) predict(ctx context.Context, p step.Profile, seed uint64, g gatherer) (Figures, error) {
	server, err := step.NewServer(p, seed)
	if err != nil {
		return Figures{}, err
	}
	err = Run(ctx, Stage{
		Arrivals: s.arrivals(), Limit: s.Limit, Source: s, Server: server,
		Cached: func(q *tacho.Request) int { return s.sent[q.Session].cached },
	}, &g)
	f := g.figures()
	if s.extra > 0 { // TPOT is by tokens
		tokens := float64(g.tokens) / max(float64(g.n), 1)
		f[TPOT] *= (tokens - 1) / max(tokens-1-float64(s.extra), 1)
	}
	return f, err
}

func (s *Seen) arrivals() iter.Seq2[uint64, time.Duration] {
	return func(yield func(uint64, time.Duration) bool) {
		for i, q := range s.sent {
			at := tacho.ASAP
			if s.Limit == 0 || i < s.Limit { // users come when they came
				at = q.at
			}
			if !yield(uint64(i), at) {
				return
			}
		}
	}
}

// Session implements tacho.Source.
func (s *Seen) Session(i uint64) (tacho.Session, error) {
	if i >= uint64(len(s.sent)) {
		return tacho.Session{}, io.EOF
	}
	q := s.sent[i]
	return tacho.Session{ID: i, Turns: []tacho.Turn{{Request: tacho.Request{
		Session: i, InputTokens: q.prompt, MaxTokens: q.output + s.extra, IgnoreEOS: true,
	}}}}, nil
}

// Off is how far a figure is from the measured one, as a share of it.
func (f Figures) Off(measured Figures) (out Figures) {
	for i := range f {
		out[i] = math.NaN()
		if f[i] > 0 && measured[i] > 0 {
			out[i] = f[i]/measured[i] - 1
		}
	}
	return out
}
