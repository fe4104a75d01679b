package metric

// Instruments are what the metrics page of a server said while a stage ran.
// Pointers are nil where the page does not tell.
type Instruments struct {
	Target  string `json:"target"`            // whose page it is
	Scrapes int    `json:"scrapes"`           // pages read
	Failed  int    `json:"failed,omitempty"`  // pages that could not be had, or made no sense
	Problem string `json:"problem,omitempty"` // of the first of them

	Running *Gauge `json:"running,omitempty"`  // requests in the batch
	Queued  *Gauge `json:"queued,omitempty"`   // requests waiting for it
	KVShare *Gauge `json:"kv_share,omitempty"` // of the KV cache in use, 0..1

	PromptTokens     *float64 `json:"prompt_tokens,omitempty"` // in the course of the stage, as all that follow
	GenerationTokens *float64 `json:"generation_tokens,omitempty"`
	Finished         *float64 `json:"finished,omitempty"` // requests, well or badly
	Preemptions      *float64 `json:"preemptions,omitempty"`
	PrefixHitShare   *float64 `json:"prefix_hit_share,omitempty"` // of the prompt tokens, found in the prefix cache, 0..1

	TTFTMillis  *float64 `json:"ttft_ms,omitempty"` // means, by the server's clock
	QueueMillis *float64 `json:"queue_ms,omitempty"`
	TPOTMillis  *float64 `json:"tpot_ms,omitempty"` // between tokens, or for each output token: whichever it has
	E2ELMillis  *float64 `json:"e2el_ms,omitempty"`

	PrefillMillis   *float64 `json:"prefill_ms,omitempty"` // means for a request, by the clock of its engine, as is QueueMillis
	DecodeMillis    *float64 `json:"decode_ms,omitempty"`
	InferenceMillis *float64 `json:"inference_ms,omitempty"` // both together
	Timed           *float64 `json:"timed,omitempty"`        // requests that these are of

	Speculation *Speculation `json:"speculation,omitempty"`
	Diffusion   *Diffusion   `json:"diffusion,omitempty"`

	GPUShare     *Gauge   `json:"gpu_share,omitempty"`     // busy, 0..1
	PowerWatts   *Gauge   `json:"power_w,omitempty"`       // of all GPUs together
	EnergyJoules *float64 `json:"energy_joules,omitempty"` // that they used in the course of the stage
}

// A Gauge is a quantity that goes up and down, over the readings of a page while
// the stage ran. Both are nil where these were too few to say.
type Gauge struct {
	Mean *float64 `json:"mean"`
	Max  *float64 `json:"max"`
}

// EnergyPerToken is the energy of all instruments for each output token, in
// joules; nil where nobody measured energy, or there was no token.
func (s *Summary) EnergyPerToken() *float64 {
	sum, known := 0.0, false
	for i := range s.Instruments {
		if e := s.Instruments[i].EnergyJoules; e != nil {
			sum, known = sum+*e, true
		}
	}
	if !known || s.Tokens.Output == 0 {
		return nil
	}
	sum /= float64(s.Tokens.Output)
	return &sum
}
