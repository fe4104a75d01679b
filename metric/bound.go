package metric

import (
	"slices"
	"time"

	"tacho"
	"tacho/stat"
)

// A Bound is what a percentile truly lies between, where some times are known
// within limits only.
type Bound struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// off is by how much a value may truly be less than what is told, and by how
// much it may be more.
type off struct{ less, more time.Duration }

func (o off) most() time.Duration { return max(o.less, o.more) }

// The times of events are upper bounds, and that of sending is a lower one.
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

// A bounded is a metric's values at their least and at their most. Both are nil
// while all values are exact.
type bounded struct {
	low, high *stat.Digest
	slack     slack
}

// add takes the values of a record in, before they are in values.
func (b *bounded) add(m *Metric, r *tacho.Record, v []float64, values *stat.Digest) {
	for i := range v {
		if most := m.off(r, i).most(); most > 0 {
			b.split(values)
			b.slack.add(most)
		}
	}
	if b.low == nil {
		return
	}
	for i, x := range v {
		o := m.off(r, i)
		b.low.Add(max(min(x, 0), x-millis(o.less))) // no time is negative, but of nonsense
		b.high.Add(x + millis(o.more))
	}
}

// split begins to tell least and most apart from the values.
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

// merge takes in o. The values of both are those before they are merged.
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

// bound sets the bounds of percentiles.
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

// bounds are those of the classic metrics, and how long gaps are that are exact.
type bounds struct {
	of      [classicCount]bounded
	exact   slack
	unknown bool // of some events nobody knows by how much they may be off
}

// add takes a record in, before its values are in digests.
func (b *bounds) add(r *tacho.Record, v values, digests []stat.Digest) {
	if !r.OK() {
		return
	}
	exact := r.SentSlack == 0 && b.eventsExact(r)
	for i, m := range Classic {
		if !exact || b.of[i].low != nil {
			b.of[i].add(m, r, v[i].Values, &digests[i])
		}
	}
}

// eventsExact says whether the times of all events are, and notes the gaps between
// those that are.
func (b *bounds) eventsExact(r *tacho.Record) bool {
	if r.Clock == tacho.VirtualClock {
		return true // nobody asks what is usual where all are
	}
	exact := true
	for i := range r.Events {
		exact = exact && !r.Events[i].Coalesced()
		b.unknown = b.unknown || r.Events[i].Slack == tacho.UnknownSlack
		if i > 0 && !r.Events[i-1].Coalesced() && !r.Events[i].Coalesced() {
			b.exact.add(r.Events[i].At - r.Events[i-1].At)
		}
	}
	return exact
}

// merge takes in o. The digests of both are those before they are merged.
func (b *bounds) merge(o *bounds, digests, others []stat.Digest) {
	b.unknown = b.unknown || o.unknown
	b.exact.merge(&o.exact)
	for i := range b.of {
		b.of[i].merge(&o.of[i], &digests[i], &others[i])
	}
}

// exactEnough is how many gaps must be exact to tell what is usual.
const exactEnough = 100

// summarize tells how far times may be off.
func (b *bounds) summarize(s *Summary) {
	if b.unknown {
		s.ITLSlackUnknown = true
		return
	}
	for i, m := range Classic {
		b.of[i].bound(s.Dist(m).Stats)
	}
	s.ITLSlackMillis = b.of[indexITL].slack.percentile(99, s.Dist(ITL).N)
	s.TTFTSlackMillis = b.of[indexTTFT].slack.percentile(99, s.Dist(TTFT).N)
	if n := b.exact.count(); n >= exactEnough && s.ITLSlackMillis > 0 {
		gap := b.exact.percentile(99, n)
		s.ExactGapMillis = &gap
	}
}

// A slack counts values by how far off they may be, those that are exact left
// out. It is nil while it is empty.
type slack []int

func (s *slack) add(d time.Duration) {
	if *s == nil {
		*s = make(slack, int(tacho.UnknownSlack)+1)
	}
	(*s)[tacho.SlackOf(d)]++
}

func (s *slack) merge(o *slack) {
	if *s == nil && *o != nil {
		*s = make(slack, int(tacho.UnknownSlack)+1)
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

// percentile is by how many milliseconds p percent of all so many values are
// off at most.
func (s slack) percentile(p float64, all int) float64 {
	beyond := int(float64(all) * (1 - p/100))
	for off, n := range slices.Backward(s) {
		if beyond -= n; beyond < 0 {
			return millis(tacho.Slack(off).Duration())
		}
	}
	return 0
}
