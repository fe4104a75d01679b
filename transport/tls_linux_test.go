package transport

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho"
)

// A cutConn is the connection below a TLS server. It writes records as its fields say.
type cutConn struct {
	*net.TCPConn
	piece  int   // size of the pieces; 0 does not cut
	before int64 // time just before the last piece of the last record
	keep   bool  // keep the records for the next write
	kept   []byte
	flight int // if positive, number of writes after which keep is set
}

func (c *cutConn) Write(p []byte) (int, error) {
	if c.flight > 0 {
		c.flight--
		defer func() { c.keep = c.flight == 0 }()
	}
	c.kept = append(c.kept, p...)
	if c.keep {
		return len(p), nil
	}
	rest := c.kept
	c.kept = nil
	for len(rest) > 0 {
		n := len(rest)
		if c.piece > 0 {
			n = min(n, c.piece)
		}
		if c.before = now(); n == len(rest) {
			c.piece = -c.piece // the next record is whole
		}
		if _, err := c.TCPConn.Write(rest[:n]); err != nil {
			return 0, err
		}
		rest = rest[n:]
	}
	c.piece = max(c.piece, -c.piece)
	return len(p), nil
}

// secured returns a client of a TLS server that serves each connection with serve.
func secured(t *testing.T, config *tls.Config, conn cutConn, serve func(c *tls.Conn, raw *cutConn, r *bufio.Reader)) *Client {
	t.Helper()
	keepStamping(t)
	s := httptest.NewTLSServer(nil)
	t.Cleanup(s.Close)
	config.Certificates = s.TLS.Certificates
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	url := rawServer(t, func(nc net.Conn, _ *bufio.Reader) {
		raw := &cutConn{TCPConn: nc.(*net.TCPConn), flight: conn.flight}
		c := tls.Server(raw, config)
		if c.Handshake() == nil {
			serve(c, raw, bufio.NewReader(c))
		}
	})
	return newClient(t, Options{BaseURL: "https://" + url, TLS: &tls.Config{RootCAs: roots, ClientSessionCache: tls.NewLRUClientSessionCache(1)}})
}

var tlsVersions = map[string]*tls.Config{"TLS 1.2": {MaxVersion: tls.VersionTLS12}, "TLS 1.3": {MinVersion: tls.VersionTLS13}}

// However records are cut into segments, the body is whole, and the time of an event is the
// time of the last segment of its record.
func TestTLSRecordsInPieces(t *testing.T) {
	for name, config := range tlsVersions {
		for _, piece := range []int{0, 1, 4, 5, 6, 29} {
			t.Run(fmt.Sprint(name, " ", piece), func(t *testing.T) {
				const events = 20
				wrote := make(chan int64, events)
				c := secured(t, config.Clone(), cutConn{}, func(c *tls.Conn, raw *cutConn, r *bufio.Reader) {
					for readHead(r) == nil {
						io.WriteString(c, chunkedHead)
						raw.piece = piece
						for i := range events {
							io.WriteString(c, chunk(fmt.Sprintf("data: %*d\n\n", 3*i+2, i)))
							wrote <- raw.before
						}
						io.WriteString(c, "0\r\n\r\n")
						raw.piece = 0
					}
				})
				for round := range 2 {
					x, sink := mustPost(t, c, "")
					checkOrder(t, x, sink.reads)
					if x.Clock != tacho.KernelClock || x.Reused != (round > 0) {
						t.Errorf("round %d: %+v", round, x)
					}
					end, r := 0, 0
					for i, event := range bytes.SplitAfter(sink.data, []byte("\n\n"))[:events] {
						if want := fmt.Sprintf("data: %*d\n\n", 3*i+2, i); string(event) != want {
							t.Fatalf("event %d is %q, want %q", i, event, want)
						}
						for end += len(event); sink.reads[r].End < end; {
							r++
						}
						if before := <-wrote; sink.reads[r].At < before {
							t.Errorf("event %d has time %d, but its last byte was written after %d", i, sink.reads[r].At, before)
						}
					}
				}
			})
		}
	}
}

// Events in records of one segment have the time of the segment.
func TestTLSRecordsInOneSegment(t *testing.T) {
	c := secured(t, &tls.Config{}, cutConn{}, func(c *tls.Conn, raw *cutConn, r *bufio.Reader) {
		if readHead(r) != nil {
			return
		}
		raw.keep = true
		io.WriteString(c, chunkedHead)
		for range 9 {
			io.WriteString(c, chunk("data: x\n\n"))
		}
		raw.keep = false
		io.WriteString(c, chunk("data: [DONE]\n\n")+"0\r\n\r\n")
		io.Copy(io.Discard, c)
	})
	x, sink := mustPost(t, c, "")
	if got := bytes.Count(sink.data, []byte("data: x")); got != 9 || sink.reads[0].At != x.Head || x.End != x.Head {
		t.Errorf("%d events, reads %+v in %+v", got, sink.reads, x)
	}
}

// A body is complete if its framing says so, with or without close_notify.
func TestTLSEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		text   string
		notify bool
		cut    int // bytes of the last record that are not sent
		cause  tacho.Cause
	}{
		"length, no close_notify":             {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", false, 0, ""},
		"chunks, no close_notify":             {chunkedHead + chunk("hi") + "0\r\n\r\n", false, 0, ""},
		"no framing, close_notify":            {"HTTP/1.1 200 OK\r\n\r\nhi", true, 0, ""},
		"no framing, cut record":              {"HTTP/1.1 200 OK\r\n\r\nhi", false, 1, tacho.Reset},
		"incomplete length, close_notify":     {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi", true, 0, tacho.Reset},
		"incomplete chunks, close_notify":     {chunkedHead + chunk("hi"), true, 0, tacho.Reset},
		"incomplete chunks, no close_notify":  {chunkedHead + chunk("hi"), false, 0, tacho.Reset},
		"incomplete head, no close_notify":    {"HTTP/1.1 200", false, 0, tacho.Reset},
		"nothing on a fresh connection":       {"", false, 0, tacho.Reset},
		"cut record of the head":              {chunkedHead, false, 7, tacho.Reset},
		"length, close_notify after the body": {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", true, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := secured(t, &tls.Config{}, cutConn{}, func(c *tls.Conn, raw *cutConn, r *bufio.Reader) {
				if readHead(r) != nil {
					return
				}
				raw.keep = tt.cut > 0
				io.WriteString(c, tt.text)
				raw.keep = false
				if tt.notify {
					c.CloseWrite()
				}
				raw.TCPConn.Write(raw.kept[:max(0, len(raw.kept)-tt.cut)])
			})
			var x Exchange
			err := c.Do(t.Context(), ready(t, c, "POST", "/", ""), &x, new(collector), nil)
			var cause tacho.Cause
			if f := Classify(err, &x); f != nil {
				cause = f.Cause
			}
			if cause != tt.cause {
				t.Errorf("cause %q, want %q: %v", cause, tt.cause, err)
			}
		})
	}
}

// Bytes that are no records end the exchange with an error of TLS.
func TestTLSGarbage(t *testing.T) {
	for _, text := range []string{"HTTP/1.1 200 OK\r\n\r\n", "\x17\x03\x03\x00\x20" + strings.Repeat("x", 32), "\x16\x03\x03\x00\x04\x00\x00\x00\x00"} {
		c := secured(t, &tls.Config{MaxVersion: tls.VersionTLS12}, cutConn{}, func(_ *tls.Conn, raw *cutConn, r *bufio.Reader) {
			if readHead(r) == nil {
				raw.TCPConn.Write([]byte(text))
			}
		})
		var x Exchange
		err := c.Do(t.Context(), ready(t, c, "POST", "/", ""), &x, new(collector), nil)
		if f := Classify(err, &x); f == nil || f.Cause != tacho.TLS {
			t.Errorf("%q: %v, %+v", text, err, f)
		}
	}
}

// Session tickets that arrive on an idle connection neither end it nor count as a response.
func TestTLSTicketsOnIdleConnection(t *testing.T) {
	release := make(chan struct{})
	// With a client certificate, the server sends its tickets after the client's last message.
	c := secured(t, &tls.Config{ClientAuth: tls.RequestClientCert}, cutConn{flight: 1}, func(c *tls.Conn, raw *cutConn, r *bufio.Reader) {
		<-release
		raw.keep = false
		raw.Write(nil)
		for readHead(r) == nil {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
		}
	})
	if err := c.Warm(t.Context(), 1, 0); err != nil {
		t.Fatal(err)
	}
	idle := c.spares.stack[0].conn.(*conn)
	before := arrived(t, idle.Conn)
	close(release)
	waitUntil(t, "the tickets have arrived", func() bool { return arrived(t, idle.Conn) > before })
	for round := range 2 {
		x, sink := mustPost(t, c, "")
		checkOrder(t, x, sink.reads)
		if x.Conns != 1 || x.Reused != (round > 0) || x.Head < x.Sent {
			t.Errorf("round %d: %+v", round, x)
		}
	}
}

// A client that closes an idle connection says so with close_notify.
func TestTLSCloseIsAnnounced(t *testing.T) {
	last := make(chan int64, 1)
	c := secured(t, &tls.Config{}, cutConn{}, func(c *tls.Conn, raw *cutConn, r *bufio.Reader) {
		_ = readHead(r)
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
		n, _ := io.Copy(io.Discard, raw.TCPConn)
		last <- n
	})
	mustPost(t, c, "")
	c.Close()
	if n := <-last; n == 0 {
		t.Error("the connection was closed without close_notify")
	}
}
