package backend

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/limit"
	"github.com/tacho-bench/tacho/internal/redact"
	"github.com/tacho-bench/tacho/transport"
)

// maxClockStep is the allowed drift between wall clock and monotonic clock during one request, caused by slewing
// and by reading the clocks. A larger drift counts as a clock step.
const maxClockStep = time.Millisecond

// A client is a Kind with its options. Every backend is a client.
type client struct {
	Kind
	Options
	prefix string // part of the endpoint before the paths of the protocol
	types  types
}

func newClient(k Kind, o Options) (*client, error) {
	o.atOpenAI = isOpenAI(o.Client.Host())
	c := &client{Kind: k, Options: o}
	if c.Options.Endpoint == "" {
		c.Options.Endpoint = k.Endpoint
	}
	for _, own := range append([]string{k.Endpoint}, k.otherPaths...) {
		if prefix, ok := strings.CutSuffix(c.Options.Endpoint, own); ok {
			c.prefix = prefix
		}
	}
	// Build a request now, to find an invalid endpoint and all secrets early.
	req, err := o.Client.NewRequest(http.MethodPost, c.Options.Endpoint, c.headers(""), nil)
	if err != nil {
		return nil, err
	}
	if c.Secrets == nil {
		c.Secrets = &redact.Secrets{}
	}
	for name, values := range req.Header {
		for _, v := range values {
			c.Secrets.Header(name, v)
		}
	}
	return c, nil
}

// Prepare implements tacho.Backend.
func (c *client) Prepare(r *tacho.Request) (tacho.Call, error) {
	if err := c.accepts(&r.Input); err != nil {
		return nil, err
	}
	body, err := c.encode(&c.Options, r)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	return c.address(r, body)
}

// modelPlaceholder is the placeholder for the model name in a path.
const modelPlaceholder = "{model}"

// address builds a call from an encoded request.
func (c *client) address(r *tacho.Request, body []byte) (*call, error) {
	header := c.headers(c.framing.accept())
	if c.contentType != nil {
		header.Set("Content-Type", c.contentType(body))
	}
	if _, given := header["X-Request-Id"]; r.ID != "" && !given {
		header.Set("X-Request-Id", r.ID)
	}
	for _, h := range r.Header {
		header.Set(h.Key, h.Value)
		if redact.NamesSecret(h.Key) {
			c.Secrets.Header(h.Key, h.Value)
		}
	}
	path := c.Options.Endpoint
	if strings.Contains(path, modelPlaceholder) {
		model := modelOf(&c.Options, r)
		if model == "" {
			return nil, fmt.Errorf("the path of %s requests includes the model: set --model", c.Name)
		}
		path = strings.ReplaceAll(path, modelPlaceholder, url.PathEscape(model))
	}
	req, err := c.Client.NewRequest(http.MethodPost, path, header, body)
	if err != nil {
		return nil, fmt.Errorf("build request: %w", err)
	}
	ready, err := c.Client.Encode(req)
	if err != nil {
		return nil, fmt.Errorf("build request: %w", err)
	}
	made := &call{client: c, req: ready, requested: r.MaxTokens}
	if c.inputs != nil {
		made.inputs = c.inputs(r)
	}
	return made, nil
}

// headers returns the headers of every request. Options override the defaults.
func (c *client) headers(accept string) http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "Accept": {accept}}
	maps.Copy(h, c.header)
	switch {
	case c.APIKey == "":
	case c.keyName == "":
		h.Set("Authorization", "Bearer "+c.APIKey)
	default:
		h.Set(c.keyName, c.APIKey)
	}
	for k, v := range c.Header {
		h[http.CanonicalHeaderKey(k)] = v
	}
	return h
}

// A call is one encoded request.
type call struct {
	client    *client
	req       *transport.Request
	requested int
	inputs    int  // number of texts or documents; 0 means one
	reusable  bool // the request may be sent again
}

// keep keeps the request after sending, because retryingCall may repeat the call.
func (c *call) keep() { c.reusable = true }

// Do implements tacho.Call.
func (c *call) Do(ctx context.Context, epoch time.Time, rec *tacho.Record, o tacho.CallOptions) {
	t := c.begin(epoch, rec, o)
	req := c.req
	if !c.reusable {
		c.req = nil // free the body early, because a stream may be long
	}
	t.finish(c.client.Client.Do(ctx, req, &t.exchange, t.reader, t.live))
}

// Start implements engine.Starter.
func (c *call) Start(ctx context.Context, epoch time.Time, rec *tacho.Record, o tacho.CallOptions, then func(finish func(), whole bool)) bool {
	t := c.begin(epoch, rec, o)
	sent := c.client.Client.Start(ctx, c.req, &t.exchange, t.reader, t.live, func(finish func() error, whole bool) {
		then(func() { t.finish(finish()) }, whole)
	})
	if sent && !c.reusable {
		c.req = nil // free the body early, because a stream may be long
	}
	return sent
}

// A runningCall is a call in progress.
type runningCall struct {
	call     *call
	rec      *tacho.Record
	start    clocks
	exchange transport.Exchange
	reader   *reader
	live     func([]byte, int64)
}

func (c *call) begin(epoch time.Time, rec *tacho.Record, o tacho.CallOptions) *runningCall {
	rec.Inputs = c.inputs
	t := &runningCall{call: c, rec: rec, start: quickest(readClocks), exchange: transport.Exchange{Options: o}}
	t.reader = newReader(c.client, &t.exchange, rec)
	t.reader.epoch, t.reader.requested = epoch.UnixNano(), c.requested
	if c.client.OnToken != nil {
		t.live = (&liveCounter{marks: c.client.tokenMarks, tell: c.client.OnToken, sent: &t.exchange.Sent, bare: c.client.framing == jsonLines}).feed
	}
	return t
}

// finish records the result of the call.
func (t *runningCall) finish(err error) {
	end := quickest(readClocks)
	if t.exchange.End == 0 {
		t.exchange.End = end.wall.Nanoseconds()
	}
	t.reader.finish()
	t.call.client.mark(t.rec, t.reader, err)
	t.rec.ClockStep = clockStep(end.wall-t.start.wall, end.monotonic-t.start.monotonic)
}

// clocks holds the wall clock and the monotonic clock, read one after the other.
type clocks struct{ wall, monotonic time.Duration }

var clockStart = time.Now() // the monotonic clock can only be read as a difference

func readClocks() clocks {
	t := time.Now()
	return clocks{time.Duration(t.UnixNano()), t.Sub(clockStart)}
}

// quickest returns the best of three readings. If the kernel preempts the thread between the two clocks, a single
// reading looks like a clock step.
func quickest(read func() clocks) clocks {
	best := read()
	for range 2 {
		if c := read(); c.wall-c.monotonic > best.wall-best.monotonic {
			best = c
		}
	}
	return best
}

// clockStep returns the step of the wall clock during the request: the difference between the elapsed wall-clock
// time and the elapsed monotonic time.
func clockStep(wall, monotonic time.Duration) time.Duration {
	if step := wall - monotonic; step.Abs() > maxClockStep {
		return step
	}
	return 0
}

// mark stores the results of the exchange and the reader in the record.
func (c *client) mark(rec *tacho.Record, r *reader, err error) {
	x := r.exchange
	rec.Conn, rec.Sent, rec.Wrote = r.offset(x.Conn), r.offset(x.Sent), r.offset(x.Wrote)
	rec.SentSlack = time.Duration(max(0, x.SentBy-x.Sent))
	rec.Retransmits, rec.OutOfOrder = x.Retransmits, x.OutOfOrder
	rec.Head, rec.End = r.offset(x.Head), r.offset(x.End)
	rec.Clock, rec.Conns, rec.Reused = x.Clock, x.Conns, x.Reused
	if x.Clock == tacho.WireClock {
		rec.FellBack = r.unwired
		if !x.Left {
			rec.FellBack++
		}
	}
	rec.Failure = c.failure(r, cmp.Or(err, r.bound))
	if rec.Failure != nil {
		rec.Failure.Message = c.clipTo(rec.Failure.Message, limit.Text)
	}
}

// encoded explains how to avoid a response with a Content-Encoding.
func encoded(x *transport.Exchange) string {
	return fmt.Sprintf("the response has Content-Encoding %q, which tacho did not request; disable compression for this route at the server or the proxy", x.Encoding)
}

// refused returns the failure of a response with a status other than 200.
func (c *client) refused(x *transport.Exchange, body []byte) *tacho.Failure {
	f := &tacho.Failure{Cause: tacho.Status, Phase: "wait", Status: x.Status}
	if x.Encoding == "" {
		f.Message = c.errorMessage(body, http.StatusText(x.Status))
	} else {
		f.Message = http.StatusText(x.Status) + "; " + encoded(x)
	}
	if x.Location != "" && x.Status >= 300 && x.Status < 400 {
		f.Message += "; the server redirects to " + x.Location + ", and tacho does not follow redirects: use that address"
	}
	f.RetryAfter = retryAfter(x.RetryAfter, time.Now())
	return f
}

// failure returns the failure of the exchange, or nil.
func (c *client) failure(r *reader, err error) *tacho.Failure {
	x := r.exchange
	if x.Status != 0 && x.Status != http.StatusOK {
		return c.refused(x, r.body)
	}
	if f := c.broken(r, err); f == nil || x.Encoding == "" || f.Cause != tacho.Malformed && f.Cause != tacho.Truncated {
		return f // some servers send the header but do not compress
	}
	return r.fail(tacho.Malformed, encoded(x))
}

// broken returns the failure of a response with status 200, or nil.
func (c *client) broken(r *reader, err error) *tacho.Failure {
	x := r.exchange
	if r.failure != nil {
		return r.failure
	}
	if err != nil {
		f := transport.Classify(err, x)
		// The answer was complete, so a connection error after the answer lost nothing.
		if f != nil && (!r.ended || f.Cause != tacho.Reset && f.Cause != tacho.Truncated) {
			return f
		}
	}
	if err == nil && c.noEndMark && !r.marked && !r.split.Partial() {
		r.ended = true
	}
	switch {
	case r.whole:
		return r.fail(tacho.Malformed, "the server did not stream its response; check the endpoint and proxies on the way. It sent one "+c.types.of(x.Type)+" document: "+c.quote(r.body))
	case !r.ended && r.payloads == 0 && len(r.body) > 0:
		return r.fail(tacho.Malformed, "not "+c.framing.String()+": "+c.quote(r.body))
	case !r.ended:
		return r.fail(tacho.Truncated, fmt.Sprintf("the stream ended without its end mark, after %d token events", len(r.rec.Events)))
	case len(r.rec.Events) == 0 && !c.Pools:
		return r.fail(tacho.Empty, "the stream was complete but contained no token")
	}
	return nil
}
