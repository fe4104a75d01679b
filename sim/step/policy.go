package step

import (
	"slices"
	"sort"
)

// A policy decides the contents of a step.
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

// nextWaiting returns the request to admit next, or nil. Requests whose adapter has
// no free slot are skipped for this step.
func (e *Engine) nextWaiting() *seq {
	for {
		s := e.firstWaiting()
		if s == nil {
			return nil
		}
		if _, ok := e.adapters.slotFor(s); ok {
			return s
		}
		e.dequeue()
		e.skipped = append(e.skipped, s)
	}
}

// requeueSkipped puts the skipped requests back in front.
func (e *Engine) requeueSkipped() {
	for _, s := range slices.Backward(e.skipped) {
		if s.preempts > 0 && !e.p.Priority {
			e.preempted = append(e.preempted, s)
		} else {
			e.waiting.unpop(s)
		}
	}
	e.skipped = e.skipped[:0]
}

// firstWaiting returns the first waiting request, or nil. Preempted requests come
// before requests that never ran.
func (e *Engine) firstWaiting() *seq {
	for n := len(e.preempted); n > 0; n = len(e.preempted) {
		if s := e.preempted[n-1]; !s.gone() {
			return s
		}
		e.preempted = e.preempted[:n-1]
	}
	return e.waiting.peek()
}

// dequeue removes the first waiting request from its queue.
func (e *Engine) dequeue() {
	if n := len(e.preempted); n > 0 {
		e.preempted = e.preempted[:n-1]
	} else {
		e.waiting.pop()
	}
}

// enqueue adds a request after all others, or after the requests of its priority.
func (e *Engine) enqueue(s *seq) {
	if !e.p.Priority {
		e.waiting.push(s)
		return
	}
	q := &e.waiting
	q.items = insertAfter(q.items, q.head, s, func(o *seq) bool { return o.Priority <= s.Priority })
}

// insertAfter inserts s into a sorted list, behind all elements from index from on
// for which before is true.
func insertAfter(list []*seq, from int, s *seq, before func(*seq) bool) []*seq {
	i := from + sort.Search(len(list)-from, func(i int) bool { return !before(list[from+i]) })
	return slices.Insert(list, i, s)
}

// lookUp returns the part of s already computed, as seen by an admission.
func (e *Engine) lookUp(s *seq) prefixMatch {
	if s.transferred {
		return prefixMatch{tokens: s.prefill, complete: true}
	}
	if s.swapped > 0 {
		return prefixMatch{tokens: s.prefill, moved: s.prefill, complete: true}
	}
	blocks, idle, away := e.kv.match(s.Blocks, s.prefill)
	tokens := (blocks + away) * e.p.KV.BlockTokens
	if len(s.Blocks) == 0 {
		tokens = min(s.Cached, s.prefill-1)
	}
	return prefixMatch{blocks: blocks, idle: idle, tokens: tokens, moved: away * e.p.KV.BlockTokens}
}

// A prefixMatch is the part of a prompt found in the prefix cache or in the offload
// memory.
type prefixMatch struct {
	blocks, idle, tokens int
	moved                int  // tokens from the offload memory
	complete             bool // nothing is missing: the sequence continues at its old position
}

// missing is the number of tokens to compute. It is 1 if the match is complete,
// because the step generates the next token.
func (m *prefixMatch) missing(s *seq) int {
	if m.complete {
		return 1
	}
	return s.prefill - m.tokens
}

// planFirst adds the first n tokens of a newly admitted sequence to the step.
func (e *Engine) planFirst(s *seq, m prefixMatch, n int) {
	if m.complete {
		e.planDecode(s, n)
	} else {
		e.planPrefill(s, n)
	}
}

// swapIn removes the blocks of a sequence from the offload memory.
func (e *Engine) swapIn(s *seq) { e.kv.tier.swapped, s.swapped = e.kv.tier.swapped-s.swapped, 0 }

// admit moves s, the next waiting request, into the batch with space for tokens. It
// returns false if there is no space.
func (e *Engine) admit(s *seq, m prefixMatch, tokens int) bool {
	spare := e.kv.reserve
	if len(e.running) == 0 {
		spare = 0 // no running sequence will release blocks, so waiting would not help
	}
	if !e.kv.admit(&s.blocks, s.Blocks, m.blocks, m.idle, tokens, spare) {
		return false
	}
	e.dequeue()
	e.swapIn(s)
	e.load.moved += m.moved
	if e.adapters.acquire(s) {
		e.load.loaded++
	}
	s.inBatch, s.transferred = true, false
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
	e.group.admitted(s)
	if e.p.Priority {
		e.running = insertAfter(e.running, 0, s, func(o *seq) bool { return o.Priority <= s.Priority })
	} else {
		e.running = append(e.running, s)
	}
	e.stats.Waiting--
	e.stats.Running++
	return true
}

// makeRoom gives s, a running sequence, space for tokens. If there is no space, it
// preempts the sequence that was admitted last or has the lowest priority, until
// there is. It returns false if s itself was preempted.
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

// preempt releases the blocks of s and requeues s. The blocks are recomputed later,
// or moved to the offload memory if there is one.
func (e *Engine) preempt(s *seq) {
	if n := s.blocks.blocks(); s.prefilled() && e.kv.tier.swapOut(n) {
		s.swapped = n
		e.load.moved += s.context()
	}
	e.kv.release(&s.blocks)
	e.adapters.release(s)
	e.unplan(s)
	s.inBatch = false
	s.computed, s.prefill = 0, s.context()
	s.preempts++
	if e.p.Priority { // before later requests of the same priority
		e.waiting.items = insertAfter(e.waiting.items, e.waiting.head, s, func(o *seq) bool { return o.Priority < s.Priority })
	} else {
		e.preempted = append(e.preempted, s)
	}
	e.stats.Preemptions++
	e.stats.Running--
	e.stats.Waiting++
}

// unplan removes a sequence from the step being planned. Only a sequence of lower
// priority can be in the step when another needs space.
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

// planPrefill adds the next n prompt tokens of s to the step.
func (e *Engine) planPrefill(s *seq, n int) {
	s.work, s.decoding, s.inPlan = n, false, e.plans
	e.planned = append(e.planned, s)
	e.kv.share(&s.blocks, s.Blocks, s.computed+n)
	e.load.prefill += n
	e.load.prefillPairs += float64(n) * (float64(s.computed) + float64(n)/2)
}

// planPrompts admits waiting requests and adds their whole prompts to the step, up
// to the token budget. room returns the number of tokens to reserve space for.
func (e *Engine) planPrompts(room func(*seq) int) {
	budget := e.p.StepTokens
	for len(e.running) < e.p.MaxSequences {
		s := e.nextWaiting()
		if s == nil {
			return
		}
		m := e.lookUp(s)
		n := m.missing(s)
		if n > budget && len(e.planned) > 0 { // a prompt above the budget runs alone
			return
		}
		if !e.admit(s, m, room(s)) {
			return
		}
		e.planFirst(s, m, n)
		budget -= n
	}
}

// planDecode adds a decode of n tokens, all but one of them drafts, to the step.
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

// blocked reports whether a prefilled sequence must not decode: its previous token
// is still in the pipeline, or another engine decodes it.
func (e *Engine) blocked(s *seq) bool {
	return s.generated > s.emitted && (e.p.Parallel.Pipeline > 1 || e.handOver != nil)
}

// planDecodes adds decoding sequences to the step in order of admission, up to the
// budget, and returns the remaining budget.
func (e *Engine) planDecodes(budget int) (left int) {
	if e.group.on {
		if left, ok := e.planGroup(budget); ok {
			return left
		}
	}
	for i := 0; i < len(e.running) && budget > 0; i++ {
		s := e.running[i]
		if !s.prefilled() || s.generated == s.emits || e.blocked(s) {
			continue
		}
		// A decode computes one token, and drafts up to its limit.
		n := min(1+min(e.p.Speculation.DraftTokens, s.MaxNew-s.generated-1), budget)
		if !e.makeRoom(s, s.context()+n-1) {
			break // s was the last sequence
		}
		e.planDecode(s, n)
		budget -= n
	}
	return budget
}
