package sim

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"tacho/wire"
)

// bodyLimit is the longest request body accepted: a few million tokens of text.
const bodyLimit = 64 << 20

// How long a client may take to send, so that half a request does not stay for
// ever. Connections between two requests may wait longer.
const (
	headPatience = time.Minute
	bodyPatience = 5 * time.Minute
	idlePatience = time.Hour
)

// The headers with which one request can ask for something special.
const (
	faultHeader = "X-Sim-Fault" // faults for this request, see Faults
	truthHeader = "X-Sim-Truth" // any value: a trailer of this name holds the truth as JSON
)

// generate handles the requests of one dialect.
func (s *Server) generate(d *dialect) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		now := time.Now()
		an := &answer{
			server: s, dialect: d, w: w, flush: http.NewResponseController(w),
			truth: &Truth{Path: r.URL.Path, Arrival: now.UnixNano(), Received: receivedAt(r.Context())},
		}
		s.counters.arrived()
		if r.Header.Get(truthHeader) != "" {
			w.Header().Set("Trailer", truthHeader)
			defer func() { w.Header().Set(truthHeader, string(appendJSON(nil, an.truth))) }()
		}
		defer an.done()
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(s.open, cancel)() //nolint:contextcheck // Close, too, ends an answer
		if err := an.serve(ctx, r, now); err != nil {
			// The client knows by the missing end that the answer was cut short.
			panic(http.ErrAbortHandler)
		}
	}
}

// An answer is a request on its way through the server.
type answer struct {
	*ask
	server  *Server
	dialect *dialect
	truth   *Truth
	w       http.ResponseWriter
	flush   *http.ResponseController
	zip     *gzip.Writer
	buf     []byte
	held    int           // tokens in buf
	due     time.Duration // of the latest tokens, by the model's clock
	events  int           // token events in buf
	steps   int           // of the engine that brought what came so far
}

func (an *answer) serve(ctx context.Context, r *http.Request, now time.Time) error {
	s := an.server
	// A writer that takes no deadline is no connection, and blocks none.
	_ = an.flush.SetReadDeadline(now.Add(bodyPatience))
	body, err := io.ReadAll(http.MaxBytesReader(an.w, r.Body, bodyLimit))
	if err != nil { // the deadline stays, for what is left of the body is waited for
		return an.refuse(&complaint{status: http.StatusRequestEntityTooLarge, message: "read the request: " + err.Error()})
	}
	_ = an.flush.SetReadDeadline(time.Time{})
	if an.dialect.pick != nil {
		an.dialect = an.dialect.pick(s.pose, body)
	}
	fx, err := s.faults.pick(r.Header.Get(faultHeader), s.sinceStart(now))
	if err != nil {
		return an.refuse(&complaint{status: http.StatusBadRequest, message: faultHeader + ": " + err.Error()})
	}
	an.truth.Fault = fx.names
	if fx.status != 0 {
		return an.refuse(&complaint{status: fx.status, message: "refused by a simulated fault"})
	}
	a, err := an.dialect.read(&incoming{Server: s, w: an.w, r: r, body: body, fx: fx})
	if err != nil {
		return an.reject(err)
	}
	an.ask = a
	a.arrivedAt = now
	an.truth.ID, an.truth.Input, an.truth.Asked = a.id, a.Tokens, a.limit
	an.w.Header().Set("X-Request-Id", a.id)
	if fx.resetAt == 0 {
		return an.reset()
	}
	if fx.pause > 0 {
		s.clock.stop(fx.pause)
	}
	if fx.overload || s.full() {
		return an.overload()
	}
	run, err := s.model.start(a, s.clock.at(now))
	if err != nil {
		return an.reject(err)
	}
	defer run.stop()
	an.truth.Writes = make([]int64, 0, min(a.limit, 4096))
	if !a.stream && !an.dialect.streams {
		return an.writeWhole(ctx, run)
	}
	return an.writeStream(ctx, run)
}

// done files what happened.
func (an *answer) done() {
	an.truth.End = time.Now().UnixNano()
	an.server.counters.ended(an)
	an.server.truth.add(an.truth)
}

// refuse answers with a status other than 200.
func (an *answer) refuse(c *complaint) error {
	an.truth.Status = c.status
	an.w.Header().Set("Content-Type", "application/json")
	if c.status == http.StatusTooManyRequests || c.status == http.StatusServiceUnavailable {
		an.w.Header().Set("Retry-After", "1")
	}
	an.w.WriteHeader(c.status)
	_, err := an.w.Write(an.dialect.refusal(an.server.pose, c))
	return err
}

// reject answers a request that cannot be answered.
func (an *answer) reject(err error) error {
	c := complaintOf(err)
	c.status = cmp.Or(c.status, an.dialect.invalid, an.server.pose.invalid, http.StatusBadRequest)
	return an.tellOff(c)
}

// overload answers that there is no room for the request.
func (an *answer) overload() error {
	return an.tellOff(&complaint{status: cmp.Or(an.dialect.overloaded, http.StatusServiceUnavailable), message: "Model is overloaded"})
}

// tellOff refuses in the way of the dialect.
func (an *answer) tellOff(c *complaint) error {
	if an.dialect.inBand && !c.syntax {
		return an.writeBroken(c)
	}
	return an.refuse(c)
}

// writeBroken writes an error inside a stream, and ends it.
func (an *answer) writeBroken(c *complaint) error {
	d := an.dialect
	event := []byte(d.frame.begin + string(d.refusal(an.server.pose, c)) + d.frame.end)
	if d.broken != nil {
		event = d.broken(an.server.pose, c)
	}
	if event == nil {
		return errCut
	}
	an.w.Header().Set("Content-Type", d.mime)
	an.buf = append(an.buf, event...)
	return an.send()
}

// errCut ends an answer without its end, which a client sees as a connection
// that was closed too early.
var errCut = errors.New("cut by a simulated fault")

func (an *answer) writeStream(ctx context.Context, run run) error {
	if err := an.writeHead(); err != nil {
		return err
	}
	for have := 0; an.output == 0; {
		if over, err := an.disturb(ctx, have); over || err != nil {
			return err
		}
		m, err := an.next(ctx, run, have)
		if err != nil {
			return err
		}
		if err := an.tell(have, m); err != nil {
			return err
		}
		have += m.tokens
	}
	return an.writeEnd(ctx)
}

func (an *answer) writeHead() error {
	an.w.Header().Set("Content-Type", an.dialect.mime)
	an.w.Header().Set("Cache-Control", "no-cache")
	if an.fx.gzip {
		an.w.Header().Set("Content-Encoding", "gzip")
		an.zip = gzip.NewWriter(an.w)
	}
	an.buf = an.voice.early(an.buf)
	if an.dialect.lateHead && len(an.buf) == 0 {
		return nil
	}
	return an.send()
}

// tell writes the event of tokens that came after the first have ones, unless
// it is to be held back for others.
func (an *answer) tell(have int, m emission) error {
	begin := len(an.buf)
	an.buf = an.voice.tokens(an.buf, have, have+m.tokens)
	if an.fx.hugeAt == have {
		an.buf = swell(an.buf, begin, an.fx.huge)
	}
	an.held += an.count(m.tokens)
	an.events++
	silent := len(an.buf) == 0 // some dialects have no words for the end of sequence
	if silent || !m.last && an.events < an.fx.merge {
		return nil
	}
	return an.send()
}

func (an *answer) writeEnd(ctx context.Context) error {
	if over, err := an.disturb(ctx, an.output); over || err != nil {
		return err
	}
	an.buf = an.voice.last(an.buf)
	if len(an.buf) > 0 {
		if err := an.send(); err != nil {
			return err
		}
	}
	if an.zip != nil {
		if err := an.zip.Close(); err != nil {
			return err
		}
	}
	an.truth.Finish = an.finish
	return nil
}

// broken is what a fault says that ends an answer.
var broken = &complaint{status: http.StatusInternalServerError, message: "broken by a simulated fault"}

// disturb does what the faults want after have tokens, and says whether that
// was the end of the stream.
func (an *answer) disturb(ctx context.Context, have int) (over bool, err error) {
	fx := &an.fx
	if len(an.buf) > 0 && (fx.resetAt == have || fx.cutAt == have || fx.errorAt == have || fx.stallAt == have) {
		if err := an.send(); err != nil { // held back for merging; it was generated before the fault
			return true, err
		}
	}
	switch have {
	case fx.resetAt:
		return true, an.reset()
	case fx.cutAt:
		return true, nil
	case fx.errorAt:
		return true, an.writeBroken(broken)
	}
	if fx.garbleAt == have {
		an.buf = append(an.buf, garbage...)
	}
	if fx.stallAt == have {
		return false, stall(ctx, fx.stall)
	}
	return false, nil
}

// garbage is an event whose data is no JSON, in server-sent events and in
// lines of JSON alike.
const garbage = wire.SSEBegin + `{"choices":[{"text":"` + wire.SSEEnd

func stall(ctx context.Context, length time.Duration) error {
	if length == 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	select {
	case <-time.After(length):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// swell puts blanks into the JSON of the event at begin, where JSON allows
// any number of them.
func swell(b []byte, begin, blanks int) []byte {
	brace := bytes.IndexByte(b[begin:], '{')
	if brace < 0 {
		return b
	}
	at := begin + brace + 1
	tail := bytes.Clone(b[at:])
	b = append(b[:at], bytes.Repeat([]byte{' '}, blanks)...)
	return append(b, tail...)
}

// next waits for the next tokens and notes what is known with them.
func (an *answer) next(ctx context.Context, run run, have int) (emission, error) {
	m, err := an.wait(ctx, run, have)
	if err != nil {
		return m, err
	}
	an.due = m.at
	if have == 0 {
		an.cached, an.firstAt = m.cached, time.Now()
		t := an.truth
		t.Cached, t.Queued, t.Admitted, t.First = m.cached, an.moment(m.queued), an.moment(m.admitted), an.moment(m.firstMade)
		an.admittedAt = an.arrivedAt.Add(time.Duration(t.Admitted - t.Arrival))
	}
	an.server.counters.made(an.truth, an.moment(m.made), m.steps-an.steps)
	an.steps = m.steps
	if m.last {
		an.output, an.eos, an.finish, an.lastAt = have+m.tokens, m.eos, m.finish, time.Now()
		if an.output == an.stopAt {
			an.finish, an.eos = finishStop, an.silent
		}
		an.truth.Preemptions = m.preemptions
	}
	return m, nil
}

// moment is a time of the model's as the truth has it. By rounding, or in a
// pause, the model's clock puts it before the arrival.
func (an *answer) moment(at time.Duration) int64 {
	return an.truth.Arrival + int64(max(0, an.server.clock.wall(at).Sub(an.arrivedAt)))
}

// wait is run.next. While the first token of an event stream is not there, it
// sends a comment now and then.
func (an *answer) wait(ctx context.Context, run run, have int) (emission, error) {
	silence := cmp.Or(an.dialect.keepAlive, an.server.pose.keepAlive)
	if have > 0 || silence == 0 || !strings.HasPrefix(an.w.Header().Get("Content-Type"), "text/event-stream") {
		return run.next(ctx)
	}
	for {
		patience, cancel := context.WithTimeout(ctx, silence)
		m, err := run.next(patience)
		cancel()
		if err == nil || ctx.Err() != nil {
			return m, err
		}
		if err := an.sendPiece([]byte(":\n\n")); err != nil {
			return m, err
		}
	}
}

func (an *answer) writeWhole(ctx context.Context, run run) error {
	for have := 0; an.output == 0; {
		if an.fx.stallAt == have {
			if err := stall(ctx, an.fx.stall); err != nil {
				return err
			}
		}
		m, err := an.next(ctx, run, have)
		if err != nil {
			return err
		}
		have += m.tokens
	}
	fx := &an.fx
	if fx.errorAt >= 0 {
		return an.refuse(broken)
	}
	an.buf = an.voice.whole(an.buf)
	if fx.hugeAt >= 0 {
		an.buf = swell(an.buf, 0, fx.huge)
	}
	an.held, an.events = an.count(an.output), 1
	if fx.garbleAt >= 0 || fx.cutAt >= 0 || fx.resetAt >= 0 {
		an.buf = an.buf[:len(an.buf)/2]
		an.held = 0
	}
	an.w.Header().Set("Content-Type", "application/json")
	if fx.gzip {
		an.w.Header().Set("Content-Encoding", "gzip")
		an.zip = gzip.NewWriter(an.w)
	}
	an.note()
	if err := an.put(an.buf); err != nil {
		return err
	}
	switch {
	case fx.resetAt >= 0:
		return an.reset()
	case fx.cutAt >= 0:
		return errCut
	case an.zip != nil:
		if err := an.zip.Close(); err != nil {
			return err
		}
	}
	if fx.garbleAt < 0 {
		an.truth.Finish = an.finish
	}
	return nil
}

// note takes down that what is gathered is about to be written.
func (an *answer) note() {
	an.truth.Status = http.StatusOK
	if an.held > 0 {
		now := time.Now()
		an.server.counters.late.Add(int64(now.Sub(an.server.clock.wall(an.due))))
		at := now.UnixNano()
		an.server.counters.wrote(an.truth, at, an.held)
		an.truth.wrote(at, an.held)
		an.held, an.events = 0, 0
	}
}

// send writes what is gathered, as one write on the connection.
func (an *answer) send() error {
	an.note()
	out := an.buf
	an.buf = an.buf[:0]
	if an.ask != nil && an.fx.trickle { // what is rejected was never an ask
		for i := range out {
			if err := an.sendPiece(out[i : i+1]); err != nil {
				return err
			}
		}
		return nil
	}
	return an.sendPiece(out)
}

func (an *answer) sendPiece(b []byte) error {
	if err := an.put(b); err != nil {
		return err
	}
	if err := an.flush.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

func (an *answer) put(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if an.zip == nil {
		_, err := an.w.Write(b)
		return err
	}
	if _, err := an.zip.Write(b); err != nil {
		return err
	}
	return an.zip.Flush()
}

// reset breaks the connection, with a TCP reset where it is one.
func (an *answer) reset() error {
	conn, _, err := an.flush.Hijack()
	if err != nil {
		return err // aborting the handler closes the connection too
	}
	if tcp, ok := conn.(interface{ SetLinger(sec int) error }); ok {
		_ = tcp.SetLinger(0) // without it the client sees an end and not a reset
	}
	_ = conn.Close()
	return nil
}
