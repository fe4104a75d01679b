package transport

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/limit"
	"github.com/tacho-bench/tacho/internal/memnet"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/transport/socket"
)

func TestBodies(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 16<<10) // 256 KiB
	for _, tt := range []struct {
		name, reply, want string
		status            int
		fails             tacho.Cause
	}{
		{name: "length", reply: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", want: "hi"},
		{name: "no body", reply: "HTTP/1.1 204 No Content\r\n\r\n", status: 204},
		{name: "chunks", reply: chunkedHead + chunk("ab") + chunk("cd") + "0\r\n\r\n", want: "abcd"},
		{name: "trailers", reply: "HTTP/1.1 200 OK\r\nTrailer: X\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX: y\r\n\r\n", want: "hi"},
		{name: "HTTP/1.0 to the close", reply: "HTTP/1.0 200 OK\r\n\r\nhi", want: "hi"},
		{name: "early hints", reply: "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", want: "hi"},
		{name: "long", reply: "HTTP/1.1 200 OK\r\nContent-Length: 262144\r\n\r\n" + long, want: long},
		{name: "long error", reply: "HTTP/1.1 500 Oops\r\nContent-Length: 262144\r\n\r\n" + long, status: 500, want: long[:64<<10]},
		{name: "another protocol", reply: "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nnoise", status: 101},
		{name: "chunked garbage", reply: chunkedHead + "2\r\nhi\r\nzz\r\n", want: "hi", fails: tacho.Malformed},
		{name: "chunk without its end", reply: chunkedHead + "2\r\nhiXX", want: "hi", fails: tacho.Malformed},
		{name: "cut in a chunk", reply: chunkedHead + "4\r\nhi", want: "hi", fails: tacho.Reset},
		{name: "cut after a chunk", reply: chunkedHead + "2\r\nhi\r\n", want: "hi", fails: tacho.Reset},
		{name: "cut short of its length", reply: "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi", want: "hi", fails: tacho.Reset},
		{name: "not HTTP", reply: "220 smtp.example ready\r\n\r\n", fails: tacho.Malformed},
		{name: "bad header", reply: "HTTP/1.1 200 OK\r\n: x\r\n\r\n", fails: tacho.Malformed},
		{name: "huge header", reply: "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", limit.Header+1<<16), fails: tacho.TooLarge},
		{name: "nothing", reply: "", fails: tacho.Reset},
	} {
		t.Run(tt.name, func(t *testing.T) {
			addr := rawServer(t, func(nc net.Conn, r *bufio.Reader) {
				readHead(r)
				io.WriteString(nc, tt.reply)
			})
			c := newClient(t, Options{BaseURL: "http://" + addr})
			var x Exchange
			sink := new(collector)
			var live []byte
			err := c.Do(t.Context(), ready(t, c, "GET", "/", ""), &x, sink, func(p []byte, _ int64) { live = append(live, p...) })
			if sink.fault != "" {
				t.Errorf("Consume got %s", sink.fault)
			}
			if got := string(sink.data); got != tt.want {
				t.Errorf("body of %d bytes %.80q, want %d bytes %.80q", len(got), got, len(tt.want), tt.want)
			}
			if string(live) != tt.want {
				t.Errorf("live saw %d bytes, want %d", len(live), len(tt.want))
			}
			if tt.fails != "" {
				if f := Classify(err, &x); f == nil || f.Cause != tt.fails || x.End == 0 || x.Sent == 0 {
					t.Errorf("failure %v, want %s (%+v)", f, tt.fails, x)
				}
				return
			}
			must.Do(t, err)
			checkOrder(t, x, sink.reads)
			if want := max(tt.status, 200*boolInt(tt.status == 0)); x.Status != want {
				t.Errorf("status %d, want %d", x.Status, want)
			}
		})
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestLongBodiesAreHandedOverInParts(t *testing.T) {
	const size = 1 << 20
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, size)) }))
	defer s.Close()
	_, sink := mustPost(t, newClient(t, Options{BaseURL: s.URL}), "")
	if len(sink.data) != size || sink.calls < size/largestBuffer {
		t.Errorf("%d bytes in %d calls", len(sink.data), sink.calls)
	}
}

func TestBufferLimit(t *testing.T) {
	for _, tt := range []struct {
		open int64
		want int
	}{{0, 64 << 10}, {256, 64 << 10}, {1024, 16 << 10}, {10_000, 1677}} {
		if got := bufferLimit(tt.open); got != tt.want {
			t.Errorf("bufferLimit(%d) = %d, want %d", tt.open, got, tt.want)
		}
	}
}

// A transient buffer has room for the bytes, and is as small as possible.
func TestPassingBufferFits(t *testing.T) {
	for n, want := range map[int]int{0: 1 << 10, 512: 1 << 10, 513: 2 << 10, 3000: 4 << 10, 7000: 8 << 10, 1 << 20: 8 << 10} {
		b := newBuffer(sizeFor(n))
		if cap(b.data) != want || b.full() {
			t.Errorf("%d bytes have a buffer of %d, want %d", n, cap(b.data), want)
		}
	}
}

// A buffer that grew while few streams were open is replaced by a small one if many are
// open.
func TestBufferShrinks(t *testing.T) {
	sink := new(collector)
	b := newBuffer(0)
	var want []byte
	for i, limit := range []int{64 << 10, 64 << 10, 64 << 10, 4 << 10, 4 << 10, 4 << 10} {
		for !b.full() {
			n := min(700, cap(b.data)-len(b.data))
			piece := bytes.Repeat([]byte{byte('a' + i)}, n)
			b.data = append(b.data, piece...)
			want = append(want, piece...)
			b.reads = append(b.reads, Read{End: len(b.data)})
		}
		b, _ = b.room(limit, sink)
		if cap(b.data) > limit || b.full() {
			t.Errorf("step %d: buffer of %d with %d in it, under a limit of %d", i, cap(b.data), len(b.data), limit)
		}
	}
	_ = b.flush(sink)
	if sink.fault != "" || !bytes.Equal(sink.data, want) {
		t.Errorf("%d bytes came out of %d: %s", len(sink.data), len(want), sink.fault)
	}
}

// Times never decrease, even if segments overtake each other or kernel timestamps begin in
// the middle of an exchange.
func TestTimeDoesNotGoBack(t *testing.T) {
	s := newSpan(false)
	var got []Read
	for _, kernelTime := range []int64{10, 30, 20, 30, 40, 40} {
		s.received(socket.Stamp{At: kernelTime, Kernel: true})
		got = append(got, s.latest())
	}
	want := []Read{{At: 10, Since: 10, Recv: 1}, {At: 30, Since: 20, Recv: 2}, {At: 30, Since: 20, Recv: 2}, {At: 30, Since: 20, Recv: 2}, {At: 40, Since: 10, Recv: 3}, {At: 40, Since: 10, Recv: 3}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	var x Exchange
	s.fill(&x)
	if x.Clock != tacho.KernelClock {
		t.Errorf("clock %v", x.Clock)
	}
	s.received(socket.Stamp{At: now()})
	before := s.latest()
	s.received(socket.Stamp{At: 50, Kernel: true})
	after := s.latest()
	s.fill(&x)
	if after != before || x.Clock != tacho.ReadClock {
		t.Errorf("%+v after %+v, clock %v", after, before, x.Clock)
	}
}

// A server may refuse before it reads the request.
func TestAnswerBeforeTheBodyIsSent(t *testing.T) {
	const body = `{"error":"slow down"}`
	done := make(chan struct{})
	defer close(done)
	addr := rawServer(t, func(nc net.Conn, r *bufio.Reader) {
		readHead(r)
		io.WriteString(nc, "HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nContent-Length: 21\r\n\r\n"+body)
		<-done // does not read the rest
	})
	c := newClient(t, Options{BaseURL: "http://" + addr})
	x, sink := mustPost(t, c, strings.Repeat("x", 8<<20))
	if x.Status != 429 || string(sink.data) != body || x.Sent == 0 || x.Wrote != 0 || x.Head < x.Sent || x.End < x.Head {
		t.Errorf("%+v with %q, want a 429 that came before the request was written", x, sink.data)
	}

	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTooManyRequests)
		io.WriteString(w, body)
		w.(http.Flusher).Flush()
	}))
	defer s.Close()
	c = newClient(t, Options{BaseURL: s.URL})
	for range 10 {
		var x Exchange
		sink := new(collector)
		err := c.Do(t.Context(), ready(t, c, "POST", "/", strings.Repeat("x", 4<<20)), &x, sink, nil)
		// The server closes with unread bytes, which may reset the connection before we
		// read the response.
		if f := Classify(err, &x); f != nil && f.Cause != tacho.Reset || f == nil && x.Status != 429 {
			t.Errorf("failure %v, %+v", f, x)
		}
	}
}

// inMemory serves on a network in memory, for use in a synctest bubble.
func inMemory(t *testing.T, serve func(net.Conn, *bufio.Reader)) *memnet.Listener {
	t.Helper()
	ln := memnet.Listen()
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
	return ln
}

// memory returns a client of a server in memory, for use in a synctest bubble.
func memory(t *testing.T, o Options, serve func(net.Conn, *bufio.Reader)) *Client {
	t.Helper()
	ln := inMemory(t, serve)
	o.BaseURL = "http://mem"
	if o.Dial == nil {
		o.Dial = ln.Dial
	}
	return newClient(t, o)
}

// wrapped is memory with connections changed by wrap.
func wrapped(t *testing.T, serve func(net.Conn, *bufio.Reader), wrap func(net.Conn) (net.Conn, error)) *Client {
	t.Helper()
	ln := inMemory(t, serve)
	return newClient(t, Options{BaseURL: "http://mem", Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := ln.Dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return wrap(nc)
	}})
}

// Timeouts are classified by phase, in virtual time.
func TestPatienceByPhase(t *testing.T) {
	hang := func(r *bufio.Reader) { io.Copy(io.Discard, r) }
	ends := []struct {
		cause   tacho.Cause
		context func() (context.Context, context.CancelFunc)
	}{
		{tacho.Timeout, func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.Background(), time.Minute)
		}},
		{tacho.Canceled, func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(time.Minute, cancel)
			return ctx, cancel
		}},
		{tacho.Canceled, func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(context.Background())
			time.AfterFunc(time.Minute, func() { cancel(errors.New("enough")) })
			return ctx, func() { cancel(nil) }
		}},
	}
	for _, tt := range []struct {
		phase string
		o     Options
		serve func(net.Conn, *bufio.Reader)
		body  string
	}{
		{phase: "connect", o: Options{DialTimeout: time.Hour, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}},
		{phase: "send"},
		{phase: "wait", serve: func(_ net.Conn, r *bufio.Reader) { readHead(r); hang(r) }},
		{phase: "stream", serve: func(nc net.Conn, r *bufio.Reader) {
			readHead(r)
			io.CopyN(io.Discard, r, 1<<20) // the body
			io.WriteString(nc, chunkedHead+chunk("token"))
			hang(r)
		}, body: "token"},
	} {
		for _, end := range ends {
			t.Run(tt.phase+" "+string(end.cause), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					serve := tt.serve
					if tt.phase == "send" { // blocks until the end of the bubble
						stop := make(chan struct{})
						defer close(stop)
						serve = func(_ net.Conn, r *bufio.Reader) { readHead(r); <-stop }
					}
					c := memory(t, tt.o, serve)
					ctx, cancel := end.context()
					defer cancel()
					start := now()
					var x Exchange
					sink := new(collector)
					err := c.Do(ctx, ready(t, c, "POST", "/", strings.Repeat("x", 1<<20)), &x, sink, nil)
					got := Classify(err, &x)
					if got == nil {
						t.Fatal("no failure")
					}
					if got.Cause != end.cause || got.Phase != tt.phase {
						t.Errorf("%+v, want %s while in %s", got, end.cause, tt.phase)
					}
					if waited := time.Duration(x.End - start); waited != time.Minute {
						t.Errorf("ended after %v, want at once after a minute", waited)
					}
					if string(sink.data) != tt.body {
						t.Errorf("body %q, want %q", sink.data, tt.body)
					}
				})
			})
		}
	}
}

func TestDialTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory(t, Options{DialTimeout: 3 * time.Second, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}, nil)
		start := now()
		var x Exchange
		err := c.Do(t.Context(), ready(t, c, "GET", "/", ""), &x, nil, nil)
		f := Classify(err, &x)
		if f == nil || f.Cause != tacho.Timeout || f.Phase != "connect" || x.End-start != int64(3*time.Second) || x.Conns != 1 {
			t.Errorf("%+v, %+v", f, x)
		}
	})
}

// All times of an exchange are exact in virtual time.
func TestTimesInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory(t, Options{}, func(nc net.Conn, r *bufio.Reader) {
			readHead(r)
			time.Sleep(100 * time.Millisecond)
			io.WriteString(nc, chunkedHead)
			for range 3 {
				time.Sleep(20 * time.Millisecond)
				io.WriteString(nc, chunk("token"))
			}
			time.Sleep(5 * time.Millisecond)
			io.WriteString(nc, "0\r\n\r\n")
			io.Copy(io.Discard, r)
		})
		start := now()
		var x Exchange
		sink := new(collector)
		must.Do(t, c.Do(t.Context(), ready(t, c, "GET", "/", ""), &x, sink, nil))
		ms := int64(time.Millisecond)
		got := Exchange{Conn: x.Conn - start, Sent: x.Sent - start, Wrote: x.Wrote - start, Head: x.Head - start, End: x.End - start, Clock: x.Clock, Conns: x.Conns, Status: x.Status}
		want := Exchange{Head: 100 * ms, End: 165 * ms, Clock: tacho.ReadClock, Conns: 1, Status: 200}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("exchange (-want +got):\n%s", d)
		}
		for i := range sink.reads {
			sink.reads[i].At -= start
		}
		reads := []Read{
			{End: 5, At: 120 * ms, Since: int32(20 * ms), Recv: 2},
			{End: 10, At: 140 * ms, Since: int32(20 * ms), Recv: 3},
			{End: 15, At: 160 * ms, Since: int32(20 * ms), Recv: 4},
		}
		if d := cmp.Diff(reads, sink.reads); d != "" {
			t.Errorf("reads (-want +got):\n%s", d)
		}
	})
}

// If a server closes idle connections, requests do not fail.
func TestServerClosesIdleConnections(t *testing.T) {
	for _, serverTimeout := range []time.Duration{3 * time.Second, 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			ln := memnet.Listen()
			s := &http.Server{Handler: echo, IdleTimeout: serverTimeout}
			go s.Serve(ln)
			defer s.Close()
			c := newClient(t, Options{BaseURL: "http://mem", Dial: ln.Dial})
			for pause, reused := range map[time.Duration]bool{time.Second: true, 3500 * time.Millisecond: serverTimeout > 4*time.Second, 4500 * time.Millisecond: false} {
				mustPost(t, c, "a")
				time.Sleep(pause)
				if x, _ := mustPost(t, c, "b"); x.Reused != reused || x.Conns != 1 {
					t.Errorf("after %v of %v: reused %v, %d connections", pause, serverTimeout, x.Reused, x.Conns)
				}
			}
		})
	}
}

// dyingConn breaks at the first write after a response, before a byte is written.
type dyingConn struct {
	net.Conn
	writes, dead *atomic.Int64
}

func (c dyingConn) Write(p []byte) (int, error) {
	if c.writes.Add(1) == 2 {
		c.dead.Add(1)
		return 0, &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}
	}
	return c.Conn.Write(p)
}

const keptAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// net/http retries if nothing was written to a reused connection, and the exchange counts
// it.
func TestStartingOverIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dead, writes atomic.Int64
		c := wrapped(t, answering(keptAnswer), func(nc net.Conn) (net.Conn, error) { return dyingConn{nc, &writes, &dead}, nil })
		mustPost(t, c, "")
		x, _ := mustPost(t, c, "")
		if dead.Load() != 1 || x.Conns != 2 || x.Reused {
			t.Errorf("%d broken connections, %+v; want one, and a second tried", dead.Load(), x)
		}
		checkOrder(t, x, nil)
	})
}

// If the second connection cannot be made, the failure is in the connect phase.
func TestStartingOverInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dead, writes atomic.Int64
		c := wrapped(t, answering(keptAnswer), func(nc net.Conn) (net.Conn, error) {
			if writes.Load() > 0 {
				_ = nc.Close()
				return nil, syscall.ECONNREFUSED
			}
			return dyingConn{nc, &writes, &dead}, nil
		})
		mustPost(t, c, "")
		var x Exchange
		err := c.Do(t.Context(), ready(t, c, "POST", "/", ""), &x, nil, nil)
		if f := Classify(err, &x); f == nil || f.Cause != tacho.Refused || f.Phase != "connect" || x.Conns != 2 {
			t.Errorf("%+v, %+v; want a refusal while connecting for the second time", f, x)
		}
	})
}

// tardyConn writes immediately, but returns from Write only some time after Close.
type tardyConn struct {
	net.Conn
	closed context.Context
	close  context.CancelFunc
}

const tardiness = time.Second

func (c tardyConn) Write(p []byte) (int, error) {
	defer func() {
		<-c.closed.Done()
		time.Sleep(tardiness)
	}()
	return c.Conn.Write(p)
}

func (c tardyConn) Close() error {
	c.close()
	return c.Conn.Close()
}

// The response can arrive before Write returns.
func TestAnswerOvertakesTheWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := wrapped(t, answering("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi"), func(nc net.Conn) (net.Conn, error) {
			closed, cancel := context.WithCancel(context.Background())
			return tardyConn{nc, closed, cancel}, nil
		})
		x, sink := mustPost(t, c, "")
		checkOrder(t, x, sink.reads)
		if x.Wrote-x.End != int64(tardiness) {
			t.Errorf("written at %d, and the end was at %d: want it %v later", x.Wrote, x.End, tardiness)
		}
	})
}

// An answer whose events have ended does not wait for the last chunk, which some proxies never send.
func TestEndMark(t *testing.T) {
	const mark = "data: [DONE]\n\n"
	for _, c := range []struct {
		name, body string
		pings      bool // follow until the client closes
		want       tacho.Cause
		waits      time.Duration
		reused     bool // the connection serves the next request
	}{
		{name: "last chunk", body: chunk("data: a\n\n") + chunk(mark) + "0\r\n\r\n", reused: true},
		{name: "no last chunk", body: chunk("data: a\n\n") + chunk(mark), want: tacho.Reset, waits: usualEndWait},
		{name: "one chunk", body: chunk("data: a\n\n" + mark), want: tacho.Reset, waits: usualEndWait},
		{name: "CR", body: chunk("data:[DONE]\r\n\r\n"), want: tacho.Reset, waits: usualEndWait},
		{name: "pieces", body: chunk("data: [DO") + chunk("NE]\n\n"), want: tacho.Reset, waits: usualEndWait},
		{name: "pings", body: chunk(mark), pings: true, want: tacho.Reset, waits: usualEndWait},
		{name: "other text", body: chunk("data: \"data: [DONE]\"\n\n"), want: tacho.Timeout, waits: time.Minute},
		{name: "no line end", body: chunk("data: [DONE]"), want: tacho.Timeout, waits: time.Minute},
		{name: "no data", body: chunk("event: [DONE]\n\n"), want: tacho.Timeout, waits: time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := memory(t, Options{}, func(nc net.Conn, r *bufio.Reader) {
					for readHead(r) == nil {
						io.WriteString(nc, chunkedHead+c.body)
						for c.pings {
							time.Sleep(50 * time.Millisecond)
							if _, err := io.WriteString(nc, chunk(": ping\n\n")); err != nil {
								return
							}
						}
					}
				})
				for i := range 2 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					start := now()
					var x Exchange
					err := client.Do(ctx, ready(t, client, "POST", "/", ""), &x, new(collector), nil)
					got := Classify(err, &x)
					if got == nil && c.want != "" || got != nil && got.Cause != c.want {
						t.Errorf("%+v, want %q", got, c.want)
					}
					if waited := time.Duration(now() - start); waited != c.waits {
						t.Errorf("ended after %v, want %v", waited, c.waits)
					}
					if x.Reused != (c.reused && i > 0) {
						t.Errorf("request %d: reused is %v", i, x.Reused)
					}
				}
				time.Sleep(time.Second) // virtual: the server's next ping finds the connection closed
			})
		})
	}
}
