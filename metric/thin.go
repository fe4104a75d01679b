package metric

import (
	"cmp"
	"time"

	"tacho"
	"tacho/stat"
)

// marksLimit is of how many requests the marks are kept: a run may go on for days.
const marksLimit = 1 << 16

// mostEvery is the most requests that one stands for. Those that are all the same turn
// of the same session cannot be told apart, and are all kept.
const mostEvery = 1 << 30

// thinned is what is known of the requests of a long run whose marks are not all kept:
// of so many requests those of one are. Sums and counts are of all of them; when the
// run was in balance, and what the slowest have in common, is told by those that are
// kept, which are spread evenly over the run.
type thinned struct {
	every   uint64 // 0: all are kept
	spent   spent  // by those that are not kept
	origin  time.Duration
	seconds overlap // that requests touch, from origin on
	flying  overlap // requests, from when they are sent
	slots   overlap // the same, from when the limit lets them go
}

// of is how many requests one of those that are kept stands for.
func (t *thinned) of() int { return int(max(t.every, 1)) }

// keeps says whether a request is one of those that are kept: it depends on nothing
// but which turn of which session it is.
func (t *thinned) keeps(m *marks) bool { return (m.session+uint64(m.turn))%t.every == 0 }

// mark keeps the marks of a record.
func (a *Accumulator) mark(m marks) {
	a.dues.add(&m, due)
	a.sents.add(&m, sent)
	if m.sent != tacho.Never {
		a.inFlight += m.end - m.sent + m.connect
	}
	t := &a.thinned
	if t.every > 0 {
		t.overlaps(&m)
	}
	if t.every > 0 && !t.keeps(&m) {
		t.drop(&m)
		return
	}
	a.marks = stat.Append(a.marks, m)
	if len(a.marks) > cmp.Or(a.most, marksLimit) && a.thinned.every < mostEvery {
		a.thin()
	}
}

// thin keeps the marks of half as many requests.
func (a *Accumulator) thin() {
	t := &a.thinned
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

// drop takes in what is still asked of marks that are not kept.
func (t *thinned) drop(m *marks) {
	if m.ok && m.sent != tacho.Never {
		t.spent.add(m)
	}
}

func (t *thinned) overlaps(m *marks) {
	if m.streamed() {
		t.seconds.add(m.sent-t.origin, m.last-t.origin+time.Second)
	}
	t.flying.add(m.sent, m.end)
	t.slots.add(m.slot, m.end)
}

// mergeMarks takes in the marks of b.
func (a *Accumulator) mergeMarks(b *Accumulator) {
	if a.thinned.every == 0 && b.thinned.every == 0 {
		for i := range b.marks {
			a.mark(b.marks[i])
		}
		return
	}
	for a.thinned.every < max(b.thinned.every, 2) {
		a.thin()
	}
	t := &a.thinned
	if b.thinned.every == 0 {
		for i := range b.marks {
			a.mark(b.marks[i])
		}
		return
	}
	a.dues.merge(&b.dues)
	a.sents.merge(&b.sents)
	a.inFlight += b.inFlight
	t.spent.merge(&b.thinned.spent)
	t.seconds.merge(&b.thinned.seconds)
	t.flying.merge(&b.thinned.flying)
	t.slots.merge(&b.thinned.slots)
	for i := range b.marks {
		if m := b.marks[i]; t.keeps(&m) {
			a.marks = stat.Append(a.marks, m)
		} else {
			t.drop(&m)
		}
	}
}

// An overlap tells how many requests are under way when a unit of time ends.
type overlap struct {
	unit time.Duration
	more []int32 // than in the unit before
}

// add takes in a request that is under way from one moment up to another.
func (o *overlap) add(from, to time.Duration) {
	if from == tacho.Never || to <= from {
		return
	}
	o.at(from, 1)
	o.at(to, -1)
}

func (o *overlap) at(moment time.Duration, n int32) {
	for moment/o.unit >= mostBins {
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

func (o *overlap) peak() int {
	now, peak := 0, 0
	for _, n := range o.more {
		now += int(n)
		peak = max(peak, now)
	}
	return peak
}
