package engine

import (
	"sync"
	"sync/atomic"
	"testing"
)

// What comes together is run by one goroutine. Where many wait, others help: one that
// waits after all holds up only a few.
func TestStaffRunsShortSessionsTogether(t *testing.T) {
	var s staff
	var first atomic.Int64
	var mu sync.Mutex
	mu.Lock() // so that the first waits
	for i := range mostShort {
		s.Soon(func() {
			if i == 0 {
				mu.Lock()
				defer mu.Unlock()
			}
			first.Add(1)
		})
	}
	s.mu.Lock()
	at := s.at
	s.mu.Unlock()
	if at != 1 {
		t.Errorf("%d goroutines are at %d sessions, want 1", at, mostShort)
	}
	var others atomic.Int64
	var more sync.WaitGroup
	more.Add(3 * mostShort)
	for range 3 * mostShort {
		s.Soon(func() { others.Add(1); more.Done() })
	}
	more.Wait() // or it never ends: the first still waits
	mu.Unlock()
	s.Wait()
	if first.Load() != mostShort || others.Load() != 3*mostShort || s.at != 0 || len(s.short) != 0 {
		t.Errorf("ran %d and %d, %d at %d", first.Load(), others.Load(), s.at, len(s.short))
	}
}
