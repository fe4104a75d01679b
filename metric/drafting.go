package metric

// Speculation holds the server's counters of speculative decoding during a stage.
type Speculation struct {
	Drafts      float64   `json:"drafts"`
	DraftTokens float64   `json:"draft_tokens"`
	Accepted    float64   `json:"accepted"`              // part of DraftTokens
	AcceptedAt  []float64 `json:"accepted_at,omitempty"` // accepted drafts, by position in the draft
}

// AcceptedShare returns the share of accepted draft tokens.
func (s *Speculation) AcceptedShare() float64 { return s.Accepted / s.DraftTokens }

// Length returns the mean number of tokens per engine step: one token plus the accepted draft tokens.
func (s *Speculation) Length() float64 {
	if s.Drafts == 0 {
		return 0
	}
	return 1 + s.Accepted/s.Drafts
}

// ShareAt returns the share of accepted drafts at each position.
func (s *Speculation) ShareAt() []float64 {
	if s.Drafts == 0 {
		return nil
	}
	var shares []float64
	for _, n := range s.AcceptedAt {
		shares = append(shares, n/s.Drafts)
	}
	return shares
}

// Diffusion holds the server's counters for a diffusion model, which writes blocks of tokens (canvases)
// in several steps, during a stage.
type Diffusion struct {
	Steps     float64 `json:"steps"`     // denoising steps, and one commit step for each canvas
	Positions float64 `json:"positions"` // evaluated in Steps
	Committed float64 `json:"committed"` // tokens
}

func (d *Diffusion) canvases() float64 { return d.Committed / (d.Positions / d.Steps) }

// DenoisingSteps returns the steps that commit nothing.
func (d *Diffusion) DenoisingSteps() float64 { return d.Steps - d.canvases() }

// StepsPerCanvas returns the mean number of denoising steps per canvas.
func (d *Diffusion) StepsPerCanvas() float64 { return d.DenoisingSteps() / d.canvases() }

// CommittedPerStep returns the mean number of tokens per denoising step.
func (d *Diffusion) CommittedPerStep() float64 {
	if d.DenoisingSteps() == 0 {
		return 0
	}
	return d.Committed / d.DenoisingSteps()
}

// Speculation returns the sum over all servers, or nil if no server used speculative decoding.
func (s *Summary) Speculation() *Speculation {
	var all Speculation
	for i := range s.Instruments {
		one := s.Instruments[i].Speculation
		if one == nil {
			continue
		}
		all.Drafts, all.DraftTokens, all.Accepted = all.Drafts+one.Drafts, all.DraftTokens+one.DraftTokens, all.Accepted+one.Accepted
		for k, n := range one.AcceptedAt {
			if k == len(all.AcceptedAt) {
				all.AcceptedAt = append(all.AcceptedAt, 0)
			}
			all.AcceptedAt[k] += n
		}
	}
	if all.DraftTokens <= 0 {
		return nil
	}
	return &all
}

// Diffusion returns the sum over all servers, or nil if no server ran a diffusion model.
func (s *Summary) Diffusion() *Diffusion {
	var all Diffusion
	for i := range s.Instruments {
		if one := s.Instruments[i].Diffusion; one != nil {
			all.Steps, all.Positions, all.Committed = all.Steps+one.Steps, all.Positions+one.Positions, all.Committed+one.Committed
		}
	}
	if all.Steps <= 0 || all.Committed <= 0 || all.Positions <= 0 {
		return nil
	}
	return &all
}
