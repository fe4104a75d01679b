package transport

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/transport/socket"
)

// A lateEnd reports the end of a connection only after a write that follows the end. That
// is when requests fail.
type lateEnd struct {
	*net.TCPConn
	seen chan<- struct{} // receives a value when the end arrives

	mu    sync.Mutex
	again sync.Cond
	wrote bool
	ended bool
}

func (c *lateEnd) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
	if err != nil && n == 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ended = true
		c.seen <- struct{}{}
		for !c.wrote {
			c.again.Wait()
		}
	}
	return n, err
}

func (c *lateEnd) Write(p []byte) (int, error) {
	n, err := c.TCPConn.Write(p)
	c.release()
	return n, err
}

func (c *lateEnd) Close() error {
	err := c.TCPConn.Close()
	c.release()
	return err
}

func (c *lateEnd) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		c.wrote = true
		c.again.Broadcast()
	}
}

// lateEnds returns a client whose connections are lateEnds.
func lateEnds(t *testing.T, addr string) (*Client, <-chan struct{}) {
	t.Helper()
	seen := make(chan struct{}, 100)
	c := newClient(t, Options{BaseURL: "http://" + addr, Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		var d net.Dialer
		nc, err := d.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		c := &lateEnd{TCPConn: nc.(*net.TCPConn), seen: seen}
		c.again.L = &c.mu
		return c, nil
	}})
	makePatient(c)
	return c, seen
}

// A request on a connection that the server already closed is sent again, and the
// exchange counts it.
func TestClosedConnectionStartsOver(t *testing.T) {
	var requests atomic.Int32
	closing := make(chan bool)
	c, seen := lateEnds(t, rawServer(t, func(nc net.Conn, r *bufio.Reader) {
		for readHead(r) == nil {
			requests.Add(1)
			_, _ = io.WriteString(nc, keptAnswer)
			if <-closing {
				return
			}
		}
	}))
	mustPost(t, c, "")
	closing <- false
	mustPost(t, c, "")
	if !c.Keeps() {
		t.Error("the server kept its connection, and is taken for one that does not")
	}
	closing <- true
	<-seen
	x, _ := mustPost(t, c, "")
	if x.Conns != 2 || x.Reused || requests.Load() != 3 {
		t.Errorf("%d connections, reused %v; the server saw %d requests, want 3", x.Conns, x.Reused, requests.Load())
	}
	if !c.Keeps() {
		t.Error("Keeps is false for a server that kept one connection and closed one")
	}
	closing <- true
}

// A request that the server read is not sent again, whatever happens to its
// connection.
func TestTakenRequestIsNotSentAgain(t *testing.T) {
	var requests atomic.Int32
	c := newClient(t, Options{BaseURL: "http://" + rawServer(t, func(nc net.Conn, r *bufio.Reader) {
		for readHead(r) == nil {
			if requests.Add(1) == 3 {
				return
			}
			_, _ = io.WriteString(nc, keptAnswer)
		}
	})})
	mustPost(t, c, "")
	mustPost(t, c, "")
	var x Exchange
	err := c.Do(t.Context(), ready(t, c, "POST", "/v1/x", ""), &x, nil, nil)
	if f := Classify(err, &x); f == nil || f.Cause != tacho.Reset || x.Conns != 1 || !x.Reused || requests.Load() != 3 {
		t.Errorf("%v on %d connections, reused %v; the server saw %d requests", err, x.Conns, x.Reused, requests.Load())
	}
}

// If a server closes each connection after its response, the client notices and stops
// reusing connections. Requests that failed meanwhile were sent again, and their exchanges
// count it.
func TestServerThatKeepsNone(t *testing.T) {
	var requests atomic.Int32
	addr := rawServer(t, func(nc net.Conn, r *bufio.Reader) {
		if readHead(r) == nil {
			requests.Add(1)
			_, _ = io.WriteString(nc, keptAnswer)
		}
	})
	c, seen := lateEnds(t, addr)
	mustPost(t, c, "")
	<-seen
	if x, _ := mustPost(t, c, ""); x.Conns != 2 || x.Reused || c.Keeps() {
		t.Errorf("%d connections, reused %v, keeps %v", x.Conns, x.Reused, c.Keeps())
	}
	if x, _ := mustPost(t, c, ""); x.Conns != 1 || x.Reused || requests.Load() != 3 {
		t.Errorf("%d connections, reused %v; the server saw %d requests", x.Conns, x.Reused, requests.Load())
	}
	plain := newClient(t, Options{BaseURL: "http://" + addr})
	requests.Store(0)
	var all sync.WaitGroup
	const workers, each = 8, 50
	for range workers {
		all.Go(func() {
			for range each {
				var x Exchange
				if err := plain.Do(t.Context(), ready(t, plain, "POST", "/v1/x", ""), &x, nil, nil); err != nil {
					t.Errorf("%v on connection %d", err, x.Conns)
				}
			}
		})
	}
	all.Wait()
	if plain.Keeps() || requests.Load() != workers*each {
		t.Errorf("keeps %v, the server saw %d requests", plain.Keeps(), requests.Load())
	}
}

// A server that announces the close of a connection breaks no promise.
func TestAnnouncedCloseIsNoBrokenPromise(t *testing.T) {
	c := newClient(t, Options{BaseURL: "http://" + rawServer(t, func(nc net.Conn, r *bufio.Reader) {
		if readHead(r) == nil {
			_, _ = io.WriteString(nc, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok")
		}
	})})
	for range 20 {
		if x, _ := mustPost(t, c, ""); x.Conns != 1 || x.Reused {
			t.Errorf("%d connections, reused %v", x.Conns, x.Reused)
		}
	}
	if !c.Keeps() {
		t.Error("it kept its word")
	}
}

// A server may close a connection while the next request for it waits.
func TestClosedAtTheGate(t *testing.T) {
	for name, client := range map[string]func(serve func(net.Conn, *bufio.Reader)) *Client{
		"plain": func(serve func(net.Conn, *bufio.Reader)) *Client {
			return newClient(t, Options{BaseURL: "http://" + rawServer(t, serve)})
		},
		"TLS": func(serve func(net.Conn, *bufio.Reader)) *Client {
			return secured(t, &tls.Config{}, cutConn{}, func(c *tls.Conn, _ *cutConn, r *bufio.Reader) { serve(c, r) })
		},
	} {
		t.Run(name, func(t *testing.T) { closeAtTheGate(t, client) })
	}
}

func closeAtTheGate(t *testing.T, client func(serve func(net.Conn, *bufio.Reader)) *Client) {
	cut := make(chan struct{})
	var conns atomic.Int64
	c := client(func(nc net.Conn, r *bufio.Reader) {
		if conns.Add(1) == 1 {
			<-cut
			return
		}
		answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")(nc, r)
	})
	if err := c.Warm(t.Context(), 1, 0); err != nil {
		t.Fatal(err)
	}
	spare := c.spares.stack[0].conn.(*conn)
	g := &gate{reached: make(chan struct{}), opens: make(chan error)}
	x := Exchange{Options: tacho.CallOptions{Gate: g.Pass}}
	done := make(chan error)
	req := ready(t, c, "POST", "/", "")
	go func() { done <- c.Do(t.Context(), req, &x, nil, nil) }()
	<-g.reached
	close(cut)
	waitUntil(t, "the server has closed the connection", func() bool { return !socket.Alive(spare.Conn) })
	g.opens <- nil
	if err := <-done; err != nil || x.Conns != 2 || x.Status != http.StatusOK {
		t.Errorf("%v, %+v; want it to go on another connection", err, x)
	}
}
