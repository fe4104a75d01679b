package tap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// open opens a tap, or skips the test where that is not allowed.
func open(t *testing.T, c Config) *Tap {
	t.Helper()
	tap, err := Open(c)
	if errors.Is(err, ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tap.Close)
	return tap
}

// A pair is a connection with both its ends, and what a tap sees at the client's.
type pair struct {
	tap            *Tap
	client, server *net.TCPConn
	seen           *Conn
}

func listen(t *testing.T, host string) *net.TCPListener {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Skipf("no listener at %s: %v", host, err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.(*net.TCPListener)
}

func portOf(a net.Addr) uint16 { return a.(*net.TCPAddr).AddrPort().Port() }

func addrPort(a net.Addr) netip.AddrPort { return a.(*net.TCPAddr).AddrPort() }

func newPair(t *testing.T, host string, c Config) pair {
	t.Helper()
	l := listen(t, host)
	c.Ports = append(c.Ports, portOf(l.Addr()))
	p := pair{tap: open(t, c)}
	p.connect(t, l, new(net.Dialer), host)
	return p
}

// connect connects to l by the address host.
func (p *pair) connect(t *testing.T, l *net.TCPListener, d *net.Dialer, host string) {
	t.Helper()
	nc, err := d.Dial("tcp", netip.AddrPortFrom(netip.MustParseAddr(host), portOf(l.Addr())).String())
	if err != nil {
		t.Fatal(err)
	}
	p.client = nc.(*net.TCPConn)
	if p.server, err = l.AcceptTCP(); err != nil {
		t.Fatal(err)
	}
	p.seen = p.tap.Track(addrPort(nc.LocalAddr()), addrPort(nc.RemoteAddr()))
	if p.seen == nil {
		t.Fatal("the handshake was not seen")
	}
	t.Cleanup(func() {
		p.seen.Release()
		_, _ = p.client.Close(), p.server.Close()
	})
}

// A write is what the writer knows of one of its writes.
type write struct {
	end           uint64
	before, after int64
}

// writeAll writes pieces of some sizes with pauses between them.
func writeAll(t *testing.T, to io.Writer, pause time.Duration, sizes ...int) []write {
	t.Helper()
	var out []write
	end := uint64(0)
	for i, n := range sizes {
		if i > 0 && pause > 0 {
			time.Sleep(pause)
		}
		w := write{before: time.Now().UnixNano()}
		if _, err := to.Write(make([]byte, n)); err != nil {
			t.Error(err)
			return out
		}
		end += uint64(n)
		w.end, w.after = end, time.Now().UnixNano()
		out = append(out, w)
	}
	return out
}

// holdAgainst compares times with what the writer knows. Nothing arrives before
// it is written; half of the times are well within a pause of the write.
func holdAgainst(t *testing.T, s *Stream, writes []write, pause time.Duration) {
	t.Helper()
	var off []int64
	for i, w := range writes {
		_, at, ok := s.At(w.end)
		if !ok || at < w.before {
			t.Fatalf("write %d, %+v: it came at %d, %v", i, w, at, ok)
		}
		off = append(off, at-w.after)
	}
	slices.Sort(off)
	if median := time.Duration(off[len(off)/2]); median > pause/4 {
		t.Errorf("half of the bytes came %v after they were written, or later", median)
	}
}

var hosts = []string{"127.0.0.1", "::1"}

// The client reads nothing until all has come, so that its socket merges all of it.
func TestArrivalsAreTheWritersTimes(t *testing.T) {
	for _, host := range hosts {
		t.Run(host, func(t *testing.T) {
			p := newPair(t, host, Config{})
			const pause = 2 * time.Millisecond
			sizes := make([]int, 60)
			for i := range sizes {
				sizes[i] = 1 + 37*i
			}
			writes := writeAll(t, p.server, pause, sizes...)
			holdAgainst(t, &p.seen.In, writes, pause)
			last := int64(0)
			for _, w := range writes {
				end, at, _ := p.seen.In.At(w.end)
				if end != w.end || at <= last {
					t.Errorf("the segment that ends at %d is said to end at %d, at %d after %d", w.end, end, at, last)
				}
				last = at
			}
			if _, _, ok := p.seen.Out.At(1); ok {
				t.Error("nothing was sent, and it has a time")
			}
		})
	}
}

func TestSendsAreTheWritersTimes(t *testing.T) {
	for _, host := range hosts {
		t.Run(host, func(t *testing.T) {
			p := newPair(t, host, Config{})
			go func() { _, _ = io.Copy(io.Discard, p.server) }()
			const pause = 2 * time.Millisecond
			// 200,000 bytes are several packets, each of many segments.
			writes := writeAll(t, p.client, pause, 100, 1, 200_000, 5000, 5000, 5000, 1, 100)
			holdAgainst(t, &p.seen.Out, writes, pause)
			if end, _, _ := p.seen.Out.At(1); end != 100 {
				t.Errorf("the first packet is said to end at %d", end)
			}
		})
	}
}

// What is written back to back the socket hands on in one piece with one time,
// that of the last segment. The tap has that time, and those of the others.
func TestTapKeepsApartWhatTheSocketMerges(t *testing.T) {
	p := newPair(t, "127.0.0.1", Config{})
	raw, err := p.client.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	_ = raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPING, unix.SOF_TIMESTAMPING_RX_SOFTWARE|unix.SOF_TIMESTAMPING_SOFTWARE)
	})
	if err != nil {
		t.Fatal(err)
	}
	for try := range 20 { // the kernel begins to stamp a little later
		writes := writeAll(t, p.server, 0, 100, 100, 100, 100, 100, 100, 100, 100)
		base := uint64(800 * try)
		time.Sleep(5 * time.Millisecond)
		n, stamp := receive(t, raw)
		if n != 800 {
			t.Fatalf("the socket has %d bytes", n)
		}
		var times []int64
		for _, w := range writes {
			end, at, ok := p.seen.In.At(base + w.end)
			if !ok || end != base+w.end || at < w.before || len(times) > 0 && at <= times[len(times)-1] {
				t.Fatalf("%+v: it came at %d, up to %d, %v", w, at, end, ok)
			}
			times = append(times, at)
		}
		first, last := times[0], times[len(times)-1]
		if stamp != 0 && stamp < last {
			t.Fatalf("the socket's time is %v before the tap's", time.Duration(last-stamp))
		}
		// On the loopback the kernel stamps for the socket a little after the tap.
		if stamp != 0 && stamp-last < (last-first)/4 {
			return
		}
	}
	t.Fatal("the socket's time is never that of the last segment")
}

// receive is one recvmsg, with the kernel's time.
func receive(t *testing.T, raw syscall.RawConn) (n int, stamp int64) {
	t.Helper()
	control := make([]byte, 256)
	var got int
	err := raw.Read(func(fd uintptr) bool {
		var err error
		n, got, _, _, err = unix.Recvmsg(int(fd), make([]byte, 1<<16), control, 0)
		return err == nil
	})
	if err != nil {
		t.Fatal(err)
	}
	messages, err := unix.ParseSocketControlMessage(control[:got])
	if err != nil {
		t.Fatal(err)
	}
	for i := range messages {
		if messages[i].Header.Type == unix.SO_TIMESTAMPING {
			stamp = timespec(messages[i].Data)
		}
	}
	return n, stamp
}

// A new connection by the same ports has nothing of the one before.
func TestPortUsedAgain(t *testing.T) {
	l := listen(t, "127.0.0.1")
	p := pair{tap: open(t, Config{Ports: []uint16{portOf(l.Addr())}})}
	reuse := func(_, _ string, raw syscall.RawConn) (err error) {
		_ = raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) })
		return err
	}
	p.connect(t, l, &net.Dialer{Control: reuse, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}, "127.0.0.1")
	writeAll(t, p.server, 0, 1000)
	first, local := p.seen, p.client.LocalAddr()
	_, was, ok := first.In.At(1000)
	if !ok {
		t.Fatal("the first connection was not seen")
	}
	_ = p.client.SetLinger(0) // no port is left waiting
	_, _ = p.client.Close(), p.server.Close()
	second := pair{tap: p.tap}
	second.connect(t, l, &net.Dialer{Control: reuse, LocalAddr: local}, "127.0.0.1")
	if end, _, _ := second.seen.In.At(1); end != 0 {
		t.Errorf("the new connection begins with %d bytes", end)
	}
	writes := writeAll(t, second.server, 0, 10)
	if end, at, _ := second.seen.In.At(10); end != 10 || at < writes[0].before {
		t.Errorf("it has %d bytes at %d", end, at)
	}
	first.Release()
	if _, at, _ := first.In.At(1000); at != was {
		t.Errorf("what was known of the first has changed from %d to %d", was, at)
	}
	writeAll(t, second.server, 0, 10)
	if end, _, _ := second.seen.In.At(20); end != 20 {
		t.Error("the second is not followed after the first was released")
	}
}

// A ring that is too small loses segments. What depends on them has no time,
// and what comes after is exact again.
func TestLostSegments(t *testing.T) {
	p := newPair(t, "127.0.0.1", Config{Frames: 1})
	p.tap.mu.Lock() // nobody empties the ring
	for range 2000 {
		writeAll(t, p.server, 0, 10)
		if _, err := io.ReadFull(p.client, make([]byte, 10)); err != nil {
			t.Error(err)
		}
	}
	p.tap.mu.Unlock()
	if s := p.tap.Stats(); s.Lost == 0 || s.Segments+s.Lost != 2000+2 {
		t.Fatalf("%+v of 2000 segments and a handshake", s)
	}
	if _, _, ok := p.seen.In.At(10); !ok {
		t.Error("the first segment was not lost, and has no time")
	}
	if end, _, ok := p.seen.In.At(20_000); ok || end != 0 {
		t.Error("the last segment was lost, and has a time")
	}
	p.seen.In.Skip(20_000)
	if end, _, ok := p.seen.In.At(19_000); ok || end != 20_000 {
		t.Errorf("what was lost should end at 20000, not %d; %v", end, ok)
	}
	writes := writeAll(t, p.server, 0, 10)
	if end, at, ok := p.seen.In.At(20_010); !ok || end != 20_010 || at < writes[0].before {
		t.Errorf("what came after the loss came at %d, up to %d, %v", at, end, ok)
	}
}

// Only what is tracked is remembered, and connections to other ports are not seen.
func TestStrangers(t *testing.T) {
	l, other := listen(t, "127.0.0.1"), listen(t, "127.0.0.1")
	tap := open(t, Config{Ports: []uint16{portOf(l.Addr())}})
	nc, err := net.Dial("tcp", other.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if tap.Track(addrPort(nc.LocalAddr()), addrPort(nc.RemoteAddr())) != nil {
		t.Error("a connection to another port was seen")
	}
	if s := tap.Stats(); s.Segments != 0 {
		t.Errorf("%+v: the filter should have dropped all", s)
	}
	stranger := func(i int) segment {
		return segment{tuple: tuple{localPort: uint16(i), remotePort: uint16(i >> 16)}, out: true, flags: synFlag}
	}
	tap.mu.Lock()
	defer tap.mu.Unlock()
	ours := tap.begin(nil, stranger(0))
	ours.tracked = true
	for i := range 5 * maxStrangers {
		tap.begin(nil, stranger(i+1))
	}
	if n := len(tap.conns); n > maxStrangers+1 {
		t.Errorf("%d connections of others are remembered", n)
	}
	if tap.conns[ours.tuple] != ours || tap.conns[stranger(5*maxStrangers).tuple] == nil {
		t.Error("ours or the latest is forgotten")
	}
}

// The ring stays while a connection is tracked, and no longer.
func TestCloseWaitsForTheLastConnection(t *testing.T) {
	p := newPair(t, "127.0.0.1", Config{})
	p.tap.Close()
	writeAll(t, p.server, 0, 10)
	if _, _, ok := p.seen.In.At(10); !ok {
		t.Error("a connection that is tracked is not seen after Close")
	}
	p.seen.Release()
	if p.tap.ring != nil {
		t.Error("the ring is open after the last connection was released")
	}
	if _, _, ok := p.seen.In.At(11); ok {
		t.Error("a closed tap has seen something")
	}
	p.tap.Close()
	p.seen.Release()
}

// What came before a connection was released can be asked for after, whether or not
// somebody had looked into the ring.
func TestReleasedWithSomethingInTheRing(t *testing.T) {
	p := newPair(t, "127.0.0.1", Config{})
	p.tap.mu.Lock() // nobody empties the ring meanwhile
	writeAll(t, p.server, 0, 10)
	if _, err := io.ReadFull(p.client, make([]byte, 10)); err != nil {
		t.Error(err)
	}
	released := make(chan struct{})
	go func() { p.seen.Release(); close(released) }()
	p.tap.mu.Unlock()
	<-released
	if _, _, ok := p.seen.In.At(10); !ok {
		t.Error("what came before is not known")
	}
}

// A process without the capability is told which.
func TestWithoutTheCapability(t *testing.T) {
	type result struct {
		tap *Tap
		err error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with what it has given up
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		if err := unix.Capget(&header, &data[0]); err != nil {
			done <- result{err: fmt.Errorf("capget: %w", err)}
			return
		}
		data[0].Effective &^= 1 << unix.CAP_NET_RAW
		if err := unix.Capset(&header, &data[0]); err != nil {
			done <- result{err: fmt.Errorf("capset: %w", err)}
			return
		}
		tap, err := Open(Config{Ports: []uint16{80}})
		done <- result{tap, err}
	}()
	r := <-done
	if r.tap != nil {
		r.tap.Close()
		t.Fatal("it was opened")
	}
	if !errors.Is(r.err, ErrUnavailable) || !strings.Contains(r.err.Error(), "sudo setcap cap_net_raw+ep /") {
		t.Errorf("the error is %q", r.err)
	}
}

func TestPortsAreWanted(t *testing.T) {
	for _, ports := range [][]uint16{nil, make([]uint16, maxPorts+1)} {
		if _, err := Open(Config{Ports: ports}); err == nil || errors.Is(err, ErrUnavailable) {
			t.Errorf("%d ports: %v", len(ports), err)
		}
	}
}

// The last of many ports is as good as the first.
func TestManyPorts(t *testing.T) {
	ports := make([]uint16, maxPorts-1)
	for i := range ports {
		ports[i] = uint16(i + 1)
	}
	p := newPair(t, "::1", Config{Ports: ports})
	writeAll(t, p.server, 0, 10)
	if _, _, ok := p.seen.In.At(10); !ok {
		t.Error("not seen")
	}
}

// BenchmarkSegment is what a segment costs the tap in user space: to be taken
// out of the ring, and to be asked for.
func BenchmarkSegment(b *testing.B) {
	tap := &Tap{done: make(chan struct{}), conns: map[tuple]*Conn{}}
	packet := packet4(140, 0, 0)
	syn := segment{out: true, flags: synFlag}
	syn.tuple = newTuple(netip.MustParseAddrPort("10.0.0.2:2222"), netip.MustParseAddrPort("10.0.0.1:1111"))
	c := tap.begin(nil, syn)
	c.tracked = true
	c.In.flow.start(0xfffffff0 - 1)
	n := uint64(0)
	for b.Loop() {
		tap.mu.Lock()
		binary.BigEndian.PutUint32(packet[24:], 0xfffffff0+uint32(n))
		tap.take(packet, 140, false, int64(n)+1)
		tap.mu.Unlock()
		if _, at, ok := c.In.At(n + 1); !ok || at != int64(n)+1 {
			b.Fatal("not seen")
		}
		n += 100
		c.In.Forget(n)
	}
}
