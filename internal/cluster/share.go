package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/recordjson"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/session"
	"github.com/tacho-bench/tacho/stat"
)

// A share is a part of a level and its received records.
type share struct {
	id          int    // number of the record stream
	part, parts int    // index of the part of the level, and number of parts
	takenOver   bool   // from a lost agent
	superseded  bool   // another agent sends what was not received in time
	taker       string // name of the agent that took over
	member      *member
	offset      time.Duration // of the agent's clock, used for its start time
	closedLoop  bool          // requests are due when a slot is free
	rejected    atomic.Bool   // the agent has no such share

	received    int64  // received bytes of the stream
	partialLine []byte // start of a line whose end was not received yet
	ended       bool
	lossReason  string    // why the share is incomplete
	lostAt      time.Time // when another agent took over
	final       finalMessage
	warnedFull  bool // a full spool was reported
	requests    int
	lag         stat.Digest // milliseconds
	clockMoved  time.Duration
	clockBound  time.Duration // largest error of the clock offset
	done        []uint64      // sessions with at least one finished request

	keepsProgress bool                       // collect the progress of sessions
	partial       map[uint64]*partialSession // unfinished sessions
	answers       map[turnKey]tacho.Answer
}

// A turnKey identifies a turn.
type turnKey struct {
	session uint64
	turn    int
}

// A partialSession is a session in progress.
type partialSession struct {
	session.Partial
	turns int
}

// newShare appends a share for one part of a level.
func (c *Coordinator) newShare(l *levelRun, k, n int, by *member) *share {
	s := &share{id: len(l.shares), part: k, parts: n, member: by, closedLoop: l.task.Closed, keepsProgress: c.reassigns(), partial: map[uint64]*partialSession{}, answers: map[turnKey]tacho.Answer{}}
	l.shares = append(l.shares, s)
	return s
}

// prepareCommand returns the command that prepares the share.
func (s *share) prepareCommand(l *levelRun) *command {
	return &command{Kind: cmdPrepare, Attempt: l.attempt, Task: l.task, Share: s.id, Part: s.part, Parts: s.parts, KeepAnswers: s.keepsProgress, Lease: l.lease}
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
			s.partialLine = append([]byte(nil), s.partialLine...) // releases the memory of processed lines
			return nil
		}
		s.partialLine = rest
		if err := s.addLine(line, sink); err != nil {
			return err
		}
	}
}

func (s *share) addLine(line []byte, sink tacho.Sink) error {
	if bytes.HasPrefix(line, answerPrefix) {
		return s.addAnswer(line)
	}
	var r tacho.Record
	if err := recordjson.Decode(line, &r); err != nil {
		return fmt.Errorf("agent %s: a record cannot be read: %w", s.member.Name, err)
	}
	return s.addRecord(&r, sink)
}

func (s *share) addRecord(r *tacho.Record, sink tacho.Sink) error {
	s.requests++
	if n := len(s.done); n == 0 || s.done[n-1] != r.Session {
		s.done = append(s.done, r.Session)
	}
	r.Agent = s.member.Name
	offset, bound := s.member.offset()
	s.clockBound = max(s.clockBound, bound)
	s.correctClock(r, s.offset-offset)
	s.trackSession(r)
	if from := s.expectedAt(r); r.Sent != tacho.Never && from != tacho.Never {
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
	at := turnKey{r.Session, r.Turn}
	o := session.FinishedTurn{Turn: r.Turn, Due: r.Due, End: r.End, Answer: s.answers[at]}
	delete(s.answers, at)
	if !r.OK() {
		o.End = tacho.Never
	}
	if h.Finished = append(h.Finished, o); len(h.Finished) == h.turns {
		delete(s.partial, r.Session)
	}
}

// An answerLine precedes the record of a turn whose answer a later turn may quote.
type answerLine struct {
	Text    string `json:"said"` // must be the first key; see answerPrefix
	Session uint64 `json:"session"`
	Turn    int    `json:"turn"`
	Tokens  int    `json:"tokens"`
}

var answerPrefix = []byte(`{"said":`)

// addAnswer keeps an answer until its record arrives.
func (s *share) addAnswer(line []byte) error {
	var a answerLine
	if err := json.Unmarshal(line, &a); err != nil {
		return fmt.Errorf("agent %s: an answer cannot be read: %w", s.member.Name, err)
	}
	if s.keepsProgress {
		s.answers[turnKey{a.Session, a.Turn}] = tacho.Answer{Text: a.Text, Tokens: a.Tokens}
	}
	return nil
}

// expectedAt returns the time from which client lag counts.
func (s *share) expectedAt(r *tacho.Record) time.Duration {
	if s.closedLoop {
		return r.Slot
	}
	return r.Due
}

// correctClock converts the times of a record to the coordinator's clock, using a better
// estimate of the offset than at the start of the level. Times of the schedule need no
// correction.
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
		Name: s.member.Name, Host: s.member.Host, Share: s.part, CPUs: s.member.CPUs, Requests: s.requests, Offset: offset, OffsetErr: max(bound, s.clockBound), Moved: s.clockMoved,
		SameClock: s.member.clock.same, Client: s.final.Client, Missing: s.missingReason(), Retaken: s.takenOver, SpoolMost: s.final.MaxPending,
		NotReceived: s.notReceived(), Extra: extra,
	}
	if s.lag.N() > 0 {
		out.LagMillis = s.lag.Distribution().Quantile(0.99)
	}
	return out
}

// sent returns how many requests the agent has sent of the share, as far as is known, and when.
func (s *share) sent() (n int, at time.Time) {
	s.member.mu.Lock()
	defer s.member.mu.Unlock()
	return int(max(s.member.heartbeats[s.id].Totals.Sent, s.final.Sent)), s.member.beat
}

// notReceived returns how many requests were sent, as far as is known, without a record.
func (s *share) notReceived() int {
	if s.superseded || s.lossReason == "" {
		return s.final.Lost
	}
	n, _ := s.sent()
	return max(n-s.requests, 0)
}

// extra returns how many requests the agent sent that another agent sent again. If the agent did
// not return, the number is an upper bound: the agent may have sent until the end of its lease.
func (s *share) extra(l *levelRun) (n int, most bool) {
	if !s.superseded {
		return 0, false
	}
	n, at := s.sent()
	if most = !s.ended && at.Before(s.lostAt); most && at.After(l.epoch) {
		n += int(math.Ceil(float64(n) / float64(at.Sub(l.epoch)) * float64(l.lease)))
	}
	return max(n-s.requests, 0), most
}

// died reports whether the agent announced that it ended before its share.
func (s *share) died() bool { return s.ended && (s.final.Died || s.final.Stopped) }

// missingReason returns why the share is incomplete. It is empty if the share is complete or
// was taken over.
func (s *share) missingReason() string {
	if s.taker != "" {
		return ""
	}
	return s.lossReason
}
