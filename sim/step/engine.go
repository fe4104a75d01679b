// Package step simulates an inference engine without a GPU: one step loop that
// advances a batch. It reads no clock. The caller passes the time, so the same
// engine runs in virtual time (Simulate) and behind a real server.
//
// The caller repeats, if there is work:
//
//	end, ok := e.Next(now) // plan a step from now on
//	...                    // wait until end; Add and Cancel may be called meanwhile
//	e.Finish(emit)         // the step ended: emit its tokens
//	now = end              // the next step begins when this one ends
//
// Steps begin and end at the times the engine computes, even if the caller wakes up
// late, so lateness does not accumulate. The caller uses the time of the next
// arrival as now only if Next reported an idle engine.
//
// The same profile, seed and sequence of calls give the same result. An Engine is
// not safe for concurrent use.
package step

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// A Request is the engine's view of a request.
type Request struct {
	ID        uint64   // unique among the requests in flight
	Prompt    int      // tokens
	Blocks    []uint64 // a hash for each full KV block of the prompt, and of the output if known; each hash covers all preceding tokens. May be nil
	MaxNew    int      // maximum number of tokens to generate; output.max of the profile if 0
	IgnoreEOS bool     // generate exactly MaxNew
	Output    int      // tokens the model would generate before it stops; 0: drawn from the profile's distribution
	Draw      uint64   // selects the draw from that distribution; ID if 0
	Cached    int      // prompt tokens that count as cached if Blocks is nil
	Session   uint64   // session of the request, for routers
	Turn      int      // turn within the session
	Prefix    []uint64 // hashes of the prompt's beginning, for routers with prefix affinity
	Adapter   string   // LoRA adapter; empty: none
	Priority  int      // lower runs first; used only if the profile enables priorities
	Owner     any      // the caller's value, copied to emissions
}

// An Emission is the output of one step for one request.
type Emission struct {
	ID     uint64
	Owner  any           // copied from the request
	Made   time.Duration // when the engine generated the tokens
	At     time.Duration // when the tokens were delivered
	Tokens int           // tokens generated, the end-of-sequence token included

	// Earlier holds the times of tokens that were generated one by one before At
	// and not delivered yet. It is set only after Server.DeferDelivery.
	Earlier []time.Duration

	Steps int  // steps so far in which the engine generated tokens of the request
	First bool // first emission of the request
	Last  bool // last emission of the request

	// Set if First or Last.
	Accepted    time.Duration // when the engine accepted the request; a server sends its response header then
	Queued      time.Duration // when the scheduler could first see the request
	Admitted    time.Duration // when the request first entered the running batch
	FirstMade   time.Duration // when the engine generated the first token
	Cached      int           // prompt tokens found in the prefix cache at admission
	Preemptions int           // preemptions so far

	// Set if Last.
	EOS    bool          // the last token is the end-of-sequence token, which counts but has no text
	Finish string        // FinishStop or FinishLength
	Ends   time.Duration // when the answer ends; not before At
}

// Finish reasons.
const (
	FinishStop   = "stop"   // the model stopped by itself
	FinishLength = "length" // the request reached its limit
)

// errTooLong is wrapped by Add's error for a request that could never fit.
var errTooLong = errors.New("request too long for this engine")

// Stats is the current state of an engine and its counters.
type Stats struct {
	Running int // sequences in the batch
	Waiting int // requests outside the batch: in the front end, queued or preempted

	KVBlocks     int // 0: unlimited
	KVUsedBlocks int // held by sequences; cached blocks without a holder count as free

	PrefixQueryTokens int64 // prompt tokens looked up in the prefix cache
	PrefixHitTokens   int64 // prompt tokens found in the prefix cache

	Steps           int64
	PromptTokens    int64 // computed, not cached; recomputed tokens count again
	GeneratedTokens int64
	Preemptions     int64
	Finished        int64
	Cancelled       int64
	BusyTime        time.Duration
}

// Engine is a continuously batching inference engine as pure computation: the caller advances it from step to step.
type Engine struct {
	p      Profile
	policy policy
	seed   uint64
	rng    *rand.Rand

	front     frontEnd
	waiting   fifo   // past the front end, never run
	preempted []*seq // run before any waiting request; the last one first
	skipped   []*seq // waiting for an adapter while a step is planned
	running   []*seq // in order of admission, or of priority
	adapters  adapters
	live      map[uint64]*seq
	kv        kvCache
	group     decodeGroup
	orders    uint64 // admissions so far
	plans     int64  // plans so far

	handOver func(at time.Duration, s *seq) // receives sequences after prefill; nil: they decode here

	waitedSteps int // decode steps since the last prefill, for the reserve policy

	load     load          // of the step being planned
	planned  []*seq        // sequences in the step being planned
	admitted int           // requests admitted by the step being planned
	hasGone  bool          // the batch contains finished or cancelled sequences
	inFlight int           // steps that are planned and not finished
	now      time.Duration // when the latest step was planned
	spare    []*batch

	stepping bool // between Next and Finish
	step     *batch
	stepEnd  time.Duration

	stats Stats
}

// A seq is a request in the engine.
type seq struct {
	Request
	emits int  // tokens to generate, the end of sequence included
	stops bool // the last token is the end of sequence
	slot  burstSlot

	queued      time.Duration
	admitted    time.Duration
	wasAdmitted bool
	inBatch     bool
	cancelled   bool

	computed  int           // tokens of the prefill in the KV cache
	prefill   int           // tokens to prefill: the prompt, and after a preemption also the generated tokens
	generated int           // generated tokens, including the steps in flight
	emitted   int           // tokens of finished steps
	made      time.Duration // when the latest token was generated
	firstMade time.Duration // when the first token was generated
	steps     int           // steps with generated tokens
	finished  bool          // all tokens are generated
	cached    int
	preempts  int
	blocks    holding

	work        int   // its tokens in the current step
	inPlan      int64 // number of the latest plan with the sequence
	swapped     int   // blocks in the offload memory
	transferred bool  // keys and values came from another engine; false after the first step here
	home        *Engine
	adapter     *adapter
	decoding    bool
	order       uint64 // order of admission
	member      membership

	// State in the API process.
	arrived time.Duration // when the API process can see the request
	turns   int           // completed tasks of the work on the request
	pending int           // tokens not written yet
	writing bool          // a taskEvent for the pending tokens is queued
	written int
}

// gone reports whether a queue should skip the sequence.
func (s *seq) gone() bool { return s.cancelled || s.finished }

func (s *seq) prefilled() bool { return s.computed >= s.prefill }

// A batch is the work and the output of a step.
type batch struct {
	load load
	new  int // requests that were not in the previous step
	took time.Duration
	out  []output

	// The decode group's part of the step.
	hasGroup  bool
	groupSize int    // sequences of the group
	number    int    // step number within the group
	last      []*seq // sequences whose last token this step generates
}

// An output is the tokens of one request in a step.
type output struct {
	s      *seq
	tokens int
}

// context is the number of tokens a decode attends to.
func (s *seq) context() int { return s.Prompt + s.generated }

// New returns an idle engine.
func New(p Profile, seed uint64) (*Engine, error) {
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	i := slices.IndexFunc(policies, func(k policy) bool { return k.Name == p.Policy })
	return &Engine{
		p: p, policy: policies[i], seed: seed,
		rng:   rand.New(rand.NewPCG(seed, 0)),
		front: newFrontEnd(p.FrontEnd),
		live:  map[uint64]*seq{},
		kv:    newKVCache(p.KV, p.Offload),

		adapters: adapters{slots: p.LoRA.Slots},
	}, nil
}

// Add hands over a request that arrived at now. Add may be called between Next and
// Finish; the request does not join the current step.
func (e *Engine) Add(now time.Duration, r *Request) error {
	s, err := e.take(r)
	if err == nil {
		e.front.add(now, s)
	}
	return err
}

// take validates a request. The caller then passes the sequence to the front end.
func (e *Engine) take(r *Request) (*seq, error) {
	if _, ok := e.live[r.ID]; ok {
		return nil, fmt.Errorf("request %d is already in flight", r.ID)
	}
	s := &seq{Request: *r, prefill: r.Prompt}
	if s.MaxNew == 0 {
		s.MaxNew = e.p.Output.Max
	}
	if err := e.check(s); err != nil {
		return nil, err
	}
	s.emits, s.stops = e.outcome(s)
	e.live[s.ID] = s
	e.stats.Waiting++
	return s, nil
}

func (e *Engine) check(s *seq) error {
	switch {
	case s.Prompt < 1 || s.Prompt > maxCount:
		return fmt.Errorf("prompt of %d tokens: must be between 1 and %d", s.Prompt, maxCount)
	case s.MaxNew < 1 || s.MaxNew > maxCount:
		return fmt.Errorf("limit of %d new tokens: must be between 1 and %d", s.MaxNew, maxCount)
	case s.Output < 0:
		return fmt.Errorf("output of %d tokens: must not be negative", s.Output)
	}
	total := s.Prompt + s.MaxNew
	if limit := e.p.ContextTokens; limit > 0 && total > limit {
		return fmt.Errorf("%w: %d prompt and %d new tokens exceed the context of %d tokens", errTooLong, s.Prompt, s.MaxNew, limit)
	}
	if e.kv.blocksFor(total) > e.kv.total {
		return fmt.Errorf("%w: %d prompt and %d new tokens exceed the KV cache of %d tokens", errTooLong, s.Prompt, s.MaxNew, e.kv.total*e.p.KV.BlockTokens)
	}
	return nil
}

// outcome returns the number of tokens the request will generate and whether the
// last is the end of sequence. A draw depends on the seed and the request alone, so
// other requests cannot change it.
func (e *Engine) outcome(s *seq) (emits int, stops bool) {
	if s.IgnoreEOS {
		return s.MaxNew, false
	}
	out := s.Output
	if out == 0 {
		out = e.p.Output.draw(s.Prompt, rand.New(rand.NewPCG(e.seed, cmp.Or(s.Draw, s.ID))))
	}
	if out >= s.MaxNew {
		return s.MaxNew, false
	}
	return out + 1, true
}

// Cancel removes a request and reports whether the request existed. Nothing more is
// emitted for the request, but the duration of the current step does not change.
func (e *Engine) Cancel(id uint64) bool {
	s, ok := e.live[id]
	if !ok {
		return false
	}
	delete(e.live, id)
	s.cancelled = true
	e.stats.Cancelled++
	if e.group.on {
		e.stats.GeneratedTokens -= int64(e.unmade(s)) // result will count them
	}
	if s.member.in {
		e.leaveGroup(s)
	}
	if !s.inBatch { // the queue skips the sequence later
		e.stats.Waiting--
		e.swapIn(s)
		return true
	}
	if e.inFlight > 0 {
		e.hasGone = true
	} else {
		e.leave()
	}
	return true
}

// Next plans the step that begins at now and returns when the step ends. It returns
// false if there is nothing to do until the next Add. A step may be empty: it ends
// when the next request leaves the front end. Next returns the same answer until
// Finish is called.
func (e *Engine) Next(now time.Duration) (end time.Duration, ok bool) {
	if e.stepping {
		return e.stepEnd, true
	}
	if e.step = e.plan(now); e.step == nil {
		e.stepEnd, e.stepping = e.front.ready()
		return e.stepEnd, e.stepping
	}
	e.stepping, e.stepEnd = true, now+e.step.took
	return e.stepEnd, true
}

// plan decides the work and the output of the step that begins at now. It returns
// nil if there is nothing to do. Several steps may be planned before the first of
// them ends.
func (e *Engine) plan(now time.Duration) *batch {
	e.now = now
	for s := e.front.pop(now); s != nil; s = e.front.pop(now) {
		e.enqueue(s)
	}
	e.load, e.planned, e.admitted, e.group.step = load{}, e.planned[:0], 0, false
	e.plans++
	e.policy.plan(e)
	e.requeueSkipped()
	if e.p.LoRA.Slots > 0 {
		e.load.adapters = countAdapters(e.planned, e.plans+1)
	}
	if len(e.planned) == 0 && !e.group.step {
		return nil
	}
	b, normal := e.newBatch(), 0.0
	if e.p.Cost.Noise > 0 {
		normal = e.rng.NormFloat64()
	}
	b.load, b.new, b.took = e.load, e.admitted, e.p.Pauses.extend(now, e.p.stepTime(e.load, normal))
	for _, s := range e.planned {
		if tokens := e.advance(s); tokens > 0 {
			s.generated += tokens
			b.out = append(b.out, output{s, tokens})
		}
	}
	if e.group.step {
		e.groupPlanned(b)
	}
	e.inFlight++
	e.stats.Steps++
	e.stats.BusyTime += b.took
	e.stats.PromptTokens += int64(b.load.prefill)
	return b
}

func (e *Engine) newBatch() *batch {
	if n := len(e.spare); n > 0 {
		b := e.spare[n-1]
		e.spare = e.spare[:n-1]
		return b
	}
	return &batch{}
}

// Finish ends the current step and calls emit for each request that received
// tokens, in the order in which the policy planned them. If there is no current
// step, Finish does nothing.
func (e *Engine) Finish(emit func(Emission)) {
	if !e.stepping {
		return
	}
	e.stepping, e.planned = false, e.planned[:0]
	if e.step != nil {
		e.result(e.stepEnd, e.step, func(s *seq, tokens int) {
			var m Emission
			s.emission(&m, e.stepEnd, s.emitted-tokens, tokens)
			emit(m)
		})
	}
}

// result emits the output of a step that ended at the given time.
func (e *Engine) result(at time.Duration, b *batch, emit func(s *seq, tokens int)) {
	e.inFlight--
	if b.hasGroup {
		e.groupStepDone(at, b)
	}
	for _, s := range b.last {
		if !s.cancelled {
			times := e.takeTimes(s)
			times = times[:len(times)-1]
			if len(s.member.earlier) > 0 {
				times = append(s.member.earlier, times...)
			}
			s.member.earlier = times
			e.finish(s)
			emit(s, 1)
		}
	}
	for _, o := range b.out {
		s := o.s
		if s.cancelled {
			continue
		}
		s.emitted += o.tokens
		s.made = at
		if s.steps++; s.steps == 1 {
			s.firstMade = at
		}
		e.stats.GeneratedTokens += int64(o.tokens)
		if s.emitted == s.emits {
			e.finish(s)
		} else if e.handOver != nil {
			e.handOff(at, s)
			continue
		}
		emit(s, o.tokens)
	}
	clear(b.out)
	clear(b.last)
	b.out, b.last, b.hasGroup = b.out[:0], b.last[:0], false
	e.spare = append(e.spare, b)
	if e.hasGone {
		e.leave()
	}
}

// finish removes a request after its last token.
func (e *Engine) finish(s *seq) {
	delete(e.live, s.ID)
	s.finished = true
	e.stats.Finished++
	if s.inBatch {
		e.hasGone = true
	} else { // preempted while the step with its last token was in flight
		e.stats.Waiting--
		e.swapIn(s)
	}
}

// emission fills m with tokens of s, of which before were emitted earlier. Most
// emissions need few fields; the others keep their old values.
func (s *seq) emission(m *Emission, at time.Duration, before, tokens int) {
	m.ID, m.Owner, m.Made, m.At, m.Tokens, m.Steps = s.ID, s.Owner, s.made, at, tokens, s.steps
	m.Earlier, s.member.earlier = s.member.earlier, nil
	m.First, m.Last = before == 0, before+tokens == s.emits
	if m.First || m.Last {
		m.Accepted, m.Queued, m.Admitted, m.FirstMade = s.slot.through, s.queued, s.admitted, s.firstMade
		m.Cached, m.Preemptions = s.cached, s.preempts
		m.EOS, m.Finish, m.Ends = false, "", 0
	}
	if m.Last {
		m.EOS, m.Finish, m.Ends = s.stops, s.reason(), at
	}
}

// reason returns the finish reason of s.
func (s *seq) reason() string {
	if s.stops {
		return FinishStop
	}
	return FinishLength
}

// advance does the work planned for s and returns the number of generated tokens.
func (e *Engine) advance(s *seq) (tokens int) {
	if !s.decoding {
		s.computed += s.work
		if !s.prefilled() {
			return 0
		}
		return 1
	}
	tokens = 1
	for tokens < s.work && e.rng.Float64() < e.p.Speculation.Acceptance {
		tokens++
	}
	return min(tokens, s.emits-s.generated)
}

// leave removes finished and cancelled sequences from the batch.
func (e *Engine) leave() {
	e.hasGone = false
	e.running = slices.DeleteFunc(e.running, func(s *seq) bool {
		if !s.gone() {
			return false
		}
		e.kv.release(&s.blocks)
		e.adapters.release(s)
		e.stats.Running--
		return true
	})
}

// DropPrefixes empties the prefix cache, except for blocks held by sequences.
func (e *Engine) DropPrefixes() { e.kv.dropIdle() }

// Stats returns the current state of the engine.
func (e *Engine) Stats() Stats {
	s := e.stats
	s.KVBlocks = e.p.KV.Blocks
	s.KVUsedBlocks = e.kv.used()
	return s
}
