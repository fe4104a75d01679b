package instrument

import "time"

// A Reading is the state of a simulated server.
type Reading struct {
	Running, Queued int
	KVShare         float64

	// Counters since the start of the server.
	PrefixQueries, PrefixHits     int64 // tokens
	PromptTokens, GeneratedTokens int64
	Preemptions, Finished         int64
}

// Sample converts the reading to a sample, as if read from a metrics page.
func (r Reading) Sample(target string, at time.Duration) Sample {
	return Sample{Target: target, At: at, Values: map[Quantity]float64{
		running: float64(r.Running), queued: float64(r.Queued), kvShare: r.KVShare,
		prefixQueries: float64(r.PrefixQueries), prefixHits: float64(r.PrefixHits),
		promptTokens: float64(r.PromptTokens), generatedTokens: float64(r.GeneratedTokens),
		preemptions: float64(r.Preemptions), finished: float64(r.Finished),
	}}
}
