package transport

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/must"
)

// A collector keeps all data and reads, with the ends of reads as offsets in the whole
// body.
type collector struct {
	data  []byte
	reads []Read
	calls int
	fault string // the first violation of the contract of Consumer
}

func (c *collector) Consume(data []byte, reads []Read) error {
	start := len(c.data)
	last := 0
	for _, r := range reads {
		if r.End <= last {
			c.fault = "a read that covers nothing"
		}
		last = r.End
		r.End += start
		c.reads = append(c.reads, r)
	}
	if last != len(data) || len(data) == 0 {
		c.fault = "reads that do not cover the data"
	}
	c.data = append(c.data, data...)
	c.calls++
	return nil
}

func newClient(t testing.TB, o Options) *Client {
	t.Helper()
	c := must.Get(New(o))(t)
	t.Cleanup(c.Close)
	if o.Dial == nil {
		makePatient(c)
	}
	return c
}

// makePatient disables the client's timeouts of seconds, because the machine may stall for
// longer.
func makePatient(c *Client) {
	c.transport.IdleConnTimeout = time.Hour
	c.keepAlive.window = time.Hour
	if c.h1 != nil {
		c.h1.idleTimeout = time.Hour
	}
}

// waitUntil polls a condition until it is true. what names the condition.
func waitUntil(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("timeout: not %s after two minutes", what)
			return
		}
	}
}

func newRequest(t testing.TB, c *Client, method, path, body string) *http.Request {
	t.Helper()
	return must.Get(c.NewRequest(method, path, nil, []byte(body)))(t)
}

// ready returns an encoded request.
func ready(t testing.TB, c *Client, method, path, body string) *Request {
	t.Helper()
	return must.Get(c.Encode(newRequest(t, c, method, path, body)))(t)
}

// mustPost posts body to /v1/x and returns the exchange and the collected response.
func mustPost(t testing.TB, c *Client, body string) (Exchange, *collector) {
	t.Helper()
	var x Exchange
	sink := new(collector)
	if err := c.Do(t.Context(), ready(t, c, "POST", "/v1/x", body), &x, sink, nil); err != nil {
		t.Fatalf("Do: %v", err)
	}
	if sink.fault != "" {
		t.Fatalf("Consume got %s", sink.fault)
	}
	return x, sink
}

// checkOrder checks that the times of a good exchange are in order.
func checkOrder(t testing.TB, x Exchange, reads []Read) {
	t.Helper()
	if x.Conn == 0 || x.Sent < x.Conn || x.Wrote < x.Sent || x.Head < x.Sent || x.End < x.Head {
		t.Errorf("moments out of order: %+v", x)
	}
	at, recv := x.Head, uint32(0)
	for i, r := range reads {
		if r.At < at || r.Recv < recv || r.At > x.End || r.Lag < 0 {
			t.Errorf("read %d out of order: %+v after %d in %+v", i, r, at, x)
		}
		at, recv = r.At, r.Recv
	}
}

// rawServer serves each connection to a loopback listener with serve.
func rawServer(t testing.TB, serve func(net.Conn, *bufio.Reader)) string {
	t.Helper()
	ln := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer nc.Close()
				serve(nc, bufio.NewReader(nc))
			}()
		}
	}()
	return ln.Addr().String()
}

// readHead reads the head of a request.
func readHead(r *bufio.Reader) error {
	for {
		line, err := r.ReadString('\n')
		if err != nil || strings.TrimSpace(line) == "" {
			return err
		}
	}
}

// answering returns a server that sends reply for each request without a body.
func answering(reply string) func(net.Conn, *bufio.Reader) {
	return func(nc net.Conn, r *bufio.Reader) {
		for readHead(r) == nil {
			io.WriteString(nc, reply)
		}
	}
}

func chunk(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

const chunkedHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
