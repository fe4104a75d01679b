package metric

import "tacho"

// guidellmDialect is GuideLLM: its time per output token counts the first one,
// its inter-token latency is one value for a request, both weigh by tokens, and
// its percentiles are values that were observed.
var guidellmDialect = Dialect{
	Name: "guidellm", Owner: "GuideLLM 0.8.1", Step: true,
	Metrics: []Term{
		term("time_to_first_token_ms", atAsked, atFirst, "first token event - handed to the transport"),
		{
			Name: "time_per_output_token_ms", Doc: "(last token event - handed to the transport) / output tokens, the first counted; weighed by output tokens", Unit: Millis,
			Of: func(r *tacho.Record, emit func(float64)) {
				if r.OK() && r.Output > 0 {
					emit(millis(atLast(r)-atAsked(r)) / float64(r.Output))
				}
			},
			Weight: func(r *tacho.Record) float64 { return float64(r.Output) },
		},
		{
			Name: "inter_token_latency_ms", Doc: "(last - first token event) / (output tokens - 1): what others call TPOT; weighed by output tokens - 1", Unit: Millis, Of: TPOT.Of,
			Weight: func(r *tacho.Record) float64 { return float64(r.Output - 1) },
		},
		term("request_latency", atAsked, atEnd, "end of the response - handed to the transport"),
	},
	Totals: servedTotals(func(t *Tally) float64 { return t.EndS }, "time from the first start to the last end"),
}
