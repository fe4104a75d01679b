package tap

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// A sending is a stream cut into segments and sent over a network with loss, retransmits
// and reordering. It lists the segments by arrival time.
type sending struct {
	size int
	came []arrival
}

type arrival struct {
	from, to int
	at       int64
}

func newSending(r *rand.Rand) sending {
	s := sending{size: 200 + r.IntN(800)}
	var cuts []arrival
	for from := 0; from < s.size; {
		to := min(s.size, from+1+r.IntN(40))
		cuts = append(cuts, arrival{from: from, to: to})
		from = to
	}
	for i := range cuts { // some segments overtake their neighbours
		if r.IntN(4) == 0 {
			j := min(len(cuts)-1, i+r.IntN(6))
			cuts[i], cuts[j] = cuts[j], cuts[i]
		}
	}
	for i, c := range cuts {
		s.came = append(s.came, c)
		if r.IntN(5) == 0 { // retransmitted, possibly with other boundaries
			again := cuts[r.IntN(i+1)]
			again.from = max(0, again.from-r.IntN(30))
			s.came = append(s.came, again)
		}
	}
	for i := range s.came {
		s.came[i].at = int64(1000 + 10*i)
	}
	return s
}

// whole is the model: for each n, the time at which all of the first n bytes had arrived.
func (s sending) whole() []int64 {
	first := make([]int64, s.size)
	for _, a := range s.came {
		for b := a.from; b < a.to; b++ {
			if first[b] == 0 {
				first[b] = a.at
			}
		}
	}
	out := make([]int64, s.size+1)
	for b, at := range first {
		out[b+1] = max(out[b], at)
	}
	return out
}

// syns are sequence numbers before and at the wrap.
var syns = []uint32{0, 1, 12345, math.MaxInt32 - 100, math.MaxUint32 - 300, math.MaxUint32 - 1, math.MaxUint32}

func TestFlowIsThePrefixModel(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := newSending(r)
		syn := syns[r.IntN(len(syns))]
		var f flow
		f.start(syn)
		for _, a := range s.came {
			f.add(syn+1+uint32(a.from), a.to-a.from, a.at)
		}
		want := s.whole()
		for n := 1; n <= s.size; n++ {
			end, at := f.at(uint64(n))
			if at != want[n] || end < uint64(n) || want[min(end, uint64(s.size))] != want[n] {
				t.Fatalf("seed %d: the first %d bytes arrived at %d (up to %d), want %d", seed, n, at, end, want[n])
			}
		}
		if end, _ := f.at(uint64(s.size) + 1); end != 0 {
			t.Fatalf("seed %d: more than was sent arrived", seed)
		}
		if len(f.ahead) != 0 {
			t.Fatalf("seed %d: all has come, and %v still waits", seed, f.ahead)
		}
	}
}

// If the tap misses segments, times may be missing but are never wrong. The reader reads
// at random times and knows when it had the bytes.
func TestFlowThatMissesSegmentsIsNeverWrong(t *testing.T) {
	asked, unknown := 0, 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 2))
		s := newSending(r)
		want := s.whole()
		var f flow
		f.start(7)
		read := uint64(0)
		for i, a := range s.came {
			if r.IntN(12) > 0 {
				f.add(8+uint32(a.from), a.to-a.from, a.at)
			}
			if i < len(s.came)-1 && r.IntN(3) > 0 {
				continue // the reader is late
			}
			has := uint64(0)
			for n, at := range want {
				if n > 0 && at <= a.at {
					has = uint64(n)
				}
			}
			for read < has {
				asked++
				end, at := f.at(read + 1)
				switch {
				case end == 0:
					f.skip(has)
					unknown++
					end = has
				case at == 0:
					unknown++
				case at > a.at: // later than the read
					unknown++
				case at < want[read+1] || at > want[read+1] && !repeatedBetween(s, read, want[read+1], at):
					t.Fatalf("seed %d: byte %d arrived at %d, not at %d", seed, read, want[read+1], at)
				}
				read = min(end, has)
			}
			f.forget(read)
		}
	}
	if unknown == 0 || unknown > asked/2 {
		t.Errorf("%d of %d times are unknown", unknown, asked)
	}
}

// repeatedBetween reports whether a byte the flow missed was retransmitted before it was
// read. The flow cannot distinguish such a retransmit from the first copy.
func repeatedBetween(s sending, read uint64, first, at int64) bool {
	return slices.ContainsFunc(s.came, func(a arrival) bool {
		return a.at > first && a.at <= at && uint64(a.from) <= read
	})
}

func TestFlowIsBounded(t *testing.T) {
	var f flow
	f.start(0)
	for i := range 3 * maxPoints {
		f.add(uint32(1+i), 1, int64(i+1))
	}
	if len(f.points) > maxPoints {
		t.Errorf("%d points are kept", len(f.points))
	}
	if end, at := f.at(1); end == 0 || at != 0 {
		t.Errorf("the oldest byte has the time %d, want it forgotten", at)
	}
	if _, at := f.at(3 * maxPoints); at != 3*maxPoints {
		t.Errorf("the latest byte has the time %d", at)
	}
	for i := range 3 * maxAhead { // every other byte, beyond a gap
		f.add(uint32(3*maxPoints+10+2*i), 1, 1)
	}
	if len(f.ahead) > maxAhead {
		t.Errorf("%d stretches wait", len(f.ahead))
	}
	f.skip(3*maxPoints + 10*maxAhead)
	f.add(uint32(3*maxPoints+10*maxAhead+1), 5, 99)
	if _, at := f.at(3*maxPoints + 10*maxAhead + 5); at != 99 {
		t.Errorf("bytes after a skipped gap have the time %d", at)
	}
}

func TestFlowTellsRepeats(t *testing.T) {
	var f flow
	f.start(0)
	for _, step := range []struct {
		seq  uint32
		n    int
		at   int64
		want segmentKind
	}{
		{1, 10, 100, inOrder},
		{1, 10, 100, duplicate},
		{1, 10, 130, repeated},
		{0, 1, 140, repeated}, // a keep-alive repeats the last byte
		{21, 10, 150, outOfOrder},
		{21, 10, 160, repeated},
		{11, 10, 170, inOrder},
		{31, 1, 180, inOrder},
	} {
		if got := f.add(step.seq, step.n, step.at); got != step.want {
			t.Errorf("segment at %d: %d, want %d", step.at, got, step.want)
		}
	}
}
