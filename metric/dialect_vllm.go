package metric

import (
	"slices"

	"github.com/tacho-bench/tacho"
)

// vllmDialect is vllm bench serve. Its clock starts before the connection is ready, and an event without text is a
// token even before the first text.
var vllmDialect = Dialect{
	Name: "vllm", Owner: "vllm bench serve 0.32.0",
	Metrics: []Term{
		ofAllEvents(term("ttft", atAsked, atFirst, "first event, with or without text - passed to the transport, including the time to connect")),
		ofAllEvents(perToken("tpot", "(last - first event) / (output tokens - 1); more than one output token")),
		ofAllEvents(Term{Name: "itl", Doc: "gap between successive events, one value for each gap", Unit: Millis, Of: ITL.Of}),
		term("e2el", atAsked, atLast, "last token event - passed to the transport"),
	},
	Totals: servedTotals(func(t *Tally) float64 { return t.DurationS }, "duration of the benchmark"),
}

// ofAllEvents counts the events before the first token as tokens.
func ofAllEvents(t Term) Term {
	of := t.Of
	t.Of = func(r *tacho.Record, emit func(float64)) {
		if len(r.Opening) > 0 {
			all := *r
			all.Events = slices.Concat(r.Opening, r.Events)
			r = &all
		}
		of(r, emit)
	}
	return t
}
