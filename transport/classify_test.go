package transport

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
)

func TestClassify(t *testing.T) {
	reached := &Exchange{Conn: 1, Sent: 2, Wrote: 3}
	for _, tt := range []struct {
		err  error
		x    *Exchange
		want tacho.Cause
	}{
		{context.Canceled, reached, tacho.Canceled},
		{fmt.Errorf("x: %w", context.DeadlineExceeded), reached, tacho.Timeout},
		{os.ErrDeadlineExceeded, reached, tacho.Timeout},
		{&net.DNSError{Err: "no such host", Name: "nowhere.invalid", IsNotFound: true}, &Exchange{}, tacho.DNS},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, &Exchange{}, tacho.Refused},
		{errors.Join(syscall.ENETUNREACH, syscall.ECONNREFUSED), &Exchange{}, tacho.Connect},
		{syscall.Errno(10061), &Exchange{}, tacho.Refused},
		{&net.OpError{Op: "dial", Net: "unix", Err: syscall.ENOENT}, &Exchange{}, tacho.Refused},
		{syscall.EHOSTUNREACH, &Exchange{}, tacho.Connect},
		{syscall.ETIMEDOUT, &Exchange{}, tacho.Connect},
		{&handshakeError{io.EOF}, &Exchange{}, tacho.TLS},
		{x509.HostnameError{Certificate: new(x509.Certificate), Host: "a"}, &Exchange{}, tacho.TLS},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")}, reached, tacho.TLS},
		{syscall.ECONNRESET, reached, tacho.Reset},
		{io.ErrUnexpectedEOF, reached, tacho.Reset},
		{net.ErrClosed, reached, tacho.Reset},
		{errors.New("http: server closed idle connection"), reached, tacho.Reset},
		{errors.New("stream error: stream ID 1; INTERNAL_ERROR; received from peer"), reached, tacho.Reset},
		{errors.New(`malformed HTTP response "x"`), reached, tacho.Malformed},
	} {
		f := Classify(tt.err, tt.x)
		if f.Cause != tt.want || f.Message == "" {
			t.Errorf("%v is %v, want %s", tt.err, f, tt.want)
		}
	}
	if f := Classify(nil, &Exchange{}); f != nil {
		t.Errorf("nil is %v", f)
	}
}

// Failures carry a hint on how to fix them.
func TestHints(t *testing.T) {
	dial := func(errno syscall.Errno) error {
		return &url.Error{Op: "Get", URL: "http://h/", Err: &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", errno)}}
	}
	for _, tt := range []struct {
		err  error
		want tacho.Cause
		says string
	}{
		{dial(syscall.EMFILE), tacho.Connect, "ulimit -n"},
		{dial(syscall.ENFILE), tacho.Connect, "ulimit -n"},
		{dial(syscall.EADDRNOTAVAIL), tacho.Connect, "ip_local_port_range"},
		{dial(syscall.ECONNREFUSED), tacho.Refused, "check the server and its address"},
		{&handshakeError{tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake", RecordHeader: [5]byte{'H', 'T', 'T', 'P', '/'}}}, tacho.TLS, "write http:// instead"},
		{errors.New(`net/http: HTTP/1.x transport connection broken: malformed HTTP response "\x15\x03\x01\x00\x02\x02"`), tacho.Malformed, "write https:// instead"},
		{&url.Error{Op: "Get", URL: "http://h/", Err: io.EOF}, tacho.Reset, "EOF"},
	} {
		f := Classify(tt.err, nil)
		if f.Cause != tt.want || !strings.Contains(f.Message, tt.says) || strings.Contains(f.Message, "http://h/") {
			t.Errorf("%v: %v, want %s with %q", tt.err, f, tt.want, tt.says)
		}
	}
}

func TestPhase(t *testing.T) {
	for want, x := range map[string]Exchange{
		"connect": {},
		"send":    {Conn: 1, Sent: 2},
		"wait":    {Conn: 1, Sent: 2, Wrote: 3},
		"stream":  {Conn: 1, Sent: 2, Wrote: 3, Head: 4},
	} {
		if got := Classify(io.EOF, &x).Phase; got != want {
			t.Errorf("%+v: phase %s, want %s", x, got, want)
		}
	}
	if got := Classify(io.EOF, &Exchange{Conn: 1, Sent: 2, Head: 3}).Phase; got != "stream" {
		t.Errorf("an answer before the request was written: phase %s, want stream", got)
	}
}

// Failures of the same kind have the same message, so that they can be counted.
func TestMessagesLeaveOutOurPort(t *testing.T) {
	for port := range 2 {
		err := fmt.Errorf("reading: %w", &net.OpError{
			Op: "read", Net: "tcp", Err: syscall.ECONNRESET,
			Source: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 50000 + port}, Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8000},
		})
		if got, want := Classify(err, &Exchange{Conn: 1}).Message, "reading: read tcp 127.0.0.1:8000: connection reset by peer"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// unknownName sets a name server on loopback without any names, and returns a name to
// look up.
func unknownName(t *testing.T) string {
	t.Helper()
	pc := must.Get(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	before := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = before; pc.Close() })
	go func() {
		query := make([]byte, 512)
		for {
			n, from, err := pc.ReadFrom(query)
			if err != nil {
				return
			}
			if n < 12 {
				continue
			}
			// The reply is the query, marked as a response (0x80) with NXDOMAIN (3) and
			// without additional records.
			answer := append([]byte{}, query[:n]...)
			answer[2], answer[3] = 0x81, 0x83
			for i := 6; i < 12; i++ {
				answer[i] = 0
			}
			end := 12
			for end < n && answer[end] != 0 {
				end += int(answer[end]) + 1
			}
			_, _ = pc.WriteTo(answer[:min(end+5, n)], from)
		}
	}()
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", pc.LocalAddr().String())
	}}
	return "server.invalid"
}

// refusing returns a loopback address that refuses connections. It is the client's end of
// a connection, so that no listener can get it.
func refusing(t *testing.T) string {
	t.Helper()
	nc := must.Get(net.Dial("tcp", rawServer(t, func(_ net.Conn, r *bufio.Reader) { _, _ = r.ReadByte() })))(t)
	t.Cleanup(func() { nc.Close() })
	return nc.LocalAddr().String()
}

// Classify recognizes failures of real sockets.
func TestFailuresOfSockets(t *testing.T) {
	untrusted := tlsSite(t, nil)
	mutual := tlsSite(t, func(s *httptest.Server) { s.TLS.ClientAuth = tls.RequireAnyClientCert })
	trusting := must.Get(TLSConfig(mutual.tls))(t)
	unknown, refused := unknownName(t), refusing(t)
	for _, tt := range []struct {
		name string
		o    Options
		want tacho.Cause
	}{
		{"no such name", Options{BaseURL: "http://" + unknown}, tacho.DNS},
		{"refused", Options{BaseURL: "http://" + refused}, tacho.Refused},
		{"refused by name", Options{BaseURL: "http://" + strings.Replace(refused, "127.0.0.1", "localhost", 1)}, tacho.Refused},
		{"no such socket", Options{BaseURL: "unix://" + filepath.Join(t.TempDir(), "none.sock")}, tacho.Refused},
		{"untrusted certificate", Options{BaseURL: untrusted.url}, tacho.TLS},
		{"TLS to a plain server", Options{BaseURL: strings.Replace(plainSite(t).url, "http:", "https:", 1)}, tacho.TLS},
		{"no client certificate", Options{BaseURL: mutual.url, TLS: trusting}, tacho.TLS},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newClient(t, tt.o)
			var x Exchange
			err := c.Do(t.Context(), ready(t, c, "POST", "/", "x"), &x, nil, nil)
			f := Classify(err, &x)
			if f == nil || f.Cause != tt.want || x.Conns != 1 || x.End == 0 {
				t.Errorf("%v (%+v), want %s", f, x, tt.want)
			}
		})
	}
}
