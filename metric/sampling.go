package metric

import (
	"cmp"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/stat"
)

// marksLimit is the number of requests with marks in memory. A run may last for days.
const marksLimit = 1 << 16

// maxEvery is the largest sampling interval. Requests that all have the same session and turn cannot be
// sampled and are all kept.
const maxEvery = 1 << 30

// sampling holds the state of a long run with marks of a sample of requests only: one in every. Sums
// and counts cover all requests. The steady state and the slowest requests are computed from the
// sample, which is spread evenly over the run.
type sampling struct {
	every   uint64 // 0 means all marks are kept
	spent   spent  // by requests outside the sample
	origin  time.Duration
	seconds overlap // requests active in each second, from origin on
	flying  overlap // requests in flight, from their send time
	slots   overlap // requests in flight, from their slot time
}

// weight returns the number of requests that one request of the sample represents.
func (t *sampling) weight() int { return int(max(t.every, 1)) }

// keeps reports whether a request is in the sample. The result depends on its session and turn alone.
func (t *sampling) keeps(m *marks) bool { return (m.session+uint64(m.turn))%t.every == 0 }

// mark stores the marks of a record.
func (a *Accumulator) mark(m marks) {
	a.dues.add(&m, due)
	a.sents.add(&m, sent)
	if m.sent != tacho.Never {
		a.inFlight += m.end - m.sent + m.connect
	}
	t := &a.sampling
	if t.every > 0 {
		t.overlaps(&m)
	}
	if t.every > 0 && !t.keeps(&m) {
		t.drop(&m)
		return
	}
	a.marks = stat.Append(a.marks, m)
	if len(a.marks) > cmp.Or(a.maxMarks, marksLimit) && a.sampling.every < maxEvery {
		a.thin()
	}
}

// thin halves the sample.
func (a *Accumulator) thin() {
	t := &a.sampling
	if t.every == 0 {
		t.every = 1
		t.origin, _ = origin(a.marks)
		t.seconds.unit, t.flying.unit, t.slots.unit = time.Second, time.Millisecond, time.Millisecond
		for i := range a.marks {
			t.overlaps(&a.marks[i])
		}
	}
	t.every *= 2
	kept := a.marks[:0]
	for i := range a.marks {
		if m := &a.marks[i]; t.keeps(m) {
			kept = append(kept, *m)
		} else {
			t.drop(m)
		}
	}
	clear(a.marks[len(kept):])
	a.marks = kept
}

// drop adds the parts of a request that are needed for requests outside the sample.
func (t *sampling) drop(m *marks) {
	if m.ok && m.sent != tacho.Never {
		t.spent.add(m)
	}
}

func (t *sampling) overlaps(m *marks) {
	if m.streamed() {
		t.seconds.add(m.sent-t.origin, m.last-t.origin+time.Second)
	}
	t.flying.add(m.sent, m.end)
	t.slots.add(m.slot, m.end)
}

// mergeMarks merges the marks of b.
func (a *Accumulator) mergeMarks(b *Accumulator) {
	if a.sampling.every == 0 && b.sampling.every == 0 {
		for i := range b.marks {
			a.mark(b.marks[i])
		}
		return
	}
	for a.sampling.every < max(b.sampling.every, 2) {
		a.thin()
	}
	t := &a.sampling
	if b.sampling.every == 0 {
		for i := range b.marks {
			a.mark(b.marks[i])
		}
		return
	}
	a.dues.merge(&b.dues)
	a.sents.merge(&b.sents)
	a.inFlight += b.inFlight
	t.spent.merge(&b.sampling.spent)
	t.seconds.merge(&b.sampling.seconds)
	t.flying.merge(&b.sampling.flying)
	t.slots.merge(&b.sampling.slots)
	for i := range b.marks {
		if m := b.marks[i]; t.keeps(&m) {
			a.marks = stat.Append(a.marks, m)
		} else {
			t.drop(&m)
		}
	}
}

// An overlap counts the active requests at the end of each unit of time.
type overlap struct {
	unit time.Duration
	more []int32 // change since the previous unit
}

// add adds a request that is active in [from, to).
func (o *overlap) add(from, to time.Duration) {
	if from == tacho.Never || to <= from {
		return
	}
	o.at(from, 1)
	o.at(to, -1)
}

func (o *overlap) at(moment time.Duration, n int32) {
	for moment/o.unit >= maxBins {
		o.unit *= 2
		for i, more := range o.more {
			o.more[i] = 0
			o.more[i/2] += more
		}
		o.more = o.more[:(len(o.more)+1)/2]
	}
	i := int(max(moment, 0) / o.unit)
	for len(o.more) <= i {
		o.more = append(o.more, 0)
	}
	o.more[i] += n
}

func (o *overlap) merge(b *overlap) {
	for i, n := range b.more {
		o.at(time.Duration(i)*b.unit, n)
	}
}
