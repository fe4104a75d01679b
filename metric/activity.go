package metric

import (
	"math/bits"
	"time"

	"github.com/tacho-bench/tacho"
)

// activity marks the milliseconds in which a token may have arrived on any stream. In a long run, it marks units of
// 2, 4, ... milliseconds.
type activity struct {
	marked  []uint64 // a bit for each unit
	shift   int      // a unit is 2^shift milliseconds long
	resumed resumed
}

// maxActivity is the number of words of an activity: 256 KiB, or 35 minutes of milliseconds.
const maxActivity = 1 << 15

// resumed counts how streams went on after a gap of minPause, by the unit of the gap's end.
type resumed struct {
	at    map[int]resumption
	shift int // a unit is 2^shift milliseconds long
}

type resumption struct{ streams, lumps int }

// maxResumed is the number of units of a resumed.
const maxResumed = 1 << 15

// lumpAfterGap is the number of events in a lump after a gap that an engine does not send in one step.
const lumpAfterGap = 3

func (a *activity) add(r *tacho.Record) {
	for i := range r.Events {
		e := &r.Events[i]
		from := e.At
		if r.Clock != tacho.VirtualClock {
			from -= e.Slack.Duration()
		}
		a.mark(from, e.At)
		if i > 0 && from-r.Events[i-1].At >= minPause {
			one := resumption{streams: 1}
			lump := i + 1
			for lump < len(r.Events) && r.Events[lump].At-r.Events[lump-1].At < fastestToken {
				lump++
			}
			if lump-i >= lumpAfterGap {
				one.lumps = 1
			}
			a.resumed.add(int(e.At/time.Millisecond)>>a.resumed.shift, one)
		}
	}
}

// mark marks the units between two times.
func (a *activity) mark(from, to time.Duration) {
	first, last := int(max(from, 0)/time.Millisecond), int(max(to, 0)/time.Millisecond)
	for last>>a.shift >= 64*maxActivity {
		a.widen()
	}
	for i := first >> a.shift; i <= last>>a.shift; i++ {
		for i/64 >= len(a.marked) {
			a.marked = append(a.marked, make([]uint64, i/64+1-len(a.marked))...)
		}
		a.marked[i/64] |= 1 << (i % 64)
	}
}

func (a *activity) widen() {
	half := make([]uint64, (len(a.marked)+1)/2)
	for i, word := range a.marked {
		for ; word != 0; word &= word - 1 {
			to := (64*i + bits.TrailingZeros64(word)) / 2
			half[to/64] |= 1 << (to % 64)
		}
	}
	a.marked, a.shift = half, a.shift+1
}

func (a *activity) merge(o *activity) {
	for i, word := range o.marked {
		for ; word != 0; word &= word - 1 {
			from := time.Duration(64*i+bits.TrailingZeros64(word)) << o.shift * time.Millisecond
			a.mark(from, from+time.Millisecond<<o.shift-1)
		}
	}
	for a.shift < o.shift && len(o.marked) > 0 {
		a.widen()
	}
	a.resumed.merge(&o.resumed)
}

func (r *resumed) add(at int, n resumption) {
	if r.at == nil {
		r.at = map[int]resumption{}
	}
	was := r.at[at]
	r.at[at] = resumption{was.streams + n.streams, was.lumps + n.lumps}
	for len(r.at) > maxResumed {
		r.widen()
	}
}

func (r *resumed) widen() {
	old := r.at
	r.at, r.shift = make(map[int]resumption, len(old)/2), r.shift+1
	for at, n := range old {
		r.add(at/2, n)
	}
}

func (r *resumed) merge(o *resumed) {
	for r.shift < o.shift {
		r.widen()
	}
	for at, n := range o.at {
		r.add(at<<o.shift>>r.shift, n)
	}
}

// lumped reports whether most streams that went on between two times did so with a lump.
func (r *resumed) lumped(from, to time.Duration) bool {
	sum := resumption{}
	for at := int(from/time.Millisecond) >> r.shift; at <= int(to/time.Millisecond)>>r.shift; at++ {
		sum.streams, sum.lumps = sum.streams+r.at[at].streams, sum.lumps+r.at[at].lumps
	}
	return 2*sum.lumps > sum.streams
}

// A quiet is a time in which no token arrived.
type quiet struct{ from, to time.Duration }

func (q quiet) length() time.Duration { return q.to - q.from }

// quiets returns the times without a token, from the first to the last token, that have a minimum length.
func (a *activity) quiets(least time.Duration) (out []quiet) {
	before := -1 // the last marked unit
	unit := time.Millisecond << a.shift
	for i, word := range a.marked {
		for ; word != 0; word &= word - 1 {
			at := 64*i + bits.TrailingZeros64(word)
			if q := (quiet{time.Duration(before+1) * unit, time.Duration(at) * unit}); before >= 0 && q.length() >= least {
				out = append(out, q)
			}
			before = at
		}
	}
	return out
}
