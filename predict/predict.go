// Package predict runs a stage in virtual time: sessions from a source, at the
// times of a schedule, through a server that is computed, into a sink. It opens
// no socket and reads no clock. What it emits are records like those of a real
// run, with a clock that says they were computed.
package predict

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"time"

	"tacho"
	"tacho/route"
	"tacho/session"
	"tacho/sim/step"
	"tacho/sim/words"
)

// A Server answers requests in virtual time. Times are offsets from the start
// of the stage, and never go back.
type Server interface {
	Add(now time.Duration, r *step.Request) error
	Cancel(now time.Duration, id uint64) (untold []time.Duration) // when tokens came out that were not delivered
	Next() (at time.Duration, ok bool)                            // when something happens next; false: nothing before the next Add
	Advance(now time.Duration, deliver func(*step.Emission))      // lets happen what is due
}

// A Stage is one experiment with fixed load, as engine.Stage is.
type Stage struct {
	Index       int
	Arrivals    iter.Seq2[uint64, time.Duration] // session number, due
	Limit       int                              // most requests in flight, and of a closed loop most sessions under way; 0 is no limit
	Source      tacho.Source
	Server      Server
	BlockTokens int                      // tokens in a KV block of the server; 0: it has no use for blocks
	Cached      func(*tacho.Request) int // prompt tokens that count as cached; nil: the server's prefix cache tells
	Timeout     time.Duration            // for one request, from its start; 0 is none
	MaxTime     time.Duration            // no session starts later than this; 0 is no limit
	Retries     int                      // of a request that its server lost before it said anything
	Priority    int                      // of requests that say none of their own
	ByPrefix    bool                     // the server goes by what prompts begin with
	Replica     func(id uint64) string   // where a request in flight is; may be nil
	Every       time.Duration            // until the first call of Look; 0 is never
	Look        Look
	Reuse       bool            // the sink keeps no record: the next ones are in its place
	Sent        func()          // is called for each request that is sent; may be nil
	Enough      <-chan struct{} // once closed, no request is sent any more; what is in flight is let finish; may be nil
}

// A Look looks at the server, and says how long it is until the next one.
type Look func(at time.Duration) (next time.Duration)

// Run runs the stage to its end, or until ctx is done, and emits one Record for
// each request to sink, in the order in which they end.
func Run(ctx context.Context, s Stage, sink tacho.Sink) error {
	next, stop := iter.Pull2(s.Arrivals)
	defer stop()
	r := &runner{Stage: s, sink: sink, arrival: next}
	r.handed = r.deliver
	r.advance()
	for !r.halted(ctx) {
		r.begin()
		at, ok := r.next()
		if !ok {
			break
		}
		r.look(ctx, at)
		r.now = max(r.now, at)
		r.expire()
		s.Server.Advance(r.now, r.handed)
	}
	return r.err
}

// checkEvery is how many events pass between two checks of whether the context ended.
const checkEvery = 1024

type runner struct {
	Stage
	sink    tacho.Sink
	handed  func(*step.Emission) // deliver
	arrival func() (uint64, time.Duration, bool)
	now     time.Duration
	err     error

	head   *start    // the session that arrives next; nil: there are no more
	queued bool      // head is in ready
	later  dues      // turns that wait for their time
	ready  []*start  // what is due and waits for a slot, in order
	room   []*start  // that ready is in once it is empty
	flying int       // requests
	expiry []expires // the same, in the order in which their time is up
	spare  []*flight // that are over, with room for the next
	asked  step.Request
	users  int // sessions of a closed loop under way
	noted  int // turns, so far
	lastID uint64
	looked time.Duration
	passed int // events, so far
}

// A start is a request that is to be sent.
type start struct {
	due     time.Duration
	request *tacho.Request
	talk    *talk   // nil: a session of one turn
	alone   talk    // of such a session
	first   bool    // it begins its session
	order   int     // among those noted for later
	lands   *flight // or it is no request, but the end of an answer ...
	again   *flight // ... or another attempt
}

// A talk is a session under way.
type talk struct {
	*session.State
	open   int  // turns that are in flight, or due
	closed bool // it is one of a closed loop
}

// A flight is a request in flight.
type flight struct {
	*start
	id    uint64
	rec   *tacho.Record
	seed  uint64        // of the answer
	made  time.Duration // when the engine had its first token
	until time.Duration // it is given up then
	tries int
	noted bool // it is among those for later

	record tacho.Record // rec
	usage  tacho.Usage
	server tacho.ServerTimes
}

// expires is when a flight's time is up. One that is over may be another by then.
type expires struct {
	*flight
	at time.Duration
}

// halted says, before each event, whether the stage is to stop at once.
func (r *runner) halted(ctx context.Context) bool {
	if r.passed++; r.passed%checkEvery == 1 && r.err == nil {
		r.err = ctx.Err()
	}
	return r.err != nil
}

// checkEnough drops the requests that were not sent yet once Enough is closed. It
// is called before each request is sent, as the real engine does.
func (r *runner) checkEnough() {
	if r.Enough == nil {
		return
	}
	select {
	case <-r.Enough:
		r.Enough, r.head, r.ready = nil, nil, nil
		r.later = slices.DeleteFunc(r.later, func(s *start) bool { return s.lands == nil && s.again == nil })
		heap.Init(&r.later)
	default:
	}
}

// advance takes up the session that arrives next.
func (r *runner) advance() {
	r.head, r.queued = nil, false
	i, due, ok := r.arrival()
	if !ok || r.past(due) {
		return
	}
	sess, err := r.Source.Session(i)
	switch {
	case errors.Is(err, io.EOF):
		return
	case err != nil:
		r.err = err
		return
	case len(sess.Turns) == 0:
		r.err = fmt.Errorf("session %d has no turns", i)
		return
	}
	r.head = &start{due: due, request: &sess.Turns[0].Request, first: true}
	if len(sess.Turns) > 1 {
		state, err := session.New(&sess)
		if err != nil {
			r.err = err
			return
		}
		r.head.talk = &talk{State: state}
	}
	r.head.request.Quote(nil)
}

func (r *runner) past(t time.Duration) bool { return r.MaxTime > 0 && t >= r.MaxTime }

// begin sends all that is due and has a slot. Whoever was due first goes first.
func (r *runner) begin() {
	for r.err == nil {
		for len(r.later) > 0 && r.later[0].due <= r.now {
			switch s := heap.Pop(&r.later).(*start); {
			case s.lands != nil && s.lands.rec != nil:
				r.land(s.lands)
			case s.again != nil && s.again.rec != nil:
				r.try(s.again)
			case s.lands == nil && s.again == nil:
				r.ready = append(r.ready, s)
			}
		}
		r.checkEnough()
		r.queueHead()
		if len(r.ready) == 0 || r.Limit > 0 && r.flying >= r.Limit {
			return
		}
		s := r.ready[0]
		if r.ready = r.ready[1:]; len(r.ready) == 0 {
			r.ready = r.room[:0]
		}
		if !s.first {
			r.send(s)
			continue
		}
		r.queued = false
		if r.past(r.now) {
			r.head = nil
			continue
		}
		r.open(s)
		r.advance()
	}
}

// queueHead lets the next session ask for a slot if it is due: by its time, or
// in a closed loop when a user is free.
func (r *runner) queueHead() {
	if r.head == nil || r.queued {
		return
	}
	due := r.head.due <= r.now
	if r.head.due == tacho.ASAP {
		due = r.Limit == 0 || r.users < r.Limit
	}
	if due {
		r.queued = true
		if r.ready = append(r.ready, r.head); len(r.ready) == 1 {
			r.room = r.ready
		}
	}
}

// open starts a session.
func (r *runner) open(s *start) {
	closed := s.due == tacho.ASAP
	if closed {
		s.due = r.now
		r.users++
	}
	if s.talk == nil {
		s.talk = &s.alone // for its end to be seen
	}
	s.talk.closed = closed
	s.talk.open = 1
	if s.talk.State != nil {
		r.follow(s.talk, s.talk.Start(s.due, r.now)[1:])
	}
	r.send(s)
}

// follow notes turns that are due later.
func (r *runner) follow(t *talk, due []session.Due) {
	for _, d := range due {
		t.open++
		r.noted++
		heap.Push(&r.later, &start{due: d.At, request: t.Request(d.Turn), talk: t, order: r.noted})
	}
}

func (r *runner) send(s *start) {
	q := s.request
	f := r.newFlight()
	events := f.record.Events[:0]
	f.record = *tacho.NewRecord(r.Index, q, s.due)
	f.start, f.rec = s, &f.record
	rec := f.rec
	rec.Events = events
	rec.Slot, rec.Start, rec.Conn, rec.Sent, rec.Wrote = r.now, r.now, r.now, r.now, r.now
	rec.Clock, rec.Conns = tacho.VirtualClock, 1
	if s.talk.State != nil {
		rec.Turns = s.talk.Turns()
	}
	r.flying++
	if r.Sent != nil {
		r.Sent()
	}
	if r.Timeout > 0 {
		f.until = r.now + r.Timeout
		r.expiry = append(r.expiry, expires{f, f.until})
	}
	r.try(f)
}

// newFlight is one of which nothing is known; its record has room for events.
func (r *runner) newFlight() *flight {
	last := len(r.spare) - 1
	if last < 0 {
		return &flight{}
	}
	f := r.spare[last]
	r.spare = r.spare[:last]
	*f = flight{record: tacho.Record{Timeline: tacho.Timeline{Events: f.record.Events}}}
	return f
}

// try hands a request to the server.
func (r *runner) try(f *flight) {
	r.lastID++
	f.id = r.lastID
	f.tries++
	ask := r.ask(f)
	err := r.Server.Add(r.now, ask)
	var refused *RefusedError
	switch {
	case errors.As(err, &refused):
		r.failed(f, tacho.Failure{Cause: tacho.Status, Phase: "wait", Status: refused.Status, Message: refused.Message})
	case err != nil:
		r.failed(f, tacho.Failure{Cause: tacho.Status, Phase: "wait", Status: http.StatusBadRequest, Message: err.Error()})
	default:
		f.rec.Input = ask.Prompt
		if r.Replica != nil {
			f.rec.Endpoint = r.Replica(f.id)
		}
	}
}

// failed ends an attempt, and with it the request unless there may be another.
func (r *runner) failed(f *flight, why tacho.Failure) {
	rec := f.rec
	rec.Failure = &why
	if pause, again := session.Again(rec, f.tries, r.Retries); again {
		rec.Failure, rec.Head = nil, tacho.Never
		r.noted++
		f.noted = true
		heap.Push(&r.later, &start{due: r.now + pause, again: f, order: r.noted})
		return
	}
	rec.End = r.now
	r.land(f)
}

// ask is the request as the server sees it.
func (r *runner) ask(f *flight) *step.Request {
	q := f.request
	p := words.Prompt{Every: r.BlockTokens}
	if r.BlockTokens > 0 {
		p.Blocks = make([]uint64, 0, (q.InputTokens+q.MaxTokens)/r.BlockTokens+1)
	}
	fill(&p, &q.Input)
	f.seed = p.Seed
	out := &r.asked // whoever takes it, copies it
	*out = step.Request{ID: f.id, Prompt: p.Tokens, MaxNew: q.MaxTokens, IgnoreEOS: q.IgnoreEOS, Draw: p.Seed, Session: q.Session, Turn: q.Turn, Adapter: q.Model, Priority: r.Priority, Of: f}
	if own, has := q.Extra["priority"].(int); has {
		out.Priority = own
	}
	if r.ByPrefix {
		out.Prefix = route.Prefix(&q.Input)
	}
	if q.InputTokens > 0 && q.InputTokens != p.Tokens && p.Tokens > 0 {
		// The tokens of the model are not those of the simulator: its blocks end elsewhere.
		p = words.Prompt{Every: max(r.BlockTokens*p.Tokens/q.InputTokens, 1)}
		if r.BlockTokens == 0 {
			p.Every = 0
		}
		fill(&p, &q.Input)
	}
	if q.InputTokens > 0 {
		out.Prompt = q.InputTokens
	}
	if r.Cached != nil {
		out.Cached = r.Cached(q)
	} else if r.BlockTokens > 0 {
		out.Blocks = p.WithAnswer(q.MaxTokens)
	}
	return out
}

func fill(p *words.Prompt, in *tacho.Input) {
	p.AddIDs(in.IDs)
	for _, u := range in.Unread {
		p.AddUnread(u.Number, u.Tokens)
	}
	p.AddText(in.Text)
	for _, m := range in.Messages {
		p.AddText(m.Content)
	}
}

// deliver takes what the server wrote.
func (r *runner) deliver(e *step.Emission) {
	f := e.Of.(*flight)
	rec := f.rec
	if rec == nil {
		return // it was given up
	}
	if e.Lost {
		f.say(e.Earlier)
		r.failed(f, tacho.Failure{Cause: tacho.Reset, Phase: "stream", Message: "the replica failed"})
		return
	}
	if e.First {
		if f.request.IgnoreEOS {
			rec.Events = slices.Grow(rec.Events, f.request.MaxTokens)
		}
		rec.Head = min(max(e.Accepted, rec.Sent), e.At)
		f.server = tacho.ServerTimes{Queue: e.Admitted - rec.Sent}
		rec.Server = &f.server
		f.made = e.Made
	}
	f.say(e.Earlier)
	rec.Events = append(rec.Events, tacho.Event{At: e.At, Tokens: int16(min(e.Tokens, 1<<15-1))}) // the end of sequence is one, as over HTTP
	rec.Output += e.Tokens
	if !e.Last {
		return
	}
	rec.Server.Decode = e.Made - f.made
	rec.OutputFrom, rec.Finish, rec.End = tacho.FromUsage, e.Finish, e.Ends
	f.usage = tacho.Usage{Prompt: rec.Input, Completion: rec.Output, Cached: e.Cached}
	rec.Usage = &f.usage
	if len(rec.Events) == 0 {
		rec.Failure = &tacho.Failure{Cause: tacho.Empty, Phase: "stream", Message: "the answer has no token"}
	}
	if e.Ends > r.now { // its slot is free when the answer is over
		r.noted++
		f.noted = true
		heap.Push(&r.later, &start{due: e.Ends, lands: f, order: r.noted})
		return
	}
	r.land(f)
}

// say notes when tokens came out, one at a time.
func (f *flight) say(at []time.Duration) {
	for _, t := range at {
		f.rec.Events = append(f.rec.Events, tacho.Event{At: t, Tokens: 1})
	}
	f.rec.Output += len(at)
}

// look looks at the server at all the times for it until then; there may be many.
func (r *runner) look(ctx context.Context, until time.Duration) {
	for r.Every > 0 && r.looked+r.Every <= until && !r.halted(ctx) {
		r.looked += r.Every
		r.now = max(r.now, r.looked)
		r.Server.Advance(r.looked, r.handed)
		r.Every = r.Look(r.looked)
	}
}

// expire gives up what takes too long.
func (r *runner) expire() {
	for f := r.oldest(); f != nil && f.until <= r.now; f = r.oldest() {
		f.say(r.Server.Cancel(r.now, f.id))
		f.rec.End = f.until
		f.rec.Failure = &tacho.Failure{Cause: tacho.Timeout, Phase: "wait", Message: "no end within the time given to a request"}
		r.land(f)
	}
}

// oldest is the request in flight whose time is up first, or nil.
func (r *runner) oldest() *flight {
	for len(r.expiry) > 0 && (r.expiry[0].rec == nil || r.expiry[0].until != r.expiry[0].at) {
		r.expiry = r.expiry[1:]
	}
	if len(r.expiry) == 0 {
		return nil
	}
	return r.expiry[0].flight
}

// land takes a request out of flight.
func (r *runner) land(f *flight) {
	r.flying--
	if f.tries > 1 {
		f.rec.Attempts = f.tries
	}
	r.end(f)
	f.rec, f.start = nil, nil // it may be remembered for as long as older ones are in flight
	if r.Reuse && !f.noted {
		r.spare = append(r.spare, f)
	}
}

// end hands a record on, and lets go what waited for it.
func (r *runner) end(f *flight) {
	rec, t := f.rec, f.talk
	if rec.OK() && t.State != nil {
		r.follow(t, t.Ended(rec.Turn, rec.End, r.answer(f)))
	}
	if t.open--; t.open == 0 && t.closed {
		r.users--
	}
	if err := r.sink.Add(rec); err != nil && r.err == nil {
		r.err = err
	}
}

// answer is what the next turn quotes: the text that the simulator would have
// written.
func (r *runner) answer(f *flight) tacho.Answer {
	ids := make([]int32, f.rec.Output)
	for k := range ids {
		ids[k] = words.Output(f.seed, k)
	}
	return tacho.Answer{Text: words.Decode(ids), Tokens: f.rec.Output}
}

// next is when something happens next.
func (r *runner) next() (time.Duration, bool) {
	at, ok := r.Server.Next()
	sooner := func(t time.Duration) {
		if !ok || t < at {
			at, ok = t, true
		}
	}
	if r.head != nil && !r.queued && r.head.due >= 0 {
		sooner(r.head.due)
	}
	if len(r.later) > 0 {
		sooner(r.later[0].due)
	}
	if f := r.oldest(); f != nil {
		sooner(f.until)
	}
	return at, ok
}

// dues are requests in order of when they are due; those of one time in the
// order in which they were noted.
type dues []*start

// Len implements heap.Interface.
func (d dues) Len() int { return len(d) }

// Less implements heap.Interface.
func (d dues) Less(i, j int) bool {
	return d[i].due < d[j].due || d[i].due == d[j].due && d[i].order < d[j].order
}

// Swap implements heap.Interface.
func (d dues) Swap(i, j int) { d[i], d[j] = d[j], d[i] }

// Push implements heap.Interface.
func (d *dues) Push(x any) { *d = append(*d, x.(*start)) }

// Pop implements heap.Interface.
func (d *dues) Pop() any {
	last := len(*d) - 1
	s := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	return s
}
