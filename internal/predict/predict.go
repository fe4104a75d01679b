// Package predict runs a stage in virtual time: sessions from a source, at the
// times of a schedule, through a simulated server, into a sink. It opens no socket
// and reads no clock. Its records look like records of a real run, with a clock that
// marks them as computed.
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

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/route"
	"github.com/tacho-bench/tacho/session"
	"github.com/tacho-bench/tacho/sim/step"
	"github.com/tacho-bench/tacho/sim/words"
)

// A Server answers requests in virtual time. Times are offsets from the start of
// the stage and never decrease.
type Server interface {
	Add(now time.Duration, r *step.Request) error
	Cancel(now time.Duration, id uint64) (undelivered []time.Duration) // times of generated but undelivered tokens
	Next() (at time.Duration, ok bool)                                 // time of the next event; false: none before the next Add
	Advance(now time.Duration, deliver func(*step.Emission))           // processes all events up to now
}

// A Stage is one experiment with fixed load, like engine.Stage.
type Stage struct {
	Index       int
	Arrivals    iter.Seq2[uint64, time.Duration] // session number, due
	Limit       int                              // maximum requests in flight, and in a closed loop maximum active sessions; no limit if 0
	Source      tacho.Source
	Server      Server
	BlockTokens int                      // tokens in a KV block of the server; blocks are not needed if 0
	Cached      func(*tacho.Request) int // prompt tokens that count as cached; use the server's prefix cache if nil
	Timeout     time.Duration            // for one request, from its start; none if 0
	MaxTime     time.Duration            // no session starts later; no limit if 0
	Priority    int                      // of requests without their own priority
	ByPrefix    bool                     // the server routes by prompt prefix
	Replica     func(id uint64) string   // name of the replica of a request in flight; may be nil
	SampleEvery time.Duration            // time until the first call of Sample; never if 0
	Sample      Sampler
	Reuse       bool            // the sink keeps no record, so records are reused
	Sent        func()          // called for each sent request; may be nil
	Enough      <-chan struct{} // once closed, no request is sent; requests in flight finish; may be nil
}

// A Sampler observes the server and returns the time until the next sample.
type Sampler func(at time.Duration) (next time.Duration)

// Run runs the stage to its end, or until ctx is done, and emits one Record for
// each request to sink, in order of completion.
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
		r.sample(ctx, at)
		r.now = max(r.now, at)
		r.expire()
		s.Server.Advance(r.now, r.handed)
	}
	return r.err
}

// checkEvery is the number of events between two checks of the context.
const checkEvery = 1024

type runner struct {
	Stage
	sink    tacho.Sink
	handed  func(*step.Emission) // the method deliver
	arrival func() (uint64, time.Duration, bool)
	now     time.Duration
	err     error

	head      *start    // the next session to arrive; nil if there is none
	queued    bool      // head is in ready
	later     dues      // future turns
	ready     []*start  // due requests waiting for a slot, in order
	room      []*start  // memory of ready when it is empty
	inFlight  int       // requests
	expiry    []expires // requests in flight, in order of their deadlines
	spare     []*flight // finished flights, for reuse
	scratch   step.Request
	users     int // active sessions of a closed loop
	noted     int // scheduled turns so far
	lastID    uint64
	sampledAt time.Duration
	passed    int // events so far
}

// A start is a request to send.
type start struct {
	due          time.Duration
	request      *tacho.Request
	conversation *conversation // nil: a session of one turn
	alone        conversation  // storage for a session of one turn
	first        bool          // first request of its session
	order        int           // order of scheduling
	lands        *flight       // if not nil, this is the end of an answer, and not a new request
}

// A conversation is an active session.
type conversation struct {
	*session.State
	open   int  // turns in flight or due
	closed bool // session of a closed loop
}

// A flight is a request in flight.
type flight struct {
	*start
	id    uint64
	rec   *tacho.Record
	seed  uint64        // of the answer
	made  time.Duration // when the engine generated the first token
	until time.Duration // deadline
	noted bool          // a start in later refers to the flight

	record tacho.Record // storage of rec
	usage  tacho.Usage
	server tacho.ServerTimes
}

// expires is the deadline of a flight. A finished flight may have been reused for
// another request.
type expires struct {
	*flight
	at time.Duration
}

// halted is called before each event and reports whether the stage must stop.
func (r *runner) halted(ctx context.Context) bool {
	if r.passed++; r.passed%checkEvery == 1 && r.err == nil {
		r.err = ctx.Err()
	}
	return r.err != nil
}

// checkEnough drops all unsent requests once Enough is closed. It is called before
// each request is sent, as in the real engine.
func (r *runner) checkEnough() {
	if r.Enough == nil {
		return
	}
	select {
	case <-r.Enough:
		r.Enough, r.head, r.ready = nil, nil, nil
		r.later = slices.DeleteFunc(r.later, func(s *start) bool { return s.lands == nil })
		heap.Init(&r.later)
	default:
	}
}

// advance reads the next session.
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
		r.head.conversation = &conversation{State: state}
	}
	r.head.request.Quote(nil)
}

func (r *runner) past(t time.Duration) bool { return r.MaxTime > 0 && t >= r.MaxTime }

// begin sends due requests in order of their due times, if there is a free slot.
func (r *runner) begin() {
	for r.err == nil {
		for len(r.later) > 0 && r.later[0].due <= r.now {
			switch s := heap.Pop(&r.later).(*start); {
			case s.lands != nil && s.lands.rec != nil:
				r.land(s.lands)
			case s.lands == nil:
				r.ready = append(r.ready, s)
			}
		}
		r.checkEnough()
		r.queueHead()
		if len(r.ready) == 0 || r.Limit > 0 && r.inFlight >= r.Limit {
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

// queueHead queues the next session if it is due: at its time, or in a closed loop
// when a user is free.
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
	if s.conversation == nil {
		s.conversation = &s.alone // to count its end
	}
	s.conversation.closed = closed
	s.conversation.open = 1
	if s.conversation.State != nil {
		r.follow(s.conversation, s.conversation.Start(s.due, r.now)[1:])
	}
	r.send(s)
}

// follow schedules the next turns.
func (r *runner) follow(t *conversation, due []session.Due) {
	for _, d := range due {
		t.open++
		r.noted++
		heap.Push(&r.later, &start{due: d.At, request: t.Request(d.Turn), conversation: t, order: r.noted})
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
	if s.conversation.State != nil {
		rec.Turns = s.conversation.Turns()
	}
	r.inFlight++
	if r.Sent != nil {
		r.Sent()
	}
	if r.Timeout > 0 {
		f.until = r.now + r.Timeout
		r.expiry = append(r.expiry, expires{f, f.until})
	}
	r.lastID++
	f.id = r.lastID
	ask := r.stepRequest(f)
	err := r.Server.Add(r.now, ask)
	var refused *RefusedError
	switch {
	case errors.As(err, &refused):
		r.refused(f, refused.Status, refused.Message)
	case err != nil:
		r.refused(f, http.StatusBadRequest, err.Error())
	default:
		f.rec.Input = ask.Prompt
		if r.Replica != nil {
			f.rec.Endpoint = r.Replica(f.id)
		}
	}
}

// newFlight returns an empty flight whose record reuses memory if possible.
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

// A RefusedError is returned by Server.Add if the server answers a request with an
// HTTP status instead of tokens.
type RefusedError struct {
	Status  int
	Message string
}

// Error implements error.
func (e *RefusedError) Error() string { return e.Message }

// refused ends a request that the server did not accept.
func (r *runner) refused(f *flight, status int, message string) {
	f.rec.Failure = &tacho.Failure{Cause: tacho.Status, Phase: "wait", Status: status, Message: message}
	f.rec.End = r.now
	r.land(f)
}

// stepRequest returns the request as the server sees it.
func (r *runner) stepRequest(f *flight) *step.Request {
	q := f.request
	p := words.Prompt{BlockTokens: r.BlockTokens}
	if r.BlockTokens > 0 {
		p.Blocks = make([]uint64, 0, (q.InputTokens+q.MaxTokens)/r.BlockTokens+1)
	}
	fill(&p, &q.Input)
	f.seed = p.Seed
	out := &r.scratch // the receiver copies it
	*out = step.Request{ID: f.id, Prompt: p.Tokens, MaxNew: q.MaxTokens, IgnoreEOS: q.IgnoreEOS, Draw: p.Seed, Session: q.Session, Turn: q.Turn, Adapter: q.Model, Priority: r.Priority, Owner: f}
	if own, has := q.Extra["priority"].(int); has {
		out.Priority = own
	}
	if r.ByPrefix {
		out.Prefix = route.Prefix(&q.Input)
	}
	if q.InputTokens > 0 && q.InputTokens != p.Tokens && p.Tokens > 0 {
		// The model's tokens differ from the simulator's, so its blocks end
		// elsewhere.
		p = words.Prompt{BlockTokens: max(r.BlockTokens*p.Tokens/q.InputTokens, 1)}
		if r.BlockTokens == 0 {
			p.BlockTokens = 0
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
	p.AddText(in.Text)
	for _, m := range in.Messages {
		p.AddText(m.Content)
	}
}

// deliver processes an emission of the server.
func (r *runner) deliver(e *step.Emission) {
	f := e.Owner.(*flight)
	rec := f.rec
	if rec == nil {
		return // the request was cancelled
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
	f.addTokens(e.Earlier)
	rec.Events = append(rec.Events, tacho.Event{At: e.At, Tokens: int16(min(e.Tokens, 1<<15-1))}) // the end of sequence is an event, as over HTTP
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
	if e.Ends > r.now { // the slot becomes free at the end of the answer
		r.noted++
		f.noted = true
		heap.Push(&r.later, &start{due: e.Ends, lands: f, order: r.noted})
		return
	}
	r.land(f)
}

// addTokens records the times of tokens that were generated one by one.
func (f *flight) addTokens(at []time.Duration) {
	for _, t := range at {
		f.rec.Events = append(f.rec.Events, tacho.Event{At: t, Tokens: 1})
	}
	f.rec.Output += len(at)
}

// sample calls Sample at all due times up to until, of which there may be many.
func (r *runner) sample(ctx context.Context, until time.Duration) {
	for r.SampleEvery > 0 && r.sampledAt+r.SampleEvery <= until && !r.halted(ctx) {
		r.sampledAt += r.SampleEvery
		r.now = max(r.now, r.sampledAt)
		r.Server.Advance(r.sampledAt, r.handed)
		r.SampleEvery = r.Sample(r.sampledAt)
	}
}

// expire cancels requests after their deadline.
func (r *runner) expire() {
	for f := r.oldest(); f != nil && f.until <= r.now; f = r.oldest() {
		f.addTokens(r.Server.Cancel(r.now, f.id))
		f.rec.End = f.until
		f.rec.Failure = &tacho.Failure{Cause: tacho.Timeout, Phase: "wait", Message: "no end within the time given to a request"}
		r.land(f)
	}
}

// oldest returns the request in flight with the earliest deadline, or nil if there is none.
func (r *runner) oldest() *flight {
	for len(r.expiry) > 0 && (r.expiry[0].rec == nil || r.expiry[0].until != r.expiry[0].at) {
		r.expiry = r.expiry[1:]
	}
	if len(r.expiry) == 0 {
		return nil
	}
	return r.expiry[0].flight
}

// land removes a request from the requests in flight.
func (r *runner) land(f *flight) {
	r.inFlight--
	rec, t := f.rec, f.conversation
	if rec.OK() && t.State != nil {
		r.follow(t, t.Ended(rec.Turn, rec.End, r.answer(f)))
	}
	if t.open--; t.open == 0 && t.closed {
		r.users--
	}
	if err := r.sink.Add(rec); err != nil && r.err == nil {
		r.err = err
	}
	f.rec, f.start = nil, nil // expiry may still refer to the flight while older requests are in flight
	if r.Reuse && !f.noted {
		r.spare = append(r.spare, f)
	}
}

// answer is the text that the next turn quotes, as the simulator would have written
// it.
func (r *runner) answer(f *flight) tacho.Answer {
	ids := make([]int32, f.rec.Output)
	for k := range ids {
		ids[k] = words.Output(f.seed, k)
	}
	return tacho.Answer{Text: words.Decode(ids), Tokens: f.rec.Output}
}

// next returns the time of the next event.
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

// dues is a heap of requests ordered by due time, then by order of scheduling.
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
