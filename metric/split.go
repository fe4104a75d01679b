package metric

import (
	"cmp"
	"slices"
)

// An EndpointSummary is the part of a stage that went to one of several servers.
type EndpointSummary struct {
	Endpoint     string           `json:"endpoint"`
	Requests     int              `json:"requests"`
	Completed    int              `json:"completed"`
	Failed       int              `json:"failed"` // canceled ones not counted
	OutputTokens int              `json:"output_tokens"`
	Dists        `json:"metrics"` // of the classic ones
}

// endpoints are the parts by server; nil where there is one server only.
func (p *parts) endpoints(percentiles []float64) []EndpointSummary {
	if p.values[endpointKey] < 2 {
		return nil
	}
	var out []EndpointSummary
	for k, part := range p.by {
		if k.by == endpointKey {
			out = append(out, EndpointSummary{
				Endpoint: k.value, Requests: part.Requests, Completed: part.Completed, Failed: part.Failed,
				OutputTokens: part.tokens.Output, Dists: part.summarize(Classic, percentiles, nil, balanced{}),
			})
		}
	}
	slices.SortFunc(out, func(a, b EndpointSummary) int { return cmp.Compare(a.Endpoint, b.Endpoint) })
	return out
}
