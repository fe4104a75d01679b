package step

// HeldOutErrors are the prediction errors on levels that were excluded from the
// fit: the root mean square of the logarithm of predicted over measured, by
// quantity ("ttft", "ttft p99").
type HeldOutErrors struct {
	Levels int                `yaml:"levels"` // number of levels
	All    map[string]float64 `yaml:"all"`    // over all levels
	Worst  map[string]float64 `yaml:"worst"`  // over the levels of the run with the largest error
}

// FittedTo describes the loads that a profile was fitted to. Lengths are means of a
// level.
type FittedTo struct {
	InFlight     int        `yaml:"in_flight"`     // maximum number of requests in flight
	InputTokens  [2]float64 `yaml:"input_tokens"`  // shortest and longest mean prompt
	OutputTokens [2]float64 `yaml:"output_tokens"` // shortest and longest mean answer
	Cached       bool       `yaml:"cached"`        // prompts were found in the prefix cache
	MaxSequences int        `yaml:"max_sequences"` // of the measured server, as far as the fit knows
}
