package sim

import (
	"context"
	"sync"
	"time"

	"tacho/sim/step"
)

// batched is the model that runs the step engine by the clock: one goroutine
// steps, and hands each answer what the step produced for it.
type batched struct {
	clock   *clock
	profile step.Profile

	mu     sync.Mutex
	server *step.Server
	runs   map[uint64]*batchedRun
	lastID uint64
	closed bool // the bell is
	bell   bell // rung when a request has come
}

func newBatched(c *clock, p step.Profile, seed uint64, precise bool) (*batched, error) {
	server, err := step.NewServer(p, seed)
	if err != nil {
		return nil, err
	}
	m := &batched{clock: c, profile: p, server: server, runs: map[uint64]*batchedRun{}}
	if m.bell = newGong(); precise {
		m.bell = newBell()
	}
	return m, nil
}

// drive lets happen what is due until ctx is done: at the times that the server
// computed, however late this goroutine is woken.
func (m *batched) drive(ctx context.Context) {
	defer m.silence()
	defer context.AfterFunc(ctx, m.ring)()
	for ctx.Err() == nil {
		m.mu.Lock()
		at, busy := m.server.Next()
		m.mu.Unlock()
		wait := forever
		if busy {
			wait = time.Until(m.clock.wall(at))
		}
		if wait > 0 {
			m.bell.wait(wait) // a request, or a pause of the clock, may change what is next
			continue
		}
		m.mu.Lock()
		m.server.Advance(at, m.emit)
		m.mu.Unlock()
	}
}

// ring wakes whoever drives, if anybody still does.
func (m *batched) ring() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		m.bell.ring()
	}
}

func (m *batched) silence() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.bell.close()
}

// emit is called with the lock held.
func (m *batched) emit(e *step.Emission) {
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
	default: // it has been told and not come yet
	}
}

func (m *batched) start(a *ask, arrival time.Duration) (run, error) {
	// The same prompt gets an answer of the same length, whenever it comes.
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
	m.ring()
	return r, nil
}

func (m *batched) load() load {
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

func (m *batched) forget() {
	m.mu.Lock()
	m.server.DropPrefixes()
	m.mu.Unlock()
}

type batchedRun struct {
	model *batched
	id    uint64
	ready chan struct{} // more is pending

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
		r.model.server.Cancel(0, r.id) // it tells nothing late, so that the time does not matter
	}
}
