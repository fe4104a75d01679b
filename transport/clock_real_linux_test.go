//go:build real

package transport

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tacho"
)

// The kernel begins to stamp a moment after it is first asked. A client waits for
// that, so that its first answer has a time.
func TestRealFirstAnswerHasKernelTime(t *testing.T) {
	addr := rawServer(t, answering("HTTP/1.1 204 No Content\r\n\r\n"))
	const wanted, tries = 10, 100
	seen := 0
	for range tries {
		awaitUnstamped(t)
		began := time.Now()
		c := newClient(t, Options{BaseURL: "http://" + addr})
		took := time.Since(began)
		x, _ := mustPost(t, c, "")
		c.Close() // with the last socket that asks for it the kernel stops
		switch {
		case x.Clock == tacho.KernelClock:
			if seen++; seen == wanted {
				return
			}
		case took < stampTries*stampAgain: // or the client gave up: the kernel was that late
			t.Fatalf("the first answer of a client that waited %v has no time of the kernel", took)
		}
	}
	t.Errorf("the kernel was late to stamp %d times of %d", tries-seen, tries)
}

// awaitUnstamped waits until the kernel does not stamp what it receives. Where another
// process has it do so that is never, and after a while nothing waits.
func awaitUnstamped(t *testing.T) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	// To be told of stamps is not to ask for them.
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING, unix.SOF_TIMESTAMPING_SOFTWARE)
	if err := errors.Join(err, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})); err != nil {
		t.Fatal(err)
	}
	self, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	r := newReceiver()
	for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if err := unix.Sendto(fd, []byte{0}, 0, self); err != nil {
			t.Fatal(err)
		}
		if at, _, ok := r.next(fd, 0); ok && at == 0 {
			return
		}
	}
}

// A server that leaves Nagle's algorithm on sends its next small piece when the
// one before is acknowledged. Our acknowledgement must not be a delayed one, which
// takes 40 ms at the least: our times would be of our own making.
func TestRealNagleIsNotMadeWorse(t *testing.T) {
	addr := rawServer(t, func(nc net.Conn, r *bufio.Reader) {
		nc.(*net.TCPConn).SetNoDelay(false)
		readHead(r)
		nc.Write([]byte(chunkedHead))
		nc.Write([]byte(chunk("event"))) // waits for it to be acknowledged
		nc.Write([]byte("0\r\n\r\n"))
		r.ReadByte() // to close it would send all at once
	})
	const delayed, tries = 40 * time.Millisecond, 200
	for range tries { // a machine that stands still delays all, though not every time
		x, _ := mustPost(t, newClient(t, Options{BaseURL: "http://" + addr}), "")
		if time.Duration(x.End-x.Head) < delayed {
			return
		}
	}
	t.Errorf("from the head to the end each of %d answers took %v or longer; a plain client's took %v at the least", tries, delayed, plainClient(t, addr, tries))
}

// plainClient is the shortest time from the head to the end of some answers that a
// client on Go's poller has.
func plainClient(t *testing.T, addr string, tries int) (least time.Duration) {
	t.Helper()
	for i := range tries {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		nc.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
		p := make([]byte, 1000)
		var head time.Time
		for text := ""; !strings.HasSuffix(text, "0\r\n\r\n"); {
			n, err := nc.Read(p)
			if err != nil {
				t.Fatal(err)
			}
			if text += string(p[:n]); head.IsZero() {
				head = time.Now()
			}
		}
		if took := time.Since(head); i == 0 || took < least {
			least = took
		}
		nc.Close()
	}
	return least
}

// Events that are held are read when their time is up, with the time of their arrival.
func TestRealHeldEventsAreReleased(t *testing.T) {
	keepStamping(t)
	for {
		c, peer := pair(t, true)
		before := now()
		peer.Write([]byte("9\r\ndata: x\n\n\r\n"))
		n, at, err := c.receive(make([]byte, 100))
		read := now()
		if n != 14 || err != nil || !at.kernel || at.at < before || at.at > read {
			t.Fatalf("%d bytes, %v, written at %d, received at %d, read at %d", n, err, before, at.at, read)
		}
		// Where the poller looked at the clock before the event came, the time since
		// which it holds the event is not known.
		if at.lag == 0 {
			continue
		}
		if held := read - at.at - int64(at.lag); held < int64(holdTime) {
			t.Errorf("it was held for %v only, or that time is in its lag of %d ns", time.Duration(held), at.lag)
		}
		return
	}
}

// A bound in one tenth of the gap before it is what a prompt reader has at least
// sometimes, however busy the machine.
func TestRealBoundIsTight(t *testing.T) {
	c, peer := pair(t, false)
	const gap, tries = 50 * time.Millisecond, 400
	least := time.Hour
	for try := range tries {
		time.Sleep(gap) // the silence that the bound is a part of
		peer.Write([]byte(chunk("event\n") + chunk("another\n")))
		_, s, err := c.receive(make([]byte, 100))
		if err != nil {
			t.Fatal(err)
		}
		if try == 0 { // the socket was not looked at before
			continue
		}
		if least = min(least, time.Duration(s.since)); least < gap/10 {
			return
		}
	}
	t.Errorf("after %d gaps of %v the closest bound was %v", tries, gap, least)
}

// The wire clock passes its own trial. Its patience is a second: where the machine
// stands still for longer the trial is made again.
func TestRealCheckWire(t *testing.T) {
	wireClient(t, "http://127.0.0.1:1") // or skip
	const tries = 10
	passed := 0
	for range 10 * tries {
		switch err := CheckWire(t.Context()); {
		case err == nil:
			if passed++; passed == tries {
				return
			}
		case !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, context.DeadlineExceeded):
			t.Fatal(err)
		}
	}
	t.Errorf("%d trials of %d were late", 10*tries-passed, 10*tries)
}

// Over TLS a request had left before the server saw it, also if streams end together, so
// that connections pass from one request to another at once.
func TestRealSentUnderTLS(t *testing.T) {
	const streams, rounds = 64, 20
	var mu sync.Mutex
	waiting, all := 0, make(chan struct{})
	together := func() {
		mu.Lock()
		waiting++
		mine := all
		if waiting%streams == 0 {
			close(all)
			all = make(chan struct{})
		}
		mu.Unlock()
		<-mine
	}
	s := tlsSite(t, func(s *httptest.Server) {
		s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, time.Now().UnixNano())
			together()
		})
	})
	config, err := TLSConfig(s.tls)
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, Options{BaseURL: s.url, TLS: config})
	var clients sync.WaitGroup
	for range streams {
		clients.Go(func() {
			for range rounds {
				x, sink := mustPost(t, c, "hello")
				seen, _ := strconv.ParseInt(string(sink.data), 10, 64)
				if x.Sent > x.SentBy || x.SentBy > seen {
					t.Errorf("a request left from %d to %d, and the server saw it at %d", x.Sent, x.SentBy, seen)
				}
			}
		})
	}
	clients.Wait()
}
