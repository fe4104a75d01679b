package metric

import (
	"cmp"
	"maps"
	"slices"

	"tacho"
)

// An EndpointSummary is the part of a stage that went to one of several servers.
type EndpointSummary struct {
	Endpoint     string `json:"endpoint"`
	Requests     int    `json:"requests"`
	Completed    int    `json:"completed"`
	Failed       int    `json:"failed"` // canceled ones not counted
	OutputTokens int    `json:"output_tokens"`
	Dists        []Dist `json:"metrics"` // the classic ones
}

// Dist is the distribution of m, which must be a classic metric.
func (e *EndpointSummary) Dist(m *Metric) Dist {
	for _, d := range e.Dists {
		if d.Name == m.Name {
			return d
		}
	}
	return Dist{Name: m.Name, Unit: m.Unit}
}

// endpoints splits the records by the server they went to; nil where there is
// one server only.
func endpoints(records []tacho.Record, percentiles []float64) []EndpointSummary {
	parts := map[string]*Accumulator{}
	for i := range records {
		name := records[i].Endpoint
		if parts[name] == nil {
			parts[name] = &Accumulator{}
		}
		parts[name].records = append(parts[name].records, records[i])
	}
	if len(parts) < 2 {
		return nil
	}
	var out []EndpointSummary
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		part := parts[name]
		var s Summary
		s.count(part.records)
		e := EndpointSummary{
			Endpoint: name, Requests: len(part.records), Completed: s.Completed, Failed: s.Failed,
			OutputTokens: tokens(part.records).Output,
		}
		for _, m := range Classic {
			e.Dists = append(e.Dists, newDist(m, part.values(m), percentiles))
		}
		out = append(out, e)
	}
	return out
}

// A FinishCount is how many successful requests ended for one reason.
type FinishCount struct {
	Reason   string `json:"reason"` // the server's word; empty where it gave none
	Requests int    `json:"requests"`
}

func finishes(records []tacho.Record) []FinishCount {
	by := map[string]int{}
	for i := range records {
		if records[i].OK() {
			by[records[i].Finish]++
		}
	}
	var out []FinishCount
	for reason, n := range by {
		out = append(out, FinishCount{reason, n})
	}
	slices.SortFunc(out, func(a, b FinishCount) int {
		return cmp.Or(b.Requests-a.Requests, cmp.Compare(a.Reason, b.Reason))
	})
	return out
}
