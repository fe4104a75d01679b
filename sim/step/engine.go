// Package step is an inference engine without a GPU, as pure computation: one
// step loop in which the batch advances together. It reads no clock; whoever
// drives it says what time it is, so that the same engine runs in virtual
// time (Simulate) and behind a real server.
//
// A driver does, for as long as there is work:
//
//	end, ok := e.Next(now)   // plan a step that begins at now
//	...                      // wait until end; Add and Cancel may come meanwhile
//	e.Finish(emit)           // the step is over: hand out what it produced
//	now = end                // the next step begins where this one ended
//
// Steps follow one another at the ends the engine computed, however late the
// driver wakes up: lateness never adds up. Only after Next has said that the
// engine is idle does the driver take the time of the next arrival for now.
//
// The same profile, seed and sequence of calls give the same result. An
// Engine is not safe for concurrent use.
package step

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// A Request is what the engine needs to know of a request.
type Request struct {
	ID        uint64   // unique among the requests in flight
	Prompt    int      // tokens
	Blocks    []uint64 // a hash for each full KV block of the prompt, and of the output if it is known; each covers all that is before it. May be nil
	MaxNew    int      // most tokens to generate; 0: the profile's output.max
	IgnoreEOS bool     // generate exactly MaxNew
	Output    int      // tokens the model would generate before it stops; 0: the profile's distribution
	Draw      uint64   // which draw of that distribution is its own; 0: that of its ID
	Cached    int      // prompt tokens that count as cached, where Blocks does not tell
	Session   uint64   // that it belongs to, for routers
	Turn      int      // of it
	Prefix    []uint64 // what it begins with, for those that go by it
	Adapter   string   // of the model that it is for; empty: none
	Priority  int      // the lower, the sooner; only where the profile has priorities
	Of        any      // whose it is: emissions say so too
}

// An Emission is what one step produced for one request.
type Emission struct {
	ID     uint64
	Of     any           // as in the request
	Made   time.Duration // when the engine had made it
	At     time.Duration // when it came out
	Tokens int           // tokens generated, the end-of-sequence token included

	// Earlier is when tokens came out, one at a time, that nobody was told of yet.
	// They are before those of At. Only a server that may tell late has any.
	Earlier []time.Duration

	Steps int  // in which the engine made tokens of the request so far
	First bool // nothing came before
	Last  bool // nothing comes after
	Lost  bool // its server is gone: there is no token, and nothing comes after

	// On First and Last.
	Accepted    time.Duration // when the engine was given it: a server answers its client then
	Queued      time.Duration // when its scheduler could see it
	Admitted    time.Duration // when it first got into the running batch
	FirstMade   time.Duration // when the engine had made its first token
	Cached      int           // prompt tokens taken from the prefix cache at admission
	Preemptions int           // times it has been preempted so far

	// On Last.
	EOS    bool          // the last of Tokens is the end-of-sequence token: it counts and has no text
	Finish string        // why it ended: FinishStop or FinishLength
	Ends   time.Duration // when the answer is over: not before At
}

// The reasons for which a request ends.
const (
	FinishStop   = "stop"   // the model stopped by itself
	FinishLength = "length" // it reached its limit
)

// errTooLong is wrapped in Add's error for a request that the engine could
// never hold.
var errTooLong = errors.New("request too long for this engine")

// Stats is the state of an engine and what it has done so far.
type Stats struct {
	Running int // sequences in the batch
	Waiting int // requests that are not in it: in the front end, queued or preempted

	KVBlocks     int // 0: unlimited
	KVUsedBlocks int // held by sequences; blocks that are only cached are free

	PrefixQueryTokens int64 // prompt tokens looked up in the prefix cache
	PrefixHitTokens   int64 // of those, found

	Steps           int64
	PromptTokens    int64 // computed, not cached; recomputed ones count again
	GeneratedTokens int64
	Preemptions     int64
	Finished        int64
	Cancelled       int64
	BusyTime        time.Duration
}

// An Engine is the state of the step loop.
type Engine struct {
	p      Profile
	policy policy
	seed   uint64
	rng    *rand.Rand

	front     frontEnd
	waiting   fifo   // through the front end, never run
	preempted []*seq // to run again before anything waiting; the last one first
	aside     []*seq // waiting for an adapter, while a step is planned
	running   []*seq // in order of admission, or of their priority
	adapters  adapters
	live      map[uint64]*seq
	kv        kvCache
	flow      flow
	jump      jump
	orders    uint64 // admissions so far
	plans     int64  // so far

	handOver func(at time.Duration, s *seq) // takes what has read its prompt; nil: it goes on here

	waitedSteps int // decode steps since the last prefill, for the reserve policy

	load     load          // of the step being planned
	planned  []*seq        // those it advances
	admitted int           // requests new to the batch in it
	gone     bool          // some of the batch are finished or cancelled
	flying   int           // steps that are planned and not over
	now      time.Duration // when the latest was planned
	spare    []*batch

	stepping bool // between Next and Finish
	step     *batch
	stepEnd  time.Duration

	stats Stats
}

// A seq is a request in the engine.
type seq struct {
	Request
	emits int  // tokens it will generate, the end of sequence included
	stops bool // the last of them is the end of sequence
	slot  burstSlot

	queued      time.Duration
	admitted    time.Duration
	wasAdmitted bool
	inBatch     bool
	cancelled   bool

	computed  int           // tokens of the prefill that are in the KV cache
	prefill   int           // tokens to prefill: the prompt, and after a preemption what was generated too
	generated int           // tokens, those of steps under way included
	said      int           // tokens that are out
	made      time.Duration // the latest of them
	firstMade time.Duration // the first of them
	steps     int           // that they are from
	over      bool          // all of them are
	cached    int
	preempts  int
	blocks    holding

	work     int   // tokens of it in the step under way
	inPlan   int64 // the number of the plan that it is in
	swapped  int   // blocks of it that are in the other memory
	whole    bool  // its keys and values came from another engine, and it has not run here yet
	home     *Engine
	adapter  *adapter
	decoding bool
	order    uint64 // of its admission
	place    place

	// In the API process.
	arrived time.Duration // when it can be seen there
	turns   int           // of the work on it that are done
	pending int           // tokens that wait to be written
	writing bool          // they are in the queue for it
	written int
}

// gone says whether a queue is to pass over it.
func (s *seq) gone() bool { return s.cancelled || s.over }

func (s *seq) prefilled() bool { return s.computed >= s.prefill }

// A batch is a step: what it computes, and what comes out of it.
type batch struct {
	load load
	new  int // requests that were not in the step before
	took time.Duration
	out  []output

	// Of the flow, where it is in the step.
	flowing bool
	flows   int    // sequences of it
	number  int    // of the step, among those of the flow
	last    []*seq // those whose last token it makes
}

// An output is the tokens of one request in a step.
type output struct {
	s      *seq
	tokens int
}

// context is how many tokens a decode attends to.
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

// Add hands over a request that arrived at now. It may be called between Next
// and Finish; the request is not part of the step under way.
func (e *Engine) Add(now time.Duration, r *Request) error {
	s, err := e.take(r)
	if err == nil {
		e.front.add(now, s)
	}
	return err
}

// take accepts a request, which is then on its way to the front end.
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
		return fmt.Errorf("prompt of %d tokens: it must have at least one and at most %d", s.Prompt, maxCount)
	case s.MaxNew < 1 || s.MaxNew > maxCount:
		return fmt.Errorf("limit of %d new tokens: it must be at least one and at most %d", s.MaxNew, maxCount)
	case s.Output < 0:
		return fmt.Errorf("output of %d tokens: it cannot be negative", s.Output)
	}
	total := s.Prompt + s.MaxNew
	if limit := e.p.ContextTokens; limit > 0 && total > limit {
		return fmt.Errorf("%w: %d prompt and %d new tokens, its context has %d", errTooLong, s.Prompt, s.MaxNew, limit)
	}
	if e.kv.blocksFor(total) > e.kv.total {
		return fmt.Errorf("%w: %d prompt and %d new tokens, its KV cache has room for %d", errTooLong, s.Prompt, s.MaxNew, e.kv.total*e.p.KV.BlockTokens)
	}
	return nil
}

// outcome is how many tokens the request will generate and whether the last
// is the end of sequence. A draw depends on the seed and the request alone,
// never on what else is going on.
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

// Cancel forgets a request: nothing is emitted for it any more. A step under
// way still takes as long as it was going to. It says whether the request was
// there.
func (e *Engine) Cancel(id uint64) bool {
	s, ok := e.live[id]
	if !ok {
		return false
	}
	delete(e.live, id)
	s.cancelled = true
	e.stats.Cancelled++
	if e.flow.on {
		e.stats.GeneratedTokens -= int64(e.unmade(s)) // they will be counted
	}
	if s.place.in {
		e.leaveFlow(s)
	}
	if !s.inBatch { // its queue drops it when it gets there
		e.stats.Waiting--
		e.swapIn(s)
		return true
	}
	if e.flying > 0 {
		e.gone = true
	} else {
		e.leave()
	}
	return true
}

// Next plans the step that begins at now and says when it will end; false
// means that there is nothing to do until the next Add. A step may be empty:
// it ends when the next request comes out of the front end. Called again
// before Finish it repeats its answer.
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

// plan settles what the step that begins at now computes, and what comes out of
// it; nil: there is nothing to do. Several steps may be planned before the first
// of them is over.
func (e *Engine) plan(now time.Duration) *batch {
	e.now = now
	for s := e.front.pop(now); s != nil; s = e.front.pop(now) {
		e.enqueue(s)
	}
	e.load, e.planned, e.admitted, e.flow.step = load{}, e.planned[:0], 0, false
	e.plans++
	e.policy.plan(e)
	e.takeBack()
	if e.p.LoRA.Slots > 0 {
		e.load.adapters = different(e.planned, e.plans+1)
	}
	if len(e.planned) == 0 && !e.flow.step {
		return nil
	}
	b := e.newBatch()
	b.load, b.new, b.took = e.load, e.admitted, e.p.stepTime(e.load, e.normal(0))
	e.began(1)
	for _, s := range e.planned {
		if tokens := e.advance(s); tokens > 0 {
			s.generated += tokens
			b.out = append(b.out, output{s, tokens})
		}
	}
	if e.flow.step {
		e.took(b)
	}
	e.flying++
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

// Finish ends the step under way and calls emit for each request that got
// tokens, in the order in which the policy took them. Without a step it does
// nothing.
func (e *Engine) Finish(emit func(Emission)) {
	if !e.stepping {
		return
	}
	e.stepping, e.planned = false, e.planned[:0]
	if e.step != nil {
		e.result(e.stepEnd, e.step, func(s *seq, tokens int) {
			var m Emission
			s.emission(&m, e.stepEnd, s.said-tokens, tokens)
			emit(m)
		})
	}
}

// result hands out what came of a step that is over at that time.
func (e *Engine) result(at time.Duration, b *batch, emit func(s *seq, tokens int)) {
	e.flying--
	if b.flowing {
		e.over(at, b)
	}
	for _, s := range b.last {
		if !s.cancelled {
			told := e.tell(s)
			told = told[:len(told)-1]
			if len(s.place.earlier) > 0 {
				told = append(s.place.earlier, told...)
			}
			s.place.earlier = told
			e.finish(s)
			emit(s, 1)
		}
	}
	for _, o := range b.out {
		s := o.s
		if s.cancelled {
			continue
		}
		s.said += o.tokens
		s.made = at
		if s.steps++; s.steps == 1 {
			s.firstMade = at
		}
		e.stats.GeneratedTokens += int64(o.tokens)
		if s.said == s.emits {
			e.finish(s)
		} else if e.handOver != nil {
			e.leaveFor(at, s)
			continue
		}
		emit(s, o.tokens)
	}
	clear(b.out)
	clear(b.last)
	b.out, b.last, b.flowing = b.out[:0], b.last[:0], false
	e.spare = append(e.spare, b)
	if e.gone {
		e.leave()
	}
}

// finish takes a request out whose last token is there.
func (e *Engine) finish(s *seq) {
	delete(e.live, s.ID)
	s.over = true
	e.stats.Finished++
	if s.inBatch {
		e.gone = true
	} else { // preempted while its last token was under way
		e.stats.Waiting--
		e.swapIn(s)
	}
}

// emission tells in m what tokens of s are to the world, with so many before them.
// Most say little, and what they do not say is left as it was.
func (s *seq) emission(m *Emission, at time.Duration, before, tokens int) {
	m.ID, m.Of, m.Made, m.At, m.Tokens, m.Steps = s.ID, s.Of, s.made, at, tokens, s.steps
	m.Earlier, s.place.earlier = s.place.earlier, nil
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

// reason is why s ends when it does.
func (s *seq) reason() string {
	if s.stops {
		return FinishStop
	}
	return FinishLength
}

// advance does the work planned for s and returns the tokens it generated.
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

// leave takes finished and cancelled sequences out of the batch.
func (e *Engine) leave() {
	e.gone = false
	e.running = slices.DeleteFunc(e.running, func(s *seq) bool {
		if !s.gone() {
			return false
		}
		e.kv.release(&s.blocks)
		e.adapters.leave(s)
		e.stats.Running--
		return true
	})
}

// DropPrefixes empties the prefix cache, except for what sequences hold.
func (e *Engine) DropPrefixes() { e.kv.dropIdle() }

// Stats returns the state of the engine now.
func (e *Engine) Stats() Stats {
	s := e.stats
	s.KVBlocks = e.p.KV.Blocks
	s.KVUsedBlocks = e.kv.used()
	return s
}
