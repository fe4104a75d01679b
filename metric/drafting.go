package metric

// Speculation is what became of drafts, by the server's counters, in the course
// of a stage.
type Speculation struct {
	Drafts      float64   `json:"drafts"`
	DraftTokens float64   `json:"draft_tokens"`
	Accepted    float64   `json:"accepted"`              // of DraftTokens
	AcceptedAt  []float64 `json:"accepted_at,omitempty"` // of Drafts, by position in the draft
}

// AcceptedShare is the part of the drafted tokens that was accepted.
func (s *Speculation) AcceptedShare() float64 { return s.Accepted / s.DraftTokens }

// Length is how many tokens a step of the engine brings: one of its own, and
// those of the draft.
func (s *Speculation) Length() float64 {
	if s.Drafts == 0 {
		return 0
	}
	return 1 + s.Accepted/s.Drafts
}

// ShareAt is the part of the drafts that was accepted at each position.
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

// Diffusion is the work of a model that writes whole blocks of tokens (canvases)
// in several steps, by the server's counters, in the course of a stage.
type Diffusion struct {
	Steps     float64 `json:"steps"`     // of denoising, and one for each canvas that commits it
	Positions float64 `json:"positions"` // evaluated in them
	Committed float64 `json:"committed"` // tokens
}

func (d *Diffusion) canvases() float64 { return d.Committed / (d.Positions / d.Steps) }

// DenoisingSteps are those that commit nothing.
func (d *Diffusion) DenoisingSteps() float64 { return d.Steps - d.canvases() }

// StepsPerCanvas is how many of them a canvas took.
func (d *Diffusion) StepsPerCanvas() float64 { return d.DenoisingSteps() / d.canvases() }

// CommittedPerStep is how many tokens one of them brought.
func (d *Diffusion) CommittedPerStep() float64 {
	if d.DenoisingSteps() == 0 {
		return 0
	}
	return d.Committed / d.DenoisingSteps()
}

// Speculation is that of all servers; nil where none drafted.
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

// Diffusion is that of all servers; nil where none wrote so.
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
