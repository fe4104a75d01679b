package engine

import "sync"

// A workerPool runs sessions on reused goroutines. A new goroutine would have to grow its
// stack, which takes as long as sending a request.
type workerPool struct {
	all sync.WaitGroup // unfinished sessions

	mu   sync.Mutex
	idle []chan func() // the latest last, because its stack is in the cache

	short        []func() // queue of short sessions
	shortWorkers int      // goroutines that run short sessions
}

// maxShort is how many short sessions may wait per goroutine.
const maxShort = 8

// GoShort runs the rest of a session that hardly waits. Sessions that arrive together
// share a goroutine, because waking another one costs as much as running the session. If
// more than maxShort sessions wait per goroutine, for example because one of them blocks,
// another goroutine starts.
func (s *workerPool) GoShort(session func()) {
	s.mu.Lock()
	s.short = append(s.short, session)
	more := len(s.short) > s.shortWorkers*maxShort
	if more {
		s.shortWorkers++
	}
	s.mu.Unlock()
	if more {
		s.Go(s.runShort)
	}
}

// runShort runs short sessions until the queue is empty.
func (s *workerPool) runShort() {
	for {
		s.mu.Lock()
		if len(s.short) == 0 {
			s.short = nil
			s.shortWorkers--
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
func (s *workerPool) Go(session func()) {
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

func (s *workerPool) done() { s.all.Done() }

// work runs a session, and then others until Wait closes its channel.
func (s *workerPool) work(session func()) {
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

// Wait waits for all sessions and ends the goroutines.
func (s *workerPool) Wait() {
	s.all.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, next := range s.idle {
		close(next)
	}
	s.idle = nil
}
