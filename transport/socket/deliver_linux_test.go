package socket

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

	"github.com/tacho-bench/tacho/internal/must"
)

// All bytes arrive in both directions at the same time, whatever their number.
func TestConnCarriesEverything(t *testing.T) {
	c, peer := pair(t, true)
	want := bytes.Repeat([]byte("0123456789abcde\n\r\n"), 1<<18) // 4.5 MiB, and parts of it look like events
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
			t.Errorf("the peer got other bytes: %v", err)
		}
	})
	got, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %d bytes of %d, %v", len(got), len(want), err)
	}
	wg.Wait()
}

// A reader that does not read stops the sender, and no byte is lost.
func TestConnPauses(t *testing.T) {
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

// mayHold holds whole events, but not the end of a response or other bytes.
func TestConnHolds(t *testing.T) {
	for text, want := range map[string]bool{
		"9\r\ndata: x\n\n\r\n":                         true,
		"b\r\ndata: x\r\n\r\n\r\n":                     true,
		"5\r\n{..}\n\r\n":                              true,
		"9\r\ndata: x\n\n\r\n0\r\n\r\n":                false, // the end of the response
		"HTTP/1.1 200 OK\r\nX: y\r\n\r\n":              false, // a head without chunked encoding
		"9\r\ndata: x\n\n":                             false, // an incomplete chunk
		"0\r\n\r\n":                                    false,
		"\r\n":                                         false,
		strings.Repeat("x", holdBytes) + "\n\n\r\n":    false, // more than holdBytes
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
		c := &conn{plainEvents: true, data: []byte(text)}
		if got := c.mayHold(); got != want {
			t.Errorf("%q: held %v, want %v", text, got, want)
		}
		c.plainEvents = false
		if c.mayHold() {
			t.Errorf("%q was held although it is not plain events", text)
		}
	}
}

// The reader of a held connection is woken after holdTime, and not before.
func TestHeldConnectionsAreReleased(t *testing.T) {
	const received = int64(1e18)
	p := new(poller)
	c := &conn{poller: p, plainEvents: true}
	c.changed.L = &c.mu
	woken := 0
	c.onReadable = func(bool) { woken++ }
	for i := range int64(2) { // the hold starts with the first
		c.take([]byte(chunk("data: x\n\n")), Stamp{At: received})
		p.wakeOrHold(c, received+i)
	}
	due := received + int64(holdTime)
	p.releaseHeld(due - 1)
	if woken != 0 || !c.held || c.readable() || p.due != due-1+int64(endDelay) {
		t.Errorf("before its time: woken %d times, held %v, due in %v", woken, c.held, time.Duration(p.due-due))
	}
	p.releaseHeld(due)
	if woken != 1 || c.held || !c.readable() || p.due != never {
		t.Errorf("when its time was up: woken %d times, held %v, due at %d", woken, c.held, p.due)
	}
}

func TestConnEnds(t *testing.T) {
	blocked := func(t *testing.T, c *conn, end func()) error {
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
			t.Error("alive is true")
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
	t.Run("blocked write", func(t *testing.T) {
		c, peer := pair(t, true)
		got := make(chan error, 1)
		go func() { _, err := c.Write(make([]byte, 64<<20)); got <- err }()
		io.ReadFull(peer, make([]byte, 1<<20)) // the write is in progress
		c.Close()
		if err := <-got; !errors.Is(err, net.ErrClosed) {
			t.Errorf("error %v", err)
		}
	})
	for name, stop := range map[string]func(c *conn){
		"events before a deadline":   func(c *conn) { c.SetReadDeadline(time.Now()) },
		"events before it is closed": func(c *conn) { c.Close() },
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
				return c.unread() > 0 || c.unsorted() && inRing
			})
			stop(c)
			if b := <-got; b != "data: x\n\n\r\n" {
				t.Errorf("the reader got %q", b)
			}
		})
	}
	t.Run("a flood before it is closed", func(t *testing.T) {
		var c *conn
		for other := -1; c == nil || other != c.fd; { // or another goroutine got the file descriptor
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
			must.Do(t, err)
			// other gets the file descriptor of the closed socket
			raw.Control(func(fd uintptr) { other, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, c.fd) })
			must.Do(t, err)
			defer unix.Close(other)
		}
		if n, err := io.Copy(io.Discard, c); n == 0 || !errors.Is(err, net.ErrClosed) {
			t.Errorf("%d bytes, %v", n, err)
		}
		if err := unix.EpollCtl(c.poller.epoll, unix.EPOLL_CTL_DEL, c.fd, nil); !errors.Is(err, unix.ENOENT) {
			t.Errorf("the poller watches the reused file descriptor: %v", err)
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

// The thread polls until a held connection is due, or for a fraction of the silence.
func TestPollerWaits(t *testing.T) {
	for left, want := range map[time.Duration]time.Duration{
		-time.Second: 0, 0: 0, 1: 1, 300 * time.Microsecond: 300 * time.Microsecond, time.Hour: maxPollInterval,
	} {
		p := &thread{now: 1e18} // after a long silence
		p.due = p.now + int64(left)
		if got := time.Duration(p.timeout()); got != want {
			t.Errorf("due in %v: it waits %v, want %v", left, got, want)
		}
	}
	for silence, want := range map[time.Duration]time.Duration{
		0: mergedPollInterval, 20 * time.Millisecond: mergedPollInterval, 300 * time.Millisecond: 3 * time.Millisecond, time.Hour: maxPollInterval,
	} {
		p := &thread{now: 1e18, due: never, lastReceive: 1e18 - int64(silence), lastMerged: 1e18 - int64(time.Second)}
		if got := time.Duration(p.timeout()); got != want {
			t.Errorf("after %v of silence it waits %v, want %v", silence, got, want)
		}
		p.lastMerged -= int64(mergedWindow)
		if got := time.Duration(p.timeout()); got != max(want, minPollInterval) {
			t.Errorf("after %v of silence the timeout is %v without merged receives", silence, got)
		}
	}
}

// A poll lasts for its timeout, even if the kernel counts milliseconds. A shorter poll
// would turn into a busy loop in the last millisecond.
func TestPollerWaitsLongEnough(t *testing.T) {
	p := must.Get(newPoller())(t)
	defer func() { _ = errors.Join(unix.Close(p.epoll), p.wakeup.Close()) }()
	for _, hasPwait2 := range []bool{p.hasPwait2, false} {
		p.hasPwait2 = hasPwait2
		const most = 300 * time.Microsecond
		began := time.Now()
		n, errno := p.wait(int64(most))
		if took := time.Since(began); n != 0 || errno == 0 && took < most {
			t.Errorf("fine %v: %d connections after %v, %v", hasPwait2, n, took, errno)
		}
	}
}

// A socket that epoll did not report was empty when the poll began, or at its timeout if
// epoll reported none. If a batch is full, nothing is known.
func TestPollerKnowsWhenSocketsWereEmpty(t *testing.T) {
	for n, want := range map[int]int64{0: 105, 1: 100, batch - 1: 100, batch: 1} {
		p := &thread{empty: 1}
		if p.noteEmpty(n, 100, 5); p.empty != want {
			t.Errorf("%d served: empty at %d, want %d", n, p.empty, want)
		}
	}
}

// The thread gathers to the end of the period if segments are frequent, but not if a batch
// is full.
func TestPollerGathers(t *testing.T) {
	const began = int64(1e18)
	const took = 300 * time.Microsecond
	for _, tt := range []struct {
		name   string
		served int // per 100 ms
		active int
		ends   int // awaited
		n      int // in this batch
		took   time.Duration
		merged time.Duration // time since the last merged receive
		want   time.Duration
	}{
		{"thin", 90, 90, 0, 5, took, time.Hour, 0},
		{"gaps of 50 ms", 1500, 750, 50, 20, took, time.Hour, gatherMost - took},
		{"gaps of 20 ms", 1500, 300, 50, 20, took, time.Hour, 2*time.Millisecond - took},
		{"gaps of 5 ms", 1500, 75, 50, 20, took, time.Hour, 0},
		{"some merged", 1500, 750, 50, 20, took / 3, time.Second, mergedPollInterval - took/3},
		{"short answers", 1500, 750, 1000, 20, took, time.Hour, 0},
		{"full batch", 1500, 750, 50, batch, took, time.Hour, 0},
		{"slow batch", 1500, 750, 50, 20, 5 * time.Millisecond, time.Hour, 0},
		{"clock set back", 1500, 750, 50, 20, -time.Hour, time.Hour, gatherMost},
	} {
		p := &thread{now: began, lastMerged: began - int64(tt.merged)}
		p.gathering = gathering{since: began - int64(gatherCount), served: tt.served, active: tt.active, ended: tt.ends, awaited: tt.ends}
		p.update(p.now)
		if got := p.pause(tt.n, began+int64(tt.took)); got.Round(10*time.Microsecond) != tt.want {
			t.Errorf("%s: it sleeps %v, want %v", tt.name, got, tt.want)
		}
	}
}

// Segments right after the last token of a response do not count as short gaps. If nothing
// waits for the ends of responses, responses may be short.
func TestShortAnswersGather(t *testing.T) {
	g := gathering{served: 500, quick: 250, active: 40, ended: 100}
	if got := g.bestPeriod(gatherCount); got != 1600*time.Microsecond {
		t.Errorf("a period of %v, want a tenth of 16 ms", got)
	}
	g.awaited = g.ended
	if got := g.bestPeriod(gatherCount); got != 0 {
		t.Errorf("a period of %v with awaited ends", got)
	}
	g = gathering{served: 500, quick: 500, active: 40, ended: 1}
	if got := g.bestPeriod(gatherCount); got != 0 {
		t.Errorf("a period of %v with tokens in quick succession", got)
	}
}

// A connection counts once, however many receives it had.
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
	g.update(int64(gatherCount) / 2)
	if g.served != 5 {
		t.Error("it judged too soon")
	}
	g.update(int64(gatherCount) * 2)
	if g.count(&a, int64(gatherCount)*2); g.served != 1 || g.active != 1 {
		t.Errorf("anew: %d served, %d active, want 1 and 1", g.served, g.active)
	}
}

// Connections are spread over as many threads as they need, up to the maximum. A thread
// ends after its last connection.
func TestPollersShareConnections(t *testing.T) {
	ps := pollers{most: 4}
	var taken []*poller
	var conns []*conn
	for range connsPerPoller * (ps.most + 1) {
		p := must.Get(ps.leastLoaded())(t)
		conns = append(conns, new(conn))
		must.Do(t, p.acquireSlot(conns[len(taken)]))
		if taken = append(taken, p); len(taken) == connsPerPoller && len(ps.all) != 1 {
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
		p.releaseSlot(conns[i])
	}
	ps.close()
	for _, p := range ps.all {
		waitUntil(t, "the thread has ended", func() bool { // the thread closes the eventfd last
			_, err := p.wakeup.Stat()
			return errors.Is(err, os.ErrClosed)
		})
	}
}

// Since points to a time at which the socket was empty: before the first of the merged
// bytes was written, however late the reader is.
func TestConnKnowsWhenItWasEmpty(t *testing.T) {
	c, peer := pair(t, false)
	receive := func(want int) Stamp {
		t.Helper()
		n, at, err := c.Receive(make([]byte, 100))
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
		"held up": {func() func() { return Stall(c) }, func() {}},
		"hidden":  {func() func() { c.Prepare(1, false); return c.Watch }, func() { awaitChange(&c.poller.empty) }}, // the poller polls, but does not watch this socket
	} {
		goOn := tt.hold()
		before := now()
		deliver(t, peer, c, "one")
		tt.between()
		second := now()
		deliver(t, peer, c, "two")
		goOn()
		if s := receive(6); emptyAt(s) > before || s.At < second {
			t.Errorf("%s: written at %d and %d, but the stamp is %d, with an empty socket at %d", name, before, second, s.At, emptyAt(s))
		}
	}
}

// Merged events count as merged once another event follows. The end of a response usually
// arrives merged, and is no reason to poll more often.
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
		p, s := &thread{now: 1}, slot{slotState: slotState{fd: -1}}
		for _, text := range tc.comes {
			p.noteMerging(&s, &arrival{at: 1}, []byte(text))
		}
		if got := p.lastMerged != 0; got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// Events of one segment have the time of that segment. If several segments merged in the
// socket, their events may have arrived at any time since the socket was empty.
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
			goOn := Stall(c)
			size := 0
			for _, w := range s.writes {
				deliver(t, peer, c, w)
				size += len(w)
			}
			goOn()
			var last Stamp
			for buf := make([]byte, 1<<20); size > 0; {
				n, at, err := c.Receive(buf)
				must.Do(t, err)
				size, last = size-n, at
			}
			if exact := last.Since == 1; exact != s.exact {
				t.Errorf("%s: step %d is exact: %v, since %v", name, i, exact, time.Duration(last.Since))
			}
		}
	}
}

// singleSegment is false if a receive ended within a segment, or if the socket was not
// empty at the comparison.
func TestSingleSegmentIsNeverWrong(t *testing.T) {
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
		c.Prepare(1, false) // stop watching the socket
		th, s, a := new(thread), &slot{slotState: slotState{fd: int32(c.fd)}}, new(arrival)
		th.init(c.poller.epoll, -1)
		singleSegment := false
		for _, step := range script + "?" {
			switch step {
			case 'w': // write 20 bytes and wait until they arrive
				deliver(t, peer, c, strings.Repeat("x", 20))
			case 'h': // receive one and a half writes
				th.most = 30
				th.receive(s, 0, a)
			case 'r': // receive everything
				th.most = receiveMost
				th.receive(s, 0, a)
			case '?':
				singleSegment = th.singleSegment(s)
			}
		}
		if singleSegment != want {
			t.Errorf("%s: alone %v, want %v", script, singleSegment, want)
		}
	}
}

// Clocks share their threads until the last clock is closed, because with many servers
// separate threads would be too many.
func TestClocksShareThreads(t *testing.T) {
	one, other := NewClock(), NewClock()
	if one == nil || other == nil {
		t.Fatal("no kernel clock")
	}
	ps := one.pollers
	if other.pollers != ps {
		t.Error("each has its own")
	}
	users := ps.users
	one.Close()
	c, peer := pairOf(t, other, false)
	must.Get(peer.Write([]byte("hi")))(t)
	p := make([]byte, 10)
	if n, _, err := c.Receive(p); string(p[:n]) != "hi" || err != nil {
		t.Errorf("%q, %v", p[:n], err)
	}
	c.Close()
	peer.Close()
	other.Close()
	if ps.users != users-2 || ps.users == 0 && shared.all == ps {
		t.Errorf("%d clocks are left of %d, and these are common: %v", ps.users, users, shared.all == ps)
	}
}
