package step

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

// nextWaiting is the request to admit next, or nil. Preempted ones come
// before those that never ran.
func (e *Engine) nextWaiting() *seq {
	for n := len(e.preempted); n > 0; n = len(e.preempted) {
		if s := e.preempted[n-1]; !s.gone() {
			return s
		}
		e.preempted = e.preempted[:n-1]
	}
	return e.waiting.peek()
}

// lookUp is what an admission of s would find in the prefix cache.
func (e *Engine) lookUp(s *seq) prefixMatch {
	blocks, idle := e.kv.match(s.Blocks, s.prefill)
	tokens := blocks * e.p.KV.BlockTokens
	if len(s.Blocks) == 0 {
		tokens = min(s.Cached, s.prefill-1)
	}
	return prefixMatch{blocks: blocks, idle: idle, tokens: tokens}
}

// A prefixMatch is the part of a prompt that is in the prefix cache.
type prefixMatch struct{ blocks, idle, tokens int }

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
	if n := len(e.preempted); n > 0 {
		e.preempted = e.preempted[:n-1]
	} else {
		e.waiting.pop()
	}
	s.inBatch = true
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
	e.running = append(e.running, s)
	e.stats.Waiting--
	e.stats.Running++
	return true
}

// makeRoom gives s, a running sequence, room for that many tokens. Where there
// is none it preempts the sequence that was admitted last, again and again;
// when that is s itself the answer is no.
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
func (e *Engine) preempt(s *seq) {
	e.kv.release(&s.blocks)
	s.inBatch = false
	s.computed, s.prefill = 0, s.context()
	s.preempts++
	e.preempted = append(e.preempted, s)
	e.stats.Preemptions++
	e.stats.Running--
	e.stats.Waiting++
}

// planPrefill puts the next n tokens of a prompt into the step.
func (e *Engine) planPrefill(s *seq, n int) {
	s.work, s.decoding = n, false
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
		n := s.prefill - m.tokens
		if n > budget && len(e.planned) > 0 { // a prompt above the budget goes alone
			return
		}
		if !e.admit(s, m, room(s)) {
			return
		}
		e.planPrefill(s, n)
		budget -= n
	}
}

// planDecode puts a decode of n tokens, all but one of them drafts, into the
// step.
func (e *Engine) planDecode(s *seq, n int) {
	s.work, s.decoding = n, true
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
		if !s.prefilled() || s.generated == s.emits {
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
