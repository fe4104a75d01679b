package tap

import (
	"slices"
	"sort"
)

const (
	// maxPoints limits the memory of a flow. If it is reached, the older half is dropped;
	// callers ask long before.
	maxPoints = 1 << 14
	// maxAhead limits the number of ranges beyond a gap.
	maxAhead = 1 << 10
)

// A flow records when one direction of a connection had how many bytes. A byte has arrived
// once all bytes before it have arrived, because the kernel delivers it only then. So
// after reordering, a byte has the time of the segment that closed the gap. If a segment
// is retransmitted, its first copy counts.
type flow struct {
	started   bool
	first     uint32  // sequence number of the first byte
	next      uint64  // bytes received without a gap
	forgotten uint64  // bytes whose times are forgotten
	points    []point // ordered by end; each end > forgotten
	ahead     []byteRange
}

// A point is the time at which the stream reached end bytes. at is 0 if the tap missed it.
type point struct {
	end uint64
	at  int64
}

// A byteRange was received beyond a gap. Ranges are ordered and do not touch.
type byteRange struct{ from, to uint64 }

// start starts the stream after its SYN.
func (f *flow) start(syn uint32) { *f = flow{started: true, first: syn + 1} }

// segmentKind is the effect of a segment on the stream.
type segmentKind int

const (
	inOrder    segmentKind = iota // continues the stream or closes a gap
	outOfOrder                    // is beyond a gap
	repeated                      // contains only known bytes
	duplicate                     // is a copy seen on another interface
)

// add adds a segment of n bytes. Sequence numbers wrap, so add chooses the stream position
// nearest to the current one.
func (f *flow) add(seq uint32, n int, at int64) segmentKind {
	beyond := int64(int32(seq - f.first - uint32(f.next)))
	to := beyond + int64(n)
	if to <= 0 {
		if _, was := f.at(f.next - uint64(-to)); was == at {
			return duplicate
		}
		return repeated
	}
	end := f.next + uint64(to)
	if beyond > 0 {
		return f.hold(byteRange{f.next + uint64(beyond), end})
	}
	f.advance(end, at)
	return inOrder
}

// advance moves the stream to end at a time, and past the ranges that follow without a
// gap.
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

// hold keeps a range beyond a gap. If there are too many, the range is ignored.
func (f *flow) hold(s byteRange) segmentKind {
	from := sort.Search(len(f.ahead), func(i int) bool { return f.ahead[i].to >= s.from })
	to := sort.Search(len(f.ahead), func(i int) bool { return f.ahead[i].from > s.to })
	if from == to {
		if len(f.ahead) < maxAhead {
			f.ahead = slices.Insert(f.ahead, from, s)
		}
		return outOfOrder
	}
	if f.ahead[from].from <= s.from && s.to <= f.ahead[from].to {
		return repeated
	}
	s.from, s.to = min(s.from, f.ahead[from].from), max(s.to, f.ahead[to-1].to)
	f.ahead = slices.Replace(f.ahead, from, to, s)
	return outOfOrder
}

// at returns the time at which the stream had n bytes, and the number of bytes it had
// then. at is 0 if the tap missed it. end is 0 if the stream is shorter than n.
func (f *flow) at(n uint64) (end uint64, at int64) {
	if n <= f.forgotten {
		return f.forgotten, 0
	}
	i := sort.Search(len(f.points), func(i int) bool { return f.points[i].end >= n })
	if i == len(f.points) {
		return 0, 0
	}
	return f.points[i].end, f.points[i].at
}

// skip moves the stream to n bytes if it is shorter. The tap missed the segment that
// closed the gap, so the skipped bytes have no time.
func (f *flow) skip(n uint64) {
	if n > f.next && f.started {
		f.advance(n, 0)
	}
}

// forget drops the times of the first n bytes.
func (f *flow) forget(n uint64) {
	i := sort.Search(len(f.points), func(i int) bool { return f.points[i].end > n })
	if i > 0 {
		f.forgotten = f.points[i-1].end
		f.points = slices.Delete(f.points, 0, i)
	}
}
