package step

// prefillFirst is the policy of vLLM V0 and of SGLang by default: whenever a
// request can be let in, the step is a prefill of whole prompts and decoding
// waits.
var prefillFirst = Policy{Name: "prefill-first", plan: planPrefillFirst}

func planPrefillFirst(e *Engine) {
	budget := e.p.StepTokens
	for len(e.running) < e.p.MaxSequences {
		s := e.nextWaiting()
		if s == nil {
			break
		}
		m := e.lookUp(s)
		n := s.prefill - m.tokens
		if n > budget && len(e.planned) > 0 { // a prompt above the budget goes alone
			break
		}
		if !e.admit(s, m, s.prefill) {
			break
		}
		e.planPrefill(s, n)
		budget -= n
	}
	if len(e.planned) == 0 {
		e.planDecodes(maxCount)
	}
}
