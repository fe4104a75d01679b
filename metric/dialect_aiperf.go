package metric

import "github.com/tacho-bench/tacho"

// aiperfDialect is AIPerf. Its inter-token latency is one value per request.
var aiperfDialect = Dialect{
	Name: "aiperf", Owner: "AIPerf 0.13.0",
	Metrics: []Term{
		term("time_to_first_token", atAsked, atFirst, "first token event - passed to the transport"),
		{Name: "time_to_second_token", Doc: "second token event - first", Unit: Millis, Of: func(r *tacho.Record, emit func(float64)) {
			if r.OK() && len(r.Events) > 1 {
				emit(millis(r.Events[1].At - r.Events[0].At))
			}
		}},
		term("request_latency", atAsked, atLast, "last token event - passed to the transport"),
		perToken("inter_token_latency", "(request_latency - time_to_first_token) / (output tokens - 1), which other tools call TPOT"),
		{Name: "inter_chunk_latency", Doc: "gap between successive token events, one value for each gap, which other tools call ITL", Unit: Millis, Of: ITL.Of},
		{Name: "output_token_throughput_per_user", Doc: "1 / inter_token_latency", Unit: TokensPerSec, Of: func(r *tacho.Record, emit func(float64)) {
			TPOT.Of(r, func(v float64) {
				if v > 0 {
					emit(1e3 / v)
				}
			})
		}},
	},
	Totals: servedTotals(func(t *Tally) float64 { return t.SpanS }, "time from the first start to the last token"),
}
