package transport

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
)

// The thread that receives asks Go for no memory, however much a connection keeps: it
// would have to help with collecting garbage.
func TestTakingDoesNotAllocate(t *testing.T) {
	b := new(boxes)
	c := &polled{poller: &poller{boxes: b}}
	p := bytes.Repeat([]byte("x"), 200)
	var kept []byte
	if n := testing.AllocsPerRun(100, func() {
		c.size = 0 // as if it were new, and all boxes were in use
		b.returned.Store(nil)
		clear(b.free[:])
		for len(c.data) < holdBytes {
			c.take(p, stamp{})
		}
		kept = c.data
		c.done(c.all())
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if !bytes.Equal(kept, bytes.Repeat([]byte("x"), len(kept))) || len(kept) < holdBytes {
		t.Errorf("kept %d bytes: %q", len(kept), kept)
	}
}

// What does not fit into the largest box is kept as well, and boxes come back.
func TestBoxesGrow(t *testing.T) {
	b := new(boxes)
	c := &polled{poller: &poller{boxes: b}}
	for range 3 {
		var want []byte
		for i := range 300 {
			p := bytes.Repeat([]byte{byte(i)}, i)
			want = append(want, p...)
			c.take(p, stamp{at: int64(i)})
		}
		p := c.all()
		if !bytes.Equal(p.data, want) || len(p.segments) != 300 || p.segments[299].at != 299 || p.segments[299].end != len(want) {
			t.Errorf("%d bytes of %d, %d segments", len(p.data), len(want), len(p.segments))
		}
		c.done(p)
	}
	b.collect()
	for size, one := range b.free {
		if one == nil || one.size != size || one.next != nil || cap(one.data) < smallestBox<<size/2 {
			t.Errorf("size %d: %+v; want one box", size, one)
		}
	}
}

// A box belongs to one connection at a time.
func TestBoxesAreShared(t *testing.T) {
	b := new(boxes)
	out := make(chan *box, 64)
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for one := range out {
				if text := string(one.data[:4]); text != "mine" {
					t.Errorf("it holds %q", text)
				}
				copy(one.data[:4], "free")
				b.put(one)
			}
		})
	}
	for i := range 20_000 {
		one := b.take(i % boxSizes)
		if text := string(one.data[:4]); text != "free" && text != "\x00\x00\x00\x00" {
			t.Fatalf("one that was taken holds %q", text)
		}
		copy(one.data[:4], "mine")
		out <- one
	}
	close(out)
	readers.Wait()
	b.collect()
	n := 0
	for _, one := range b.free {
		for ; one != nil; one = one.next {
			n++
		}
	}
	if n == 0 || n > boxSizes*(64+4+1) {
		t.Errorf("%d boxes were made, more than there can be in use", n)
	}
}

// A connection that is in use holds up no other, and loses nothing.
func TestConnectionInUseHoldsUpNoOther(t *testing.T) {
	clock := newKernelClock()
	if clock == nil {
		t.Fatal("no kernel clock")
	}
	clock.pollers.most = 1
	used, itsPeer := pairOf(t, clock, false)
	other, otherPeer := pairOf(t, clock, false)
	p := make([]byte, 100)
	used.mu.Lock()
	itsPeer.Write([]byte("one"))
	time.Sleep(5 * time.Millisecond) // the poller has met it
	otherPeer.Write([]byte("two"))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if n, _, err := other.receive(p); string(p[:n]) != "two" || err != nil {
			t.Errorf("%q, %v", p[:n], err)
		}
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Error("the other waits")
	}
	used.mu.Unlock()
	<-done
	if n, _, err := used.receive(p); string(p[:n]) != "one" || err != nil {
		t.Errorf("%q, %v", p[:n], err)
	}
}

// A connection that is closed gives its box back, and what came can still be read.
func TestClosedGivesItsBoxBack(t *testing.T) {
	c, peer := pair(t, true)
	const event = "7\r\ndata: x\n\r\n"
	peer.Write([]byte(event))
	for c.mu.Lock(); c.unread() == 0; c.mu.Lock() { // it is held
		c.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
	kept := c.box
	c.mu.Unlock()
	c.Close()
	if back := c.poller.boxes.returned.Load(); back != kept {
		t.Errorf("%p was given back, want %p", back, kept)
	}
	copy(kept.data[:len(event)], strings.Repeat("?", len(event))) // as another connection would
	p := make([]byte, 100)
	if n, _, err := c.receive(p); string(p[:n]) != event || err != nil {
		t.Errorf("%q, %v", p[:n], err)
	}
}
