package metric

import "slices"

// A Section is a part of the classic report: the statistics of one metric,
// under the name that vLLM's serving benchmark has for it.
type Section struct {
	*Metric
	Key   string // in --percentile-metrics, and in the keys of its JSON
	Label string // in its lines
	Title string
	shown func(c *Config) bool // beside being asked for
}

// Sections are the sections of a classic report, in its order. Those about the
// client's queue are there where a limit can make requests wait, and the second
// where they have times of their own besides.
var Sections = []Section{
	{TTFT, TTFT.Name, "TTFT", TTFT.Title, generates},
	{TPOT, TPOT.Name, "TPOT", TPOT.Title, generates},
	{ITL, ITL.Name, "ITL", ITL.Title, generates},
	{E2EL, E2EL.Name, "E2EL", E2EL.Title, func(*Config) bool { return true }},
	{wait, "client_queue_time", "Client Queue Time", "Client-side Queueing", func(c *Config) bool { return c.MaxConcurrency > 0 }},
	{E2ELDue, "e2el_including_client_queue", "E2EL incl. Client Queue", "Queue-inclusive End-to-end Latency", func(c *Config) bool {
		return c.MaxConcurrency > 0 && c.RequestRate > 0
	}},
}

func generates(c *Config) bool { return !c.Pools }

// Shows says whether a report of c has the section.
func (c *Config) Shows(s *Section) bool { return slices.Contains(c.Metrics, s.Key) && s.shown(c) }

// SectionKeys are the keys of all sections, in their order.
func SectionKeys() []string {
	var keys []string
	for i := range Sections {
		keys = append(keys, Sections[i].Key)
	}
	return keys
}
