package metric

import "github.com/tacho-bench/tacho"

// guidellmDialect is GuideLLM. Its time per output token includes the first token, its inter-token
// latency is one value per request, both are weighted by tokens, and its percentiles are observed
// values.
var guidellmDialect = Dialect{
	Name: "guidellm", Owner: "GuideLLM 0.8.1", Step: true,
	Metrics: []Term{
		term("time_to_first_token_ms", atAsked, atFirst, "first token event - passed to the transport"),
		{
			Name: "time_per_output_token_ms", Doc: "(last token event - passed to the transport) / output tokens, including the first; weighted by output tokens", Unit: Millis,
			Of: func(r *tacho.Record, emit func(float64)) {
				if r.OK() && r.Output > 0 {
					emit(millis(atLast(r)-atAsked(r)) / float64(r.Output))
				}
			},
			Weight: func(r *tacho.Record) float64 { return float64(r.Output) },
		},
		{
			Name: "inter_token_latency_ms", Doc: "(last - first token event) / (output tokens - 1), which other tools call TPOT; weighted by output tokens - 1", Unit: Millis, Of: TPOT.Of,
			Weight: func(r *tacho.Record) float64 { return float64(r.Output - 1) },
		},
		term("request_latency", atAsked, atEnd, "end of the response - passed to the transport"),
	},
	Totals: servedTotals(func(t *Tally) float64 { return t.EndS }, "time from the first start to the last end"),
}
