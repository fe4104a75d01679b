package transport

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
)

// Unrequested bytes from a server are not used as the response to the next request.
func TestUnaskedAnswers(t *testing.T) {
	for name, later := range map[string]bool{"with the answer": false, "later": true} {
		t.Run(name, func(t *testing.T) {
			onward := make(chan struct{})
			url := rawServer(t, func(c net.Conn, r *bufio.Reader) {
				for readHead(r) == nil {
					const right, wrong = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nright", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong"
					if !later {
						fmt.Fprint(c, right+wrong)
						continue
					}
					fmt.Fprint(c, right)
					<-onward
					fmt.Fprint(c, wrong)
				}
			})
			c := newClient(t, Options{BaseURL: "http://" + url})
			for i := range 3 {
				x, got := mustPost(t, c, "")
				if string(got.data) != "right" || x.Reused {
					t.Fatalf("question %d: %q, on a connection that was used: %v", i, got.data, x.Reused)
				}
				if later {
					idle := c.h1.idle[0].kernel
					onward <- struct{}{}
					waitUntil(t, "the second answer has arrived", func() bool { return !idle.Quiet() })
				}
			}
		})
	}
}

// A connection is reused unless the server closed it.
func TestLinesAreKept(t *testing.T) {
	over := make(chan struct{})
	url := rawServer(t, func(c net.Conn, r *bufio.Reader) {
		for range 3 {
			if readHead(r) != nil {
				return
			}
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
		}
		_ = c.Close()
		over <- struct{}{}
	})
	c := newClient(t, Options{BaseURL: "http://" + url})
	var reused []string
	for i := range 6 {
		x, _ := mustPost(t, c, "")
		reused = append(reused, fmt.Sprint(x.Reused))
		if i%3 == 2 {
			<-over
		}
	}
	if got := strings.Join(reused, " "); got != "false true true false true true" {
		t.Errorf("reused: %s", got)
	}
	if c.h1 == nil {
		t.Error("there are no lines here")
	}
	c.Close()
	if len(c.h1.idle) != 0 {
		t.Error("a line is left open")
	}
}

// Connections idle for too long are closed, and the youngest is used first.
func TestOldLinesAreClosed(t *testing.T) {
	url := rawServer(t, answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"))
	c := newClient(t, Options{BaseURL: "http://" + url})
	mustPost(t, c, "")
	c.h1.idleTimeout = idleTimeout
	c.h1.idle[0].since -= int64(idleTimeout)
	if x, _ := mustPost(t, c, ""); x.Reused {
		t.Error("a line was used that the server may be about to close")
	}
	old := c.h1.pop().h1Conn
	c.h1.put(old)
	c.h1.idle[0].since -= int64(2 * idleTimeout)
	young := &h1Conn{conn: &conn{Conn: old.Conn}}
	c.h1.put(young)
	if len(c.h1.idle) != 1 || c.h1.idle[0].h1Conn != young {
		t.Errorf("%d are idle", len(c.h1.idle))
	}
	if old.kernel.Quiet() {
		t.Error("the old one is open")
	}
	c.h1.idle = nil
}

// Without the last chunk, an answer also ends on the connections of the receive thread.
func TestEndMarkOnLines(t *testing.T) {
	url := rawServer(t, func(c net.Conn, r *bufio.Reader) {
		for readHead(r) == nil {
			fmt.Fprint(c, chunkedHead+chunk("data: a\n\n")+chunk("data: [DONE]\n\n"))
		}
	})
	c := newClient(t, Options{BaseURL: "http://" + url})
	c.endWait = time.Millisecond
	for range 3 {
		var x Exchange
		sink := new(collector)
		err := c.Do(t.Context(), ready(t, c, "POST", "/", ""), &x, sink, nil)
		if f := Classify(err, &x); f == nil || f.Cause != tacho.Reset || x.Reused || !strings.HasSuffix(string(sink.data), "[DONE]\n\n") {
			t.Errorf("%+v, %q, %+v, want the whole answer", f, sink.data, x)
		}
	}
}
