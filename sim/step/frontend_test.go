package step

import (
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

func TestFrontEnd(t *testing.T) {
	const ms = time.Millisecond
	for _, tc := range []struct {
		name     string
		front    FrontEnd
		arrivals []time.Duration
		want     []time.Duration // when the scheduler sees them
	}{
		{"none", FrontEnd{}, []time.Duration{0, ms, ms}, []time.Duration{0, ms, ms}},
		{"fixed delays overlap", FrontEnd{FixedMs: 5}, []time.Duration{0, ms, 9 * ms}, []time.Duration{5 * ms, 6 * ms, 14 * ms}},
		{
			"work is one after the other",
			FrontEnd{FixedMs: 5, PerRequestMs: 2},
			[]time.Duration{0, 0, 0, 10 * ms},
			[]time.Duration{7 * ms, 9 * ms, 11 * ms, 17 * ms},
		},
		{
			"a burst is held",
			FrontEnd{FixedMs: 5, PerRequestMs: 2, HoldsBurst: true},
			[]time.Duration{0, 0, 3 * ms, 20 * ms},
			[]time.Duration{11 * ms, 11 * ms, 11 * ms, 27 * ms},
		},
		{
			"one of a burst comes late",
			FrontEnd{FixedMs: 5, PerRequestMs: 1, HoldsBurst: true},
			[]time.Duration{0, 4 * ms, 20 * ms},
			[]time.Duration{10 * ms, 10 * ms, 26 * ms},
		},
		{
			"but not for ever",
			FrontEnd{PerRequestMs: 1500, HoldsBurst: true},
			[]time.Duration{0, 0, 0},
			// the whole burst would take until 4.5 s
			[]time.Duration{longestHold, 3000 * ms, 4500 * ms},
		},
	} {
		f := newFrontEnd(tc.front)
		for i, at := range tc.arrivals {
			f.add(at, &seq{Request: Request{ID: uint64(i)}})
		}
		var got []time.Duration
		for at, ok := f.ready(); ok; at, ok = f.ready() {
			if s := f.pop(at - 1); s != nil {
				t.Errorf("%s: request %d left before it was ready", tc.name, s.ID)
			}
			got = append(got, at)
			f.pop(at)
		}
		if diff := gocmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func TestFIFOCompacts(t *testing.T) {
	var q fifo
	next := uint64(0)
	for id := range uint64(20_000) {
		q.push(&seq{Request: Request{ID: id}, cancelled: id%7 == 3})
		if id%2 == 1 { // half as fast out as in
			for next%7 == 3 {
				next++
			}
			if got := q.pop(); got.ID != next {
				t.Fatalf("got %d, want %d", got.ID, next)
			}
			next++
		}
	}
	for s := q.pop(); s != nil; s = q.pop() {
		for next%7 == 3 {
			next++
		}
		if s.ID != next {
			t.Fatalf("got %d, want %d", s.ID, next)
		}
		next++
	}
	if next < 20_000-1 || q.peek() != nil {
		t.Errorf("ended at %d", next)
	}
}
