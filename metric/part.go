package metric

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"tacho"
	"tacho/stat"
)

// Counts are what is a plain count of records or events.
type Counts struct {
	DurationS float64 `json:"duration_s"` // from the start of the schedule to the last end of a request
	Requests  int     `json:"requests"`
	Completed int     `json:"completed"`
	Inputs    int     `json:"inputs"`   // in the completed requests
	Failed    int     `json:"failed"`   // canceled ones not counted
	Canceled  int     `json:"canceled"` // stopped by us when the run ended

	Events          int `json:"events"`           // token events
	CoalescedEvents int `json:"coalesced_events"` // of Events: time is an upper bound
	RetriedConns    int `json:"retried_conns"`    // requests that needed more than one connection
	Resent          int `json:"resent,omitempty"` // requests sent more than once, because the plan has retries
}

// Ended is how many requests succeeded or failed. Shares of failures are of these:
// a canceled request did neither, because the run was stopped before it could.
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
		return // nothing was read, so nothing shared a read
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

// values are those of one record, for each metric of a list.
type values []stat.Batch

// of fills v with the values of a record.
func (v values) of(r *tacho.Record, metrics []*Metric, w *witness) {
	for i, m := range metrics {
		v[i].Values = w.values(m, r, v[i].Values[:0])
		v[i].Ready()
	}
}

// A witness hears the values of metrics.
type witness struct {
	heard []float64
	hear  func(float64) // one for all metrics and records, as each would be garbage
}

// values appends those of a record.
func (w *witness) values(m *Metric, r *tacho.Record, to []float64) []float64 {
	if m.gaps != nil {
		return m.gaps(r, to)
	}
	if w.hear == nil {
		w.hear = func(x float64) { w.heard = append(w.heard, x) }
	}
	w.heard = to
	m.Of(r, w.hear)
	return w.heard
}

// add takes a record in. Limit is the same for all of a part.
func (p *part) add(r *tacho.Record, v values, limit int) {
	p.Counts.add(r)
	p.tokens.addRecord(r)
	p.ready(len(v), limit)
	for i := range v {
		p.digests[i].AddBatch(&v[i])
	}
}

// briefLimit is how many values are kept one by one of the metrics that few
// people look at. There are thirty of these, and a long run would hold more of
// them than of all else.
const briefLimit = 1 << 15

// ready makes digests if there are none, also after the merge of an empty part.
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

// summarize has intervals where there are series, see stat.Series.SureIn. Metrics are told on all
// processors: to sort a million values of each is most of the work.
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

func (d *Dist) fill(digest *stat.Digest, values stat.Distribution, asked []float64) {
	if d.N = digest.N(); d.N == 0 {
		return
	}
	d.Stats = &Stats{Mean: values.Mean(), Median: values.Median(), Std: values.Std(), Min: values.Min(), Max: values.Max()}
	if !digest.Exact() {
		d.Stats.Error = stat.SketchError
	}
	for _, p := range slices.Concat(asked, always) {
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

// counters are those who may have counted the output, most trusted first.
var counters = []tacho.CountSource{tacho.FromUsage, tacho.FromTokens, tacho.FromTokenizer, tacho.FromEvents, ""}

// countedBy notes who counted n requests, in the order of trust.
func (t *Tokens) countedBy(source tacho.CountSource, n int) {
	rank := slices.Index(counters, source)
	i, found := slices.BinarySearchFunc(t.OutputBy, rank, func(c CountedBy, rank int) int { return slices.Index(counters, c.Source) - rank })
	if !found {
		t.OutputBy = slices.Insert(t.OutputBy, i, CountedBy{Source: source})
	}
	t.OutputBy[i].Requests += n
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
	t.add(&p.Off, max(d, -d))
	p.Worst = fartherFromZero(p.Worst, d)
}
