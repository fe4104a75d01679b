package step

// chunked is the policy of vLLM V1, SGLang's mixed mode and Sarathi: one
// budget of tokens for each step, decodes first, then as much of the prompts
// as fits, cut where the budget ends.
var chunked = policy{Name: "chunked", plan: planChunked}

func planChunked(e *Engine) {
	preemptions := e.stats.Preemptions
	budget := e.planDecodes(e.p.StepTokens)
	// A prompt is cut only where the budget ends, so at most one is unfinished
	// and it is the last of the batch: making room for it preempts nothing
	// that is already in the step, except for itself. With priorities it may be
	// any of them.
	first := len(e.running) - 1
	if e.p.Priority {
		first = 0
	}
	for i := max(first, 0); i < len(e.running) && budget > 0; i++ {
		s := e.running[i]
		if s.prefilled() {
			continue
		}
		n := min(budget, s.prefill-s.computed)
		if e.makeRoom(s, s.computed+n) {
			e.planPrefill(s, n)
			budget -= n
		}
	}
	if e.stats.Preemptions > preemptions {
		return // what was put back would only be let in to be put back again
	}
	for budget > 0 && len(e.running) < e.p.MaxSequences {
		s := e.nextWaiting()
		if s == nil {
			return
		}
		m := e.lookUp(s)
		n := min(budget, m.missing(s))
		if !e.admit(s, m, min(m.tokens+n, s.prefill)) {
			return
		}
		e.planFirst(s, m, n)
		budget -= n
	}
}
