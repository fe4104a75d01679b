package target

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
)

// Lateness sums up how late a simulated engine wrote its output, in seconds of
// engine time since its start.
type Lateness struct {
	Simulator string `json:"simulator"` // "tacho", from each engine of tacho sim; no other server says so

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
	return t.lateness(ctx, t.Plan.BaseURL[0])
}

// findSimulators asks each server whether it is simulated. A simulated engine looks like a real one otherwise.
func (t *Target) findSimulators(ctx context.Context) {
	t.Simulated = slices.ContainsFunc(t.Plan.BaseURLs(), func(base string) bool {
		return t.lateness(ctx, strings.TrimRight(base, "/")).Simulator == "tacho"
	})
}

func (t *Target) lateness(ctx context.Context, base string) (l Lateness) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/sim/lateness", nil)
	if err != nil {
		return l
	}
	req.Header = t.pageHeader()
	res, err := t.Pages.client.Do(req)
	if err != nil {
		return l
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK || json.NewDecoder(io.LimitReader(res.Body, 1<<10)).Decode(&l) != nil {
		return Lateness{}
	}
	return l
}
