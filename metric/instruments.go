package metric

// Instruments are the values from the metrics page of a server during a stage. A pointer is nil if the
// page does not report the value.
type Instruments struct {
	Target  string `json:"target"`            // server of the page
	Scrapes int    `json:"scrapes"`           // pages read
	Failed  int    `json:"failed,omitempty"`  // pages that could not be read or parsed
	Problem string `json:"problem,omitempty"` // error of the first failed page

	Running *Gauge `json:"running,omitempty"`  // requests in the batch
	Queued  *Gauge `json:"queued,omitempty"`   // requests waiting for the batch
	KVShare *Gauge `json:"kv_share,omitempty"` // share of the KV cache in use, 0..1

	PromptTokens     *float64 `json:"prompt_tokens,omitempty"` // during the stage, like all counters below
	GenerationTokens *float64 `json:"generation_tokens,omitempty"`
	Finished         *float64 `json:"finished,omitempty"` // requests that succeeded or failed
	Preemptions      *float64 `json:"preemptions,omitempty"`
	Corrupted        *float64 `json:"corrupted,omitempty"`        // requests whose logits contained NaN
	Rejected         *float64 `json:"rejected,omitempty"`         // requests refused before they were queued
	PrefixHitShare   *float64 `json:"prefix_hit_share,omitempty"` // share of prompt tokens found in the prefix cache, 0..1

	TTFTMillis  *float64 `json:"ttft_ms,omitempty"` // means, by the server's clock
	QueueMillis *float64 `json:"queue_ms,omitempty"`
	TPOTMillis  *float64 `json:"tpot_ms,omitempty"` // between tokens, or per output token, whichever the page reports
	E2ELMillis  *float64 `json:"e2el_ms,omitempty"`

	PrefillMillis   *float64 `json:"prefill_ms,omitempty"` // means per request, by the engine's clock, like QueueMillis
	DecodeMillis    *float64 `json:"decode_ms,omitempty"`
	InferenceMillis *float64 `json:"inference_ms,omitempty"` // prefill and decode together
	Timed           *float64 `json:"timed,omitempty"`        // number of requests in these means

	Speculation *Speculation `json:"speculation,omitempty"`
	Diffusion   *Diffusion   `json:"diffusion,omitempty"`

	GPUShare     *Gauge   `json:"gpu_share,omitempty"`     // busy, 0..1
	PowerWatts   *Gauge   `json:"power_w,omitempty"`       // of all GPUs together
	EnergyJoules *float64 `json:"energy_joules,omitempty"` // energy used during the stage

	// More are the figures that only a few servers report, if they are above 0. The keys are names of Figures.
	More map[string]float64 `json:"more,omitempty"`
}

// A Gauge is a value that rises and falls, over all readings during the stage. Mean and Max are nil if
// there were too few readings.
type Gauge struct {
	Mean *float64 `json:"mean"`
	Max  *float64 `json:"max"`
}

// EnergyPerToken returns the energy of all servers per output token, in joules. It is nil if energy was
// not measured or there was no token.
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
