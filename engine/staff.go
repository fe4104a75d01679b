package engine

import "sync"

// staff are goroutines that sessions run on, one after the other. A fresh one would
// have to grow its stack first, which takes as long as to send a request.
type staff struct {
	all sync.WaitGroup // sessions that are not over

	mu   sync.Mutex
	idle []chan func() // the latest last: its stack is in the cache
}

// Go runs a session.
func (s *staff) Go(session func()) {
	s.all.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if top := len(s.idle) - 1; top >= 0 {
		s.idle[top] <- session
		s.idle = s.idle[:top]
		return
	}
	go s.work(session)
}

// hold and release are around a session that has nobody yet.
func (s *staff) hold()    { s.all.Add(1) }
func (s *staff) release() { s.all.Done() }

// work runs a session, and then others until there are none.
func (s *staff) work(session func()) {
	next := make(chan func(), 1)
	for session != nil {
		session()
		s.mu.Lock()
		s.idle = append(s.idle, next)
		s.mu.Unlock()
		s.all.Done()
		session = <-next
	}
}

// Wait waits until all sessions are over, and sends the goroutines home.
func (s *staff) Wait() {
	s.all.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, next := range s.idle {
		close(next)
	}
	s.idle = nil
}
