package transport

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/transport/socket"
)

// wireClient returns a client with the wire clock. It skips the test if there is none.
func wireClient(t *testing.T, base string) *Client {
	t.Helper()
	c, err := New(Options{BaseURL: base, Clock: tacho.WireClock, TLS: &tls.Config{InsecureSkipVerify: true}})
	if errors.Is(err, ErrNoWire) {
		t.Skip(err)
	}
	must.Do(t, err)
	t.Cleanup(c.Close)
	makePatient(c)
	keepStamping(t)
	return c
}

// stalledServer writes events while the client cannot receive. Each event contains the
// time of its write.
func stalledServer(t *testing.T, secure bool, targets <-chan socket.Conn) string {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		event := func() {
			fmt.Fprintf(w, "%d ", time.Now().UnixNano()) // does not end like an event, because events are held
			w.(http.Flusher).Flush()
		}
		event()
		target := <-targets // the first event was read
		goOn := socket.Stall(target)
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

// stalledEvents is fewer than the kernel sends before an acknowledgement, which the
// stalled client delays.
const stalledEvents = 8

// With the wire clock, each of several merged events has a time between its own write and
// the next write. This also holds over TLS and on a reused connection.
func TestWireClockKeepsMergedWritesApart(t *testing.T) {
	for name, secure := range map[string]bool{"plain": false, "tls": true} {
		t.Run(name, func(t *testing.T) {
			targets := make(chan socket.Conn, 1)
			c := wireClient(t, stalledServer(t, secure, targets))
			target := preparedConn(t, c).kernel
			for round := range 3 {
				var x Exchange
				sink := new(collector)
				var once sync.Once
				live := func([]byte, int64) { once.Do(func() { targets <- target }) }
				before := time.Now().UnixNano()
				must.Do(t, c.Do(t.Context(), ready(t, c, "POST", "/", strings.Repeat("x", 100_000)), &x, sink, live))
				if x.Clock != tacho.WireClock || !x.Left || x.Reused != (round > 0) {
					t.Fatalf("round %d: %+v, want the wire clock", round, x)
				}
				checkOrder(t, x, sink.reads)
				checkEvents(t, x, sink, before)
			}
		})
	}
}

// checkEvents compares the time of each event with the time of its write.
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

// The error for a process without the capability says how to get it.
func TestWireClockWithoutTheCapability(t *testing.T) {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, so the thread without the capability ends
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

// unseen is a connection whose bytes the tap missed.
type unseen struct{ socket.Conn }

func (c unseen) Receive(p []byte) (int, socket.Stamp, error) {
	n, s, err := c.Conn.Receive(p)
	s.Wire = false
	return n, s, err
}

func (unseen) Left(_, _ uint64) (first, last int64, ok bool) { return 0, 0, false }

// If the tap missed bytes, the exchange uses the times of the socket and reports the
// kernel clock.
func TestWireClockFallsBack(t *testing.T) {
	addr := rawServer(t, answering("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"))
	c := wireClient(t, "http://"+addr)
	target := preparedConn(t, c)
	seen := target.kernel
	target.kernel = unseen{seen}
	x, sink := mustPost(t, c, "")
	if x.Clock != tacho.KernelClock || sink.reads[0].Wire || x.Left {
		t.Errorf("%+v, %+v: want the kernel's times", x, sink.reads)
	}
	checkOrder(t, x, nil)
	target.kernel = seen
	x, sink = mustPost(t, c, "")
	if x.Clock != tacho.WireClock || !sink.reads[0].Wire || !x.Left || !x.Reused {
		t.Errorf("%+v, %+v: want the wire clock again", x, sink.reads)
	}
}
