package transport

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Arrivals leave a ring in order, and their bytes stay as they are until then.
func TestRing(t *testing.T) {
	const most = 16
	r := newRing(8, 5*most, most)
	rnd := rand.New(rand.NewPCG(1, 2))
	var lies []byte // the bytes of each arrival are its number
	sorted := func() {
		a := *r.number(r.tail)
		for _, b := range r.bytes[a.first : a.first+a.size] {
			if b != lies[0] {
				t.Fatalf("arrival %d has bytes of another", r.tail)
			}
		}
		lies = lies[1:]
		r.tail++
	}
	full := 0
	for range 100_000 {
		if rnd.IntN(100) < 45 && len(lies) > 0 {
			sorted()
			continue
		}
		if !r.room() {
			if full++; len(lies) == 0 {
				t.Fatal("there is no room though nothing lies there")
			}
			sorted()
			continue
		}
		a := r.last()
		*a = arrival{size: rnd.IntN(most + 1)}
		for i := range a.size {
			r.bytes[r.next+i] = byte(r.head)
		}
		lies = append(lies, byte(r.head))
		r.put(a)
	}
	if full == 0 {
		t.Error("it was never full")
	}
}

// clockOf is a clock whose poller has a ring.
func clockOf(t *testing.T, r ring) *kernelClock {
	t.Helper()
	return clockWith(t, func(p *poller) { p.ring = r })
}

// clockWith is a clock whose poller was changed before it started.
func clockWith(t *testing.T, change func(*poller)) *kernelClock {
	t.Helper()
	clock := newKernelClock()
	if clock == nil {
		t.Fatal("no kernel clock")
	}
	p, err := newPoller()
	if err != nil {
		t.Fatal(err)
	}
	change(p)
	clock.pollers.leave()
	clock.pollers = &pollers{most: 1, all: []*poller{p}}
	p.start()
	t.Cleanup(clock.close)
	return clock
}

// pairOf is a polled connection of a clock and its other end.
func pairOf(t *testing.T, clock *kernelClock, mayBeHeld bool) (*polled, net.Conn) {
	t.Helper()
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
	c, err := clock.take(nc, mayBeHeld)
	if err != nil {
		t.Fatal(err)
	}
	c.hide(0)
	c.look() // as if something had been sent
	return c, peer
}

// A flood through a ring that is always full loses nothing, and keeps its order;
// while garbage is collected and the world is stopped.
func TestFloodThroughATinyRing(t *testing.T) {
	clock := clockOf(t, newRing(4, 300, 100))
	stop := make(chan struct{})
	var storm, flood sync.WaitGroup
	storm.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	})
	for i := range 8 {
		c, peer := pairOf(t, clock, i%2 == 0)
		var b bytes.Buffer
		for n := range 2000 {
			b.WriteString(chunk(fmt.Sprintf("data: %d of %d\n\n", n, i)))
		}
		want := b.Bytes()
		flood.Go(func() {
			_, err := io.Copy(peer, &b)
			if err := errors.Join(err, peer.Close()); err != nil {
				t.Error(err)
			}
		})
		flood.Go(func() {
			got, err := io.ReadAll(c)
			if err := errors.Join(err, c.Close()); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes of %d, %v; or they are others", len(got), len(want), err)
			}
		})
	}
	flood.Wait()
	close(stop)
	storm.Wait()
}

// A connection that has the number and the seat of one that was closed while it was
// flooded gets nothing of what was for that.
func TestNumbersAreUsedAgain(t *testing.T) {
	clock := clockOf(t, newRing(64, 1<<20, receiveMost))
	var wg sync.WaitGroup
	numbers := make(chan [2]int, 1000)
	for worker := range 4 {
		wg.Go(func() {
			for i := range 100 {
				c, peer := pairOf(t, clock, false)
				own := strconv.Itoa(worker*100+i) + "\n"
				go func() {
					defer peer.Close()
					for range 1000 {
						if _, err := io.WriteString(peer, own); err != nil {
							return
						}
					}
				}()
				got := make([]byte, len(own)*(1+i%20))
				if _, err := io.ReadFull(c, got); err != nil || strings.ReplaceAll(string(got), own, "") != "" {
					t.Errorf("got %q, %v, and all should be %q", got, err, own)
				}
				numbers <- [2]int{c.fd, int(c.number)}
				c.Close()
			}
		})
	}
	wg.Wait()
	close(numbers)
	seen, again := map[[2]int]bool{}, 0
	for n := range numbers {
		if seen[n] {
			again++
		}
		seen[n] = true
	}
	if again == 0 {
		t.Error("no number was used again")
	}
}

// stall keeps the only P (Go's scheduler) from all else until the thread of a poller
// has received each of two writes to a socket, or half a minute has passed. It says
// whether the thread has.
//
//go:nosplit
//go:norace
func stall(fd uintptr, text *[4]byte, received *uint32) bool {
	for range 2 {
		before := load32(received)
		_, _, _ = syscall.RawSyscall(unix.SYS_WRITE, fd, uintptr(unsafe.Pointer(text)), uintptr(len(text)))
		for end := clock() + 30e9; load32(received) == before; {
			if clock() > end {
				return false
			}
			rest := [2]int{0, 1e6}
			_, _, _ = syscall.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&rest)), 0, 0)
		}
	}
	return true
}

// The thread receives while nothing else of the process can run: both writes have a
// receive of their own.
func TestReceivesWithoutATurn(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	c, peer := pair(t, false)
	if c.poller.ordinary {
		t.Skip("the ordinary receiver needs a P")
	}
	raw, err := peer.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	awaitChange(&c.poller.now) // the thread has begun
	received := false
	raw.Control(func(fd uintptr) { received = stall(fd, &[4]byte{'t', 'e', 'x', 't'}, &c.seat.received) })
	if !received {
		t.Fatal("it did not receive")
	}
	for range 2 {
		if n, _, err := c.receive(make([]byte, 8)); n != 4 || err != nil {
			t.Errorf("%d bytes came together, %v; want 4", n, err)
		}
	}
}

// The world is stopped again and again, and nothing is lost.
func TestStoppedWorld(t *testing.T) {
	c, peer := pair(t, false)
	for i := range 50 {
		want := fmt.Appendf(nil, "%d\n", i)
		if _, err := peer.Write(want); err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		got := make([]byte, len(want))
		if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("got %q, %v", got, err)
		}
	}
}

// The ordinary receiver waits in a system call that the runtime knows of, in every build.
// The stack of its goroutine says so: a goroutine that waits in another one keeps its P, and
// nobody can look at its stack meanwhile.
func TestOrdinaryReceiver(t *testing.T) {
	clock := clockWith(t, func(p *poller) { p.ordinary = true })
	c, peer := pairOf(t, clock, false)
	defer c.Close()
	defer peer.Close()
	waitUntil(t, "the receiver waits", func() bool {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		for stack := range strings.SplitSeq(string(stacks), "\n\n") {
			if strings.Contains(stack, "[syscall") && strings.Contains(stack, "syscall.Syscall6(") && strings.Contains(stack, "receiveOrdinarily(") {
				return true
			}
		}
		return false
	})
	if _, err := peer.Write([]byte("text")); err != nil {
		t.Fatal(err)
	}
	if n, s, err := c.receive(make([]byte, 8)); n != 4 || !s.kernel || err != nil {
		t.Errorf("got %d bytes, by the kernel's clock: %v, %v", n, s.kernel, err)
	}
}

// The variable asks for the ordinary receiver, and no other value is taken.
func TestReceiverVariable(t *testing.T) {
	for _, test := range []struct {
		value    string
		ordinary bool
		err      string
	}{
		{"", !hasFree, ""},
		{"ordinary", true, ""},
		{"free", false, `"free" is not a receiver: unset TACHO_RECEIVER, or set it to ordinary`},
	} {
		t.Setenv(ReceiverVariable, test.value)
		c, err := New(Options{BaseURL: "http://127.0.0.1:1"})
		if c != nil {
			defer c.Close()
		}
		if err != nil || test.err != "" {
			if err == nil || err.Error() != test.err {
				t.Errorf("%q: %v; want %s", test.value, err, test.err)
			}
			continue
		}
		p, err := newPoller()
		if err != nil {
			t.Fatal(err)
		}
		if p.ordinary != test.ordinary {
			t.Errorf("%q: ordinary: %v; want %v", test.value, p.ordinary, test.ordinary)
		}
		p.closing = true
		p.endIfDone()
		p.start() // it ends at once
	}
}
