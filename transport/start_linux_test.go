package transport

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/transport/socket"
)

// started starts a request on an existing connection, and returns once then was called.
func started(ctx context.Context, t *testing.T, c *Client, o tacho.CallOptions) (x *Exchange, sink *collector, finish func() error) {
	t.Helper()
	x, sink = &Exchange{Options: o}, new(collector)
	told := make(chan func() error, 1)
	if !c.Start(ctx, ready(t, c, "GET", "/v1/x", ""), x, sink, nil, func(finish func() error, _ bool) { told <- finish }) {
		t.Fatal("Start did not send on an existing connection")
	}
	return x, sink, func() error { return (<-told)() }
}

// Start fills the same exchange as Do.
func TestStart(t *testing.T) {
	asked := make(chan struct{}, 8)
	onward := make(chan struct{})
	url := rawServer(t, func(c net.Conn, r *bufio.Reader) {
		for readHead(r) == nil {
			asked <- struct{}{}
			<-onward
			io.WriteString(c, chunkedHead+chunk("data: a\n\n"))
			io.WriteString(c, chunk("data: b\n\n")+"0\r\n\r\n")
		}
	})
	c := newClient(t, Options{BaseURL: "http://" + url})
	if c.Start(t.Context(), ready(t, c, "GET", "/v1/x", ""), new(Exchange), nil, nil, func(func() error, bool) {}) {
		t.Fatal("Start sent without a connection")
	}
	go func() { onward <- struct{}{} }()
	mustPost(t, c, "")
	<-asked
	for range 2 {
		x, sink, finish := started(t.Context(), t, c, tacho.CallOptions{})
		<-asked
		onward <- struct{}{}
		must.Do(t, finish())
		if got := string(sink.data); got != "data: a\n\ndata: b\n\n" || sink.fault != "" || !x.Reused || x.Conns != 1 || x.Status != 200 {
			t.Errorf("%q, %q, %+v", got, sink.fault, x)
		}
		checkOrder(t, *x, sink.reads)
	}
	if n := c.open.Load(); n != 0 {
		t.Errorf("%d streams are open", n)
	}
}

// then is also called if no response will arrive.
func TestStartEnds(t *testing.T) {
	asked := make(chan net.Conn, 8)
	url := rawServer(t, func(c net.Conn, r *bufio.Reader) {
		for i := 0; readHead(r) == nil; i++ {
			if i < 2 { // so that the server is known to keep connections
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
			} else {
				asked <- c
			}
		}
	})
	c := newClient(t, Options{BaseURL: "http://" + url})
	mustPost(t, c, "")
	mustPost(t, c, "")
	ctx, cancel := context.WithCancel(t.Context())
	_, _, finish := started(ctx, t, c, tacho.CallOptions{})
	<-asked
	cancel()
	if err := finish(); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it was stopped", err)
	}
	mustPost(t, c, "")
	mustPost(t, c, "")
	_, _, finish = started(t.Context(), t, c, tacho.CallOptions{})
	(<-asked).Close()
	if err := finish(); err == nil {
		t.Error("no error after the server closed the connection")
	}
}

// Start works on a spare connection, with each clock.
func TestStartOnASpare(t *testing.T) {
	url := rawServer(t, answering(chunkedHead+chunk("data: a\n\n")+"0\r\n\r\n"))
	for _, clock := range []tacho.Clock{tacho.KernelClock, tacho.WireClock} {
		t.Run(clock.String(), func(t *testing.T) {
			c, err := New(Options{BaseURL: "http://" + url, Clock: clock})
			if errors.Is(err, ErrNoWire) {
				t.Skip(err)
			} else if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			must.Do(t, c.Warm(t.Context(), 1, 1))
			x, sink, finish := started(t.Context(), t, c, tacho.CallOptions{})
			if err := finish(); err != nil || string(sink.data) != "data: a\n\n" || x.Reused {
				t.Errorf("%q, %v; %+v", sink.data, err, x)
			}
		})
	}
}

// If the server had closed the connection before it received a byte, finish sends the
// request again.
func TestStartStartsOver(t *testing.T) {
	var conns atomic.Int64
	cut := make(chan struct{})
	url := rawServer(t, func(c net.Conn, r *bufio.Reader) {
		first := conns.Add(1) == 1
		for readHead(r) == nil {
			fmt.Fprint(c, keptAnswer)
			if first {
				<-cut
				return
			}
		}
	})
	c := newClient(t, Options{BaseURL: "http://" + url})
	mustPost(t, c, "")
	idle := c.h1.idle[0].kernel
	g := &gate{reached: make(chan struct{}), opens: make(chan error)}
	go func() { // the server closes the connection just before the request is sent
		<-g.reached
		close(cut)
		waitUntil(t, "the server has closed the connection", func() bool { return !socket.Alive(idle) })
		g.opens <- nil
	}()
	x, sink, finish := started(t.Context(), t, c, tacho.CallOptions{Gate: g.Pass})
	if err := finish(); err != nil || string(sink.data) != "ok" || x.Conns != 2 || x.Reused {
		t.Errorf("%q, %v; %+v", sink.data, err, x)
	}
}
