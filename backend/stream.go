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

	"tacho"
	"tacho/internal/limit"
	"tacho/internal/redact"
	"tacho/transport"
)

// maxClockStep is how far wall and monotonic clock may drift apart during one
// request, by slewing and by reading them, before it counts as a step.
const maxClockStep = time.Millisecond

// A client is a Kind with its options: all backends are one.
type client struct {
	Kind
	Options
	prefix string // before the paths of the protocol, when the endpoint has one
	types  types
}

func newClient(k Kind, o Options) (*client, error) {
	o.atOpenAI = isOpenAI(o.Client.Host())
	c := &client{Kind: k, Options: o}
	if c.Options.Endpoint == "" {
		c.Options.Endpoint = k.Endpoint
	}
	for _, own := range append([]string{k.Endpoint}, k.others...) {
		if prefix, ok := strings.CutSuffix(c.Options.Endpoint, own); ok {
			c.prefix = prefix
		}
	}
	// A request as all will be shows a bad endpoint now, and all the secrets.
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

// modelHole stands for the model's name in a path.
const modelHole = "{model}"

// address makes a call of an encoded request.
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
	if strings.Contains(path, modelHole) {
		model := modelOf(&c.Options, r)
		if model == "" {
			return nil, fmt.Errorf("%s has the model's name in its path: name it with --model", c.Name)
		}
		path = strings.ReplaceAll(path, modelHole, url.PathEscape(model))
	}
	req, err := c.Client.NewRequest(http.MethodPost, path, header, body)
	if err != nil {
		return nil, fmt.Errorf("build request: %w", err)
	}
	ready, err := c.Client.Encode(req)
	if err != nil {
		return nil, fmt.Errorf("build request: %w", err)
	}
	made := &call{client: c, req: ready, asked: r.MaxTokens}
	if c.inputs != nil {
		made.inputs = c.inputs(r)
	}
	return made, nil
}

// headers are what every request carries; the options have the last word.
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
	client *client
	req    *transport.Request
	asked  int
	inputs int  // texts or documents in it; 0 is one
	again  bool // it may be sent again
}

// keep has the request kept when it is sent: it may be sent again.
func (c *call) keep() { c.again = true }

// Do implements tacho.Call.
func (c *call) Do(ctx context.Context, epoch time.Time, rec *tacho.Record, o tacho.CallOptions) {
	t := c.under(epoch, rec, o)
	req := c.req
	if !c.again {
		c.req = nil // it goes as soon as it has been answered: a stream may be long
	}
	t.finish(c.client.Client.Do(ctx, req, &t.exchange, t.reader, t.live))
}

// Start implements engine.Starter.
func (c *call) Start(ctx context.Context, epoch time.Time, rec *tacho.Record, o tacho.CallOptions, then func(finish func(), whole bool)) bool {
	t := c.under(epoch, rec, o)
	sent := c.client.Client.Start(ctx, c.req, &t.exchange, t.reader, t.live, func(finish func() error, whole bool) {
		then(func() { t.finish(finish()) }, whole)
	})
	if sent && !c.again {
		c.req = nil // as above
	}
	return sent
}

// underway is a call that is being made.
type underway struct {
	call     *call
	rec      *tacho.Record
	start    clocks
	exchange transport.Exchange
	reader   *reader
	live     func([]byte, int64)
}

func (c *call) under(epoch time.Time, rec *tacho.Record, o tacho.CallOptions) *underway {
	rec.Inputs = c.inputs
	t := &underway{call: c, rec: rec, start: quickest(readClocks), exchange: transport.Exchange{Options: o}}
	t.reader = newReader(c.client, &t.exchange, rec)
	t.reader.epoch, t.reader.asked = epoch.UnixNano(), c.asked
	if c.client.OnToken != nil {
		t.live = (&liveCounter{marks: c.client.live, tell: c.client.OnToken, sent: &t.exchange.Sent, bare: c.client.framing == jsonLines}).feed
	}
	return t
}

// finish writes down what became of it.
func (t *underway) finish(err error) {
	end := quickest(readClocks)
	if t.exchange.End == 0 {
		t.exchange.End = end.wall.Nanoseconds()
	}
	t.reader.finish()
	t.call.client.mark(t.rec, t.reader, err)
	t.rec.ClockStep = clockStep(end.wall-t.start.wall, end.monotonic-t.start.monotonic)
}

// clocks are the wall clock, and the monotonic one since some time, read one after
// the other.
type clocks struct{ wall, monotonic time.Duration }

var someTime = time.Now() // the monotonic clock can only be read as a difference

func readClocks() clocks {
	t := time.Now()
	return clocks{time.Duration(t.UnixNano()), t.Sub(someTime)}
}

// quickest is the best of three readings. A thread may lose its processor between
// the two clocks, and then it looks as if the wall clock had been set.
func quickest(read func() clocks) clocks {
	best := read()
	for range 2 {
		if c := read(); c.wall-c.monotonic > best.wall-best.monotonic {
			best = c
		}
	}
	return best
}

// clockStep is how far the wall clock was set while the request ran, by the
// time that passed on it and on the monotonic clock.
func clockStep(wall, monotonic time.Duration) time.Duration {
	if step := wall - monotonic; step.Abs() > maxClockStep {
		return step
	}
	return 0
}

// mark writes what the exchange and the reader saw into the record.
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

// encoded says what to do about an answer with a Content-Encoding.
func encoded(x *transport.Exchange) string {
	return fmt.Sprintf("the answer has Content-Encoding %q, which was not asked for; switch off compression for this route at the server or the proxy", x.Encoding)
}

// refused is the failure of an answer that is not a 200.
func (c *client) refused(x *transport.Exchange, body []byte) *tacho.Failure {
	f := &tacho.Failure{Cause: tacho.Status, Phase: "wait", Status: x.Status}
	if x.Encoding == "" {
		f.Message = c.words(body, http.StatusText(x.Status))
	} else {
		f.Message = http.StatusText(x.Status) + "; " + encoded(x)
	}
	if x.Location != "" && x.Status >= 300 && x.Status < 400 {
		f.Message += "; the server redirects to " + x.Location + ", and a measured request goes nowhere else: give that address"
	}
	f.RetryAfter = retryAfter(x.RetryAfter, time.Now())
	return f
}

// failure is how the exchange failed, nil if it did not.
func (c *client) failure(r *reader, err error) *tacho.Failure {
	x := r.exchange
	if x.Status != 0 && x.Status != http.StatusOK {
		return c.refused(x, r.body)
	}
	if f := c.broken(r, err); f == nil || x.Encoding == "" || f.Cause != tacho.Malformed && f.Cause != tacho.Truncated {
		return f // some servers send the header and do not compress
	}
	return r.fail(tacho.Malformed, encoded(x))
}

// broken is how an answer with status 200 failed, nil if it did not.
func (c *client) broken(r *reader, err error) *tacho.Failure {
	x := r.exchange
	if r.failure != nil {
		return r.failure
	}
	if err != nil {
		f := transport.Classify(err, x)
		// The answer was whole, so a connection that breaks behind it took nothing away.
		if f != nil && (!r.ended || f.Cause != tacho.Reset && f.Cause != tacho.Truncated) {
			return f
		}
	}
	if err == nil && c.unmarked && !r.marked && !r.split.Partial() {
		r.ended = true
	}
	switch {
	case r.whole:
		return r.fail(tacho.Malformed, "the server did not stream although it was asked to; check the endpoint, and proxies on the way. It answered in one "+c.types.of(x.Type)+" document: "+c.quote(r.body))
	case !r.ended && r.payloads == 0 && len(r.body) > 0:
		return r.fail(tacho.Malformed, "not "+c.framing.String()+": "+c.quote(r.body))
	case !r.ended:
		return r.fail(tacho.Truncated, fmt.Sprintf("the stream ended without its end mark, after %d token events", len(r.rec.Events)))
	case len(r.rec.Events) == 0 && !c.Pools:
		return r.fail(tacho.Empty, "the stream was complete but held no token")
	}
	return nil
}
