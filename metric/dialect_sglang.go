package metric

import "github.com/tacho-bench/tacho"

// sglangDialect is SGLang's bench_serving with its own protocol. It divides a gap among the tokens of
// the later event.
var sglangDialect = Dialect{
	Name: "sglang", Owner: "sglang.bench_serving 0.5.23",
	Metrics: []Term{
		term("ttft", atAsked, atFirst, "first token event - passed to the transport"),
		perToken("tpot", "(last - first token event) / (output tokens - 1); more than one output token"),
		{Name: "itl", Doc: "gap between successive token events / tokens in the later event, one value for each of these tokens; one token if the protocol does not say", Unit: Millis, Of: func(r *tacho.Record, emit func(float64)) {
			for i := 1; r.OK() && i < len(r.Events); i++ {
				n := max(int(r.Events[i].Tokens), 1)
				for range n {
					emit(millis(r.Events[i].At-r.Events[i-1].At) / float64(n))
				}
			}
		}},
		term("e2e_latency", atAsked, atLast, "last token event - passed to the transport"),
	},
	Totals: append(servedTotals(func(t *Tally) float64 { return t.DurationS }, "duration of the benchmark"),
		Total{"concurrency", "sum of the latencies / duration of the benchmark", "", func(t *Tally) float64 { return t.LatencyS / t.DurationS }}),
}
