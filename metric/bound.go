package metric

import (
	"slices"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/stat"
)

// A Bound is the range that contains the true percentile, if some timestamps are uncertain.
type Bound struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// off is the largest error of a value in both directions: the true value may be smaller by less and
// larger by more.
type off struct{ less, more time.Duration }

func (o off) most() time.Duration { return max(o.less, o.more) }

// Event times are upper bounds, and the send time is a lower bound.
func ttftOff(r *tacho.Record, _ int) off {
	return off{less: r.Events[0].Slack.Duration() + r.SentSlack}
}

func e2elOff(r *tacho.Record, _ int) off {
	if len(r.Events) == 0 {
		return off{less: r.SentSlack}
	}
	return off{less: r.Events[len(r.Events)-1].Slack.Duration() + r.SentSlack}
}

func itlOff(r *tacho.Record, i int) off {
	return off{less: r.Events[i+1].Slack.Duration(), more: r.Events[i].Slack.Duration()}
}

func tpotOff(r *tacho.Record, _ int) off {
	n := time.Duration(r.Output - 1)
	return off{less: r.Events[len(r.Events)-1].Slack.Duration() / n, more: r.Events[0].Slack.Duration() / n}
}

// A bounded holds the smallest and largest possible values of a metric. Both digests are nil while all
// values are exact.
type bounded struct {
	low, high *stat.Digest
	slack     slack
}

// add adds the values of a record, whose errors offOf returns. Call it before the values are added to the digest values.
func (b *bounded) add(offOf func(r *tacho.Record, value int) off, r *tacho.Record, v []float64, values *stat.Digest) {
	for i := range v {
		if most := offOf(r, i).most(); most > 0 {
			b.split(values)
			b.slack.add(most)
		}
	}
	if b.low == nil {
		return
	}
	for i, x := range v {
		o := offOf(r, i)
		b.low.Add(max(min(x, 0), x-millis(o.less))) // a true time is never negative; a wrong timestamp may be
		b.high.Add(x + millis(o.more))
	}
}

// split starts separate digests for the smallest and largest values.
func (b *bounded) split(values *stat.Digest) {
	if b.low == nil {
		b.low, b.high = copyOf(values), copyOf(values)
	}
}

func copyOf(d *stat.Digest) *stat.Digest {
	c := &stat.Digest{Limit: d.Limit}
	c.Merge(d)
	return c
}

// merge merges o. values and others are the digests before they are merged.
func (b *bounded) merge(o *bounded, values, others *stat.Digest) {
	b.slack.merge(&o.slack)
	switch {
	case b.low == nil && o.low == nil:
		return
	case o.low == nil:
		o = &bounded{low: others, high: others}
	}
	b.split(values)
	b.low.Merge(o.low)
	b.high.Merge(o.high)
}

// bound sets the bounds of the percentiles.
func (b *bounded) bound(s *Stats) {
	if b.low == nil || s == nil {
		return
	}
	low, high := b.low.Distribution(), b.high.Distribution()
	for i := range s.Percentiles {
		q := s.Percentiles[i].P / 100
		s.Percentiles[i].Bound = &Bound{low.Quantile(q), high.Quantile(q)}
	}
}

// bounds holds the bounds of the classic metrics and the distribution of the exact gaps.
type bounds struct {
	of    [classicCount]bounded
	exact slack
	opened
}

// add adds a record. Call it before the record's values are added to digests.
func (b *bounds) add(r *tacho.Record, v values, digests []stat.Digest) {
	if !r.OK() {
		return
	}
	exact := r.SentSlack == 0 && b.eventsExact(r)
	for i, m := range Classic {
		if !exact || b.of[i].low != nil {
			b.of[i].add(m.off, r, v[i].Values, &digests[i])
		}
	}
	b.opened.add(r, v, digests)
}

// eventsExact reports whether the times of all events are exact, and records the gaps between exact
// events.
func (b *bounds) eventsExact(r *tacho.Record) bool {
	if r.Clock == tacho.VirtualClock {
		return true // all gaps are exact, so the distribution is not needed
	}
	exact := true
	for i := range r.Events {
		exact = exact && !r.Events[i].Coalesced()
		if i > 0 && !r.Events[i-1].Coalesced() && !r.Events[i].Coalesced() {
			b.exact.add(r.Events[i].At - r.Events[i-1].At)
		}
	}
	return exact
}

// merge merges o. digests and others are the digests before they are merged.
func (b *bounds) merge(o *bounds, digests, others []stat.Digest) {
	b.exact.merge(&o.exact)
	b.opened.merge(&o.opened, digests, others)
	for i := range b.of {
		b.of[i].merge(&o.of[i], &digests[i], &others[i])
	}
}

// MinExactGaps is the number of exact gaps needed for their p99.
const MinExactGaps = 100

// summarize sets the bounds and the largest errors.
func (b *bounds) summarize(s *Summary) {
	for i, m := range Classic {
		b.of[i].bound(s.Dist(m).Stats)
	}
	s.ITLSlackMillis = b.of[indexITL].slack.percentile(99, s.Dist(ITL).N)
	s.TTFTSlackMillis = b.of[indexTTFT].slack.percentile(99, s.Dist(TTFT).N)
	s.Opening = b.summary(s)
	if n := b.exact.count(); n >= MinExactGaps && s.ITLSlackMillis > 0 {
		gap := b.exact.percentile(99, n)
		s.ExactGapMillis = &gap
	}
}

// A slack counts values by their largest error, without the exact values. It is nil while it is empty.
type slack []int

func (s *slack) add(d time.Duration) {
	if *s == nil {
		*s = make(slack, int(tacho.MaxSlack)+1)
	}
	(*s)[tacho.SlackOf(d)]++
}

func (s *slack) merge(o *slack) {
	if *s == nil && *o != nil {
		*s = make(slack, int(tacho.MaxSlack)+1)
	}
	for off, n := range *o {
		(*s)[off] += n
	}
}

func (s slack) count() (n int) {
	for _, k := range s {
		n += k
	}
	return n
}

// percentile returns the largest error of p percent of all values, in milliseconds. all is the number
// of values.
func (s slack) percentile(p float64, all int) float64 {
	beyond := int(float64(all) * (1 - p/100))
	for off, n := range slices.Backward(s) {
		if beyond -= n; beyond < 0 {
			return millis(tacho.Slack(off).Duration())
		}
	}
	return 0
}
