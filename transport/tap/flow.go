package tap

import (
	"slices"
	"sort"
)

const (
	// maxPoints bounds what one direction of a connection remembers. Whoever asks
	// does so long before, and the oldest go.
	maxPoints = 1 << 14
	// maxAhead bounds the stretches that wait for bytes in front of them.
	maxAhead = 1 << 10
)

// A flow is one direction of a connection. It knows when its stream had how
// many bytes. A byte counts as arrived when all before it have, too: only then
// can the kernel hand it on. So after a reordering it has the time of the
// segment that closed the gap, and of a retransmitted segment the first copy counts.
type flow struct {
	started bool
	first   uint32  // sequence number of the first byte
	next    uint64  // so many bytes have arrived without a gap
	gone    uint64  // of so many nothing is remembered
	points  []point // in order of end, each beyond gone
	ahead   []stretch
}

// A point says when the stream had end bytes, and no fewer than the point
// before; at is 0 where that was not seen.
type point struct {
	end uint64
	at  int64
}

// A stretch is what arrived beyond a gap. Stretches are in order and do not touch.
type stretch struct{ from, to uint64 }

// start begins a stream by the sequence number of its SYN.
func (f *flow) start(syn uint32) { *f = flow{started: true, first: syn + 1} }

// What a segment was to the stream.
type novelty int

const (
	fresh    novelty = iota // it went on where the stream was, or closed a gap
	early                   // there is a gap before it
	repeated                // all of it was known
	doubled                 // it is the same segment, seen on another interface, too
)

// add takes a segment of n bytes. Sequence numbers wrap: seq is taken for the
// nearest to where the stream is.
func (f *flow) add(seq uint32, n int, at int64) novelty {
	beyond := int64(int32(seq - f.first - uint32(f.next)))
	to := beyond + int64(n)
	if to <= 0 {
		if _, was := f.at(f.next - uint64(-to)); was == at {
			return doubled
		}
		return repeated
	}
	end := f.next + uint64(to)
	if beyond > 0 {
		return f.hold(stretch{f.next + uint64(beyond), end})
	}
	f.advance(end, at)
	return fresh
}

// advance says that all up to end was there at a time, and with it what waited
// for just that.
func (f *flow) advance(end uint64, at int64) {
	i := 0
	for ; i < len(f.ahead) && f.ahead[i].from <= end; i++ {
		end = max(end, f.ahead[i].to)
	}
	f.ahead = slices.Delete(f.ahead, 0, i)
	if len(f.points) == maxPoints {
		f.forget(f.points[maxPoints/2].end)
	}
	f.next = end
	f.points = append(f.points, point{end, at})
}

// hold keeps a stretch that must wait. Where there is no room it is as if it had
// not been seen.
func (f *flow) hold(s stretch) novelty {
	from := sort.Search(len(f.ahead), func(i int) bool { return f.ahead[i].to >= s.from })
	to := sort.Search(len(f.ahead), func(i int) bool { return f.ahead[i].from > s.to })
	if from == to {
		if len(f.ahead) < maxAhead {
			f.ahead = slices.Insert(f.ahead, from, s)
		}
		return early
	}
	if f.ahead[from].from <= s.from && s.to <= f.ahead[from].to {
		return repeated
	}
	s.from, s.to = min(s.from, f.ahead[from].from), max(s.to, f.ahead[to-1].to)
	f.ahead = slices.Replace(f.ahead, from, to, s)
	return early
}

// at says when the stream had n bytes, and how many it had then. at is 0 where
// that was not seen, and end is 0 where it has not got so far.
func (f *flow) at(n uint64) (end uint64, at int64) {
	if n <= f.gone {
		return f.gone, 0
	}
	i := sort.Search(len(f.points), func(i int) bool { return f.points[i].end >= n })
	if i == len(f.points) {
		return 0, 0
	}
	return f.points[i].end, f.points[i].at
}

// skip is told that n bytes have arrived. If there is a gap before that, what
// closed it was not seen, so what waited for it has no time.
func (f *flow) skip(n uint64) {
	if n > f.next && f.started {
		f.advance(n, 0)
	}
}

// forget drops what is known of the first n bytes.
func (f *flow) forget(n uint64) {
	i := sort.Search(len(f.points), func(i int) bool { return f.points[i].end > n })
	if i > 0 {
		f.gone = f.points[i-1].end
		f.points = slices.Delete(f.points, 0, i)
	}
}
