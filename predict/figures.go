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
	TTFT50
	TTFT99
	TPOT
	ITL
	E2EL
	Throughput // requests/s
	TokensPerEvent
	ServerTPOT // as the server measured it
	Head       // until the first byte of the answer
	Stall1     // a gap in which one other request got its first token
	Stall2     // two to seven others
	Stall8     // eight and more
	figures
)

// FigureNames are their names, for people.
var FigureNames = [figures]string{
	"TTFT", "TTFT p50", "TTFT p99", "TPOT", "ITL", "E2EL", "requests/s", "tokens/event", "server's TPOT", "head", "gap with one prompt", "with two to seven", "with eight and more",
}

// A gatherer is a Sink that gathers figures. The formulas are metric's.
type gatherer struct {
	n                  int
	ttft               []float64
	tpot, itl, e2el    mean
	serverTPOT, head   mean
	firsts             []time.Duration
	stalls             [][2]time.Duration
	tokens, events     int
	firstSent, lastEnd time.Duration
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
	metric.TPOT.Of(r, g.tpot.add)
	metric.E2EL.Of(r, g.e2el.add)
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

// stallFigures are how long others wait while prompts are read: by how many.
func (g *gatherer) stallFigures(f *Figures) {
	slices.Sort(g.firsts)
	var by [3]mean
	for _, gap := range g.stalls {
		from, _ := slices.BinarySearch(g.firsts, gap[0]+oneStep)
		to, _ := slices.BinarySearch(g.firsts, gap[1]+oneStep)
		length := float64(gap[1]-gap[0]) / 1e6
		switch n := to - from; {
		case n >= 8:
			by[2].add(length)
		case n >= 2:
			by[1].add(length)
		case n == 1:
			by[0].add(length)
		}
	}
	for i, m := range by {
		if m.n >= fewestStalls {
			f[Stall1+i] = m.value()
		}
	}
}

// fewestStalls is how many it takes to speak of a mean.
const fewestStalls = 8

// Close implements tacho.Sink.
func (g *gatherer) Close() error { return nil }

func (g *gatherer) figures() (f Figures) {
	if g.n == 0 {
		return f
	}
	slices.Sort(g.ttft)
	s := stat.Sample(g.ttft)
	f[TTFT], f[TTFT50], f[TTFT99] = s.Mean(), s.Quantile(0.5), s.Quantile(0.99)
	f[TPOT], f[ITL], f[E2EL] = g.tpot.value(), g.itl.value(), g.e2el.value()
	f[Throughput] = float64(g.n) / (g.lastEnd - g.firstSent).Seconds()
	f[TokensPerEvent] = float64(g.tokens) / float64(g.events)
	f[ServerTPOT], f[Head] = g.serverTPOT.value(), g.head.value()
	g.stallFigures(&f)
	return f
}

// A Seen is a level that was measured: what was sent, and what came of it.
type Seen struct {
	Name     string
	Limit    int           // of a closed loop; 0: requests went when they went
	MaxTime  time.Duration // of a closed loop that time ended
	Measured Figures

	sent     []sent  // in order
	distinct float64 // how many independent observations their times to the first token are
}

// sent is a request as the model needs to know it.
type sent struct {
	at                     time.Duration
	prompt, cached, output int
}

// See reads a measured level. Failed requests are left out.
func See(name string, l *outcome.Level, maxTime time.Duration) (*Seen, error) {
	s := &Seen{Name: name}
	var g gatherer
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
	s.serverTPOT(&l.Summary)
	if limit := cmp.Or(l.Concurrency, l.Summary.Config.MaxConcurrency); limit > 0 && len(s.sent) > limit {
		s.Limit, s.MaxTime = limit, maxTime
	}
	return s, nil
}

// together is how many times requests were sent: those that went within a
// tenth of their time to the first token went together.
func (s *Seen) together() int {
	near := time.Duration(s.Measured[TTFT50] / 10 * 1e6)
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
			s.Measured[ServerTPOT] = *page.TPOTMillis
		}
	}
}

// Predict is what the engine would have made of the same requests.
func (s *Seen) Predict(ctx context.Context, p step.Profile, seed uint64) (Figures, error) {
	server, err := step.NewServer(p, seed)
	if err != nil {
		return Figures{}, err
	}
	var g gatherer
	err = Run(ctx, Stage{
		Arrivals: s.arrivals(), Limit: s.Limit, Source: s, Server: server, MaxTime: s.MaxTime,
		Cached: func(q *tacho.Request) int { return s.request(q.Session).cached },
	}, &g)
	return g.figures(), err
}

func (s *Seen) arrivals() iter.Seq2[uint64, time.Duration] {
	return func(yield func(uint64, time.Duration) bool) {
		for i := uint64(0); s.has(i); i++ {
			at := tacho.ASAP
			if s.Limit == 0 || i < uint64(s.Limit) { // users come when they came
				at = s.sent[i].at
			}
			if !yield(i, at) {
				return
			}
		}
	}
}

// has says whether there is a request i. Where time ended the level there are
// more than were sent, for the model may be faster.
func (s *Seen) has(i uint64) bool {
	n := len(s.sent)
	if s.Limit > 0 && s.MaxTime > 0 {
		n += 1 + n/4
	}
	return i < uint64(n)
}

func (s *Seen) request(i uint64) sent { return s.sent[i%uint64(len(s.sent))] }

// Session implements tacho.Source.
func (s *Seen) Session(i uint64) (tacho.Session, error) {
	if !s.has(i) {
		return tacho.Session{}, io.EOF
	}
	q := s.request(i)
	return tacho.Session{ID: i, Turns: []tacho.Turn{{Request: tacho.Request{
		Session: i, InputTokens: q.prompt, MaxTokens: q.output, IgnoreEOS: true,
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
