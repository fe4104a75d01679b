package instrument

import "time"

// A Reading is what a server that is computed says of itself.
type Reading struct {
	Running, Queued int
	KVShare         float64

	// Counters, since it began.
	PrefixQueries, PrefixHits     int64 // tokens
	PromptTokens, GeneratedTokens int64
	Preemptions, Finished         int64
}

// Sample is the reading as a page would have had it.
func (r Reading) Sample(target string, at time.Duration) Sample {
	return Sample{Target: target, At: at, Values: map[Quantity]float64{
		running: float64(r.Running), queued: float64(r.Queued), kvShare: r.KVShare,
		prefixQueries: float64(r.PrefixQueries), prefixHits: float64(r.PrefixHits),
		promptTokens: float64(r.PromptTokens), generatedTokens: float64(r.GeneratedTokens),
		preemptions: float64(r.Preemptions), finished: float64(r.Finished),
	}}
}
