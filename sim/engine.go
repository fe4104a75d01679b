package sim

import (
	"context"
	"sync"
	"time"

	"github.com/tacho-bench/tacho/sim/step"
)

// batchModel is a model that runs the step engine in real time. One goroutine executes
// the steps and distributes their tokens to the answers.
type batchModel struct {
	clock   *clock
	profile step.Profile

	mu     sync.Mutex
	server *step.Server
	runs   map[uint64]*batchedRun
	lastID uint64
	closed bool  // the waker is closed
	waker  waker // woken when a request arrives
}

func newBatchModel(c *clock, p step.Profile, seed uint64, precise bool) (*batchModel, error) {
	server, err := step.NewServer(p, seed)
	if err != nil {
		return nil, err
	}
	m := &batchModel{clock: c, profile: p, server: server, runs: map[uint64]*batchedRun{}}
	if m.waker = newTimerWaker(); precise {
		m.waker = newWaker()
	}
	return m, nil
}

// drive executes due events until ctx is done. Events keep the times computed by
// the server, even if this goroutine wakes up late.
func (m *batchModel) drive(ctx context.Context) {
	defer m.closeWaker()
	defer context.AfterFunc(ctx, m.wake)()
	for ctx.Err() == nil {
		m.mu.Lock()
		at, busy := m.server.Next()
		m.mu.Unlock()
		wait := forever
		if busy {
			wait = time.Until(m.clock.wall(at))
		}
		if wait > 0 {
			m.waker.wait(wait) // a request or a pause of the clock may change the next event
			continue
		}
		m.mu.Lock()
		m.server.Advance(at, m.emit)
		m.mu.Unlock()
	}
}

// wake wakes the drive goroutine, if it still runs.
func (m *batchModel) wake() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		m.waker.wake()
	}
}

func (m *batchModel) closeWaker() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.waker.close()
}

// emit is called with the lock held.
func (m *batchModel) emit(e *step.Emission) {
	r := m.runs[e.ID]
	if r == nil {
		return
	}
	if e.Last {
		delete(m.runs, e.ID)
	}
	r.mu.Lock()
	r.pending = append(r.pending, emission{
		tokens: e.Tokens, last: e.Last, eos: e.EOS, finish: e.Finish,
		at: e.At, cached: e.Cached, preemptions: e.Preemptions,
		engineTimes: engineTimes{queued: e.Queued, admitted: e.Admitted, firstMade: e.FirstMade, made: e.Made, steps: e.Steps},
	})
	r.mu.Unlock()
	select {
	case r.ready <- struct{}{}:
	default: // already signalled
	}
}

func (m *batchModel) start(a *generation, arrival time.Duration) (run, error) {
	// The length of an answer depends on the prompt alone.
	q := &step.Request{Prompt: a.Tokens, MaxNew: a.limit, IgnoreEOS: a.ignoreEOS, Draw: a.Seed, Adapter: a.adapter, Priority: a.priority}
	if m.profile.KV.PrefixCache {
		q.Blocks = a.WithAnswer(a.limit)
	}
	r := &batchedRun{model: m, ready: make(chan struct{}, 1)}
	m.mu.Lock()
	m.lastID++
	q.ID, r.id = m.lastID, m.lastID
	err := m.server.Add(arrival, q)
	if err == nil {
		m.runs[r.id] = r
	}
	m.mu.Unlock()
	if err != nil {
		return nil, err
	}
	m.wake()
	return r, nil
}

func (m *batchModel) load() load {
	m.mu.Lock()
	s := m.server.Stats()
	m.mu.Unlock()
	return load{
		running: s.Running, waiting: s.Waiting,
		kvBlocks: s.KVBlocks, kvUsed: s.KVUsedBlocks,
		prefixQueries: s.PrefixQueryTokens, prefixHits: s.PrefixHitTokens,
		preemptions: s.Preemptions, steps: s.Steps, promptTokens: s.PromptTokens, busy: s.BusyTime,
		maxRunning: m.profile.MostRunning(), blockTokens: m.profile.KV.BlockTokens,
	}
}

func (m *batchModel) dropCache() {
	m.mu.Lock()
	m.server.DropPrefixes()
	m.mu.Unlock()
}

type batchedRun struct {
	model *batchModel
	id    uint64
	ready chan struct{} // pending is not empty

	mu      sync.Mutex
	pending []emission
	taken   int // of pending
}

func (r *batchedRun) next(ctx context.Context) (emission, error) {
	for {
		if m, ok := r.take(); ok {
			return m, nil
		}
		select {
		case <-r.ready:
		case <-ctx.Done():
			return emission{}, ctx.Err()
		}
	}
}

func (r *batchedRun) take() (emission, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken == len(r.pending) {
		return emission{}, false
	}
	m := r.pending[r.taken]
	r.taken++
	if r.taken == len(r.pending) {
		r.pending, r.taken = r.pending[:0], 0
	}
	return m, true
}

func (r *batchedRun) stop() {
	r.model.mu.Lock()
	defer r.model.mu.Unlock()
	if _, running := r.model.runs[r.id]; running {
		delete(r.model.runs, r.id)
		r.model.server.Cancel(0, r.id) // delivery is not deferred, so the time does not matter
	}
}
