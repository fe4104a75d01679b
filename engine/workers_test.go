package engine

import (
	"sync"
	"sync/atomic"
	"testing"
)

// Short sessions that arrive together share one goroutine. If many wait, others start, so
// that a blocked session delays only a few.
func TestWorkersShareShortSessions(t *testing.T) {
	var s workerPool
	var first atomic.Int64
	var mu sync.Mutex
	mu.Lock() // makes the first session wait
	for i := range maxShort {
		s.GoShort(func() {
			if i == 0 {
				mu.Lock()
				defer mu.Unlock()
			}
			first.Add(1)
		})
	}
	s.mu.Lock()
	at := s.shortWorkers
	s.mu.Unlock()
	if at != 1 {
		t.Errorf("%d goroutines are at %d sessions, want 1", at, maxShort)
	}
	var others atomic.Int64
	var more sync.WaitGroup
	more.Add(3 * maxShort)
	for range 3 * maxShort {
		s.GoShort(func() { others.Add(1); more.Done() })
	}
	more.Wait() // the test would hang, because the first session still waits
	mu.Unlock()
	s.Wait()
	if first.Load() != maxShort || others.Load() != 3*maxShort || s.shortWorkers != 0 || len(s.short) != 0 {
		t.Errorf("ran %d and %d, %d at %d", first.Load(), others.Load(), s.shortWorkers, len(s.short))
	}
}
