package transport

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/transport/socket"
)

// Each event carries the server's time just before its write. The server writes the next
// event only after the client read this one, so events cannot merge.
func TestKernelTimeLiesBetweenWriteAndRead(t *testing.T) {
	const events = 50
	keepStamping(t)
	seen := make(chan struct{})
	addr := rawServer(t, func(nc net.Conn, r *bufio.Reader) {
		readHead(r)
		nc.Write([]byte(chunkedHead))
		for range events {
			nc.Write([]byte(chunk(strconv.FormatInt(time.Now().UnixNano(), 10) + " ")))
			<-seen
		}
		nc.Write([]byte("0\r\n\r\n"))
	})
	c := newClient(t, Options{BaseURL: "http://" + addr})
	var x Exchange
	sink := new(collector)
	var readAt []int64
	live := func([]byte, int64) { readAt = append(readAt, time.Now().UnixNano()); seen <- struct{}{} }
	if err := c.Do(t.Context(), ready(t, c, "GET", "/", ""), &x, sink, live); err != nil {
		t.Fatal(err)
	}
	checkOrder(t, x, sink.reads)
	if x.Clock != tacho.KernelClock {
		t.Errorf("clock = %v, want kernel", x.Clock)
	}
	lines := strings.Fields(string(sink.data))
	if len(lines) != events || len(sink.reads) != events {
		t.Fatalf("%d lines in %d reads, want %d", len(lines), len(sink.reads), events)
	}
	for i, line := range lines {
		wrote, _ := strconv.ParseInt(line, 10, 64)
		r := sink.reads[i]
		if r.At < wrote || r.At > readAt[i] {
			t.Errorf("event %d: written at %d, received at %d, seen at %d", i, wrote, r.At, readAt[i])
		}
		if had := r.At + int64(r.Lag); had > readAt[i] || had < r.At {
			t.Errorf("event %d: received at %d and had after %d ns, but seen at %d", i, r.At, r.Lag, readAt[i])
		}
		if i > 0 && r.Recv == sink.reads[i-1].Recv {
			t.Errorf("events %d and %d share receive %d", i-1, i, r.Recv)
		}
	}
}

// The kernel merges segments that arrive before a receive and keeps only the last time.
// The reads show it by their equal receive numbers.
func TestMergedWritesShareAReceive(t *testing.T) {
	keepStamping(t)
	targets, wrote, arrived := make(chan socket.Conn, 1), make(chan int64, 1), make(chan int64, 1)
	addr := rawServer(t, func(nc net.Conn, r *bufio.Reader) {
		readHead(r)
		nc.Write([]byte(chunkedHead + chunk("first")))
		target := <-targets          // the first event was read
		goOn := socket.Stall(target) // both writes arrive before the next receive
		deliver(t, nc, target, chunk(strings.Repeat("a", 3000)))
		wrote <- time.Now().UnixNano()
		deliver(t, nc, target, chunk(strings.Repeat("b", 3000))+"0\r\n\r\n")
		arrived <- time.Now().UnixNano()
		goOn()
		readHead(r) // closing now would merge the end with these events and change their time
	})
	c := newClient(t, Options{BaseURL: "http://" + addr})
	target := preparedConn(t, c).kernel
	var x Exchange
	sink := new(collector)
	var once sync.Once
	live := func([]byte, int64) { once.Do(func() { targets <- target }) }
	if err := c.Do(t.Context(), ready(t, c, "GET", "/", ""), &x, sink, live); err != nil {
		t.Fatal(err)
	}
	checkOrder(t, x, sink.reads)
	second, last := <-wrote, <-arrived
	late := sink.reads[1:]
	if len(late) == 0 || sink.reads[0].Recv == late[0].Recv {
		t.Fatalf("reads %+v, want the first apart from the rest", sink.reads)
	}
	for _, r := range late {
		if r.Recv != late[0].Recv || r.At < second || r.At > last {
			t.Errorf("read %+v, want receive %d and a time from %d, when the second was written, to %d, when it had come", r, late[0].Recv, second, last)
		}
	}
}

// A slow reader does not change the times of bytes that arrive meanwhile, because the
// receive thread received them.
func TestSlowReaderKeepsTimesApart(t *testing.T) {
	looking, wrote, targets := make(chan struct{}), make(chan int64, 3), make(chan socket.Conn, 1)
	addr := rawServer(t, func(nc net.Conn, r *bufio.Reader) {
		readHead(r)
		nc.Write([]byte(chunkedHead + chunk("first")))
		<-looking
		target := <-targets
		for range 3 {
			before := arrived(t, target)
			wrote <- time.Now().UnixNano()
			nc.Write([]byte(chunk("event")))
			waitUntil(t, "the poller has received the event", func() bool { return arrived(t, target) != before && queued(target) == 0 })
		}
		looking <- struct{}{}
		nc.Write([]byte("0\r\n\r\n"))
	})
	c := newClient(t, Options{BaseURL: "http://" + addr})
	targets <- preparedConn(t, c).kernel
	slow := false
	var x Exchange
	sink := new(collector)
	err := c.Do(t.Context(), ready(t, c, "GET", "/", ""), &x, sink, func([]byte, int64) {
		if !slow {
			slow = true
			looking <- struct{}{}
			<-looking
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(sink.reads) != 4 {
		t.Fatalf("%d reads, want one for each write: %+v", len(sink.reads), sink.reads)
	}
	for i, r := range sink.reads[1:] {
		if at := <-wrote; r.At < at || i > 0 && r.Recv == sink.reads[i].Recv {
			t.Errorf("event %d: written at %d, received at %d as receive %d", i, at, r.At, r.Recv)
		}
	}
}

// heldSend is a connection whose Send waits for the test.
type heldSend struct {
	socket.Conn
	send chan struct{}
}

func (h *heldSend) Send(p []byte) int {
	<-h.send
	return h.Conn.Send(p)
}

// If a request waits after it was handed to the connection, Sent is the time it left, also
// on a reused connection.
func TestSentIsWhenItLeft(t *testing.T) {
	for name, secure := range map[string]bool{"plain": false, "tls": true} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprint(w, time.Now().UnixNano())
			}))
			if secure {
				s.StartTLS()
			} else {
				s.Start()
			}
			t.Cleanup(s.Close)
			c := newClient(t, Options{BaseURL: s.URL, TLS: &tls.Config{InsecureSkipVerify: true}})
			target := preparedConn(t, c)
			held := &heldSend{Conn: target.kernel, send: make(chan struct{})}
			target.kernel = held
			for round := range 3 {
				letGo := make(chan int64, 1)
				go func() {
					waitUntil(t, "the request is handed to the connection", func() bool {
						s := target.owner.Load()
						return s != nil && s.sendStart() != 0
					})
					letGo <- time.Now().UnixNano()
					held.send <- struct{}{}
				}()
				x, sink := mustPost(t, c, "hello")
				answered, _ := strconv.ParseInt(string(sink.data), 10, 64)
				if free := <-letGo; x.Sent < free || x.Sent > answered || x.SentBy != x.Sent || x.Reused != (round > 0) {
					t.Errorf("round %d: Send began at %d and the server responded at %d, but Sent is %d and SentBy %d; %+v", round, free, answered, x.Sent, x.SentBy, x)
				}
			}
		})
	}
}

// net/http may reuse a connection before the previous exchange reads its send times. The
// previous exchange still gets its own times.
func TestSentIsNotOfTheNextRequest(t *testing.T) {
	s := tlsSite(t, nil)
	config, err := TLSConfig(s.tls)
	if err != nil {
		t.Fatal(err)
	}
	// net/http, which manages the connections because of Dial, hands a connection on before Do returns.
	c := newClient(t, Options{BaseURL: s.url, TLS: config, Dial: new(net.Dialer).DialContext})
	var first, second Exchange
	next := consumerFunc(func([]byte, []Read) error {
		second, _ = mustPost(t, c, "again")
		return nil
	})
	if err := c.Do(t.Context(), ready(t, c, "POST", "/v1/x", "hello"), &first, next, nil); err != nil {
		t.Fatal(err)
	}
	if !second.Reused {
		t.Fatal("the second request has another connection")
	}
	if first.SentBy < first.Sent || first.SentBy > second.Conn {
		t.Errorf("the first request left from %d to %d; the second had the connection at %d and left at %d", first.Sent, first.SentBy, second.Conn, second.Sent)
	}
}

// With the read clock, Sent and SentBy enclose the first write.
func TestSentIsWithinItsWrite(t *testing.T) {
	addr := rawServer(t, answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"))
	x, _ := mustPost(t, newClient(t, Options{BaseURL: "http://" + addr, Clock: tacho.ReadClock}), "")
	if x.SentBy <= x.Sent || x.SentBy > x.Wrote {
		t.Errorf("it left from %d to %d and was written at %d", x.Sent, x.SentBy, x.Wrote)
	}
}

// TLS connections have kernel times, too.
func TestKernelTimeUnderTLS(t *testing.T) {
	keepStamping(t)
	s := tlsSite(t, nil)
	config, err := TLSConfig(s.tls)
	if err != nil {
		t.Fatal(err)
	}
	x, sink := mustPost(t, newClient(t, Options{BaseURL: s.url, TLS: config}), "hello")
	checkOrder(t, x, sink.reads)
	if x.Clock != tacho.KernelClock {
		t.Errorf("clock %v, want kernel", x.Clock)
	}
}

func TestReadClockOnDemand(t *testing.T) {
	addr := rawServer(t, answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"))
	x, sink := mustPost(t, newClient(t, Options{BaseURL: "http://" + addr, Clock: tacho.ReadClock}), "")
	checkOrder(t, x, sink.reads)
	if x.Clock != tacho.ReadClock {
		t.Errorf("clock = %v, want read", x.Clock)
	}
}

func TestReceiveDoesNotAllocate(t *testing.T) {
	pong := []byte("pong")
	addr := rawServer(t, func(nc net.Conn, r *bufio.Reader) {
		for {
			if _, err := r.ReadByte(); err != nil {
				return
			}
			nc.Write(pong)
		}
	})
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	clock := socket.NewClock()
	defer clock.Close()
	c, err := newConn(nc, clock, false)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.owner.Store(newSpan(false))
	p, ping := make([]byte, 64), []byte{1}
	allocs := testing.AllocsPerRun(100, func() {
		c.Write(ping)
		if n, err := c.Read(p); n != 4 || err != nil {
			t.Fatal(n, err)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations for a write and a read, want none", allocs)
	}
}

// troubled is a connection that counts one retransmit and three segments out of order.
type troubled struct{ socket.Conn }

func (troubled) Counters() (retransmits, outOfOrder int) { return 1, 3 }

// The counters of the kernel go to the exchange during which they changed.
func TestTroublesOfTheNetwork(t *testing.T) {
	addr := rawServer(t, answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"))
	c := newClient(t, Options{BaseURL: "http://" + addr})
	target := preparedConn(t, c)
	target.kernel = troubled{target.kernel}
	if x, _ := mustPost(t, c, ""); x.Retransmits != 1 || x.OutOfOrder != 3 {
		t.Errorf("%d segments sent again and %d out of order, want 1 and 3", x.Retransmits, x.OutOfOrder)
	}
}
