package metric

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/stat"
)

// Counts are plain counts of records and events.
type Counts struct {
	DurationS float64 `json:"duration_s"` // from the start of the schedule to the last end of a request
	Requests  int     `json:"requests"`
	Completed int     `json:"completed"`
	Inputs    int     `json:"inputs"`   // in completed requests
	Failed    int     `json:"failed"`   // without canceled requests
	Canceled  int     `json:"canceled"` // stopped by the client at the end of the run

	Events          int `json:"events"`           // token events
	CoalescedEvents int `json:"coalesced_events"` // of Events: the timestamp is an upper bound
	RetriedConns    int `json:"retried_conns"`    // requests that needed more than one connection
	Resent          int `json:"resent,omitempty"` // requests sent more than once, because the plan allows retries
}

// Ended returns the number of requests that succeeded or failed. It is the denominator of failure
// shares, because a canceled request did neither.
func (c *Counts) Ended() int { return c.Completed + c.Failed }

func (c *Counts) add(r *tacho.Record) {
	c.Requests++
	c.DurationS = max(c.DurationS, r.End.Seconds())
	switch {
	case r.OK():
		c.Completed++
		c.Inputs += max(r.Inputs, 1)
	case r.Failure.Cause == tacho.Canceled:
		c.Canceled++
	default:
		c.Failed++
	}
	if r.Conns > 1 {
		c.RetriedConns++
	}
	if r.Attempts > 1 {
		c.Resent++
	}
	c.Events += len(r.Events)
	if r.Clock == tacho.VirtualClock {
		return // simulated events share no reads
	}
	for i := range r.Events {
		if r.Events[i].Coalesced() {
			c.CoalescedEvents++
		}
	}
}

func (c *Counts) merge(o *Counts) {
	c.DurationS = max(c.DurationS, o.DurationS)
	c.Requests += o.Requests
	c.Completed += o.Completed
	c.Inputs += o.Inputs
	c.Failed += o.Failed
	c.Canceled += o.Canceled
	c.Events += o.Events
	c.CoalescedEvents += o.CoalescedEvents
	c.RetriedConns += o.RetriedConns
	c.Resent += o.Resent
}

// A part is the sum of some records: all of them, or a group.
type part struct {
	Counts
	tokens  Tokens
	digests []stat.Digest // one for each metric
}

// values are the values of one record, for each metric of a list.
type values []stat.Batch

// of fills v with the values of a record.
func (v values) of(r *tacho.Record, metrics []*Metric, w *collector) {
	for i, m := range metrics {
		v[i].Values = w.values(m, r, v[i].Values[:0])
		v[i].Ready()
	}
}

// A collector collects the values that metrics emit.
type collector struct {
	collected []float64
	emit      func(float64) // one function for all metrics and records, to avoid an allocation for each
}

// values appends the values of a record.
func (w *collector) values(m *Metric, r *tacho.Record, to []float64) []float64 {
	if m.gaps != nil {
		return m.gaps(r, to)
	}
	if w.emit == nil {
		w.emit = func(x float64) { w.collected = append(w.collected, x) }
	}
	w.collected = to
	m.Of(r, w.emit)
	return w.collected
}

// add adds a record. limit must be the same for all records of a part.
func (p *part) add(r *tacho.Record, v values, limit int) {
	p.Counts.add(r)
	p.tokens.addRecord(r)
	p.ready(len(v), limit)
	for i := range v {
		p.digests[i].AddBatch(&v[i])
	}
}

// briefLimit is the number of values kept individually for less important metrics. There are thirty of
// them, and in a long run they would need more memory than everything else.
const briefLimit = 1 << 15

// ready creates the digests if there are none, also after the merge of an empty part.
func (p *part) ready(metrics, limit int) {
	if len(p.digests) > 0 {
		return
	}
	p.digests = make([]stat.Digest, metrics)
	for i := range p.digests {
		p.digests[i].Limit = limit
		if limit == 0 && i >= exactCount {
			p.digests[i].Limit = briefLimit
		}
	}
}

func (p *part) readyFor(o *part) {
	if len(o.digests) > 0 {
		p.ready(len(o.digests), o.digests[0].Limit)
	}
}

func (p *part) merge(o *part) {
	p.Counts.merge(&o.Counts)
	p.tokens.merge(&o.tokens)
	p.readyFor(o)
	for i := range o.digests {
		p.digests[i].Merge(&o.digests[i])
	}
}

// summarize computes the distributions, with intervals if there are series (see
// stat.Series.IntervalsIn). It uses all CPUs, because most of the work is to sort a million values of
// each metric.
func (p *part) summarize(metrics []*Metric, percentiles []float64, all series, in balanced) []Dist {
	out := make([]Dist, len(metrics))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(metrics); i = int(next.Add(1)) - 1 {
				out[i] = p.dist(i, metrics[i], percentiles, all, in)
			}
		})
	}
	workers.Wait()
	return out
}

func (p *part) dist(i int, m *Metric, percentiles []float64, all series, in balanced) Dist {
	d := Dist{Name: m.Name, Unit: m.Unit}
	if i < len(p.digests) {
		values := p.digests[i].Distribution()
		d.fill(&p.digests[i], values, percentiles)
		if i < len(all) && d.Stats != nil {
			d.Stats.addIntervals(&all[i], values, in)
		}
	}
	return d
}

func (d *Dist) fill(digest *stat.Digest, values stat.Distribution, percentiles []float64) {
	if d.N = digest.N(); d.N == 0 {
		return
	}
	d.Stats = &Stats{Mean: values.Mean(), Median: values.Median(), Std: values.Std(), Min: values.Min(), Max: values.Max()}
	if !digest.Exact() {
		d.Stats.Error = stat.SketchError
	}
	for _, p := range slices.Concat(percentiles, alwaysShown) {
		if !slices.ContainsFunc(d.Stats.Percentiles, func(v Percentile) bool { return v.P == p }) {
			d.Stats.Percentiles = append(d.Stats.Percentiles, Percentile{P: p, Value: values.Quantile(p / 100)})
		}
	}
}

// addRecord adds the counts of a successful request.
func (t *Tokens) addRecord(r *tacho.Record) {
	if !r.OK() {
		return
	}
	t.add(&t.Input, InputTokens(r))
	t.add(&t.Output, r.Output)
	t.countedBy(r.OutputFrom, 1)
	t.checkPrompt(r)
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
	t.NoText.add(r)
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

// counters are the sources of output counts, most trusted first.
var counters = []tacho.CountSource{tacho.FromUsage, tacho.FromTokens, tacho.FromTokenizer, tacho.FromEvents, ""}

// countedBy adds n requests with the given count source, in the order of trust.
func (t *Tokens) countedBy(source tacho.CountSource, n int) {
	rank := slices.Index(counters, source)
	i, found := slices.BinarySearchFunc(t.OutputBy, rank, func(c CountedBy, rank int) int { return slices.Index(counters, c.Source) - rank })
	if !found {
		t.OutputBy = slices.Insert(t.OutputBy, i, CountedBy{Source: source})
	}
	t.OutputBy[i].Requests += n
}

// maxTokens limits every sum of tokens. It is larger than any server can produce, and the largest
// integer that every JSON reader accepts.
const maxTokens = 1 << 53

// add adds n to one of the sums of t, up to maxTokens.
func (t *Tokens) add(sum *int, n int) {
	if n >= maxTokens-*sum {
		*sum, t.Saturated = maxTokens, true
		return
	}
	*sum += n
}

func (t *Tokens) merge(o *Tokens) {
	for _, f := range []struct {
		sum *int
		n   int
	}{
		{&t.Input, o.Input},
		{&t.Output, o.Output},
		{&t.Cached, o.Cached},
		{&t.Reasoning, o.Reasoning},
		{&t.InputByServer, o.InputByServer},
		{&t.InputByWorkload, o.InputByWorkload},
		{&t.Exact, o.Exact},
		{&t.Short, o.Short},
		{&t.Long, o.Long},
		{&t.MoreEvents, o.MoreEvents},
		{&t.SurplusEvents, o.SurplusEvents},
		{&t.NoText.Events, o.NoText.Events},
		{&t.NoText.Answers, o.NoText.Answers},
		{&t.NoText.Unequal, o.NoText.Unequal},
		{&t.Prompt.Requests, o.Prompt.Requests},
		{&t.Prompt.Differ, o.Prompt.Differ},
		{&t.Prompt.Asked, o.Prompt.Asked},
		{&t.Prompt.Served, o.Prompt.Served},
		{&t.Prompt.Off, o.Prompt.Off},
	} {
		t.add(f.sum, f.n)
	}
	t.Prompt.Worst = fartherFromZero(t.Prompt.Worst, o.Prompt.Worst)
	t.Saturated = t.Saturated || o.Saturated
	for _, c := range o.OutputBy {
		t.countedBy(c.Source, c.Requests)
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
	t.add(&p.Off, max(d, -d))
	p.Worst = fartherFromZero(p.Worst, d)
}
