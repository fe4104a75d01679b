package transport

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pair is a polled connection and its other end.
func pair(t *testing.T, mayBeHeld bool) (*polled, *net.TCPConn) {
	t.Helper()
	keepStamping(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	peer, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	clock := newKernelClock()
	if clock == nil {
		t.Fatal("no kernel clock")
	}
	c, err := clock.take(nc, mayBeHeld)
	if err != nil {
		t.Fatal(err)
	}
	c.hide(0)
	c.look() // as if something had been sent
	t.Cleanup(func() { c.Close(); peer.Close(); clock.close() })
	return c, peer.(*net.TCPConn)
}

// What is sent arrives, whatever its size, both ways at once.
func TestPolledCarriesEverything(t *testing.T) {
	c, peer := pair(t, true)
	want := bytes.Repeat([]byte("0123456789abcde\n\r\n"), 1<<18) // 4.5 MiB, and some of it looks like an event
	var wg sync.WaitGroup
	wg.Go(func() {
		if n, err := c.Write(want); n != len(want) || err != nil {
			t.Errorf("wrote %d, %v", n, err)
		}
	})
	wg.Go(func() {
		if n, err := peer.Write(want); n != len(want) || err != nil {
			t.Errorf("peer wrote %d, %v", n, err)
		}
		peer.CloseWrite()
	})
	wg.Go(func() {
		got := make([]byte, len(want))
		if _, err := io.ReadFull(peer, got); err != nil || !bytes.Equal(got, want) {
			t.Errorf("the peer got something else: %v", err)
		}
	})
	got, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %d bytes of %d, %v", len(got), len(want), err)
	}
	wg.Wait()
}

// A reader that does not read stops the sender, and loses nothing.
func TestPolledPauses(t *testing.T) {
	c, peer := pair(t, false)
	const total = 64 << 20
	sent := make(chan error, 1)
	go func() {
		_, err := io.Copy(peer, io.LimitReader(zeros{}, total))
		sent <- errors.Join(err, peer.CloseWrite())
	}()
	most := 0
	waitUntil(t, "the flood has reached the mark", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		most = max(most, len(c.data))
		return c.paused
	})
	if most > 2*pauseBytes+ringBytes {
		t.Errorf("%d bytes wait for a reader", most)
	}
	n, err := io.Copy(io.Discard, c)
	if err := errors.Join(err, <-sent); n != total || err != nil {
		t.Errorf("%d bytes of %d, %v", n, total, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// Events are held until there is a reason; ends and other bytes are not.
func TestPolledHolds(t *testing.T) {
	for text, want := range map[string]bool{
		"9\r\ndata: x\n\n\r\n":                         true,
		"b\r\ndata: x\r\n\r\n\r\n":                     true,
		"5\r\n{..}\n\r\n":                              true,
		"9\r\ndata: x\n\n\r\n0\r\n\r\n":                false, // the end of the response
		"HTTP/1.1 200 OK\r\nX: y\r\n\r\n":              false, // a head
		"9\r\ndata: x\n\n":                             false, // the chunk is not whole
		"0\r\n\r\n":                                    false,
		"\r\n":                                         false,
		strings.Repeat("x", holdBytes) + "\n\n\r\n":    false, // enough to read
		"HTTP/1.1 200 OK\r\n\r\n9\r\ndata: x\n\n\r\n":  true,
		"c\r\n{\"a\":\"b\"}\r\n":                       false,
		"data: no chunks\n\n":                          false,
		"9\r\ndata: [DONE]\n\n\r\n0\r\nX: y\r\n\r\n":   false,
		"16\r\n: comment\n\ndata: yy\n\n\r\n":          true,
		"4\r\na\r\n\r\n\r\n":                           true,
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n": false,
		chunkedHead:                                    true,
		chunkedHead + "0\r\n\r\n":                      false,
		chunkedHead + "x":                              false,
		chunkedHead[:len(chunkedHead)-2]:               false,
		strings.Replace(chunkedHead, "200", "500", 1):  false,
	} {
		c := &polled{mayBeHeld: true, data: []byte(text)}
		if got := c.mayHold(); got != want {
			t.Errorf("%q: held %v, want %v", text, got, want)
		}
		c.mayBeHeld = false
		if c.mayHold() {
			t.Errorf("%q was held under TLS", text)
		}
	}
}

// The reader of a held connection is woken when its time is up, and not before.
func TestHeldConnectionsAreReleased(t *testing.T) {
	const received = int64(1e18)
	p := new(poller)
	c := &polled{poller: p, mayBeHeld: true}
	c.changed.L = &c.mu
	woken := 0
	c.told = func(bool) { woken++ }
	for i := range int64(2) { // the first counts
		c.take([]byte(chunk("data: x\n\n")), stamp{at: received})
		p.wakeLater(c, received+i)
	}
	due := received + int64(holdTime)
	p.release(due - 1)
	if woken != 0 || !c.held || c.readable() || p.due != due-1+int64(endTime) {
		t.Errorf("before its time: woken %d times, held %v, due in %v", woken, c.held, time.Duration(p.due-due))
	}
	p.release(due)
	if woken != 1 || c.held || !c.readable() || p.due != never {
		t.Errorf("when its time was up: woken %d times, held %v, due at %d", woken, c.held, p.due)
	}
}

func TestPolledEnds(t *testing.T) {
	blocked := func(t *testing.T, c *polled, end func()) error {
		t.Helper()
		got := make(chan error, 1)
		go func() { _, err := c.Read(make([]byte, 9)); got <- err }()
		end()
		return <-got
	}
	t.Run("closed by the peer", func(t *testing.T) {
		c, peer := pair(t, true)
		if err := blocked(t, c, func() { peer.Close() }); !errors.Is(err, io.EOF) {
			t.Errorf("error %v", err)
		}
		if c.alive() {
			t.Error("it passes for alive")
		}
	})
	t.Run("reset by the peer", func(t *testing.T) {
		c, peer := pair(t, true)
		err := blocked(t, c, func() { peer.SetLinger(0); peer.Close() })
		if ne := (*net.OpError)(nil); !errors.As(err, &ne) || !strings.Contains(err.Error(), "reset") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("closed here", func(t *testing.T) {
		c, _ := pair(t, true)
		if err := blocked(t, c, func() { c.Close() }); !errors.Is(err, net.ErrClosed) {
			t.Errorf("error %v", err)
		}
		if _, err := c.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("write: %v", err)
		}
		if err := c.Close(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("second close: %v", err)
		}
	})
	t.Run("deadline", func(t *testing.T) {
		c, _ := pair(t, true)
		err := blocked(t, c, func() { c.SetReadDeadline(time.Now().Add(time.Millisecond)) })
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		c.SetDeadline(time.Now().Add(-time.Second))
		if _, err := c.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("write: %v", err)
		}
		c.SetDeadline(time.Time{})
		if _, err := c.Write([]byte("x")); err != nil {
			t.Errorf("write without a deadline: %v", err)
		}
	})
	t.Run("write that nobody reads", func(t *testing.T) {
		c, peer := pair(t, true)
		got := make(chan error, 1)
		go func() { _, err := c.Write(make([]byte, 64<<20)); got <- err }()
		io.ReadFull(peer, make([]byte, 1<<20)) // it is under way
		c.Close()
		if err := <-got; !errors.Is(err, net.ErrClosed) {
			t.Errorf("error %v", err)
		}
	})
	for name, stop := range map[string]func(c *polled){
		"events before a deadline":   func(c *polled) { c.SetReadDeadline(time.Now()) },
		"events before it is closed": func(c *polled) { c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			c, peer := pair(t, true)
			got := make(chan string, 1)
			go func() { b, _ := io.ReadAll(c); got <- string(b) }()
			peer.Write([]byte("data: x\n\n\r\n"))
			waitUntil(t, "the event was received", func() bool {
				c.mu.Lock()
				defer c.mu.Unlock()
				inRing := atomic.LoadInt64(&c.poller.head) != atomic.LoadInt64(&c.poller.tail)
				return c.unread() > 0 || c.lies() && inRing
			})
			stop(c)
			if b := <-got; b != "data: x\n\n\r\n" {
				t.Errorf("the reader had %q of what lay there", b)
			}
		})
	}
	t.Run("a flood before it is closed", func(t *testing.T) {
		var c *polled
		for other := -1; c == nil || other != c.fd; { // or another goroutine was given the number
			var peer *net.TCPConn
			c, peer = pair(t, false)
			go io.Copy(peer, io.LimitReader(zeros{}, 64<<20))
			waitUntil(t, "the flood has reached the mark", func() bool {
				c.mu.Lock()
				defer c.mu.Unlock()
				return c.paused
			})
			c.Close()
			raw, err := peer.SyscallConn()
			if err != nil {
				t.Fatal(err)
			}
			// other has the number of the socket that was closed
			raw.Control(func(fd uintptr) { other, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, c.fd) })
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(other)
		}
		if n, err := io.Copy(io.Discard, c); n == 0 || !errors.Is(err, net.ErrClosed) {
			t.Errorf("%d bytes, %v", n, err)
		}
		if err := unix.EpollCtl(c.poller.epoll, unix.EPOLL_CTL_DEL, c.fd, nil); !errors.Is(err, unix.ENOENT) {
			t.Errorf("the poller watches what has the number of the socket now: %v", err)
		}
	})
	t.Run("events before the end", func(t *testing.T) {
		c, peer := pair(t, true)
		peer.Write([]byte("data: x\n\n\r\n"))
		peer.Close()
		b, err := io.ReadAll(c)
		if string(b) != "data: x\n\n\r\n" || err != nil {
			t.Errorf("%q, %v", b, err)
		}
	})
}

// The poller sleeps until a held connection is due, or for a part of the silence.
func TestPollerWaits(t *testing.T) {
	for left, want := range map[time.Duration]time.Duration{
		-time.Second: 0, 0: 0, 1: 1, 300 * time.Microsecond: 300 * time.Microsecond, time.Hour: lookMost,
	} {
		p := &thread{now: 1e18} // after a long silence
		p.due = p.now + int64(left)
		if got := time.Duration(p.waitMost()); got != want {
			t.Errorf("due in %v: it waits %v, want %v", left, got, want)
		}
	}
	for silence, want := range map[time.Duration]time.Duration{
		0: closeTime, 20 * time.Millisecond: closeTime, 300 * time.Millisecond: 3 * time.Millisecond, time.Hour: lookMost,
	} {
		p := &thread{now: 1e18, due: never, heard: 1e18 - int64(silence), merged: 1e18 - int64(time.Second)}
		if got := time.Duration(p.waitMost()); got != want {
			t.Errorf("after %v of silence it waits %v, want %v", silence, got, want)
		}
		p.merged -= int64(mergeTime)
		if got := time.Duration(p.waitMost()); got != max(want, lookTime) {
			t.Errorf("after %v of silence it waits %v where nothing comes merged", silence, got)
		}
	}
}

// It waits as long as it was to, on kernels that count milliseconds as well: less, and
// it would ask again and again in the last one.
func TestPollerWaitsLongEnough(t *testing.T) {
	p, err := newPoller()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(unix.Close(p.epoll), p.bell.Close()) }()
	for _, fine := range []bool{p.fine, false} {
		p.fine = fine
		const most = 300 * time.Microsecond
		began := time.Now()
		n, errno := p.wait(int64(most))
		if took := time.Since(began); n != 0 || errno == 0 && took < most {
			t.Errorf("fine %v: %d connections after %v, %v", fine, n, took, errno)
		}
	}
}

// A socket that it was not told of was empty when it asked; or when it had waited, if
// it was told of none. Of more than it can be told of at a time nothing is known.
func TestPollerKnowsWhenSocketsWereEmpty(t *testing.T) {
	for n, want := range map[int]int64{0: 105, 1: 100, batch - 1: 100, batch: 1} {
		p := &thread{empty: 1}
		if p.served(n, 100, 5); p.empty != want {
			t.Errorf("%d served: empty at %d, want %d", n, p.empty, want)
		}
	}
}

// It gathers when much comes: to the end of the period, and not when more is
// waiting already.
func TestPollerGathers(t *testing.T) {
	const began = int64(1e18)
	const took = 300 * time.Microsecond
	for _, tt := range []struct {
		name   string
		served int // in a tenth of a second
		active int
		ends   int // that somebody waits for
		n      int // in this batch
		took   time.Duration
		merged time.Duration // before
		want   time.Duration
	}{
		{"thin", 90, 90, 0, 5, took, time.Hour, 0},
		{"gaps of 50 ms", 1500, 750, 50, 20, took, time.Hour, gatherMost - took},
		{"gaps of 20 ms", 1500, 300, 50, 20, took, time.Hour, 2*time.Millisecond - took},
		{"gaps of 5 ms", 1500, 75, 50, 20, took, time.Hour, 0},
		{"some merged", 1500, 750, 50, 20, took / 3, time.Second, closeTime - took/3},
		{"short answers", 1500, 750, 1000, 20, took, time.Hour, 0},
		{"full batch", 1500, 750, 50, batch, took, time.Hour, 0},
		{"slow batch", 1500, 750, 50, 20, 5 * time.Millisecond, time.Hour, 0},
		{"clock set back", 1500, 750, 50, 20, -time.Hour, time.Hour, gatherMost},
	} {
		p := &thread{now: began, merged: began - int64(tt.merged)}
		p.gathering = gathering{since: began - int64(gatherCount), served: tt.served, active: tt.active, ended: tt.ends, awaited: tt.ends}
		p.judge(p.now)
		if got := p.pause(tt.n, began+int64(tt.took)); got.Round(10*time.Microsecond) != tt.want {
			t.Errorf("%s: it sleeps %v, want %v", tt.name, got, tt.want)
		}
	}
}

// What follows the last token of an answer at once does not make its gaps shorter;
// and where nothing waits for the end of answers, they may be short.
func TestShortAnswersGather(t *testing.T) {
	g := gathering{served: 500, quick: 250, active: 40, ended: 100}
	if got := g.pays(gatherCount); got != 1600*time.Microsecond {
		t.Errorf("a period of %v, want a tenth of 16 ms", got)
	}
	g.awaited = g.ended
	if got := g.pays(gatherCount); got != 0 {
		t.Errorf("a period of %v where the ends are waited for", got)
	}
	g = gathering{served: 500, quick: 500, active: 40, ended: 1}
	if got := g.pays(gatherCount); got != 0 {
		t.Errorf("a period of %v where tokens come right behind each other", got)
	}
}

// A connection counts once, however often it was served.
func TestGatheringCounts(t *testing.T) {
	g := gathering{since: 1}
	var a, b counted
	for i, c := range []*counted{&a, &a, &b, &a} {
		g.count(c, int64(1+i)*int64(gatherTime))
	}
	g.count(&a, 4*int64(gatherTime)+1)
	if g.served != 5 || g.active != 2 || g.quick != 1 {
		t.Errorf("%d served, %d active, %d quick, want 5, 2 and 1", g.served, g.active, g.quick)
	}
	g.judge(int64(gatherCount) / 2)
	if g.served != 5 {
		t.Error("it judged too soon")
	}
	g.judge(int64(gatherCount) * 2)
	if g.count(&a, int64(gatherCount)*2); g.served != 1 || g.active != 1 {
		t.Errorf("anew: %d served, %d active, want 1 and 1", g.served, g.active)
	}
}

// Connections are spread over as many threads as they need and the machine has
// cores to spare for, and a thread ends with its last connection.
func TestPollersShareConnections(t *testing.T) {
	ps := pollers{most: 4}
	var taken []*poller
	var conns []*polled
	for range perPoller * (ps.most + 1) {
		p, err := ps.least()
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, new(polled))
		if err := p.sit(conns[len(taken)]); err != nil {
			t.Fatal(err)
		}
		if taken = append(taken, p); len(taken) == perPoller && len(ps.all) != 1 {
			t.Errorf("%d threads for %d connections", len(ps.all), len(taken))
		}
	}
	if len(ps.all) != ps.most {
		t.Errorf("%d threads, want %d", len(ps.all), ps.most)
	}
	for i, p := range ps.all {
		if n, want := p.load(), len(taken)/len(ps.all); n != want {
			t.Errorf("thread %d has %d connections, want %d", i, n, want)
		}
	}
	for i, p := range taken {
		p.rise(conns[i])
	}
	ps.close()
	for _, p := range ps.all {
		waitUntil(t, "the thread has ended", func() bool { // which closes the bell last
			_, err := p.bell.Stat()
			return errors.Is(err, os.ErrClosed)
		})
	}
}

// What came together came after the socket was last seen empty, and that was before
// the first of it was written, however late the reader is.
func TestPolledKnowsWhenItWasEmpty(t *testing.T) {
	c, peer := pair(t, false)
	receive := func(want int) stamp {
		t.Helper()
		n, at, err := c.receive(make([]byte, 100))
		if n != want || err != nil {
			t.Fatal(n, err)
		}
		return at
	}
	peer.Write([]byte("first"))
	receive(5)
	awaitChange(&c.poller.empty)
	before := now()
	peer.Write([]byte("prompt"))
	if s := receive(6); emptyAt(s) > before {
		t.Errorf("it cannot have been empty %d ns after it was written to", emptyAt(s)-before)
	}
	for name, tt := range map[string]struct {
		hold    func() (goOn func())
		between func()
	}{
		"held up": {func() func() { return holdUp(c.poller) }, func() {}},
		"hidden":  {func() func() { c.hide(0); return c.look }, func() { awaitChange(&c.poller.empty) }}, // the poller looks, but not at this one
	} {
		goOn := tt.hold()
		before := now()
		deliver(t, peer, c, "one")
		tt.between()
		second := now()
		deliver(t, peer, c, "two")
		goOn()
		if s := receive(6); emptyAt(s) > before || s.at < second {
			t.Errorf("%s: written at %d and %d, but said to have come by %d, and the socket to be empty at %d", name, before, second, s.at, emptyAt(s))
		}
	}
}

func TestSeveralEvents(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "x": false,
		chunk("data: x\n\n"):                        false,
		chunk("data: x\n\n") + chunk("data: y\n\n"): true,
		chunk("data: x\n\n") + "0\r\n\r\n":          false,
		chunk("{}\n") + chunk("{}\n"):               true,
		chunk("data: x\n\ndata: y\n\n"):             true,
		chunk("a: xy\n\ndata: y\n\n"):               true,
		chunk("event: x\ndata: y\n\n"):              false,
		chunk("data: x\r\n\r\n"):                    false,
		chunkedHead + chunk("data: x\n\n"):          false,
		"\x17\x03\x03\x00\x02ab":                    false,
		"\x17\x03\x03\x00\x02ab\x17":                true,
	} {
		if got := several([]byte(text)); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// Events that come merged are known to be that when another follows: as a rule those
// that end an answer do, and that is no reason to look more often.
func TestWhatFollowsMergedEvents(t *testing.T) {
	event := chunk("data: x\n\n")
	for name, tc := range map[string]struct {
		comes []string
		want  bool
	}{
		"one by one":        {[]string{chunkedHead, event, event, "0\r\n\r\n"}, false},
		"in the midst":      {[]string{event, event + event, event}, true},
		"the end":           {[]string{event, event + event + "0\r\n\r\n"}, false},
		"just before":       {[]string{event, event + event, "0\r\n\r\n", event}, false},
		"the answer before": {[]string{event, event + event, chunkedHead + event, event}, false},
	} {
		p, s := &thread{now: 1}, seat{sitter: sitter{fd: -1}}
		for _, text := range tc.comes {
			p.compare(&s, &arrival{at: 1}, []byte(text))
		}
		if got := p.merged != 0; got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// Events that one segment brought came when it did. Those of several that lay in the
// socket together may have come at any time since that was empty.
func TestEventsOfOneSegmentHaveItsTime(t *testing.T) {
	event := chunk("data: x\n\n")
	type step struct {
		writes []string
		exact  bool
	}
	head := step{[]string{chunkedHead}, true}
	one := step{[]string{event + event}, true}
	merged := step{[]string{event, event}, false}
	for name, steps := range map[string][]step{
		"one write":              {head, one, one, one},
		"one chunk":              {head, {[]string{chunk("data: x\n\ndata: y\n\n")}, true}, one},
		"one TLS record":         {{[]string{"\x17\x03\x03\x00\x02ab"}, true}, {[]string{"\x17\x03\x03\x00\x02", "ab"}, true}},
		"two TLS records":        {{[]string{"\x17\x03\x03\x00\x02ab", "\x17\x03\x03\x00\x02ab"}, false}},
		"head and events":        {{[]string{chunkedHead + event + event}, true}, one},
		"head and event merged":  {{[]string{chunkedHead, event + event}, false}, one},
		"two writes":             {head, merged, one, merged, merged, one},
		"one write behind half":  {head, {[]string{event[:7], event[7:] + event}, false}, one},
		"several beside one":     {head, {[]string{event + event, event}, false}, one},
		"halves merged before":   {head, {[]string{event[:7], event[7:]}, false}, {one.writes, false}, one},
		"more than one can take": {head, {[]string{chunk(strings.Repeat("data: x\n\n", 40_000)) + event}, false}, one},
	} {
		c, peer := pair(t, false)
		for i, s := range steps {
			goOn := holdUp(c.poller)
			size := 0
			for _, w := range s.writes {
				deliver(t, peer, c, w)
				size += len(w)
			}
			goOn()
			var last stamp
			for buf := make([]byte, 1<<20); size > 0; {
				n, at, err := c.receive(buf)
				if err != nil {
					t.Fatal(err)
				}
				size, last = size-n, at
			}
			if exact := last.since == 1; exact != s.exact {
				t.Errorf("%s: step %d is exact: %v, since %v", name, i, exact, time.Duration(last.since))
			}
		}
	}
}

// That something came in a single segment is not said where a receive ended within
// one, nor on the ground of a time at which something lay in the socket.
func TestAloneIsNeverWrong(t *testing.T) {
	for script, want := range map[string]bool{
		"wr":       true,
		"wrwr":     true,
		"wwr":      false,
		"wwhr":     false,
		"wwr?wr":   true,
		"wrw?wr":   false,
		"wrw?r?wr": true,
	} {
		c, peer := pair(t, false)
		c.hide(0) // from its poller
		th, s, a := new(thread), &seat{sitter: sitter{fd: int32(c.fd)}}, new(arrival)
		th.init(c.poller.epoll, -1)
		alone := false
		for _, step := range script + "?" {
			switch step {
			case 'w': // writes 20 bytes, which come
				deliver(t, peer, c, strings.Repeat("x", 20))
			case 'h': // receives one and a half of these
				th.most = 30
				th.receive(s, 0, a)
			case 'r': // receives all
				th.most = receiveMost
				th.receive(s, 0, a)
			case '?':
				alone = th.alone(s)
			}
		}
		if alone != want {
			t.Errorf("%s: alone %v, want %v", script, alone, want)
		}
	}
}

// Clocks share their threads, and these go on until the last clock is closed: with
// many servers there would be too many.
func TestClocksShareThreads(t *testing.T) {
	one, other := newKernelClock(), newKernelClock()
	if one == nil || other == nil {
		t.Fatal("no kernel clock")
	}
	ps := one.pollers
	if other.pollers != ps {
		t.Error("each has its own")
	}
	users := ps.users
	one.close()
	c, peer := pairOf(t, other, false)
	if _, err := peer.Write([]byte("hi")); err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 10)
	if n, _, err := c.receive(p); string(p[:n]) != "hi" || err != nil {
		t.Errorf("%q, %v", p[:n], err)
	}
	c.Close()
	peer.Close()
	other.close()
	if ps.users != users-2 || ps.users == 0 && common.all == ps {
		t.Errorf("%d clocks are left of %d, and these are common: %v", ps.users, users, common.all == ps)
	}
}
