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

	"tacho"
)

// started starts a request on a connection that is there, and says what came of it
// once its answer was told of.
func started(ctx context.Context, t *testing.T, c *Client, o tacho.CallOptions) (x *Exchange, sink *collector, finish func() error) {
	t.Helper()
	x, sink = &Exchange{Options: o}, new(collector)
	told := make(chan func() error, 1)
	if !c.Start(ctx, ready(t, c, "GET", "/v1/x", ""), x, sink, nil, func(finish func() error, _ bool) { told <- finish }) {
		t.Fatal("it was not sent though there is a connection")
	}
	return x, sink, func() error { return (<-told)() }
}

// A request that was started has what one has that was done.
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
		t.Fatal("it was sent though there is no connection")
	}
	go func() { onward <- struct{}{} }()
	mustPost(t, c, "")
	<-asked
	for range 2 {
		x, sink, finish := started(t.Context(), t, c, tacho.CallOptions{})
		<-asked
		onward <- struct{}{}
		if err := finish(); err != nil {
			t.Fatal(err)
		}
		if got := string(sink.data); got != "data: a\n\ndata: b\n\n" || sink.fault != "" || !x.Reused || x.Conns != 1 || x.Status != 200 {
			t.Errorf("%q, %q, %+v", got, sink.fault, x)
		}
		checkOrder(t, *x, sink.reads)
	}
	if n := c.open.Load(); n != 0 {
		t.Errorf("%d are said to be open", n)
	}
}

// It is told, too, when nothing will come.
func TestStartEnds(t *testing.T) {
	asked := make(chan net.Conn, 8)
	url := rawServer(t, func(c net.Conn, r *bufio.Reader) {
		for i := 0; readHead(r) == nil; i++ {
			if i < 2 { // so that it is known to keep connections
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
		t.Error("no error though the server hung up")
	}
}

// A connection that nobody has used yet is as good, by each clock.
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
			if err := c.Warm(t.Context(), 1, 1); err != nil {
				t.Fatal(err)
			}
			x, sink, finish := started(t.Context(), t, c, tacho.CallOptions{})
			if err := finish(); err != nil || string(sink.data) != "data: a\n\n" || x.Reused {
				t.Errorf("%q, %v; %+v", sink.data, err, x)
			}
		})
	}
}

// A connection that the server had closed before it got a byte is not the one that
// counts.
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
	idle := c.lines.idle[0].kernel
	g := &gate{reached: make(chan struct{}), opens: make(chan error)}
	go func() { // the server closes the connection when the request is about to go
		<-g.reached
		close(cut)
		waitUntil(t, "the server has closed the connection", func() bool { return !idle.alive() })
		g.opens <- nil
	}()
	x, sink, finish := started(t.Context(), t, c, tacho.CallOptions{Gate: g.Pass})
	if err := finish(); err != nil || string(sink.data) != "ok" || x.Conns != 2 || x.Reused {
		t.Errorf("%q, %v; %+v", sink.data, err, x)
	}
}

// The end of an answer that nothing waits for is sorted a little later, together with
// others; and at once where something does.
func TestEndsThatNothingWaitsFor(t *testing.T) {
	th := &thread{now: 1e18, due: never, bell: -1}
	called := func() bool {
		th.called = 0
		th.callIfDue()
		return th.called != 0
	}
	end, event, head := []byte("0\r\n\r\n"), []byte(chunk("data: x\n\n")), []byte(chunkedHead)
	const unhurried = seatMayBeHeld | seatUnhurried
	th.weigh(unhurried, end)
	if called() {
		t.Error("called at once")
	}
	th.now += int64(endTime)
	if !called() || called() {
		t.Error("not called, or not once, when its time was up")
	}
	for range endsMost - 1 {
		th.weigh(unhurried, end)
	}
	if called() {
		t.Error("called for few")
	}
	if th.weigh(unhurried, end); !called() {
		t.Error("not called though they are many")
	}
	if th.weigh(seatMayBeHeld, end); !called() {
		t.Error("not called at once though somebody waits")
	}
	if th.weigh(0, event); !called() {
		t.Error("not called at once though nobody knows what it is")
	}
	th.weigh(seatMayBeHeld, event)
	th.weigh(seatMayBeHeld, head)
	if called() {
		t.Error("called for an event and a head")
	}
	if th.now += int64(holdTime); !called() || called() {
		t.Error("not called, or not once, when their time was up")
	}
	for range sortMost {
		th.weigh(seatMayBeHeld, event)
	}
	if !called() {
		t.Error("not called though there are many")
	}
}
