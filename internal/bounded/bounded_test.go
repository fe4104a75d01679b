package bounded

import (
	"testing"
)

// A failing is a testing.TB that counts errors.
type failing struct {
	testing.TB
	errors int
}

func (f *failing) Helper()               {}
func (f *failing) Errorf(string, ...any) { f.errors++ }

var sink []byte

func TestRun(t *testing.T) {
	for size, want := range map[int]int{1 << 20: 0, 9 << 20: 1} {
		f := &failing{TB: t}
		Run(f, 8<<20, func() { sink = make([]byte, size) })
		if f.errors != want && !raced {
			t.Errorf("%d bytes: %d errors, want %d", size, f.errors, want)
		}
	}
}

// Code that allocates without end is stopped.
func TestWatchStops(t *testing.T) {
	if raced {
		t.Skip("with the race detector only time is limited")
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	sink = make([]byte, 2<<20)
	watch(make(chan struct{}), 1<<20)
}
