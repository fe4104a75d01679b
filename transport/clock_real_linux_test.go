//go:build real

package transport

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
)

// The kernel begins to timestamp some time after the first request for it. A client waits
// for that, so that its first response gets a kernel time.
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
		c.Close() // the kernel stops with the last socket that asks for timestamps
		switch {
		case x.Clock == tacho.KernelClock:
			if seen++; seen == wanted {
				return
			}
		case took < time.Second: // otherwise the client gave up, because the kernel was slow
			t.Fatalf("the first answer of a client that waited %v has no time of the kernel", took)
		}
	}
	t.Errorf("the kernel was late to stamp %d times of %d", tries-seen, tries)
}

// awaitUnstamped waits until the kernel does not timestamp received data. If another
// process keeps timestamping on, it gives up after 100 ms.
func awaitUnstamped(t *testing.T) {
	t.Helper()
	// This option reports timestamps without requesting them.
	fd := udpSocket(t, unix.SOF_TIMESTAMPING_SOFTWARE)
	defer unix.Close(fd)
	for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end) && stamped(t, fd); {
		time.Sleep(time.Millisecond)
	}
}

// A server with Nagle's algorithm sends its next small piece after the one before is
// acknowledged. Our acknowledgement must not be delayed, which takes at least 40 ms,
// because the client would cause the delay it measures.
func TestRealNagleIsNotMadeWorse(t *testing.T) {
	addr := rawServer(t, func(nc net.Conn, r *bufio.Reader) {
		nc.(*net.TCPConn).SetNoDelay(false)
		readHead(r)
		nc.Write([]byte(chunkedHead))
		nc.Write([]byte(chunk("event"))) // waits for the acknowledgement
		nc.Write([]byte("0\r\n\r\n"))
		r.ReadByte() // closing would send everything at once
	})
	const delayed, tries = 40 * time.Millisecond, 200
	for range tries { // a machine that stalls delays some responses, but not all
		x, _ := mustPost(t, newClient(t, Options{BaseURL: "http://" + addr}), "")
		if time.Duration(x.End-x.Head) < delayed {
			return
		}
	}
	t.Errorf("from the head to the end each of %d answers took %v or longer; a plain client's took %v at the least", tries, delayed, plainClient(t, addr, tries))
}

// plainClient returns the shortest time from the head to the end of a response for a
// client on Go's poller.
func plainClient(t *testing.T, addr string, tries int) (least time.Duration) {
	t.Helper()
	for i := range tries {
		nc := must.Get(net.Dial("tcp", addr))(t)
		nc.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
		p := make([]byte, 1000)
		var head time.Time
		for text := ""; !strings.HasSuffix(text, "0\r\n\r\n"); {
			n := must.Get(nc.Read(p))(t)
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

// Over TLS a request leaves before the server sees it, even if streams end together and
// connections are reused immediately.
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
	config := must.Get(TLSConfig(s.tls))(t)
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
