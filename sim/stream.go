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

	"github.com/tacho-bench/tacho/internal/wire"
)

// bodyLimit is the maximum size of a request body: a few million tokens of text.
const bodyLimit = 64 << 20

// Timeouts for receiving a request, so that half a request does not stay forever.
// An idle connection between two requests may wait longer.
const (
	headTimeout = time.Minute
	bodyTimeout = 5 * time.Minute
	idleTimeout = time.Hour
)

// Request headers of the simulator.
const (
	faultHeader = "X-Sim-Fault" // faults for this request, see Faults
	truthHeader = "X-Sim-Truth" // any value: a trailer of this name contains the truth as JSON
)

// generate handles the requests of one dialect.
func (s *Server) generate(d *dialect) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		now := time.Now()
		an := &answer{
			server: s, dialect: d, w: w, flush: http.NewResponseController(w),
			truth: &Truth{Path: r.URL.Path, Arrival: now.UnixNano(), Received: receivedAt(r.Context())},
		}
		s.counters.inFlight.Add(1)
		if r.Header.Get(truthHeader) != "" {
			w.Header().Set("Trailer", truthHeader)
			defer func() { w.Header().Set(truthHeader, string(appendJSON(nil, an.truth))) }()
		}
		defer an.done()
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(s.open, cancel)() //nolint:contextcheck // Close, too, ends an answer
		if err := an.serve(ctx, r, now); err != nil {
			// The client detects the truncated answer by its missing end.
			panic(http.ErrAbortHandler)
		}
	}
}

// An answer is a request in the server.
type answer struct {
	*generation
	server  *Server
	dialect *dialect
	truth   *Truth
	w       http.ResponseWriter
	flush   *http.ResponseController
	zip     *gzip.Writer
	buf     []byte
	held    int           // tokens in buf
	due     time.Duration // of the latest tokens, in model time
	events  int           // token events in buf
	steps   int           // engine steps with tokens so far
}

func (an *answer) serve(ctx context.Context, r *http.Request, now time.Time) error {
	s := an.server
	// The error does not matter: a writer without deadlines is not a connection and
	// cannot block.
	_ = an.flush.SetReadDeadline(now.Add(bodyTimeout))
	body, err := io.ReadAll(http.MaxBytesReader(an.w, r.Body, bodyLimit))
	if err != nil { // keep the deadline, because the server still waits for the rest of the body
		return an.refuse(&apiError{status: http.StatusRequestEntityTooLarge, message: "read the request: " + err.Error()})
	}
	_ = an.flush.SetReadDeadline(time.Time{})
	if an.dialect.pick != nil {
		an.dialect = an.dialect.pick(s.emulated, body)
	}
	fx, err := s.faults.pick(r.Header.Get(faultHeader), s.sinceStart(now))
	if err != nil {
		return an.refuse(&apiError{status: http.StatusBadRequest, message: faultHeader + ": " + err.Error()})
	}
	an.truth.Fault = fx.names
	if fx.status != 0 {
		return an.refuse(&apiError{status: fx.status, message: "refused by a simulated fault"})
	}
	a, err := an.dialect.read(&incoming{Server: s, w: an.w, r: r, body: body, fx: fx})
	if err != nil {
		return an.reject(err)
	}
	s.corrupt(a)
	an.generation = a
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
		return an.respondError(&apiError{status: cmp.Or(an.dialect.overloaded, http.StatusServiceUnavailable), message: "Model is overloaded"})
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

// done records the end of the request.
func (an *answer) done() {
	an.truth.End = time.Now().UnixNano()
	an.server.counters.ended(an)
	an.server.truth.add(an.truth)
}

// refuse answers with a status other than 200.
func (an *answer) refuse(c *apiError) error {
	an.truth.Status = c.status
	an.w.Header().Set("Content-Type", "application/json")
	if c.status == http.StatusTooManyRequests || c.status == http.StatusServiceUnavailable {
		an.w.Header().Set("Retry-After", "1")
	}
	an.w.WriteHeader(c.status)
	_, err := an.w.Write(an.dialect.errorBody(an.server.emulated, c))
	return err
}

// reject answers an invalid request.
func (an *answer) reject(err error) error {
	c := asAPIError(err)
	c.status = cmp.Or(c.status, an.dialect.invalid, an.server.emulated.invalid, http.StatusBadRequest)
	return an.respondError(c)
}

// respondError sends an error as the dialect does: with a status or inside a
// stream.
func (an *answer) respondError(c *apiError) error {
	if an.dialect.inBand && !c.syntax {
		return an.writeStreamError(c)
	}
	return an.refuse(c)
}

// writeStreamError writes an error inside a stream and ends the stream.
func (an *answer) writeStreamError(c *apiError) error {
	d := an.dialect
	event := []byte(d.frame.begin + string(d.errorBody(an.server.emulated, c)) + d.frame.end)
	if d.streamError != nil {
		event = d.streamError(an.server.emulated, c)
	}
	if event == nil {
		return errCut
	}
	an.w.Header().Set("Content-Type", d.mime)
	an.buf = append(an.buf, event...)
	return an.send()
}

// errCut ends an answer early. The client sees a connection closed too soon.
var errCut = errors.New("cut by a simulated fault")

func (an *answer) writeStream(ctx context.Context, run run) error {
	if err := an.writeHead(); err != nil {
		return err
	}
	for have := 0; an.output == 0; {
		if over, err := an.injectFaults(ctx, have); over || err != nil {
			return err
		}
		m, err := an.next(ctx, run, have)
		if err != nil {
			return err
		}
		if err := an.writeTokens(have, m); err != nil {
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
	an.buf = an.encoder.early(an.buf)
	if an.dialect.lateHead && len(an.buf) == 0 {
		return nil
	}
	return an.send()
}

// writeTokens writes the event of the tokens after the first have tokens, unless a
// fault merges it with later events.
func (an *answer) writeTokens(have int, m emission) error {
	begin := len(an.buf)
	an.buf = an.encoder.tokens(an.buf, have, have+m.tokens)
	if an.fx.hugeAt == have {
		an.buf = padJSON(an.buf, begin, an.fx.huge)
	}
	an.held += an.count(m.tokens)
	an.events++
	silent := len(an.buf) == 0 // some dialects have no event for the end of sequence
	if silent || !m.last && an.events < an.fx.merge {
		return nil
	}
	return an.send()
}

func (an *answer) writeEnd(ctx context.Context) error {
	if over, err := an.injectFaults(ctx, an.output); over || err != nil {
		return err
	}
	an.buf = an.encoder.last(an.buf)
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

// faultError is the error of an injected fault that ends an answer.
var faultError = &apiError{status: http.StatusInternalServerError, message: "broken by a simulated fault"}

// injectFaults applies the faults due after have tokens and reports whether the
// stream has ended.
func (an *answer) injectFaults(ctx context.Context, have int) (over bool, err error) {
	fx := &an.fx
	if len(an.buf) > 0 && (fx.resetAt == have || fx.cutAt == have || fx.errorAt == have || fx.stallAt == have) {
		if err := an.send(); err != nil { // events held back for merging were generated before the fault
			return true, err
		}
	}
	switch have {
	case fx.resetAt:
		return true, an.reset()
	case fx.cutAt:
		return true, nil
	case fx.errorAt:
		return true, an.writeStreamError(faultError)
	}
	if fx.garbleAt == have {
		an.buf = append(an.buf, garbage...)
	}
	if fx.stallAt == have {
		return false, stall(ctx, fx.stall)
	}
	return false, nil
}

// garbage is an event with invalid JSON, both as a server-sent event and as a line
// of JSON.
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

// padJSON inserts blanks into the JSON of the event at begin.
func padJSON(b []byte, begin, blanks int) []byte {
	brace := bytes.IndexByte(b[begin:], '{')
	if brace < 0 {
		return b
	}
	at := begin + brace + 1
	tail := bytes.Clone(b[at:])
	b = append(b[:at], bytes.Repeat([]byte{' '}, blanks)...)
	return append(b, tail...)
}

// next waits for the next tokens and records their state.
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

// moment converts a model time to wall-clock time for the truth log. It is never
// before the arrival, although rounding or a pause may put the model time there.
func (an *answer) moment(at time.Duration) int64 {
	return an.truth.Arrival + int64(max(0, an.server.clock.wall(at).Sub(an.arrivedAt)))
}

// wait calls run.next. Before the first token of an event stream it sends
// keep-alive comments.
func (an *answer) wait(ctx context.Context, run run, have int) (emission, error) {
	silence := cmp.Or(an.dialect.keepAlive, an.server.emulated.keepAlive)
	if have > 0 || silence == 0 || !strings.HasPrefix(an.w.Header().Get("Content-Type"), "text/event-stream") {
		return run.next(ctx)
	}
	for {
		quiet, cancel := context.WithTimeout(ctx, silence)
		m, err := run.next(quiet)
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
		return an.refuse(faultError)
	}
	an.buf = an.encoder.whole(an.buf)
	if fx.hugeAt >= 0 {
		an.buf = padJSON(an.buf, 0, fx.huge)
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
	an.record()
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

// record adds the buffered tokens to the truth log just before they are written.
func (an *answer) record() {
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

// send writes the buffered data in one write on the connection.
func (an *answer) send() error {
	an.record()
	out := an.buf
	an.buf = an.buf[:0]
	if an.generation != nil && an.fx.trickle { // a rejected request has no generation
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

// reset breaks the connection, with a TCP reset if possible.
func (an *answer) reset() error {
	conn, _, err := an.flush.Hijack()
	if err != nil {
		return err // aborting the handler closes the connection as well
	}
	if tcp, ok := conn.(interface{ SetLinger(sec int) error }); ok {
		_ = tcp.SetLinger(0) // without it the client sees the end of the stream instead of a reset
	}
	_ = conn.Close()
	return nil
}
