package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"tacho"
	"tacho/internal/recordjson"
	"tacho/metric"
	"tacho/session"
	"tacho/stat"
)

// A share is a part of a level as its records come in.
type share struct {
	id     int    // the number of its stream of records
	k, n   int    // the part of the level that it is
	taken  bool   // from an agent that was lost
	left   bool   // to another agent, which sends what was not here in time
	until  int64  // likewise: the bytes of its stream that were
	taker  string // its name
	by     *member
	offset time.Duration // of the agent's clock, by which it was told to start
	closed bool          // requests are due when there is a slot
	absent atomic.Bool   // its agent has no such share

	at       int64  // bytes of its stream that were taken in
	rest     []byte // the beginning of a line whose end is to come
	ended    bool
	lost     string // why it is not whole
	last     farewell
	toldFull bool // that its spool is full
	requests int
	lag      stat.Digest // milliseconds
	moved    time.Duration
	bound    time.Duration // of the clock, at most
	done     []uint64      // sessions of which something finished

	heeds bool                 // it is kept how far sessions are
	half  map[uint64]*halfDone // those that are not over
	said  map[place]tacho.Answer
}

// A place is that of a turn in the load.
type place struct {
	session uint64
	turn    int
}

// halfDone is a session that is under way.
type halfDone struct {
	session.Begun
	turns int
}

// newShare makes part k of n the next share of a level.
func (c *Coordinator) newShare(l *levelRun, k, n int, by *member) *share {
	s := &share{id: len(l.shares), k: k, n: n, by: by, closed: l.task.Closed, heeds: c.reassigns(), half: map[uint64]*halfDone{}, said: map[place]tacho.Answer{}}
	l.shares = append(l.shares, s)
	return s
}

// prepare is the order to make it ready.
func (s *share) prepare(l *levelRun) *order {
	return &order{Kind: prepare, Try: l.try, Task: l.task, Share: s.id, K: s.k, N: s.n, Heed: s.heeds}
}

// take takes a message of the share in. What was taken in before is left out:
// a message may come twice, or again in other pieces.
func (s *share) take(h nats.Header, body []byte, sink tacho.Sink) error {
	offset, err := strconv.ParseInt(h.Get(offsetHeader), 10, 64)
	if err != nil {
		return fmt.Errorf("agent %s: a message without its place", s.by.Name)
	}
	if s.left {
		if offset >= s.until {
			return nil
		}
		body = body[:min(int64(len(body)), s.until-offset)]
	}
	if h.Get(endHeader) != "" {
		if offset > s.at { // it comes when all others are confirmed
			return fmt.Errorf("agent %s: %d bytes of its records are missing", s.by.Name, offset-s.at)
		}
		if s.ended {
			return nil
		}
		s.ended = true
		return json.Unmarshal(body, &s.last)
	}
	end := offset + int64(len(body))
	switch {
	case end <= s.at:
		return nil
	case offset > s.at: // JetStream took this one and not the one before: the agent sends both again
		return nil
	}
	body = body[s.at-offset:]
	s.at = end
	return s.lines(body, sink)
}

// lines takes the whole lines, and keeps the rest.
func (s *share) lines(body []byte, sink tacho.Sink) error {
	s.rest = append(s.rest, body...)
	for {
		line, rest, whole := bytes.Cut(s.rest, []byte("\n"))
		if !whole {
			s.rest = append([]byte(nil), s.rest...) // and lets go of what is done
			return nil
		}
		s.rest = rest
		if err := s.line(line, sink); err != nil {
			return err
		}
	}
}

func (s *share) line(line []byte, sink tacho.Sink) error {
	if bytes.HasPrefix(line, answeredMark) {
		return s.note(line)
	}
	var r tacho.Record
	if err := recordjson.Decode(line, &r); err != nil {
		return fmt.Errorf("agent %s: a record cannot be read: %w", s.by.Name, err)
	}
	return s.add(&r, sink)
}

func (s *share) add(r *tacho.Record, sink tacho.Sink) error {
	s.requests++
	if n := len(s.done); n == 0 || s.done[n-1] != r.Session {
		s.done = append(s.done, r.Session)
	}
	r.Agent = s.by.Name
	offset, bound := s.by.offset()
	s.bound = max(s.bound, bound)
	s.correct(r, s.offset-offset)
	s.heed(r)
	if from := s.due(r); r.Sent != tacho.Never && from != tacho.Never {
		s.lag.Add(float64(r.Sent-from) / 1e6)
	}
	return sink.Add(r)
}

// heed keeps how far a session of several turns is.
func (s *share) heed(r *tacho.Record) {
	if !s.heeds || r.Turns < 2 {
		return
	}
	h := s.half[r.Session]
	if h == nil {
		h = &halfDone{Begun: session.Begun{ID: r.Session}, turns: r.Turns}
		s.half[r.Session] = h
	}
	at := place{r.Session, r.Turn}
	o := session.Over{Turn: r.Turn, Due: r.Due, End: r.End, Answer: s.said[at]}
	delete(s.said, at)
	if !r.OK() {
		o.End = tacho.Never
	}
	if h.Over = append(h.Over, o); len(h.Over) == h.turns {
		delete(s.half, r.Session)
	}
}

// An answered is a line of a share's stream that comes before the record of a turn
// whose answer a later one may quote.
type answered struct {
	Said    string `json:"said"` // the first, by which these lines are known
	Session uint64 `json:"session"`
	Turn    int    `json:"turn"`
	Tokens  int    `json:"tokens"`
}

var answeredMark = []byte(`{"said":`)

// note keeps an answer until its record is here.
func (s *share) note(line []byte) error {
	var a answered
	if err := json.Unmarshal(line, &a); err != nil {
		return fmt.Errorf("agent %s: an answer cannot be read: %w", s.by.Name, err)
	}
	if s.heeds {
		s.said[place{a.Session, a.Turn}] = tacho.Answer{Text: a.Said, Tokens: a.Tokens}
	}
	return nil
}

// due is from when on a request is late.
func (s *share) due(r *tacho.Record) time.Duration {
	if s.closed {
		return r.Slot
	}
	return r.Due
}

// correct moves the times of a record to the coordinator's clock: the agent's was
// not where it was thought to be when it was told to start, or has moved since.
// What the schedule says is no time that anybody took.
func (s *share) correct(r *tacho.Record, by time.Duration) {
	if by == 0 {
		return
	}
	times := []*time.Duration{&r.Slot, &r.Start, &r.Conn, &r.Sent, &r.Wrote, &r.Head, &r.End}
	if s.closed || r.Turn > 0 {
		times = append(times, &r.Due)
	}
	for _, t := range times {
		if *t != tacho.Never {
			*t += by
		}
	}
	for i := range r.Events {
		r.Events[i].At += by
	}
	r.ClockMoved = by
	if by.Abs() > s.moved.Abs() {
		s.moved = by
	}
}

// agent is what the report tells of the share.
func (s *share) agent() metric.Agent {
	offset, bound := s.by.offset()
	out := metric.Agent{
		Name: s.by.Name, Host: s.by.Host, Share: s.k, CPUs: s.by.CPUs, Requests: s.requests, Offset: offset, OffsetErr: max(bound, s.bound), Moved: s.moved,
		SameClock: s.by.clock.same, Client: s.last.Client, Missing: s.missing(), Retaken: s.taken, SpoolMost: s.last.Waiting,
	}
	if s.lag.N() > 0 {
		out.LagMillis = s.lag.Distribution().Quantile(0.99)
	}
	return out
}

// died says whether its agent ended before the share did, and that is known.
func (s *share) died() bool { return s.ended && (s.last.Cut || s.last.Left) }

// missing is why the share is not whole; empty where it is, or another agent
// makes it so.
func (s *share) missing() string {
	if s.taker != "" {
		return ""
	}
	return s.lost
}
