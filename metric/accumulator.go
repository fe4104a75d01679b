package metric

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"tacho"
)

// An Accumulator is a Sink that sums up. Its zero value is empty and ready.
//
// A summary is a function of the set of records, never of their order, so
// accumulators merge and a cluster is summed the way one machine is. What it
// keeps of a record is its timeline, 16 bytes a token event: quantiles are exact.
type Accumulator struct{ records []tacho.Record }

var _ tacho.Sink = (*Accumulator)(nil)

// Add implements tacho.Sink.
func (a *Accumulator) Add(r *tacho.Record) error {
	kept := *r
	kept.ID, kept.Text = "", ""
	kept.Events = slices.Clone(r.Events)
	if r.Usage != nil {
		usage := *r.Usage
		kept.Usage = &usage
	}
	if r.Server != nil {
		times := *r.Server
		kept.Server = &times
	}
	if r.Failure != nil {
		failure := *r.Failure
		kept.Failure = &failure
	}
	a.records = append(a.records, kept)
	return nil
}

// Close implements tacho.Sink.
func (a *Accumulator) Close() error { return nil }

// Merge adds what b has seen. The two share it from then on; neither changes it.
func (a *Accumulator) Merge(b *Accumulator) { a.records = append(a.records, b.records...) }

// Summary sums up what was added so far.
func (a *Accumulator) Summary(c Config) Summary {
	s := Summary{Config: c, Requests: len(a.records)}
	s.count(a.records)
	s.Failures = failures(a.records)
	s.Finishes = finishes(a.records)
	s.Endpoints = endpoints(a.records, c.Percentiles)
	s.Groups = groups(a.records, c.Percentiles)
	s.Sessions = sessions(a.records)
	s.Tokens = tokens(a.records)
	s.Clock = clockUse(a.records)
	s.Peaks = peaks(a.records)
	s.LimitBound = c.MaxConcurrency > 0 && peakOverlap(a.records, slot, end) >= c.MaxConcurrency
	s.Rate = rate(a.records)
	origin := due
	if s.LimitBound {
		origin = slot
	}
	s.Drift = drift(a.records, origin)
	s.Backlog, s.SpreadMillis, s.Cache = backlog(c, a.records), spread(c, a.records), cacheUse(a.records)
	s.Throughput = throughput(&s, a.records)
	for _, m := range All {
		s.Dists = append(s.Dists, newDist(m, a.values(m), c.Percentiles))
	}
	s.Verdict = Judge(&s)
	return s
}

// Probe sums up records that are probes; nil where there is none.
func (a *Accumulator) Probe() *Probe {
	if len(a.records) == 0 {
		return nil
	}
	s := a.Summary(Config{})
	e2el := s.Classic(E2EL)
	return &Probe{s.Completed, s.Failed, e2el.Median, e2el.Percentile(99), e2el.Max}
}

func (a *Accumulator) values(m *Metric) []float64 {
	var values []float64
	for i := range a.records {
		m.Of(&a.records[i], func(v float64) { values = append(values, v) })
	}
	return values
}

// count fills in what is a plain count of records or events.
func (s *Summary) count(records []tacho.Record) {
	for i := range records {
		r := &records[i]
		s.DurationS = max(s.DurationS, r.End.Seconds())
		switch {
		case r.OK():
			s.Completed++
			s.Inputs += max(r.Inputs, 1)
		case r.Failure.Cause == tacho.Canceled:
			s.Canceled++
		default:
			s.Failed++
		}
		if r.Conns > 1 {
			s.RetriedConns++
		}
		if r.Attempts > 1 {
			s.Resent++
		}
		s.Events += len(r.Events)
		for _, e := range r.Events {
			if e.Coalesced {
				s.CoalescedEvents++
			}
		}
	}
}

func failures(records []tacho.Record) []FailureGroup {
	type key struct {
		cause  tacho.Cause
		phase  string
		status int
	}
	groups := map[key]FailureGroup{}
	for i := range records {
		f := records[i].Failure
		if f == nil || f.Cause == tacho.Canceled {
			continue
		}
		k := key{cause: f.Cause, status: f.Status}
		if f.Cause == tacho.Timeout { // how far it came is the cause of it
			k.phase = f.Phase
		}
		one := FailureGroup{f.Cause, k.phase, f.Status, 1, max(records[i].End, 0).Seconds(), f.Message}
		g, seen := groups[k]
		if !seen {
			groups[k] = one
			continue
		}
		// Of equal times the smaller message, so that order does not matter.
		if cmp.Or(cmp.Compare(one.FirstS, g.FirstS), strings.Compare(one.Example, g.Example)) < 0 {
			g.FirstS, g.Example = one.FirstS, one.Example
		}
		g.Count++
		groups[k] = g
	}
	return slices.SortedFunc(maps.Values(groups), func(a, b FailureGroup) int {
		return cmp.Or(b.Count-a.Count, strings.Compare(string(a.Cause), string(b.Cause)), strings.Compare(a.Phase, b.Phase), a.Status-b.Status)
	})
}

func tokens(records []tacho.Record) Tokens {
	var t Tokens
	by := map[tacho.CountSource]int{}
	for i := range records {
		r := &records[i]
		if !r.OK() {
			continue
		}
		t.add(&t.Input, InputTokens(r))
		t.add(&t.Output, r.Output)
		by[r.OutputFrom]++
		t.checkPrompt(r)
		t.checkOutput(r)
		if r.Usage != nil {
			t.add(&t.Cached, r.Usage.Cached)
			t.add(&t.Reasoning, r.Usage.Reasoning)
		}
		if r.Usage != nil && r.Usage.Prompt > 0 {
			t.InputByServer++
		} else {
			t.InputByWorkload++
		}
	}
	for _, source := range []tacho.CountSource{tacho.FromUsage, tacho.FromTokens, tacho.FromTokenizer, tacho.FromEvents, ""} {
		if by[source] > 0 {
			t.OutputBy = append(t.OutputBy, CountedBy{source, by[source]})
		}
	}
	return t
}

// mostTokens bounds every sum of tokens. It is beyond all that a server can
// have done, and the greatest whole number that every reader of JSON takes.
const mostTokens = 1 << 53

// add adds n to one of the sums of t, up to mostTokens.
func (t *Tokens) add(sum *int, n int) {
	if n >= mostTokens-*sum {
		*sum, t.Saturated = mostTokens, true
		return
	}
	*sum += n
}

func (t *Tokens) checkOutput(r *tacho.Record) {
	if r.Exact {
		t.Exact++
		if r.Output < r.Asked {
			t.Short++
		}
		if r.Output > r.Asked {
			t.Long++
		}
	}
	if len(r.Events) > r.Output {
		t.MoreEvents++
		t.SurplusEvents += len(r.Events) - r.Output
	}
}

func (t *Tokens) checkPrompt(r *tacho.Record) {
	p := &t.Prompt
	if r.Usage == nil || r.Usage.Prompt == 0 || r.Input == 0 {
		return
	}
	p.Requests++
	t.add(&p.Asked, r.Input)
	t.add(&p.Served, r.Usage.Prompt)
	d := r.Usage.Prompt - r.Input
	if d != 0 {
		p.Differ++
	}
	t.add(&p.Off, abs(d))
	p.Worst = fartherFromZero(p.Worst, d)
}

// fartherFromZero prefers the positive of two opposite numbers, so that order
// does not matter.
func fartherFromZero[T int | time.Duration](a, b T) T {
	x, y := max(a, -a), max(b, -b)
	if y > x || y == x && b > a {
		return b
	}
	return a
}

// A step of the wall clock is told from its slow steering by both limits.
const (
	clockStepMin   = time.Millisecond // below it no latency is visibly wrong
	clockStepShare = 0.001            // of the request's time: twice what clock steering may do
)

func clockUse(records []tacho.Record) ClockUse {
	var u ClockUse
	var worst time.Duration
	for i := range records {
		r := &records[i]
		switch {
		case r.Head == tacho.Never: // nothing was received, so nothing was stamped
		case r.Clock == tacho.KernelClock:
			u.Kernel++
		case r.Clock == tacho.ReadClock:
			u.Read++
		}
		moved := max(r.ClockStep, -r.ClockStep)
		if moved > clockStepMin && float64(moved) > clockStepShare*float64(r.End-r.Start) {
			u.Steps++
			worst = fartherFromZero(worst, r.ClockStep)
		}
	}
	u.WorstStepS = worst.Seconds()
	switch {
	case u.Kernel > 0 && u.Read > 0:
		u.Name = "mixed"
	case u.Kernel > 0:
		u.Name = tacho.KernelClock.String()
	case u.Read > 0:
		u.Name = tacho.ReadClock.String()
	}
	return u
}

func throughput(s *Summary, records []tacho.Record) *Throughput {
	if s.DurationS == 0 {
		return nil
	}
	t := &Throughput{
		RequestsPerS:     float64(s.Completed) / s.DurationS,
		OutputTokensPerS: float64(s.Tokens.Output) / s.DurationS,
		TotalTokensPerS:  float64(s.Tokens.Input+s.Tokens.Output) / s.DurationS,
		InputsPerS:       float64(s.Inputs) / s.DurationS,
		AudioSPerS:       audioSeconds(records) / s.DurationS,
	}
	if len(s.Config.Goodput) > 0 {
		good := 0
		for i := range records {
			if records[i].OK() && isGood(&records[i], s.Config.Goodput) {
				good++
			}
		}
		perS := float64(good) / s.DurationS
		t.GoodPerS = &perS
	}
	return t
}

// audioSeconds is how long the sounds are that were served. They are summed in
// order of length, so that the order of records does not matter.
func audioSeconds(records []tacho.Record) float64 {
	var lengths []float64
	for i := range records {
		if r := &records[i]; r.OK() && r.AudioS > 0 {
			lengths = append(lengths, r.AudioS)
		}
	}
	slices.Sort(lengths)
	sum := 0.0
	for _, s := range lengths {
		sum += s
	}
	return sum
}

// isGood says whether r keeps every SLO. A metric r has no value of is kept:
// the time per output token of a single token is no reason to fail it.
func isGood(r *tacho.Record, slos []SLO) bool {
	good := true
	for _, slo := range slos {
		if m := Named(slo.Metric); m != nil {
			m.Of(r, func(v float64) { good = good && v <= slo.LimitMillis })
		}
	}
	return good
}
