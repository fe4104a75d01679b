package metric

import "slices"

// A Section is a part of the classic report: the statistics of one metric, with the name used by vLLM's
// serving benchmark.
type Section struct {
	*Metric
	Key   string // in --percentile-metrics and in JSON keys
	Label string // in the lines of the report
	Title string
	shown func(c *Config) bool // condition besides being selected
}

// Sections are the sections of a classic report, in order. The sections about the client's queue appear
// if a concurrency limit can delay requests. The second one also needs a request rate.
var Sections = withLatencies([]Section{
	{TTFT, TTFT.Name, "TTFT", TTFT.Title, generates},
	{TPOT, TPOT.Name, "TPOT", TPOT.Title, generates},
	{ITL, ITL.Name, "ITL", ITL.Title, generates},
	{E2EL, E2EL.Name, "E2EL", E2EL.Title, func(*Config) bool { return true }},
	{wait, "client_queue_time", "Client Queue Time", "Client-side Queueing", func(c *Config) bool { return c.MaxConcurrency > 0 }},
	{E2ELDue, "e2el_including_client_queue", "E2EL incl. Client Queue", "Queue-inclusive End-to-end Latency", func(c *Config) bool {
		return c.MaxConcurrency > 0 && c.RequestRate > 0
	}},
})

// withLatencies adds a section for every other latency. vLLM has no such section, so it appears only if
// it is selected by name.
func withLatencies(list []Section) []Section {
	for _, m := range All {
		known := slices.ContainsFunc(list, func(s Section) bool { return s.Metric == m })
		if m.Unit == Millis && !known {
			list = append(list, Section{m, m.Name, m.Title, m.Title, generates})
		}
	}
	return list
}

func generates(c *Config) bool { return !c.Pools }

// Shows reports whether a report of c contains the section.
func (c *Config) Shows(s *Section) bool { return slices.Contains(c.Metrics, s.Key) && s.shown(c) }

// SectionKeys returns the keys of all sections in order.
func SectionKeys() []string {
	var keys []string
	for i := range Sections {
		keys = append(keys, Sections[i].Key)
	}
	return keys
}
