package step

// chunked is the policy of vLLM V1, SGLang's mixed mode and Sarathi. Each step has
// a token budget; decodes come first, then prompts, of which the last is cut at the
// end of the budget.
var chunked = policy{Name: "chunked", plan: planChunked}

func planChunked(e *Engine) {
	preemptions := e.stats.Preemptions
	budget := e.planDecodes(e.p.StepTokens)
	// Only the end of the budget cuts a prompt, so at most one prompt is
	// unfinished, and it is the last of the batch. Making room for it preempts no
	// sequence of this step except itself. With priorities any sequence may be
	// unfinished.
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
		return // a sequence preempted now would be admitted only to be preempted again
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
