package live

import (
	"maps"
	"slices"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/metric"
)

// judged is what the verdict needs of finished requests. The process that has the records counts it,
// so a tick does not send it.
type judged struct {
	soFar     metric.SoFar
	lag       Bins // from the due time of a request to its sending, without the wait for a slot
	ttft, itl doubts
	opening   doubts // of TTFT, if an event without text was the first token
}

func (j *judged) record(r *tacho.Record) {
	j.soFar.Add(r)
	if r.Sent != tacho.Never {
		j.lag.count(r.Sent - max(r.Due, r.Slot))
	}
	metric.TTFT.Errors(r, j.ttft.count)
	metric.ITL.Errors(r, j.itl.count)
	metric.TTFT.Errors(r, func(value, _, _ time.Duration) { j.opening.count(value, metric.OpeningTime(r), 0) })
}

func (j *judged) add(o *judged) {
	j.soFar.Merge(&o.soFar)
	j.lag.add(o.lag)
	j.ttft.add(&o.ttft)
	j.itl.add(&o.itl)
	j.opening.add(&o.opening)
}

// doubts counts the values of a metric, and how far they may be off.
type doubts struct {
	exact            Bins
	value, low, high Bins // of the values that are not exact, with their smallest and largest possible values
	off              Bins // largest errors of these values
}

func (d *doubts) count(value, less, more time.Duration) {
	if less == 0 && more == 0 {
		d.exact.count(value)
		return
	}
	d.value.count(value)
	d.low.count(value - less)
	d.high.count(value + more)
	d.off.count(max(less, more))
}

func (d *doubts) add(o *doubts) {
	d.exact.add(o.exact)
	d.value.add(o.value)
	d.low.add(o.low)
	d.high.add(o.high)
	d.off.add(o.off)
}

// dist returns the distribution with the bound of its p99, and the largest error of 99 % of the values
// in ms.
func (d *doubts) dist(m *metric.Metric) (dist metric.Dist, off float64) {
	p99 := func(some Bins) float64 {
		all := maps.Clone(d.exact)
		all.add(some)
		return *all.figure().P99
	}
	values := maps.Clone(d.exact)
	values.add(d.value)
	f := values.figure()
	dist = metric.Dist{Name: m.Name, Unit: m.Unit, N: int(f.N)}
	if f.N == 0 {
		return dist, 0
	}
	beyond := f.N / 100
	for _, bin := range slices.Backward(slices.Sorted(maps.Keys(d.off))) {
		if beyond -= d.off[bin]; beyond < 0 {
			off = middle(bin).Seconds() * 1e3
			break
		}
	}
	dist.Stats = &metric.Stats{Median: *f.P50, Percentiles: []metric.Percentile{{P: 50, Value: *f.P50}, {P: 99, Value: *f.P99, Bound: &metric.Bound{Low: p99(d.low), High: p99(d.high)}}}}
	return dist, off
}

// summary returns what is known about a level after a time.
func (j *judged) summary(l *Level, at time.Duration) metric.Summary {
	s := j.soFar.Summary(l.Config)
	s.Config.RequestRate, s.Config.MaxConcurrency, s.DurationS = l.Rate, l.Concurrency, at.Seconds()
	if l.Rate > 0 {
		s.Rate = &metric.Rate{ScheduledPerS: &l.Rate}
	}
	ttft, off := j.ttft.dist(metric.TTFT)
	s.TTFTSlackMillis = off
	itl, off := j.itl.dist(metric.ITL)
	s.ITLSlackMillis = off
	s.Dists = metric.Dists{ttft, itl}
	if doubted := j.opening.value.figure(); doubted.N > 0 {
		dist, off := j.opening.dist(metric.TTFT)
		s.Opening = &metric.Opening{Answers: int(doubted.N), OffMillis: off, OffShare: dist.Stats.UncertainShare(off)}
	}
	if exact := j.itl.exact.figure(); exact.N >= metric.MinExactGaps && off > 0 {
		s.ExactGapMillis = exact.P99
	}
	if lag := j.lag.figure(); lag.N > 0 {
		stats := &metric.Stats{Median: *lag.P50, Percentiles: []metric.Percentile{{P: 50, Value: *lag.P50}, {P: 99, Value: *lag.P99}}}
		for _, m := range []*metric.Metric{metric.Lag, metric.SendLag} {
			s.Dists = append(s.Dists, metric.Dist{Name: m.Name, N: int(lag.N), Stats: stats})
		}
	}
	return s
}

// A flow is the number of requests sent and finished since a level began.
type flow struct {
	at             time.Duration
	sent, finished int64
}

// backlog counts the requests in flight at the times at which metric.Backlog counts unfinished
// requests, as if the last request had been sent now.
func backlog(flows []flow) *metric.Backlog {
	for len(flows) > 1 && flows[len(flows)-2].sent == flows[len(flows)-1].sent {
		flows = flows[:len(flows)-1] // nothing was sent any more
	}
	if len(flows) == 0 {
		return nil
	}
	at := func(t time.Duration) flow {
		i, _ := slices.BinarySearchFunc(flows, t, func(f flow, t time.Duration) int { return int(f.at - t) })
		return flows[min(i, len(flows)-1)]
	}
	last := flows[len(flows)-1]
	tenth := at(last.at / 10).sent
	settled := slices.IndexFunc(flows, func(f flow) bool { return float64(f.finished) >= 0.9*float64(tenth) })
	if settled < 0 {
		return nil
	}
	from := at(max(last.at/3, flows[settled].at))
	mid := at(from.at + (last.at-from.at)/2)
	open := func(f flow) int { return int(max(f.sent-f.finished, 0)) }
	return &metric.Backlog{
		SettledS: flows[settled].at.Seconds(), FromS: from.at.Seconds(), ToS: last.at.Seconds(),
		Early: open(from), Mid: open(mid), Late: open(last), Due: int(last.sent - from.sent),
	}
}
