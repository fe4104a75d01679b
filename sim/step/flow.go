package step

import (
	"math"
	"time"
)

// A flow is the sequences that decode, one token each in every step that decodes
// at all. A step does the same to all of them, so nobody looks at each: it is an
// entry in a log, and a sequence that leaves takes its part of the log along. That
// makes a step of hundreds of sequences as cheap as a step of one, and is for
// servers whose clients may be told late (Server.TellLate): of a token they hear
// when the sequence leaves, with the time at which it came.
type flow struct {
	on      bool
	n       int // sequences in it
	context int // the sum of what they attend to in the next step
	planned int // steps of it that were planned

	times  []time.Duration // when those that are over ended
	before int             // steps that were over before the first of times
	trimAt int             // entries at which times is looked through

	leaving ends
	needs   []int // sequences that need another block, by the step in which they do, modulo the size of a block
	longest int   // context of the longest, less planned; only where the cost asks for it
	outside []*seq
	flying  []*batch // steps of it that are planned and not over
	step    bool     // the step being planned is one of it
}

// nobody is the longest context where there is none.
const nobody = math.MinInt / 2

// A place is a sequence's part in the flow.
type place struct {
	in      bool // it is in the flow
	outside bool // it is listed as one that may join
	grows   bool // it does not have all its blocks yet
	joined  int  // first step of it
	ends    int  // the step after its last, if nothing comes between
	from    int  // first step that it has not taken from the log
	to      int  // the step after its last, once it has left
	earlier []time.Duration
}

// done is how many steps are over.
func (f *flow) done() int { return f.before + len(f.times) }

// admitted notes a sequence that may join when its prompt is read.
func (f *flow) admitted(s *seq) {
	if f.on && !s.place.outside {
		s.place.outside = true
		f.outside = append(f.outside, s)
	}
}

// flowDecodes puts the decodes of the flow into the step; false: they must be
// planned one by one.
func (e *Engine) flowDecodes(budget int) (left int, ok bool) {
	f := &e.flow
	if f.n == 0 && e.kv.total-e.kv.used() < len(e.running) {
		return 0, false // blocks are short: it would not last
	}
	if !e.join() || f.n > budget || !e.kv.claim(f.needsIn(0)) {
		e.dissolve()
		return 0, false
	}
	if f.n == 0 {
		return budget, true
	}
	f.step = true
	e.load.decode += f.n
	e.load.sequences += f.n
	e.load.decodeContext += float64(f.context)
	e.load.longestContext = max(e.load.longestContext, f.longest+f.planned)
	return budget - f.n, true
}

// needsIn is how many blocks the k-th step from now on needs.
func (f *flow) needsIn(k int) int { return f.needs[wrap(1-f.planned-k, len(f.needs))] }

func wrap(i, n int) int { return ((i % n) + n) % n }

// join takes in all that have read their prompts; it says no if one cannot.
func (e *Engine) join() bool {
	f := &e.flow
	rest := f.outside[:0]
	all := true
	for _, s := range f.outside {
		switch {
		case s.gone() || !s.inBatch:
			s.place.outside = false
		case !s.prefilled() || s.generated == s.emits || !all:
			rest = append(rest, s)
		case !e.enter(s):
			all = false
			rest = append(rest, s)
		}
	}
	clear(f.outside[len(rest):])
	f.outside = rest
	return all
}

// enter makes s a part of the flow, from the next step on.
func (e *Engine) enter(s *seq) bool {
	f, p := &e.flow, &s.place
	context := s.context()
	held := s.blocks.blocks()
	p.grows = held < e.kv.blocksFor(s.Prompt+s.emits-1)
	if p.grows && held != e.kv.blocksFor(context-1) {
		return false
	}
	p.in, p.outside = true, false
	p.joined, p.from, p.ends = f.planned, f.planned, f.planned+s.emits-s.generated
	f.n++
	f.context += context
	if p.grows {
		f.needs[wrap(context-f.planned, len(f.needs))]++
	}
	if e.p.Cost.LongContextTokens > 0 {
		f.longest = max(f.longest, context-f.planned)
	}
	f.leaving.push(end{p.ends, s})
	return true
}

// leaveFlow takes s out: of all steps that were planned it was a part.
func (e *Engine) leaveFlow(s *seq) {
	f, p := &e.flow, &s.place
	p.in, p.to = false, f.planned
	context := s.context()
	if p.grows {
		f.needs[wrap(context-p.joined, len(f.needs))]--
	}
	s.generated += f.planned - p.joined
	f.n--
	f.context -= s.context()
	if p.grows && f.planned > p.joined {
		s.blocks.private += e.kv.blocksFor(s.context()-1) - s.blocks.blocks() // they were claimed step by step
	}
	e.kv.share(&s.blocks, s.Blocks, s.context()-1)
	if e.p.Cost.LongContextTokens > 0 && context-p.joined == f.longest {
		f.longest = nobody
		for _, o := range e.running {
			if o.place.in {
				f.longest = max(f.longest, o.context()-o.place.joined)
			}
		}
	}
}

// took is called when a step of the flow was planned.
func (e *Engine) took(b *batch) {
	f := &e.flow
	b.flowing, b.flows, b.number = true, f.n, f.planned
	f.planned++
	f.context += f.n
	f.flying = append(f.flying, b)
	for len(f.leaving) > 0 && f.leaving[0].at <= f.planned {
		last := f.leaving.pop()
		if s := last.s; s.place.in && s.place.ends == last.at {
			e.leaveFlow(s)
			b.last = append(b.last, s)
		}
	}
}

// over is called when a step of the flow is.
func (e *Engine) over(at time.Duration, b *batch) {
	f := &e.flow
	f.flying = append(f.flying[:0], f.flying[1:]...)
	f.times = append(f.times, at)
	e.stats.GeneratedTokens += int64(b.flows)
	if len(f.times) > f.trimAt {
		e.trim()
	}
}

// trim forgets what no sequence will ask for any more.
func (e *Engine) trim() {
	f := &e.flow
	first := f.done()
	for _, s := range e.running {
		if p := &s.place; p.in || p.from < p.to {
			first = min(first, p.from)
		}
	}
	n := copy(f.times, f.times[first-f.before:])
	f.times, f.before = f.times[:n], first
	f.trimAt = 2*n + 1024
}

// unmade is how many tokens of s the steps of the flow that are under way make.
func (e *Engine) unmade(s *seq) int {
	to := s.place.to
	if s.place.in {
		to = e.flow.planned
	}
	return max(to-max(s.place.from, e.flow.done()), 0)
}

// tell takes from the log what s has not taken yet, up to what is over.
func (e *Engine) tell(s *seq) []time.Duration {
	f, p := &e.flow, &s.place
	to := f.done()
	if !p.in {
		to = min(to, p.to)
	}
	if to <= p.from {
		return nil
	}
	out := f.times[p.from-f.before : to-f.before : to-f.before]
	p.from = to
	s.said += len(out)
	s.steps += len(out)
	s.made = out[len(out)-1]
	return out
}

// dissolve makes the flow single sequences again. Steps of it that are under way
// become steps like any other.
func (e *Engine) dissolve() {
	f := &e.flow
	if f.n == 0 {
		return
	}
	for _, s := range e.running {
		p := &s.place
		if !p.in {
			continue
		}
		e.leaveFlow(s)
		p.earlier = append(p.earlier, e.tell(s)...)
		for _, b := range f.flying {
			if b.number >= p.joined {
				b.out = append(b.out, output{s, 1})
				b.flows--
			}
		}
		p.from = p.to
		f.admitted(s)
	}
	f.leaving = f.leaving[:0]
}

// An end is when a sequence leaves the flow.
type end struct {
	at int
	s  *seq
}

// ends are a heap in order of time; those of one time are in the order of admission.
// It is not container/heap's, which has each end allocated twice.
type ends []end

func (e ends) less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].s.order < e[j].s.order
}

func (e *ends) push(x end) {
	*e = append(*e, x)
	for i := len(*e) - 1; i > 0 && e.less(i, (i-1)/2); i = (i - 1) / 2 {
		(*e)[i], (*e)[(i-1)/2] = (*e)[(i-1)/2], (*e)[i]
	}
}

func (e *ends) pop() end {
	h := *e
	first, last := h[0], len(h)-1
	h[0], h[last] = h[last], end{}
	h = h[:last]
	for i := 0; ; {
		least := i
		for k := 2*i + 1; k <= 2*i+2 && k < last; k++ {
			if h.less(k, least) {
				least = k
			}
		}
		if least == i {
			break
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
	*e = h
	return first
}
