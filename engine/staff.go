package engine

import "sync"

// staff are goroutines that sessions run on, one after the other. A fresh one would
// have to grow its stack first, which takes as long as to send a request.
type staff struct {
	all sync.WaitGroup // sessions that are not over

	mu   sync.Mutex
	idle []chan func() // the latest last: its stack is in the cache

	short []func() // sessions that hardly wait any more,
	at    int      // and how many goroutines are at them
}

// mostShort is how many short sessions may wait for one goroutine.
const mostShort = 8

// Soon runs what is left of a session and hardly waits for anything. Those that come
// together have one goroutine: to wake another for each costs as much as to run it. More
// come where many wait, as they do where one of them waits after all.
func (s *staff) Soon(session func()) {
	s.mu.Lock()
	s.short = append(s.short, session)
	more := len(s.short) > s.at*mostShort
	if more {
		s.at++
	}
	s.mu.Unlock()
	if more {
		s.Go(s.runShort)
	}
}

// runShort runs short sessions until there are none.
func (s *staff) runShort() {
	for {
		s.mu.Lock()
		if len(s.short) == 0 {
			s.short = nil
			s.at--
			s.mu.Unlock()
			return
		}
		session := s.short[0]
		s.short[0] = nil
		s.short = s.short[1:]
		s.mu.Unlock()
		session()
	}
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
