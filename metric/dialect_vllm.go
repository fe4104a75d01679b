package metric

// vllmDialect is vllm bench serve. Its clock starts before the connection is ready.
var vllmDialect = Dialect{
	Name: "vllm", Owner: "vllm bench serve 0.32.0",
	Metrics: []Term{
		term("ttft", atAsked, atFirst, "first token event - passed to the transport, including the time to connect"),
		perToken("tpot", "(last - first token event) / (output tokens - 1); more than one output token"),
		{Name: "itl", Doc: "gap between successive token events, one value for each gap", Unit: Millis, Of: ITL.Of},
		term("e2el", atAsked, atLast, "last token event - passed to the transport"),
	},
	Totals: servedTotals(func(t *Tally) float64 { return t.DurationS }, "duration of the benchmark"),
}
