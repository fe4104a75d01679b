// Package transport is HTTP over its own connections. The package records when each
// byte of a request left and when each byte of the response arrived. It does not
// interpret bodies.
//
// The bytes of a token and their time pass these files:
//
//	socket/receive_linux.go  gets them from the kernel into a ring buffer
//	socket/deliver_linux.go  moves them from the ring buffer to their connection
//	tlscodec.go              decrypts TLS records
//	socket/conn_linux.go     holds whole events, or wakes the reader
//	socket/pieces.go         splits the bytes where the time changes
//	conn.go                  numbers the receives, and bounds the wait in the socket
//	body.go                  unpacks chunks (chunks.go), and collects them for the decoder
//	backend/reader.go        finds events, and gives each the time of its last byte
//
// HTTP/2, proxies and systems other than Linux use net/http instead of the first five.
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

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/limit"
	"github.com/tacho-bench/tacho/transport/socket"
)

const (
	// idleTimeout is shorter than the 5 s after which uvicorn, which most inference
	// servers run on, closes an idle connection. A connection that we close ourselves
	// cannot be closed during a request.
	idleTimeout = 4 * time.Second

	defaultDialTimeout = 30 * time.Second

	// net/http allocates these buffers per connection, and there may be ten thousand
	// connections.
	readBufferSize  = 1 << 10
	writeBufferSize = 1 << 10

	// usualEndWait is how long a body may continue after the end mark of its events. Servers
	// send the last chunk right after the mark, but some proxies never send it, and would
	// hold the request until its timeout.
	usualEndWait = time.Second

	maxRedirects = 10
)

// ErrNoWire is in the error of New if the wire clock is not available.
var ErrNoWire = socket.ErrNoWire

// Options describe how to reach a server.
type Options struct {
	// BaseURL is http://host:port/prefix, https://host:port/prefix, or
	// unix:///path/to.sock, optionally followed by :/prefix.
	BaseURL string
	// Clock selects the clock. ReadClock ignores the kernel's timestamps. KernelClock uses
	// them if they are available. WireClock also timestamps segments at the network
	// device; if it is not available, the error of New is ErrNoWire.
	Clock tacho.Clock
	// TLS is the configuration for https; nil trusts the system's roots. See TLSConfig.
	TLS *tls.Config
	// Proxy returns the proxy for a request, as http.ProxyFromEnvironment does; nil means
	// no proxy.
	Proxy func(*http.Request) (*url.URL, error)
	// HTTP2 requests HTTP/2: by negotiation over TLS, by prior knowledge over http.
	HTTP2 bool
	// DialTimeout limits the dial, and separately the TLS handshake; 0 is 30 s.
	DialTimeout time.Duration
	// Dial makes the underlying connections, for tests and tunnels; nil uses the network.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Client sends requests to one server. A Client is safe for concurrent use.
type Client struct {
	base      *url.URL
	addr      string // address to dial
	transport *http.Transport
	dialer    *dialer
	keepAlive serverKeepAlive
	spares    *spares  // nil if there is a proxy
	h1        *h1Pool  // nil if net/http manages the connections
	urls      sync.Map // path to *url.URL
	open      atomic.Int64
	workers   workerPool
	endWait   time.Duration // usualEndWait
}

// New returns a client for the server at o.BaseURL, without connecting.
func New(o Options) (*Client, error) {
	base, unixPath, err := parseBase(o.BaseURL)
	if err != nil {
		return nil, err
	}
	if err := socket.CheckReceiver(); err != nil {
		return nil, err
	}
	if o.DialTimeout == 0 {
		o.DialTimeout = defaultDialTimeout
	}
	c := &Client{base: base, addr: hostPort(base), endWait: usualEndWait}
	c.keepAlive.onBroken, c.keepAlive.window = c.closeIdle, keptFor
	c.dialer = newDialer(o, unixPath, base.Scheme == "https", &c.keepAlive)
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
		TLSClientConfig:        c.dialer.tls, // for TLS through a proxy; other TLS uses dialTLS
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
		c.dialer.clock = socket.NewClock()
	}
	if o.Clock == tacho.WireClock && unixPath == "" {
		if err := c.dialer.clock.OpenTap(ports(base, proxy)); err != nil {
			c.Close()
			return nil, err
		}
	}
	if c.dialer.clock != nil && proxy == nil && !o.HTTP2 && unixPath == "" && o.Dial == nil {
		c.dialer.codec = true
		c.h1 = &h1Pool{connect: c.connect, spare: c.spare, idleTimeout: idleTimeout}
	}
	return c, nil
}

// connect returns a spare connection, or dials one.
func (c *Client) connect(ctx context.Context, o tacho.CallOptions) (*conn, error) {
	nc := c.spare()
	if nc == nil {
		err := o.Pass(func() {}) // dial only when the request is due
		if err != nil {
			return nil, err
		}
		if nc, err = c.dialer.dialTarget(ctx, c.addr); err != nil {
			return nil, err
		}
	}
	return nc.(*conn), nil
}

// spare returns a connection dialled in advance, or nil.
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

// closeIdle closes idle connections that have served a request.
func (c *Client) closeIdle() {
	c.transport.CloseIdleConnections()
	if c.h1 != nil {
		c.h1.drop(false)
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

// parseBase returns the base URL, and the path of the unix socket if there is one. Its
// errors do not contain the password.
func parseBase(s string) (base *url.URL, unixPath string, err error) {
	if rest, ok := strings.CutPrefix(s, "unix://"); ok {
		path, prefix, _ := strings.Cut(rest, ":/")
		if !strings.HasPrefix(path, "/") {
			return nil, "", errors.New("base URL: unix:// needs an absolute path such as unix:///run/server.sock")
		}
		return &url.URL{Scheme: "http", Host: "localhost", Path: strings.TrimRight("/"+prefix, "/")}, path, nil
	}
	if !strings.Contains(s, "://") {
		return nil, "", errors.New("base URL must begin with http://, https:// or unix://, for example http://127.0.0.1:8000")
	}
	base, err = url.Parse(s)
	if err != nil {
		if ue := (*url.Error)(nil); errors.As(err, &ue) {
			err = ue.Err
		}
		return nil, "", fmt.Errorf("base URL: %w; use a URL such as http://127.0.0.1:8000", err)
	}
	switch {
	case base.Scheme != "http" && base.Scheme != "https":
		return nil, "", fmt.Errorf("base URL %q must begin with http://, https:// or unix://", base.Redacted())
	case base.Hostname() == "":
		return nil, "", fmt.Errorf("base URL %q has no host; use a URL such as http://127.0.0.1:8000", base.Redacted())
	case base.RawQuery != "" || base.Fragment != "":
		return nil, "", fmt.Errorf("base URL %q must end with its path; remove the query and the fragment", base.Redacted())
	}
	base.Path = strings.TrimRight(base.Path, "/")
	base.RawPath = strings.TrimRight(base.RawPath, "/")
	return base, "", nil
}

// proxyOf returns the proxy for the server, or nil.
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

// ports returns the ports that connections go to.
func ports(base, proxy *url.URL) (out []uint16) {
	for _, u := range []*url.URL{base, proxy} {
		if u == nil {
			continue
		}
		_, port, _ := net.SplitHostPort(hostPort(u)) // hostPort always joins host and port
		if n, err := strconv.ParseUint(port, 10, 16); err == nil {
			out = append(out, uint16(n))
		}
	}
	return out
}

// hostPort returns the address that net/http dials for u.
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

// NewRequest builds a request for the client of HTTP or for Encode. It takes over header
// and body. path is relative to the base URL. Requests to the same path share their URL,
// because ten thousand of them may wait.
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
		// net/http calls GetBody again if its connection was closed before it wrote
		// anything.
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		req.Body, _ = req.GetBody()
	}
	if user := c.base.User; user != nil && req.Header.Get("Authorization") == "" {
		password, _ := user.Password()
		req.SetBasicAuth(user.Username(), password)
	}
	return req, nil
}

// Request is an encoded request for Do.
type Request struct {
	bytes []byte
	http  *http.Request // set if net/http manages the connections
}

// Encode encodes req for Do. The caller can drop req afterwards, because ten thousand
// requests may wait.
func (c *Client) Encode(req *http.Request) (*Request, error) {
	if c.h1 == nil {
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

// text returns the bytes to write. If last is true, it adds "Connection: close".
func (r *Request) text(last bool) []byte {
	if !last {
		return r.bytes
	}
	const endOfLine, wish = "\r\n", "Connection: close\r\n"
	end := bytes.Index(r.bytes, []byte(endOfLine+endOfLine)) + len(endOfLine)
	return slices.Concat(r.bytes[:end], []byte(wish), r.bytes[end:])
}

// locate returns the URL of a path.
func (c *Client) locate(path string) (*url.URL, error) {
	if u, ok := c.urls.Load(path); ok {
		return u.(*url.URL), nil
	}
	rel, err := url.Parse(path)
	if err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	if rel.IsAbs() || rel.Host != "" {
		return nil, fmt.Errorf("endpoint %q must be a path such as /v1/completions; the base URL names the server", rel.Redacted())
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

// Wire returns the segments counted at the network device. The counts are 0 without the
// wire clock.
func (c *Client) Wire() socket.Stats {
	if c.dialer.clock == nil {
		return socket.Stats{}
	}
	return c.dialer.clock.Stats()
}

// Host returns the server's host name, without a port.
func (c *Client) Host() string { return c.base.Hostname() }

// HTTP returns an ordinary client of the same server, for small calls beside the measured
// ones.
func (c *Client) HTTP() *http.Client {
	return &http.Client{Transport: c.transport, CheckRedirect: SameServer}
}

// SameServer is for http.Client.CheckRedirect. API keys are for one server and one scheme,
// so redirects to another host or port, or to another scheme, fail.
func SameServer(to *http.Request, via []*http.Request) error {
	from := via[0].URL
	switch {
	case to.URL.Scheme != from.Scheme || !strings.EqualFold(hostPort(to.URL), hostPort(from)):
		return fmt.Errorf("the server redirects to %s; API keys are not sent to another server, so use that address as the base URL if it is right", limit.Clip(to.URL.Scheme+"://"+to.URL.Host))
	case len(via) >= maxRedirects:
		return errors.New("the server redirects in a loop")
	}
	return nil
}

// Warm dials n connections, including the TLS handshake, for requests that find no idle
// connection. From then on it keeps at least least of them ready. Warm does nothing if
// there is a proxy.
func (c *Client) Warm(ctx context.Context, n, least int) error {
	if c.spares == nil {
		return nil
	}
	return c.spares.keep(ctx, n, least)
}

// Close closes idle and spare connections. Requests in flight continue.
func (c *Client) Close() {
	if c.spares != nil {
		c.spares.close()
	}
	if c.h1 != nil {
		c.h1.drop(true)
	}
	c.transport.CloseIdleConnections()
	if c.dialer.clock != nil {
		c.dialer.clock.Close()
	}
}
