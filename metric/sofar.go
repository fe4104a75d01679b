package metric

import (
	"time"

	"github.com/tacho-bench/tacho"
)

// SoFar counts the finished requests of a running level. It has the counts of an Accumulator without
// its distributions, so that it is small and can be read at any time. The zero value is ready to use.
type SoFar struct {
	counts   Counts
	tokens   Tokens
	clock    clockUse
	network  NetworkUse
	buffered Buffering
	recent   recent
}

// Add counts a finished request.
func (f *SoFar) Add(r *tacho.Record) {
	f.counts.add(r)
	f.tokens.addRecord(r)
	f.clock.add(r)
	f.network.add(r)
	f.buffered.add(r)
	f.recent.add(r)
}

// Merge adds the requests of o.
func (f *SoFar) Merge(o *SoFar) {
	f.counts.merge(&o.counts)
	f.tokens.merge(&o.tokens)
	f.clock.merge(&o.clock)
	f.network.merge(&o.network)
	f.buffered.merge(&o.buffered)
	f.recent.merge(&o.recent)
}

// Summary returns the counts as a summary for JudgeSoFar. Figures that are not counts are missing.
func (f *SoFar) Summary(c Config) Summary {
	return Summary{Config: c, Counts: f.counts, Tokens: f.tokens, Clock: f.clock.summary(), Network: f.network, Buffering: f.buffered}
}

// Pauses returns the pauses of the server so far, or nil. The summary has the client and the distribution of ITL.
func (f *SoFar) Pauses(s *Summary) *ServerPauses { return f.recent.pauses(s) }

// Errors calls add for each value of a classic metric in a record: the true value may be smaller by
// less and larger by more, because timestamps are bounds.
func (m *Metric) Errors(r *tacho.Record, add func(value, less, more time.Duration)) {
	i := 0
	m.Of(r, func(v float64) {
		o := m.off(r, i)
		add(time.Duration(v*1e6), o.less, o.more)
		i++
	})
}
