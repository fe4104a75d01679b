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
	engine *step.Engine
	runs   map[uint64]*batchedRun
	lastID uint64
	now    time.Duration // the end of the latest step
	free   time.Duration // when the front end is done with the events it has
	work   chan struct{} // says that an idle engine has got something to do
}

func newBatched(c *clock, p step.Profile, seed uint64) (*batched, error) {
	e, err := step.New(p, seed)
	if err != nil {
		return nil, err
	}
	return &batched{clock: c, profile: p, engine: e, runs: map[uint64]*batchedRun{}, work: make(chan struct{}, 1)}, nil
}

// drive steps until ctx is done. Steps follow one another at the times the
// engine computed, however late this goroutine is woken.
func (m *batched) drive(ctx context.Context) {
	var timer *time.Timer
	now := m.clock.now()
	for {
		m.mu.Lock()
		end, busy := m.engine.Next(now)
		m.mu.Unlock()
		if !busy {
			select {
			case <-m.work:
			case <-ctx.Done():
				return
			}
			continue // a step that waits for the arrival comes next
		}
		if m.clock.sleep(ctx, &timer, end) != nil {
			return
		}
		m.mu.Lock()
		m.now = end
		m.engine.Finish(m.emit)
		m.mu.Unlock()
		now = end
	}
}

// emit is called with the lock held.
func (m *batched) emit(e step.Emission) {
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
		at: m.now, admitted: e.Admitted, cached: e.Cached, preemptions: e.Preemptions,
	})
	r.mu.Unlock()
	select {
	case r.ready <- struct{}{}:
	default: // it has been told and not come yet
	}
}

func (m *batched) start(a *ask, arrival time.Duration) (run, error) {
	// The same prompt gets an answer of the same length, whenever it comes.
	q := &step.Request{Prompt: a.input, MaxNew: a.limit, IgnoreEOS: a.ignoreEOS, Draw: a.seed}
	if m.profile.KV.PrefixCache {
		q.Blocks = a.blockHashes(a.limit)
	}
	r := &batchedRun{model: m, ready: make(chan struct{}, 1)}
	m.mu.Lock()
	m.lastID++
	q.ID, r.id = m.lastID, m.lastID
	err := m.engine.Add(arrival, q)
	if err == nil {
		m.runs[r.id] = r
	}
	m.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case m.work <- struct{}{}:
	default:
	}
	return r, nil
}

func (m *batched) load() load {
	m.mu.Lock()
	s := m.engine.Stats()
	m.mu.Unlock()
	return load{
		running: s.Running, waiting: s.Waiting,
		kvBlocks: s.KVBlocks, kvUsed: s.KVUsedBlocks,
		prefixQueries: s.PrefixQueryTokens, prefixHits: s.PrefixHitTokens,
		preemptions: s.Preemptions, steps: s.Steps, promptTokens: s.PromptTokens, busy: s.BusyTime,
		maxRunning: m.profile.MaxSequences, blockTokens: m.profile.KV.BlockTokens,
	}
}

func (m *batched) forget() {
	m.mu.Lock()
	m.engine.DropPrefixes()
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
			return r.pass(ctx, m)
		}
		select {
		case <-r.ready:
		case <-ctx.Done():
			return emission{}, ctx.Err()
		}
	}
}

// pass takes an event through the front end. What comes for the same answer
// while it waits there goes with it.
func (r *batchedRun) pass(ctx context.Context, e emission) (emission, error) {
	m := r.model
	work := time.Duration(m.profile.FrontEnd.PerEventMs * float64(time.Millisecond))
	if work == 0 {
		return e, nil
	}
	m.mu.Lock()
	m.free = max(m.free, e.at) + work
	done := m.free
	m.mu.Unlock()
	var timer *time.Timer
	if err := m.clock.sleep(ctx, &timer, done); err != nil {
		return e, err
	}
	for {
		more, ok := r.take()
		if !ok {
			e.at = done
			return e, nil
		}
		more.tokens += e.tokens
		e = more
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
		r.model.engine.Cancel(r.id)
	}
}
