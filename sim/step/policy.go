package step

import (
	"slices"
	"sort"
)

// A policy decides what goes into a step.
type policy struct {
	Name string
	plan func(e *Engine)
}

// policies are the scheduling policies a profile may name.
var policies = []policy{chunked, prefillFirst, reserve}

func policyNames() []string {
	names := make([]string, len(policies))
	for i, p := range policies {
		names[i] = p.Name
	}
	return names
}

// nextWaiting is the request to admit next, or nil. Those whose adapter has no
// room are passed over for this step.
func (e *Engine) nextWaiting() *seq {
	for {
		s := e.firstWaiting()
		if s == nil {
			return nil
		}
		if _, ok := e.adapters.place(s); ok {
			return s
		}
		e.dequeue()
		e.aside = append(e.aside, s)
	}
}

// takeBack puts those back in front that were passed over.
func (e *Engine) takeBack() {
	for _, s := range slices.Backward(e.aside) {
		if s.preempts > 0 && !e.p.Priority {
			e.preempted = append(e.preempted, s)
		} else {
			e.waiting.unpop(s)
		}
	}
	e.aside = e.aside[:0]
}

// firstWaiting is the first that waits, or nil. Preempted ones come before those
// that never ran.
func (e *Engine) firstWaiting() *seq {
	for n := len(e.preempted); n > 0; n = len(e.preempted) {
		if s := e.preempted[n-1]; !s.gone() {
			return s
		}
		e.preempted = e.preempted[:n-1]
	}
	return e.waiting.peek()
}

// dequeue takes the first that waits out of its queue.
func (e *Engine) dequeue() {
	if n := len(e.preempted); n > 0 {
		e.preempted = e.preempted[:n-1]
	} else {
		e.waiting.pop()
	}
}

// enqueue has a request wait: behind all others, or behind those of its priority.
func (e *Engine) enqueue(s *seq) {
	if !e.p.Priority {
		e.waiting.push(s)
		return
	}
	q := &e.waiting
	q.items = insertAfter(q.items, q.head, s, func(o *seq) bool { return o.Priority <= s.Priority })
}

// insertAfter puts s behind all of a sorted list, from a place on, that go before it.
func insertAfter(list []*seq, from int, s *seq, before func(*seq) bool) []*seq {
	i := from + sort.Search(len(list)-from, func(i int) bool { return !before(list[from+i]) })
	return slices.Insert(list, i, s)
}

// lookUp is what an admission of s would find computed.
func (e *Engine) lookUp(s *seq) prefixMatch {
	if s.whole {
		return prefixMatch{tokens: s.prefill, whole: true}
	}
	if s.swapped > 0 {
		return prefixMatch{tokens: s.prefill, moved: s.prefill, whole: true}
	}
	blocks, idle, away := e.kv.match(s.Blocks, s.prefill)
	tokens := (blocks + away) * e.p.KV.BlockTokens
	if len(s.Blocks) == 0 {
		tokens = min(s.Cached, s.prefill-1)
	}
	return prefixMatch{blocks: blocks, idle: idle, tokens: tokens, moved: away * e.p.KV.BlockTokens}
}

// A prefixMatch is the part of a prompt that is there already: in the prefix
// cache, or in the other memory.
type prefixMatch struct {
	blocks, idle, tokens int
	moved                int  // of tokens, those that come from the other memory
	whole                bool // nothing is missing: it goes on where it was
}

// missing is how many tokens of a prompt are to be computed; 1 where it is all
// there, and the next token is made.
func (m *prefixMatch) missing(s *seq) int {
	if m.whole {
		return 1
	}
	return s.prefill - m.tokens
}

// planFirst puts the first n tokens of a sequence into the step that lets it in.
func (e *Engine) planFirst(s *seq, m prefixMatch, n int) {
	if m.whole {
		e.planDecode(s, n)
	} else {
		e.planPrefill(s, n)
	}
}

// swapIn takes the blocks of a sequence out of the other memory.
func (e *Engine) swapIn(s *seq) { e.kv.tier.swapped, s.swapped = e.kv.tier.swapped-s.swapped, 0 }

// admit moves s, the next waiting request, into the batch with room for that
// many tokens; it says no if there is none.
func (e *Engine) admit(s *seq, m prefixMatch, tokens int) bool {
	spare := e.kv.reserve
	if len(e.running) == 0 {
		spare = 0 // nothing will be given back, so waiting would not help
	}
	if !e.kv.admit(&s.blocks, s.Blocks, m.blocks, m.idle, tokens, spare) {
		return false
	}
	e.dequeue()
	e.swapIn(s)
	e.load.moved += m.moved
	if e.adapters.bringIn(s) {
		e.load.loaded++
	}
	s.inBatch, s.whole = true, false
	s.computed = m.tokens
	if !s.wasAdmitted {
		s.wasAdmitted, s.admitted, s.cached = true, e.now, m.tokens
		if e.kv.prefixes {
			e.stats.PrefixQueryTokens += int64(s.Prompt)
			e.stats.PrefixHitTokens += int64(m.tokens)
		}
	}
	e.admitted++
	e.orders++
	s.order = e.orders
	e.flow.admitted(s)
	if e.p.Priority {
		e.running = insertAfter(e.running, 0, s, func(o *seq) bool { return o.Priority <= s.Priority })
	} else {
		e.running = append(e.running, s)
	}
	e.stats.Waiting--
	e.stats.Running++
	return true
}

// makeRoom gives s, a running sequence, room for that many tokens. Where there
// is none it preempts the sequence that was admitted last, or that has the lowest
// priority, again and again; when that is s itself the answer is no.
func (e *Engine) makeRoom(s *seq, tokens int) bool {
	for !e.kv.grow(&s.blocks, tokens) {
		last := len(e.running) - 1
		victim := e.running[last]
		e.running = e.running[:last]
		e.preempt(victim)
		if victim == s {
			return false
		}
	}
	return true
}

// preempt puts s back: its blocks go, and all it had is to be computed again.
// Where there is another memory it goes there instead.
func (e *Engine) preempt(s *seq) {
	if n := s.blocks.blocks(); s.prefilled() && e.kv.tier.swapOut(n) {
		s.swapped = n
		e.load.moved += s.context()
	}
	e.kv.release(&s.blocks)
	e.adapters.leave(s)
	e.unplan(s)
	s.inBatch = false
	s.computed, s.prefill = 0, s.context()
	s.preempts++
	if e.p.Priority { // before those of its own that came later
		e.waiting.items = insertAfter(e.waiting.items, e.waiting.head, s, func(o *seq) bool { return o.Priority < s.Priority })
	} else {
		e.preempted = append(e.preempted, s)
	}
	e.stats.Preemptions++
	e.stats.Running--
	e.stats.Waiting++
}

// unplan takes a sequence out of the step that is being planned. Only one of a
// lower priority can be in it when room is made for another.
func (e *Engine) unplan(s *seq) {
	if s.inPlan != e.plans {
		return
	}
	rest := slices.DeleteFunc(slices.Clone(e.planned), func(o *seq) bool { return o == s })
	moved, loaded := e.load.moved, e.load.loaded
	e.load, e.planned = load{moved: moved, loaded: loaded}, e.planned[:0]
	for _, o := range rest {
		if o.decoding {
			e.planDecode(o, o.work)
		} else {
			e.planPrefill(o, o.work)
		}
	}
}

// planPrefill puts the next n tokens of a prompt into the step.
func (e *Engine) planPrefill(s *seq, n int) {
	s.work, s.decoding, s.inPlan = n, false, e.plans
	e.planned = append(e.planned, s)
	e.kv.share(&s.blocks, s.Blocks, s.computed+n)
	e.load.prefill += n
	e.load.prefillPairs += float64(n) * (float64(s.computed) + float64(n)/2)
}

// planPrompts lets waiting requests in and puts their whole prompts into the
// step, up to the token budget. room is how many tokens a request needs a place
// for.
func (e *Engine) planPrompts(room func(*seq) int) {
	budget := e.p.StepTokens
	for len(e.running) < e.p.MaxSequences {
		s := e.nextWaiting()
		if s == nil {
			return
		}
		m := e.lookUp(s)
		n := m.missing(s)
		if n > budget && len(e.planned) > 0 { // a prompt above the budget goes alone
			return
		}
		if !e.admit(s, m, room(s)) {
			return
		}
		e.planFirst(s, m, n)
		budget -= n
	}
}

// planDecode puts a decode of n tokens, all but one of them drafts, into the
// step.
func (e *Engine) planDecode(s *seq, n int) {
	s.work, s.decoding, s.inPlan = n, true, e.plans
	e.planned = append(e.planned, s)
	context := s.context()
	e.kv.share(&s.blocks, s.Blocks, context)
	e.load.decode += n
	e.load.sequences++
	e.load.decodeContext += float64(context)
	e.load.longestContext = max(e.load.longestContext, context)
}

// decodeTokens is how many tokens a decode of s computes: one, and drafts as
// far as its limit allows.
func (e *Engine) decodeTokens(s *seq) int {
	return 1 + min(e.p.Speculation.DraftTokens, s.MaxNew-s.generated-1)
}

// elsewhere says whether a sequence that could decode is not to: its token before is
// still in the pipeline, or another engine goes on with it.
func (e *Engine) elsewhere(s *seq) bool {
	return s.generated > s.said && (e.p.Parallel.Pipeline > 1 || e.handOver != nil)
}

// planDecodes puts running sequences that decode into the step, in order of
// admission, for as long as there is budget, and returns what is left of it.
func (e *Engine) planDecodes(budget int) (left int) {
	if e.flow.on {
		if left, ok := e.flowDecodes(budget); ok {
			return left
		}
	}
	for i := 0; i < len(e.running) && budget > 0; i++ {
		s := e.running[i]
		if !s.prefilled() || s.generated == s.emits || e.elsewhere(s) {
			continue
		}
		n := min(e.decodeTokens(s), budget)
		if !e.makeRoom(s, s.context()+n-1) {
			break // s was the last there was
		}
		e.planDecode(s, n)
		budget -= n
	}
	return budget
}
