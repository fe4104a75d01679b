package step

// HeldOutErrors are how far predictions were off levels that the fit had not seen: the
// root mean square of the logarithm of predicted over measured, by quantity ("ttft",
// "ttft p99").
type HeldOutErrors struct {
	Levels int                `yaml:"levels"` // how many there were
	All    map[string]float64 `yaml:"all"`    // over all of them
	Worst  map[string]float64 `yaml:"worst"`  // over those of the run that was predicted worst
}

// FittedTo are the loads that a profile was fitted to. Lengths are means of a level.
type FittedTo struct {
	InFlight     int        `yaml:"in_flight"`     // most requests in flight
	InputTokens  [2]float64 `yaml:"input_tokens"`  // the shortest and the longest prompts
	OutputTokens [2]float64 `yaml:"output_tokens"` // the shortest and the longest answers
	Cached       bool       `yaml:"cached"`        // prompts were found in the prefix cache
	MaxSequences int        `yaml:"max_sequences"` // of the server that was measured, as far as the fit knows
}
