package step

import (
	"math"
	"time"
)

// A decodeGroup is the set of sequences that decode one token each in every decode
// step. A step treats all of them alike, so the group logs the end of each step
// instead of updating each sequence; a sequence that leaves takes its part of the
// log. A step of hundreds of sequences is then as cheap as a step of one. The price
// is late delivery (Server.DeferDelivery): clients learn of a token, with its time,
// when its sequence leaves.
type decodeGroup struct {
	on      bool
	n       int // sequences in the group
	context int // sum of the contexts in the next step
	planned int // planned steps

	times  []time.Duration // end times of the finished steps
	before int             // finished steps before the first of times
	trimAt int             // length at which times is trimmed

	leaving    ends
	needs      []int // sequences that need another block, indexed by step modulo the block size
	longest    int   // longest context minus planned; maintained only if the cost depends on it
	candidates []*seq
	inFlight   []*batch // steps that are planned and not finished
	step       bool     // the step being planned includes the group
}

// noContext is the longest context of an empty group.
const noContext = math.MinInt / 2

// A membership is a sequence's part in the decode group.
type membership struct {
	in        bool // the sequence is in the group
	candidate bool // the sequence is listed in candidates
	grows     bool // the sequence does not have all its blocks yet
	joined    int  // first step
	ends      int  // the step after the last, unless the sequence leaves early
	from      int  // first step whose time is not taken from the log yet
	to        int  // the step after the last, after the sequence has left
	earlier   []time.Duration
}

// done is the number of finished steps.
func (f *decodeGroup) done() int { return f.before + len(f.times) }

// admitted lists a sequence as a candidate: it may join after its prefill.
func (f *decodeGroup) admitted(s *seq) {
	if f.on && !s.member.candidate {
		s.member.candidate = true
		f.candidates = append(f.candidates, s)
	}
}

// planGroup adds the group's decodes to the step. It returns false if the decodes
// must be planned one by one.
func (e *Engine) planGroup(budget int) (left int, ok bool) {
	f := &e.group
	if f.n == 0 && e.kv.total-e.kv.used() < len(e.running) {
		return 0, false // blocks are short: the group would soon be dissolved
	}
	if !e.join() || f.n > budget || !e.kv.claim(f.needsNext()) {
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

// needsNext is the number of blocks needed by the next step.
func (f *decodeGroup) needsNext() int { return f.needs[wrap(1-f.planned, len(f.needs))] }

func wrap(i, n int) int { return ((i % n) + n) % n }

// join adds all prefilled candidates. It returns false if a candidate cannot join.
func (e *Engine) join() bool {
	f := &e.group
	rest := f.candidates[:0]
	all := true
	for _, s := range f.candidates {
		switch {
		case s.gone() || !s.inBatch:
			s.member.candidate = false
		case !s.prefilled() || s.generated == s.emits || !all:
			rest = append(rest, s)
		case !e.enter(s):
			all = false
			rest = append(rest, s)
		}
	}
	clear(f.candidates[len(rest):])
	f.candidates = rest
	return all
}

// enter adds s to the group from the next step on.
func (e *Engine) enter(s *seq) bool {
	f, p := &e.group, &s.member
	context := s.context()
	held := s.blocks.blocks()
	p.grows = held < e.kv.blocksFor(s.Prompt+s.emits-1)
	if p.grows && held != e.kv.blocksFor(context-1) {
		return false
	}
	p.in, p.candidate = true, false
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

// leaveGroup removes s, which was part of all planned steps.
func (e *Engine) leaveGroup(s *seq) {
	f, p := &e.group, &s.member
	p.in, p.to = false, f.planned
	context := s.context()
	if p.grows {
		f.needs[wrap(context-p.joined, len(f.needs))]--
	}
	s.generated += f.planned - p.joined
	f.n--
	f.context -= s.context()
	if p.grows && f.planned > p.joined {
		s.blocks.private += e.kv.blocksFor(s.context()-1) - s.blocks.blocks() // claimed step by step
	}
	e.kv.share(&s.blocks, s.Blocks, s.context()-1)
	if e.p.Cost.LongContextTokens > 0 && context-p.joined == f.longest {
		f.longest = noContext
		for _, o := range e.running {
			if o.member.in {
				f.longest = max(f.longest, o.context()-o.member.joined)
			}
		}
	}
}

// groupPlanned is called after a step of the group was planned.
func (e *Engine) groupPlanned(b *batch) {
	f := &e.group
	b.hasGroup, b.groupSize, b.number = true, f.n, f.planned
	f.planned++
	f.context += f.n
	f.inFlight = append(f.inFlight, b)
	for len(f.leaving) > 0 && f.leaving[0].at <= f.planned {
		last := f.leaving.pop()
		if s := last.s; s.member.in && s.member.ends == last.at {
			e.leaveGroup(s)
			b.last = append(b.last, s)
		}
	}
}

// groupStepDone is called when a step of the group ends.
func (e *Engine) groupStepDone(at time.Duration, b *batch) {
	f := &e.group
	f.inFlight = append(f.inFlight[:0], f.inFlight[1:]...)
	f.times = append(f.times, at)
	e.stats.GeneratedTokens += int64(b.groupSize)
	if len(f.times) > f.trimAt {
		e.trim()
	}
}

// trim deletes log entries if no sequence needs them any more.
func (e *Engine) trim() {
	f := &e.group
	first := f.done()
	for _, s := range e.running {
		if p := &s.member; p.in || p.from < p.to {
			first = min(first, p.from)
		}
	}
	n := copy(f.times, f.times[first-f.before:])
	f.times, f.before = f.times[:n], first
	f.trimAt = 2*n + 1024
}

// unmade is the number of tokens of s in steps of the group that are still in
// flight.
func (e *Engine) unmade(s *seq) int {
	to := s.member.to
	if s.member.in {
		to = e.group.planned
	}
	return max(to-max(s.member.from, e.group.done()), 0)
}

// takeTimes returns the times of finished steps since the last call for s.
func (e *Engine) takeTimes(s *seq) []time.Duration {
	f, p := &e.group, &s.member
	to := f.done()
	if !p.in {
		to = min(to, p.to)
	}
	if to <= p.from {
		return nil
	}
	out := f.times[p.from-f.before : to-f.before : to-f.before]
	p.from = to
	s.emitted += len(out)
	s.steps += len(out)
	s.made = out[len(out)-1]
	return out
}

// dissolve turns the group into single sequences. Its steps in flight become
// ordinary steps.
func (e *Engine) dissolve() {
	f := &e.group
	if f.n == 0 {
		return
	}
	for _, s := range e.running {
		p := &s.member
		if !p.in {
			continue
		}
		e.leaveGroup(s)
		p.earlier = append(p.earlier, e.takeTimes(s)...)
		for _, b := range f.inFlight {
			if b.number >= p.joined {
				b.out = append(b.out, output{s, 1})
				b.groupSize--
			}
		}
		p.from = p.to
		f.admitted(s)
	}
	f.leaving = f.leaving[:0]
}

// An end is the step at which a sequence leaves the group.
type end struct {
	at int
	s  *seq
}

// ends is a heap ordered by step, then by admission. container/heap would allocate
// each end twice.
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
