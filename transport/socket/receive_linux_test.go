package socket

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tacho-bench/tacho/internal/must"
)

// Arrivals leave the ring in order, and their bytes do not change before.
func TestRing(t *testing.T) {
	const most = 16
	r := newRing(8, 5*most, most)
	rnd := rand.New(rand.NewPCG(1, 2))
	var numbers []byte // the number of each arrival, which is also the value of its bytes
	sorted := func() {
		a := *r.at(r.tail)
		for _, b := range r.bytes[a.first : a.first+a.size] {
			if b != numbers[0] {
				t.Fatalf("arrival %d has bytes of another", r.tail)
			}
		}
		numbers = numbers[1:]
		r.tail++
	}
	full := 0
	for range 100_000 {
		if rnd.IntN(100) < 45 && len(numbers) > 0 {
			sorted()
			continue
		}
		if !r.room() {
			if full++; len(numbers) == 0 {
				t.Fatal("an empty ring has no room")
			}
			sorted()
			continue
		}
		a := r.nextArrival()
		*a = arrival{size: rnd.IntN(most + 1)}
		for i := range a.size {
			r.bytes[r.next+i] = byte(r.head)
		}
		numbers = append(numbers, byte(r.head))
		r.put(a)
	}
	if full == 0 {
		t.Error("it was never full")
	}
}

// clockOf returns a clock whose poller uses r.
func clockOf(t *testing.T, r ring) *Clock {
	t.Helper()
	return clockWith(t, func(p *poller) { p.ring = r })
}

// clockWith returns a clock whose poller was changed before it started.
func clockWith(t *testing.T, change func(*poller)) *Clock {
	t.Helper()
	clock := NewClock()
	if clock == nil {
		t.Fatal("no kernel clock")
	}
	p := must.Get(newPoller())(t)
	change(p)
	clock.pollers.release()
	clock.pollers = &pollers{most: 1, all: []*poller{p}}
	p.start()
	t.Cleanup(clock.Close)
	return clock
}

// A flood through a full ring loses nothing and keeps its order, during garbage
// collections and stops of the world.
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

// A connection that reuses the file descriptor and the slot of a closed connection gets
// none of its bytes.
func TestSlotsAreReused(t *testing.T) {
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

// stall occupies the only P (Go's scheduler) until the receive thread received each of
// two writes to a socket. It gives up after 30 s and reports whether the thread
// received both.
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

// The thread receives while no goroutine can run, so that each write has its own receive.
func TestReceivesWithoutAP(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	c, peer := pair(t, false)
	if c.poller.ordinary {
		t.Skip("the ordinary receiver needs a P")
	}
	raw := must.Get(peer.SyscallConn())(t)
	awaitChange(&c.poller.now) // the thread is running
	received := false
	raw.Control(func(fd uintptr) { received = stall(fd, &[4]byte{'t', 'e', 'x', 't'}, &c.slot.received) })
	if !received {
		t.Fatal("it did not receive")
	}
	for range 2 {
		if n, _, err := c.Receive(make([]byte, 8)); n != 4 || err != nil {
			t.Errorf("got %d bytes in one receive, %v; want 4", n, err)
		}
	}
}

// Repeated stops of the world lose no bytes.
func TestStoppedWorld(t *testing.T) {
	c, peer := pair(t, false)
	for i := range 50 {
		want := fmt.Appendf(nil, "%d\n", i)
		must.Get(peer.Write(want))(t)
		runtime.GC()
		got := make([]byte, len(want))
		if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("got %q, %v", got, err)
		}
	}
}

// The ordinary receiver blocks in a system call known to the runtime, in every build. The
// stack of its goroutine proves it: in a raw system call the goroutine would keep its P,
// and the runtime could not read its stack.
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
	must.Get(peer.Write([]byte("text")))(t)
	if n, s, err := c.Receive(make([]byte, 8)); n != 4 || !s.Kernel || err != nil {
		t.Errorf("got %d bytes, by the kernel's clock: %v, %v", n, s.Kernel, err)
	}
}

// TACHO_RECEIVER=ordinary selects the ordinary receiver. Other values are errors.
func TestReceiverVariable(t *testing.T) {
	for _, test := range []struct {
		value    string
		ordinary bool
		err      string
	}{
		{"", !canRunWithoutP, ""},
		{"ordinary", true, ""},
		{"free", false, `"free" is not a receiver: unset TACHO_RECEIVER, or set it to ordinary`},
	} {
		t.Setenv(ReceiverVariable, test.value)
		err := CheckReceiver()
		if err != nil || test.err != "" {
			if err == nil || err.Error() != test.err {
				t.Errorf("%q: %v; want %s", test.value, err, test.err)
			}
			continue
		}
		p := must.Get(newPoller())(t)
		if p.ordinary != test.ordinary {
			t.Errorf("%q: ordinary: %v; want %v", test.value, p.ordinary, test.ordinary)
		}
		p.closing = true
		p.endIfDone()
		p.start() // ends immediately
	}
}

// If nothing waits for the end of a response, the end is sorted after a short delay,
// together with others. If something waits, it is sorted immediately.
func TestEndsThatNothingWaitsFor(t *testing.T) {
	th := &thread{now: 1e18, due: never, wakeup: -1}
	woken := func() bool {
		th.wakePending = 0
		th.wakeIfDue()
		return th.wakePending != 0
	}
	end, event, head := []byte("0\r\n\r\n"), []byte(chunk("data: x\n\n")), []byte(chunkedHead)
	const relaxed = slotPlainEvents | slotRelaxedEnd
	th.schedule(relaxed, end)
	if woken() {
		t.Error("an end that nothing waits for caused an immediate wakeup")
	}
	th.now += int64(endDelay)
	if !woken() || woken() {
		t.Error("want one wakeup after endDelay")
	}
	for range maxEnds - 1 {
		th.schedule(relaxed, end)
	}
	if woken() {
		t.Error("fewer than maxEnds caused a wakeup")
	}
	if th.schedule(relaxed, end); !woken() {
		t.Error("no wakeup for maxEnds")
	}
	if th.schedule(slotPlainEvents, end); !woken() {
		t.Error("no immediate wakeup for an awaited end")
	}
	if th.schedule(0, event); !woken() {
		t.Error("no immediate wakeup for bytes that are not plain events")
	}
	th.schedule(slotPlainEvents, event)
	th.schedule(slotPlainEvents, head)
	if woken() {
		t.Error("an event and a head caused a wakeup")
	}
	if th.now += int64(holdTime); !woken() || woken() {
		t.Error("want one wakeup after holdTime")
	}
	for range sortMost {
		th.schedule(slotPlainEvents, event)
	}
	if !woken() {
		t.Error("no wakeup for sortMost arrivals")
	}
}
