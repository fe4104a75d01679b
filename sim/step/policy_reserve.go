package step

// reserve is the policy of TGI. A request is admitted if there is space for its
// prompt and its maximum output, so no request is ever preempted. Prefills are
// separate steps and interrupt decoding only after some steps or for enough
// requests.
var reserve = policy{Name: "reserve", plan: planReserve}

func planReserve(e *Engine) {
	least := 0
	if e.waitedSteps < e.p.Reserve.WaitSteps {
		least = int(float64(len(e.running)) * e.p.Reserve.WaitingRatio)
	}
	if e.canReserve(least) {
		e.planPrompts(func(s *seq) int { return s.Prompt + s.MaxNew })
	}
	if len(e.planned) > 0 {
		e.waitedSteps = 0
		return
	}
	e.planDecodes(maxCount)
	e.waitedSteps++
}

// canReserve reports whether at least least waiting requests could be admitted
// together. It ignores the prefix cache, so requests that would just fit may wait,
// for at most WaitSteps.
func (e *Engine) canReserve(least int) bool {
	if least <= 1 {
		return true
	}
	free := e.kv.total - e.kv.used() - e.kv.reserve
	budget, room := e.p.StepTokens, e.p.MaxSequences-len(e.running)
	fit := 0
	for _, s := range e.waiting.items[e.waiting.head:] {
		if s.gone() {
			continue
		}
		free -= e.kv.blocksFor(s.Prompt + s.MaxNew)
		if free < 0 || fit == room || (s.Prompt > budget && fit > 0) {
			return false
		}
		budget -= s.Prompt
		if fit++; fit == least {
			return true
		}
	}
	return false
}
