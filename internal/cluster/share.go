package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/recordjson"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/session"
	"github.com/tacho-bench/tacho/stat"
)

// A shareState is the part of a share that its records do not contain.
type shareState struct {
	Part     int           `json:"k"` // of the level
	Parts    int           `json:"n"`
	Lost     string        `json:"lost,omitempty"`   // why the share is incomplete
	Silent   bool          `json:"silent,omitempty"` // with Lost: the agent was not heard any more
	LeaseEnd time.Duration `json:"lease,omitempty"`  // with Lost: when the agent stopped sending at the latest, since the start of the level
	Agent    agentInfo     `json:"agent"`
	Offset   time.Duration `json:"offset"` // of the agent's clock, used for its start time
}

// A share is a part of a level and its received records.
type share struct {
	shareState

	id         int    // number of the record stream
	before     *share // the share of a lost agent that this one continues
	next       *share // the share that continues this one
	member     *member
	closedLoop bool        // requests are due when a slot is free
	rejected   atomic.Bool // the agent has no such share

	received    int64  // received bytes of the stream
	partialLine []byte // start of a line whose end was not received yet
	ended       bool
	final       finalMessage
	requests    int
	repeated    int         // requests that the agent before may have sent, too
	lag         stat.Digest // milliseconds
	clockMoved  time.Duration
	clockBound  time.Duration // largest error of the clock offset
	done        []uint64      // sessions with at least one finished request

	keepsProgress bool                       // collect the progress of sessions
	partial       map[uint64]*partialSession // unfinished sessions
	answer        tacho.Answer               // of the next record
}

// A partialSession is a session in progress.
type partialSession struct {
	session.Partial
	turns int
}

// newShare appends a share for one part of a level. It continues the last share of the same part, if there is one.
func (c *Coordinator) newShare(l *levelRun, k, n int, by *member) *share {
	s := &share{
		shareState: shareState{Part: k, Parts: n, Agent: by.agentInfo}, id: len(l.shares), member: by, closedLoop: l.task.Closed,
		keepsProgress: c.reassigns(), partial: map[uint64]*partialSession{},
	}
	if i := slices.IndexFunc(l.shares, func(o *share) bool { return o.Part == k && o.next == nil }); i >= 0 {
		s.before, l.shares[i].next = l.shares[i], s
	}
	l.shares = append(l.shares, s)
	return s
}

// prepareCommand returns the command that prepares the share.
func (s *share) prepareCommand(l *levelRun) *command {
	return &command{Kind: cmdPrepare, Attempt: l.attempt, Task: l.task, Share: s.id, Part: s.Part, Parts: s.Parts, KeepAnswers: s.keepsProgress, Lease: l.lease}
}

// add adds the next bytes of the stream, or the final message.
func (s *share) add(end bool, body []byte, sink tacho.Sink) error {
	if end {
		s.ended = true
		return json.Unmarshal(body, &s.final)
	}
	s.received += int64(len(body))
	return s.addLines(body, sink)
}

// addLines processes complete lines and keeps the rest.
func (s *share) addLines(body []byte, sink tacho.Sink) error {
	s.partialLine = append(s.partialLine, body...)
	for {
		line, rest, whole := bytes.Cut(s.partialLine, []byte("\n"))
		if !whole {
			s.partialLine = bytes.Clone(s.partialLine) // releases the memory of processed lines
			return nil
		}
		s.partialLine = rest
		if err := s.addLine(line, sink); err != nil {
			return fmt.Errorf("agent %s: a record cannot be read: %w", s.member.Name, err)
		}
	}
}

func (s *share) addLine(line []byte, sink tacho.Sink) error {
	if bytes.HasPrefix(line, answerPrefix) {
		return json.Unmarshal(line, &s.answer)
	}
	var r tacho.Record
	if err := recordjson.Decode(line, &r); err != nil {
		return err
	}
	return s.addRecord(&r, sink)
}

func (s *share) addRecord(r *tacho.Record, sink tacho.Sink) error {
	s.requests++
	if s.before != nil && r.Due <= s.before.LeaseEnd {
		s.repeated++
	}
	if n := len(s.done); n == 0 || s.done[n-1] != r.Session {
		s.done = append(s.done, r.Session)
	}
	r.Agent = s.member.Name
	offset, bound := s.member.offset()
	s.clockBound = max(s.clockBound, bound)
	s.correctClock(r, s.Offset-offset)
	s.trackSession(r)
	s.answer = tacho.Answer{}
	from := r.Due // client lag counts from here
	if s.closedLoop {
		from = r.Slot
	}
	if r.Sent != tacho.Never && from != tacho.Never {
		s.lag.Add(float64(r.Sent-from) / 1e6)
	}
	return sink.Add(r)
}

// trackSession records the progress of a session with several turns.
func (s *share) trackSession(r *tacho.Record) {
	if !s.keepsProgress || r.Turns < 2 {
		return
	}
	h := s.partial[r.Session]
	if h == nil {
		h = &partialSession{Partial: session.Partial{ID: r.Session}, turns: r.Turns}
		s.partial[r.Session] = h
	}
	o := session.FinishedTurn{Turn: r.Turn, Due: r.Due, End: r.End, Answer: s.answer}
	if !r.OK() {
		o.End = tacho.Never
	}
	if h.Finished = append(h.Finished, o); len(h.Finished) == h.turns {
		delete(s.partial, r.Session)
	}
}

// answerPrefix begins a line with the tacho.Answer of the next record, which a later turn may quote.
var answerPrefix = []byte(`{"Text":`)

// correctClock converts the times of a record to the coordinator's clock, using a better estimate of the offset than at
// the start of the level. Times of the schedule need no correction.
func (s *share) correctClock(r *tacho.Record, by time.Duration) {
	if by == 0 {
		return
	}
	times := []*time.Duration{&r.Slot, &r.Start, &r.Conn, &r.Sent, &r.Wrote, &r.Head, &r.End}
	if s.closedLoop || r.Turn > 0 {
		times = append(times, &r.Due)
	}
	for _, t := range times {
		if *t != tacho.Never {
			*t += by
		}
	}
	for e := range r.Arrivals() {
		e.At += by
	}
	r.ClockMoved = by
	if by.Abs() > s.clockMoved.Abs() {
		s.clockMoved = by
	}
}

// report returns the share's row in the report.
func (s *share) report(l *levelRun) metric.Agent {
	extra, _ := s.extra(l)
	offset, bound := s.member.offset()
	out := metric.Agent{
		Name: s.member.Name, Host: s.member.Host, Share: s.Part, CPUs: s.member.CPUs, Requests: s.requests, Offset: offset, OffsetErr: max(bound, s.clockBound), Moved: s.clockMoved,
		SameClock: s.member.clock.same, Client: s.final.Client, Retaken: s.before != nil, SpoolMost: s.final.MaxPending, NotReceived: s.notReceived(), Extra: extra,
	}
	if s.taker() == "" {
		out.Missing, out.Continued = s.Lost, s.Silent && l.lease == 0
	}
	if s.lag.N() > 0 {
		out.LagMillis = s.lag.Distribution().Quantile(0.99)
	}
	return out
}

// taker returns the name of the agent that took over, or "".
func (s *share) taker() string {
	next := s.next
	for next != nil && next.Lost != "" && next.requests == 0 {
		next = next.next
	}
	if next == nil {
		return ""
	}
	return next.member.Name
}

// sent returns how many requests the agent has sent of the share, as far as is known, and when.
func (s *share) sent() (n int, at time.Time) {
	s.member.mu.Lock()
	defer s.member.mu.Unlock()
	return int(max(s.member.heartbeats[s.id].Totals.Sent, s.final.Sent)), s.member.beat
}

// notReceived returns how many requests were sent, as far as is known, without a record.
func (s *share) notReceived() int {
	if s.next != nil || s.Lost == "" {
		return s.final.Lost
	}
	n, _ := s.sent()
	return max(n-s.requests, 0)
}

// lose ends a share, and sets until when its agent may have sent requests.
func (s *share) lose(l *levelRun, why string) {
	s.Lost, s.LeaseEnd = why, time.Since(l.epoch)
	if _, at := s.sent(); at.After(l.epoch) {
		s.LeaseEnd = min(s.LeaseEnd, at.Sub(l.epoch)+l.lease)
	}
}

// extra returns how many requests the agent sent that another agent sent again. If the agent did not return, the number
// is an upper bound: the agent may have sent until the end of its lease what was due until then.
func (s *share) extra(l *levelRun) (n int, most bool) {
	if s.next == nil {
		return 0, false
	}
	n, at := s.sent()
	n = max(n-s.requests, 0)
	if s.ended || at.Sub(l.epoch) > s.LeaseEnd {
		return n, false
	}
	if s.closedLoop && at.After(l.epoch) { // the load has no schedule
		return n + int(math.Ceil(float64(n+s.requests)*float64(l.lease)/float64(at.Sub(l.epoch)))), true
	}
	repeated := 0
	for next := s.next; next != nil; next = next.next {
		repeated += next.repeated
	}
	return max(n, repeated), true
}

// isLost reports whether the agent cannot send the share any more.
func (s *share) isLost() bool { return s.Lost != "" && !s.final.Orphaned }
