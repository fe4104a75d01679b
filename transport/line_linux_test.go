package transport

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
)

// What a server says on a connection that nobody asked it on is not the answer
// to the next question.
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
					idle := c.lines.idle[0].kernel
					onward <- struct{}{}
					waitUntil(t, "the second answer has arrived", func() bool { return !idle.quiet() })
				}
			}
		})
	}
}

// A connection is used again, unless the server has closed it meanwhile.
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
	if c.lines == nil {
		t.Error("there are no lines here")
	}
	c.Close()
	if len(c.lines.idle) != 0 {
		t.Error("a line is left open")
	}
}

// Lines that nobody wants are closed, and the youngest is used first.
func TestOldLinesAreClosed(t *testing.T) {
	url := rawServer(t, answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"))
	c := newClient(t, Options{BaseURL: "http://" + url})
	mustPost(t, c, "")
	c.lines.idleTimeout = idleTimeout
	c.lines.idle[0].since -= int64(idleTimeout)
	if x, _ := mustPost(t, c, ""); x.Reused {
		t.Error("a line was used that the server may be about to close")
	}
	old := c.lines.pop().line
	c.lines.put(old)
	c.lines.idle[0].since -= int64(2 * idleTimeout)
	young := &line{conn: &conn{Conn: old.Conn}}
	c.lines.put(young)
	if len(c.lines.idle) != 1 || c.lines.idle[0].line != young {
		t.Errorf("%d are idle", len(c.lines.idle))
	}
	if old.kernel.quiet() {
		t.Error("the old one is open")
	}
	c.lines.idle = nil
}
