package transport

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tacho"
)

// wireClient is a client on the wire clock; the test is skipped where there is none.
func wireClient(t *testing.T, base string) *Client {
	t.Helper()
	c, err := New(Options{BaseURL: base, Clock: tacho.WireClock, TLS: &tls.Config{InsecureSkipVerify: true}})
	if errors.Is(err, ErrNoWire) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	makePatient(c)
	keepStamping(t)
	return c
}

// A stalled server writes events while the client is kept from receiving. Each
// event tells when it was written.
func stalledServer(t *testing.T, secure bool, targets <-chan *polled) string {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		event := func() {
			fmt.Fprintf(w, "%d ", time.Now().UnixNano()) // it does not end as events do, which are held
			w.(http.Flusher).Flush()
		}
		event()
		target := <-targets // once the first has been read
		goOn := holdUp(target.poller)
		for range stalledEvents {
			before := queued(target)
			event()
			waitUntil(t, "the event has arrived", func() bool { return queued(target) > before })
		}
		goOn()
	}))
	if secure {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s.URL
}

// stalledEvents are fewer than a kernel sends before the first of them is
// acknowledged, which this client is late to do.
const stalledEvents = 8

// What the socket merges has a time for each event on the wire clock: between
// its write and the next one's. With TLS, too, and over a connection that is used again.
func TestWireClockKeepsMergedWritesApart(t *testing.T) {
	for name, secure := range map[string]bool{"plain": false, "tls": true} {
		t.Run(name, func(t *testing.T) {
			targets := make(chan *polled, 1)
			c := wireClient(t, stalledServer(t, secure, targets))
			target := preparedConn(t, c).kernel
			for round := range 3 {
				var x Exchange
				sink := new(collector)
				var once sync.Once
				live := func([]byte, int64) { once.Do(func() { targets <- target }) }
				before := time.Now().UnixNano()
				if err := c.Do(t.Context(), ready(t, c, "POST", "/", strings.Repeat("x", 100_000)), &x, sink, live); err != nil {
					t.Fatal(err)
				}
				if x.Clock != tacho.WireClock || !x.Left || x.Reused != (round > 0) {
					t.Fatalf("round %d: %+v, want the wire clock", round, x)
				}
				checkOrder(t, x, sink.reads)
				checkEvents(t, x, sink, before)
			}
		})
	}
}

// checkEvents holds the time of each event against when it was written.
func checkEvents(t *testing.T, x Exchange, sink *collector, before int64) {
	t.Helper()
	lines := strings.Fields(string(sink.data))
	if len(lines) != 1+stalledEvents {
		t.Fatalf("%d events", len(lines))
	}
	end, r := 0, 0
	for i, line := range lines {
		wrote, _ := strconv.ParseInt(line, 10, 64)
		if i == 0 && (x.Sent < before || x.Sent > wrote) {
			t.Errorf("the request left at %d, not between %d and its first event at %d", x.Sent, before, wrote)
		}
		end += len(line) + 1
		for sink.reads[r].End < end {
			r++
		}
		next := int64(1) << 62
		if i < len(lines)-1 {
			next, _ = strconv.ParseInt(lines[i+1], 10, 64)
		}
		if at := sink.reads[r]; !at.Wire || at.At < wrote || at.At > next {
			t.Errorf("event %d was written at %d, the next at %d, and came with %+v", i, wrote, next, at)
		}
	}
}

// What the tap has missed keeps the socket's time, and says so.
func TestWireClockFallsBack(t *testing.T) {
	addr := rawServer(t, func(nc net.Conn, r *bufio.Reader) {
		for readHead(r) == nil {
			_, _ = io.WriteString(nc, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
		}
	})
	c := wireClient(t, "http://"+addr)
	target := preparedConn(t, c).kernel
	target.wire.conn.In.Skip(20) // somewhere in the first answer
	x, sink := mustPost(t, c, "")
	if x.Clock != tacho.KernelClock || sink.reads[0].Wire || !x.Left {
		t.Errorf("%+v, %+v: want the kernel's time for the answer, and the wire's for the request", x, sink.reads)
	}
	x, sink = mustPost(t, c, "")
	if x.Clock != tacho.WireClock || !sink.reads[0].Wire || !x.Reused {
		t.Errorf("%+v, %+v: want the wire clock again", x, sink.reads)
	}
	target.wire.conn.Out.Skip(1 << 20)
	if x, _ = mustPost(t, c, ""); x.Left || x.Clock != tacho.WireClock {
		t.Errorf("%+v: want the time of the write for the request", x)
	}
	checkOrder(t, x, nil)
}

// A segment that was seen only after the socket had its bytes was sent again: the
// first copy was missed, whether or not we had read them by then.
func TestWireClockIsNotLaterThanTheRead(t *testing.T) {
	addr := rawServer(t, func(nc net.Conn, r *bufio.Reader) {
		_, _ = io.WriteString(nc, "hello")
		_ = readHead(r)
	})
	c := wireClient(t, "http://"+addr)
	target := preparedConn(t, c).kernel
	waitUntil(t, "the bytes have arrived", func() bool { return queued(target) == 5 })
	_, seen, _ := target.wire.conn.In.At(5)
	if n, s := target.wire.first(5, stamp{at: now(), kernel: true}); n != 5 || !s.wire {
		t.Errorf("%d bytes with %+v, want 5 with the wire's time", n, s)
	}
	for _, lag := range []int32{5, 2e9} {
		had := stamp{at: seen - 10, lag: lag, kernel: true}
		if n, s := target.wire.first(5, had); n != 5 || s != had {
			t.Errorf("%d bytes with %+v, want 5 with the socket's %+v", n, s, had)
		}
	}
}

// Connections are let go of: a client that closes them holds no tap.
func TestWireClockEnds(t *testing.T) {
	c := wireClient(t, "http://"+rawServer(t, answering("HTTP/1.1 204 No Content\r\n\r\n")))
	x, _ := mustPost(t, c, "")
	if x.Clock != tacho.WireClock {
		t.Fatalf("%+v", x)
	}
	taps := c.dialer.clock.tap
	c.Close()
	if !taps.Closed() {
		t.Error("the tap is open after the client was closed")
	}
}

// A process that may not tap is told what it needs.
func TestWireClockWithoutTheCapability(t *testing.T) {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with what it has given up
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		if err := unix.Capget(&header, &data[0]); err != nil {
			done <- err
			return
		}
		data[0].Effective &^= 1 << unix.CAP_NET_RAW
		if err := unix.Capset(&header, &data[0]); err != nil {
			done <- err
			return
		}
		_, err := New(Options{BaseURL: "http://127.0.0.1:8000", Clock: tacho.WireClock})
		done <- err
	}()
	if err := <-done; !errors.Is(err, ErrNoWire) || !strings.Contains(err.Error(), "setcap cap_net_raw+ep") {
		t.Errorf("the error is %v", err)
	}
}
