package step

// prefillFirst is the policy of vLLM V0 and the default of SGLang. If a request can
// be admitted, the step is a prefill of whole prompts, and decoding waits.
var prefillFirst = policy{Name: "prefill-first", plan: planPrefillFirst}

func planPrefillFirst(e *Engine) {
	e.planPrompts(func(s *seq) int { return s.prefill })
	if len(e.planned) == 0 {
		e.planDecodes(maxCount)
	}
}
