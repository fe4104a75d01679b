package transport

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tacho"
)

// Every event carries the server's time just before its write. The next is
// written only when the one before has been read, so none can merge.
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

// The kernel merges what arrives before it is received and keeps the last
// time only. The reads must say so by their receive numbers.
func TestMergedWritesShareAReceive(t *testing.T) {
	keepStamping(t)
	targets, wrote, arrived := make(chan *polled, 1), make(chan int64, 1), make(chan int64, 1)
	addr := rawServer(t, func(nc net.Conn, r *bufio.Reader) {
		readHead(r)
		nc.Write([]byte(chunkedHead + chunk("first")))
		target := <-targets           // once the first has been read
		goOn := holdUp(target.poller) // the poller is kept from receiving: both writes come before it does
		deliver(t, nc, target, chunk(strings.Repeat("a", 3000)))
		wrote <- time.Now().UnixNano()
		deliver(t, nc, target, chunk(strings.Repeat("b", 3000))+"0\r\n\r\n")
		arrived <- time.Now().UnixNano()
		goOn()
		readHead(r) // to close it now would merge the end with these, and the end's time would be theirs
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

// A reader that is slow takes no time away from what comes meanwhile: the
// poller has received it.
func TestSlowReaderKeepsTimesApart(t *testing.T) {
	looking, wrote, targets := make(chan struct{}), make(chan int64, 3), make(chan *polled, 1)
	addr := rawServer(t, func(nc net.Conn, r *bufio.Reader) {
		readHead(r)
		nc.Write([]byte(chunkedHead + chunk("first")))
		<-looking
		received := &(<-targets).seat.received
		for range 3 {
			before := atomic.LoadUint32(received)
			wrote <- time.Now().UnixNano()
			nc.Write([]byte(chunk("event")))
			waitUntil(t, "the poller has received the event", func() bool { return atomic.LoadUint32(received) != before })
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

// A request that is held up after it was handed to the connection was sent when it
// left, on a connection that is used again, too.
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
			for round := range 3 {
				target.kernel.writing.Lock()
				letGo := make(chan int64, 1)
				go func() {
					waitUntil(t, "the request is handed to the connection", func() bool {
						s := target.owner.Load()
						return s != nil && s.begun() != 0
					})
					letGo <- time.Now().UnixNano()
					target.kernel.writing.Unlock()
				}()
				x, sink := mustPost(t, c, "hello")
				answered, _ := strconv.ParseInt(string(sink.data), 10, 64)
				if free := <-letGo; x.Sent < free || x.Sent > answered || x.SentBy != x.Sent || x.Reused != (round > 0) {
					t.Errorf("round %d: it could leave at %d, was answered at %d, and is said to have left from %d to %d; %+v", round, free, answered, x.Sent, x.SentBy, x)
				}
			}
		})
	}
}

// net/http hands a connection to the next request when an answer was read to its end,
// and our code looks at the times of sending after that. They are not the times of the
// next request.
func TestSentIsNotOfTheNextRequest(t *testing.T) {
	s := tlsSite(t, nil)
	config, err := TLSConfig(s.tls)
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, Options{BaseURL: s.url, TLS: config})
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

// Where the kernel does not tell, it left while it was written.
func TestSentIsWithinItsWrite(t *testing.T) {
	addr := rawServer(t, answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"))
	x, _ := mustPost(t, newClient(t, Options{BaseURL: "http://" + addr, Clock: tacho.ReadClock}), "")
	if x.SentBy <= x.Sent || x.SentBy > x.Wrote {
		t.Errorf("it left from %d to %d and was written at %d", x.Sent, x.SentBy, x.Wrote)
	}
}

// TLS lies above the connection that stamps.
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
	clock := newKernelClock()
	defer clock.close()
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

// message builds a control message as the kernel lays it out.
func message(kind int, words ...uint64) []byte {
	data := make([]byte, 8*len(words))
	for i, w := range words {
		binary.NativeEndian.PutUint64(data[8*i:], w)
	}
	b := make([]byte, unix.CmsgSpace(len(data)))
	binary.NativeEndian.PutUint64(b, uint64(unix.CmsgLen(len(data))))
	binary.NativeEndian.PutUint32(b[8:], unix.SOL_SOCKET)
	binary.NativeEndian.PutUint32(b[12:], uint32(kind))
	copy(b[unix.SizeofCmsghdr:], data)
	return b
}

func TestStampIn(t *testing.T) {
	if unix.SizeofPtr != 8 {
		t.Skip("message lays out 64-bit control messages")
	}
	stamp := message(unix.SO_TIMESTAMPING, 12, 34, 0, 0, 0, 0)
	for _, tt := range []struct {
		name    string
		control []byte
		want    int64
	}{
		{"none", nil, 0},
		{"alone", stamp, 12_000_000_034},
		{"after another", append(message(unix.SCM_RIGHTS, 7), stamp...), 12_000_000_034},
		{"another only", message(unix.SCM_RIGHTS, 7), 0},
		{"cut", stamp[:len(stamp)-1], 0},
		{"no data", message(unix.SO_TIMESTAMPING), 0},
	} {
		if got, _ := stampIn(tt.control); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

func FuzzStampIn(f *testing.F) {
	f.Add(message(unix.SO_TIMESTAMPING, 1, 2, 0, 0, 0, 0))
	f.Fuzz(func(_ *testing.T, control []byte) { stampIn(control) })
}

// What the kernel counts on a connection goes to the exchange during which it was
// counted, and is told once.
func TestTroublesOfTheNetwork(t *testing.T) {
	addr := rawServer(t, answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"))
	c := newClient(t, Options{BaseURL: "http://" + addr})
	target := preparedConn(t, c).kernel
	counted := func() (retransmits, outOfOrder int) {
		info, err := unix.GetsockoptTCPInfo(target.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			t.Fatal(err)
		}
		return int(info.Total_retrans), int(info.Rcv_ooopack)
	}
	target.retransmits-- // as if the kernel had counted one more since
	target.outOfOrder -= 3
	x, _ := mustPost(t, c, "")
	again, more := target.troubles()
	// Where the machine stands still, the kernel sends segments again.
	truly, trulyMore := counted()
	if n := x.Retransmits + again; x.Retransmits < 1 || n > 1+truly {
		t.Errorf("%d segments were sent again, and %d more: want 1 and none, and the kernel counted %d", x.Retransmits, again, truly)
	}
	if n := x.OutOfOrder + more; x.OutOfOrder < 3 || n > 3+trulyMore {
		t.Errorf("%d segments came out of order, and %d more: want 3 and none, and the kernel counted %d", x.OutOfOrder, more, trulyMore)
	}
}
