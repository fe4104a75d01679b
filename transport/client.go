// Package transport is HTTP over connections of our own: it knows when each byte
// of a request left and when the kernel received each byte of the response. It
// knows nothing of what the bytes mean.
package transport

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tacho"
	"tacho/internal/limit"
	"tacho/transport/tap"
)

const (
	// idleTimeout is shorter than the 5 s after which uvicorn, which most
	// inference servers run on, closes an idle connection: a connection that
	// we close ourselves cannot be closed under a request.
	idleTimeout = 4 * time.Second

	defaultDialTimeout = 30 * time.Second

	// The buffers of net/http are per connection, and there may be ten
	// thousand of them.
	readBufferSize  = 1 << 10
	writeBufferSize = 1 << 10

	maxRedirects = 10
)

// ErrNoWire is in the error of New where there is no wire clock to be had.
var ErrNoWire = tap.ErrUnavailable

// Options say how to reach a server.
type Options struct {
	// BaseURL is http://host:port/prefix, https://..., or
	// unix:///path/to.sock, with :/prefix after it where there is one.
	BaseURL string
	// Clock is ReadClock to do without the kernel's times; otherwise they are
	// used wherever they can be had. WireClock has segments stamped at the network
	// device, too, or New fails with an error that is ErrNoWire.
	Clock tacho.Clock
	// TLS is for https; nil trusts what the system trusts. See TLSConfig.
	TLS *tls.Config
	// Proxy says which proxy to use, as http.ProxyFromEnvironment does; nil is none.
	Proxy func(*http.Request) (*url.URL, error)
	// HTTP2 asks for HTTP/2: by negotiation over TLS, by prior knowledge over http.
	HTTP2 bool
	// DialTimeout bounds the making of a connection, and again its TLS
	// handshake; 0 is 30 s.
	DialTimeout time.Duration
	// Dial makes the connections beneath, for tests and tunnels; nil is the
	// network.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// A Client talks to one server. It is safe for concurrent use.
type Client struct {
	base      *url.URL
	addr      string // that connections are made to
	transport *http.Transport
	dialer    *dialer
	keeping   keeping
	spares    *spares  // nil where connections are not to the server itself
	lines     *lines   // nil where net/http has the connections
	urls      sync.Map // path to *url.URL
	open      atomic.Int64
	crew      crew
}

// New returns a client of the server at o.BaseURL. It connects to nothing.
func New(o Options) (*Client, error) {
	base, socket, err := parseBase(o.BaseURL)
	if err != nil {
		return nil, err
	}
	if _, err := wantsOrdinary(); err != nil {
		return nil, err
	}
	if o.DialTimeout == 0 {
		o.DialTimeout = defaultDialTimeout
	}
	c := &Client{base: base, addr: hostPort(base)}
	c.keeping.onBroken, c.keeping.window = c.closeIdle, keptFor
	c.dialer = newDialer(o, socket, base.Scheme == "https", &c.keeping)
	proxy, err := proxyOf(o.Proxy, base)
	if err != nil {
		return nil, err
	}
	if proxy == nil {
		c.spares = newSpares(func(ctx context.Context) (net.Conn, error) { return c.dialer.dialTarget(ctx, c.addr) })
	}
	c.transport = &http.Transport{
		Proxy:                  o.Proxy,
		DialContext:            c.dialPlain,
		DialTLSContext:         c.dialTLS,
		TLSClientConfig:        c.dialer.tls, // for TLS through a proxy; otherwise dialTLS
		TLSHandshakeTimeout:    o.DialTimeout,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    1 << 20,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: limit.Header,
		ReadBufferSize:         readBufferSize,
		WriteBufferSize:        writeBufferSize,
		Protocols:              protocols(o.HTTP2, base.Scheme),
	}
	if o.Clock != tacho.ReadClock {
		c.dialer.clock = newKernelClock()
	}
	if o.Clock == tacho.WireClock && socket == "" {
		if err := c.dialer.clock.openTap(ports(base, proxy)); err != nil {
			c.Close()
			return nil, err
		}
	}
	if c.dialer.clock != nil && proxy == nil && !o.HTTP2 && base.Scheme == "http" && socket == "" && o.Dial == nil {
		c.lines = &lines{connect: c.connect, spare: c.spare, idleTimeout: idleTimeout}
	}
	return c, nil
}

// connect makes a connection for a line, or takes one that was made before.
func (c *Client) connect(ctx context.Context, o tacho.CallOptions) (*conn, error) {
	nc := c.spare()
	if nc == nil {
		err := o.Pass(func() {}) // a connection is made when the request is due
		if err != nil {
			return nil, err
		}
		if nc, err = c.dialer.dial(ctx, "tcp", c.addr); err != nil {
			return nil, err
		}
	}
	return nc.(*conn), nil
}

// spare is a connection that was made before; nil if there is none.
func (c *Client) spare() net.Conn {
	if c.spares == nil {
		return nil
	}
	nc := c.spares.take()
	if nc != nil {
		connUnder(nc).spare = true
	}
	return nc
}

// closeIdle closes connections that served a request and wait for another.
func (c *Client) closeIdle() {
	c.transport.CloseIdleConnections()
	if c.lines != nil {
		c.lines.drop(false)
	}
}

func protocols(http2 bool, scheme string) *http.Protocols {
	p := new(http.Protocols)
	switch {
	case http2 && scheme == "http":
		p.SetUnencryptedHTTP2(true)
	case http2:
		p.SetHTTP1(true)
		p.SetHTTP2(true)
	default:
		p.SetHTTP1(true)
	}
	return p
}

// parseBase returns the URL that requests are relative to, and the path of the
// unix socket if there is one. Its errors do not repeat a password.
func parseBase(s string) (base *url.URL, socket string, err error) {
	if rest, ok := strings.CutPrefix(s, "unix://"); ok {
		path, prefix, _ := strings.Cut(rest, ":/")
		if !strings.HasPrefix(path, "/") {
			return nil, "", errors.New("base URL: unix:// wants an absolute path, as in unix:///run/server.sock")
		}
		return &url.URL{Scheme: "http", Host: "localhost", Path: strings.TrimRight("/"+prefix, "/")}, path, nil
	}
	if !strings.Contains(s, "://") {
		return nil, "", errors.New("base URL: it should begin with http://, https:// or unix://, as in http://127.0.0.1:8000")
	}
	base, err = url.Parse(s)
	if err != nil {
		if ue := (*url.Error)(nil); errors.As(err, &ue) {
			err = ue.Err
		}
		return nil, "", fmt.Errorf("base URL: %w; it should look like http://127.0.0.1:8000", err)
	}
	switch {
	case base.Scheme != "http" && base.Scheme != "https":
		return nil, "", fmt.Errorf("base URL %q: it should begin with http://, https:// or unix://", base.Redacted())
	case base.Hostname() == "":
		return nil, "", fmt.Errorf("base URL %q names no host; it should look like http://127.0.0.1:8000", base.Redacted())
	case base.RawQuery != "" || base.Fragment != "":
		return nil, "", fmt.Errorf("base URL %q: leave out what follows the path", base.Redacted())
	}
	base.Path = strings.TrimRight(base.Path, "/")
	base.RawPath = strings.TrimRight(base.RawPath, "/")
	return base, "", nil
}

// proxyOf is the proxy before the server, or nil.
func proxyOf(proxy func(*http.Request) (*url.URL, error), base *url.URL) (*url.URL, error) {
	if proxy == nil {
		return nil, nil
	}
	u, err := proxy(&http.Request{URL: base, Host: base.Host})
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	return u, nil
}

// ports are those that connections go to.
func ports(base, proxy *url.URL) (out []uint16) {
	for _, u := range []*url.URL{base, proxy} {
		if u == nil {
			continue
		}
		_, port, _ := net.SplitHostPort(hostPort(u)) // it was joined there
		if n, err := strconv.ParseUint(port, 10, 16); err == nil {
			out = append(out, uint16(n))
		}
	}
	return out
}

// hostPort is the address that net/http dials for u.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// dialPlain is for http.Transport.DialContext.
func (c *Client) dialPlain(ctx context.Context, network, addr string) (net.Conn, error) {
	if c.base.Scheme == "http" && addr == c.addr {
		if spare := c.spare(); spare != nil {
			return spare, nil
		}
	}
	return c.dialer.dial(ctx, network, addr)
}

// dialTLS is for http.Transport.DialTLSContext.
func (c *Client) dialTLS(ctx context.Context, network, addr string) (net.Conn, error) {
	if c.base.Scheme == "https" && addr == c.addr {
		if spare := c.spare(); spare != nil {
			return spare, nil
		}
	}
	return c.dialer.dialTLS(ctx, network, addr)
}

// NewRequest builds a request to be sent by the client of HTTP, or, made ready
// by Encode, by Do. It takes header and body over. path is relative to the base URL. Requests to one path share
// its URL: ten thousand of them wait at a time.
func (c *Client) NewRequest(method, path string, header http.Header, body []byte) (*http.Request, error) {
	u, err := c.locate(path)
	if err != nil {
		return nil, err
	}
	if header == nil {
		header = http.Header{}
	}
	req := &http.Request{
		Method: method, URL: u, Host: u.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	if len(body) > 0 {
		req.ContentLength = int64(len(body))
		// net/http asks for the body again if it finds its connection closed
		// before it has written anything.
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		req.Body, _ = req.GetBody()
	}
	if user := c.base.User; user != nil && req.Header.Get("Authorization") == "" {
		password, _ := user.Password()
		req.SetBasicAuth(user.Username(), password)
	}
	return req, nil
}

// A Request is ready to be sent: it is the very bytes that a line writes.
type Request struct {
	bytes []byte
	http  *http.Request // where net/http has the connections
}

// Encode makes req ready, for Do. What was built to make it may go: ten
// thousand requests wait at a time.
func (c *Client) Encode(req *http.Request) (*Request, error) {
	if c.lines == nil {
		return &Request{http: req}, nil
	}
	b := encoders.Get().(*bytes.Buffer)
	defer encoders.Put(b)
	b.Reset()
	if err := req.Write(b); err != nil {
		return nil, err
	}
	return &Request{bytes: bytes.Clone(b.Bytes())}, nil
}

var encoders = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// text is what to write. It says so if it is the last on its connection.
func (r *Request) text(last bool) []byte {
	if !last {
		return r.bytes
	}
	const endOfLine, wish = "\r\n", "Connection: close\r\n"
	end := bytes.Index(r.bytes, []byte(endOfLine+endOfLine)) + len(endOfLine)
	return slices.Concat(r.bytes[:end], []byte(wish), r.bytes[end:])
}

// locate is the URL of a path.
func (c *Client) locate(path string) (*url.URL, error) {
	if u, ok := c.urls.Load(path); ok {
		return u.(*url.URL), nil
	}
	rel, err := url.Parse(path)
	if err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	if rel.IsAbs() || rel.Host != "" {
		return nil, fmt.Errorf("endpoint %q: it should be a path such as /v1/completions; the server is named by the base URL", rel.Redacted())
	}
	u := *c.base
	u.User = nil
	u.RawQuery = rel.RawQuery
	separator := "/"
	if strings.HasPrefix(path, "/") || rel.Path == "" {
		separator = ""
	}
	u.RawPath = c.base.EscapedPath() + separator + rel.EscapedPath()
	u.Path = c.base.Path + separator + rel.Path
	c.urls.Store(path, &u)
	return &u, nil
}

// Wire counts what was seen at the network device. It is all 0 but by the wire clock.
func (c *Client) Wire() tap.Stats {
	if c.dialer.clock == nil {
		return tap.Stats{}
	}
	return c.dialer.clock.stats()
}

// Host is the server's name, without a port.
func (c *Client) Host() string { return c.base.Hostname() }

// HTTP is an ordinary client of the same server, for small calls beside the
// measured ones.
func (c *Client) HTTP() *http.Client {
	return &http.Client{Transport: c.transport, CheckRedirect: SameServer}
}

// SameServer is for http.Client.CheckRedirect. Our keys are meant for the server
// they were given for, by the way they were given for: no redirect takes them to
// another host or port, nor from https to http.
func SameServer(to *http.Request, via []*http.Request) error {
	from := via[0].URL
	switch {
	case to.URL.Scheme != from.Scheme || !strings.EqualFold(hostPort(to.URL), hostPort(from)):
		return fmt.Errorf("the server redirects to %s, where our keys are not sent: if that is the right server, give its address", limit.Clip(to.URL.Scheme+"://"+to.URL.Host))
	case len(via) >= maxRedirects:
		return errors.New("the server redirects in a circle")
	}
	return nil
}

// Warm dials n connections, TLS handshake and all, for requests that find no
// idle connection; and from then on keeps at least so many of them ready. A
// server behind a proxy is not kept warm.
func (c *Client) Warm(ctx context.Context, n, least int) error {
	if c.spares == nil {
		return nil
	}
	return c.spares.keep(ctx, n, least)
}

// Close lets go of idle and spare connections. Requests under way go on.
func (c *Client) Close() {
	if c.spares != nil {
		c.spares.close()
	}
	if c.lines != nil {
		c.lines.drop(true)
	}
	c.transport.CloseIdleConnections()
	if c.dialer.clock != nil {
		c.dialer.clock.close()
	}
}
