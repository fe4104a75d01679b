package metric

import (
	"cmp"
	"slices"
)

// An EndpointSummary is the part of a stage sent to one of several servers.
type EndpointSummary struct {
	Endpoint     string           `json:"endpoint"`
	Requests     int              `json:"requests"`
	Completed    int              `json:"completed"`
	Failed       int              `json:"failed"` // without canceled requests
	OutputTokens int              `json:"output_tokens"`
	Dists        `json:"metrics"` // the classic metrics
}

// endpoints returns the parts by server, or nil if there is only one server.
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
