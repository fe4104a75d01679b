package target

import (
	"context"
	"encoding/json"
	"net/http"
)

// Lateness sums up how late a simulated engine wrote its output, in seconds of
// engine time since its start.
type Lateness struct {
	Writes int64   `json:"writes"`
	LateS  float64 `json:"late_s"`
	Gaps   int64   `json:"gaps"` // between two writes of an answer
	GapS   float64 `json:"gap_s"`
}

// SimLateness asks the simulated engine for its lateness. The result is zero if
// the engine does not answer.
func (t *Target) SimLateness(ctx context.Context) (l Lateness) {
	if t.Plan.Sim == "" || len(t.Plan.BaseURL) == 0 {
		return l
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.Plan.BaseURL[0]+"/sim/lateness", nil)
	if err != nil {
		return l
	}
	res, err := t.Pages.client.Do(req)
	if err != nil {
		return l
	}
	defer func() { _ = res.Body.Close() }()
	_ = json.NewDecoder(res.Body).Decode(&l) // stays zero on errors
	return l
}
