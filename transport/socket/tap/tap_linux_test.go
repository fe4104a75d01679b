package tap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tacho-bench/tacho/internal/must"
)

// open opens a tap, or skips the test if that is not allowed.
func open(t *testing.T, c Config) *Tap {
	t.Helper()
	tap, err := Open(c)
	if errors.Is(err, ErrUnavailable) {
		t.Skip(err)
	}
	must.Do(t, err)
	t.Cleanup(tap.Close)
	return tap
}

// A pair is both ends of a connection, and the tap's view at the client.
type pair struct {
	tap            *Tap
	client, server *net.TCPConn
	seen           *Conn
	in, out        uint64 // bytes written by receives and sends
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

func newPair(t *testing.T, host string, c Config) *pair {
	t.Helper()
	l := listen(t, host)
	c.Ports = append(c.Ports, portOf(l.Addr()))
	p := &pair{tap: open(t, c)}
	nc := must.Get(net.Dial("tcp", l.Addr().String()))(t)
	p.connect(t, l, nc.(*net.TCPConn))
	return p
}

// connect accepts and tracks a connection to l.
func (p *pair) connect(t *testing.T, l *net.TCPListener, client *net.TCPConn) {
	t.Helper()
	p.client = client
	p.server = must.Get(l.AcceptTCP())(t)
	p.seen = p.tap.Track(addrPort(client.LocalAddr()), addrPort(client.RemoteAddr()))
	if p.seen == nil {
		t.Fatal("the handshake was not seen")
	}
	t.Cleanup(func() {
		p.seen.Release()
		_, _ = p.client.Close(), p.server.Close()
	})
}

// A write is the end of some bytes in the stream, and the interval in which they left and
// arrived.
type write struct {
	end           uint64
	before, after int64
}

// receives makes the server write pieces of the given sizes. Each piece is in the client's
// socket before the next is written.
func (p *pair) receives(t *testing.T, sizes ...int) (out []write) {
	t.Helper()
	for _, n := range sizes {
		want := queued(t, p.client) + n
		p.in += uint64(n)
		w := write{end: p.in, before: time.Now().UnixNano()}
		must.Get(p.server.Write(make([]byte, n)))(t)
		waitUntil(t, "the bytes have arrived", func() bool { return queued(t, p.client) == want })
		w.after = time.Now().UnixNano()
		out = append(out, w)
	}
	return out
}

// sends makes the client write pieces of the given sizes. The server reads each piece
// before the next is written.
func (p *pair) sends(t *testing.T, sizes ...int) (out []write) {
	t.Helper()
	for _, n := range sizes {
		p.out += uint64(n)
		w := write{end: p.out, before: time.Now().UnixNano()}
		wrote := make(chan error, 1)
		go func() {
			_, err := p.client.Write(make([]byte, n))
			wrote <- err
		}()
		_, err := io.ReadFull(p.server, make([]byte, n))
		must.Do(t, errors.Join(err, <-wrote))
		w.after = time.Now().UnixNano()
		out = append(out, w)
	}
	return out
}

// queued returns the number of unread bytes in a socket.
func queued(t *testing.T, c *net.TCPConn) (n int) {
	t.Helper()
	raw, err := c.SyscallConn()
	must.Do(t, err)
	var asked error
	err = raw.Control(func(fd uintptr) { n, asked = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	must.Do(t, errors.Join(err, asked))
	return n
}

// waitUntil polls a condition until it is true. what names the condition.
func waitUntil(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timeout: not %s after two minutes", what)
		}
	}
}

// checkTimes checks that each time is within the interval of its write.
func checkTimes(t *testing.T, s *Stream, writes []write) {
	t.Helper()
	for i, w := range writes {
		if _, at, ok := s.At(w.end); !ok || at < w.before || at > w.after {
			t.Errorf("write %d, %+v: the time is %d, %v", i, w, at, ok)
		}
	}
}

var hosts = []string{"127.0.0.1", "::1"}

// The client reads nothing until everything arrived, so its socket merges all
// segments. The tap still knows the time of each write.
func TestArrivalsAreTheWritersTimes(t *testing.T) {
	for _, host := range hosts {
		t.Run(host, func(t *testing.T) {
			p := newPair(t, host, Config{})
			sizes := make([]int, 40)
			for i := range sizes {
				sizes[i] = 1 + 37*i
			}
			writes := p.receives(t, sizes...)
			checkTimes(t, &p.seen.In, writes)
			for _, w := range writes {
				if end, _, _ := p.seen.In.At(w.end); end != w.end {
					t.Errorf("the segment that ends at %d ends at %d", w.end, end)
				}
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
			// 200,000 bytes are several packets of many segments each.
			checkTimes(t, &p.seen.Out, p.sends(t, 100, 1, 200_000, 5000, 5000, 5000, 1, 100))
			if end, _, _ := p.seen.Out.At(1); end != 100 {
				t.Errorf("the first packet ends at %d", end)
			}
		})
	}
}

// The socket returns merged segments in one piece with the time of the last segment. The
// tap has the time of the last segment and the times of the others.
func TestTapKeepsApartWhatTheSocketMerges(t *testing.T) {
	p := newPair(t, "127.0.0.1", Config{})
	raw, err := p.client.SyscallConn()
	must.Do(t, err)
	_ = raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPING, unix.SOF_TIMESTAMPING_RX_SOFTWARE|unix.SOF_TIMESTAMPING_SOFTWARE)
	})
	must.Do(t, err)
	waitUntil(t, "the kernel stamps what sockets receive", func() bool {
		writes := p.receives(t, 100, 100, 100, 100, 100, 100, 100, 100)
		n, stamp := receive(t, raw)
		if n != 800 {
			t.Fatalf("the socket has %d bytes", n)
		}
		checkTimes(t, &p.seen.In, writes)
		last := writes[len(writes)-1]
		if _, at, _ := p.seen.In.At(last.end); stamp != 0 && (stamp < at || stamp > last.after) {
			t.Errorf("the socket's time is %d, the tap's is %d, and the last segment came between %d and %d", stamp, at, last.before, last.after)
		}
		return stamp != 0
	})
}

// receive is one recvmsg with the kernel's timestamp.
func receive(t *testing.T, raw syscall.RawConn) (n int, stamp int64) {
	t.Helper()
	control := make([]byte, 256)
	var got int
	must.Do(t, raw.Read(func(fd uintptr) bool {
		var err error
		n, got, _, _, err = unix.Recvmsg(int(fd), make([]byte, 1<<16), control, 0)
		return err == nil
	}))
	messages := must.Get(unix.ParseSocketControlMessage(control[:got]))(t)
	for i := range messages {
		if messages[i].Header.Type == unix.SO_TIMESTAMPING {
			stamp = timespec(messages[i].Data)
		}
	}
	return n, stamp
}

// A port is a local port reserved by sockets bound in advance, so that no other process
// gets it between two connections.
type port struct{ number int }

// socket returns a socket bound to the port.
func (p *port) socket(t *testing.T) (connect func(l *net.TCPListener) *net.TCPConn) {
	t.Helper()
	fd := must.Get(unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))(t)
	file := os.NewFile(uintptr(fd), "socket")
	t.Cleanup(func() { _ = file.Close() })
	must.Do(t, errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
		unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: p.number})))
	self := must.Get(unix.Getsockname(fd))(t)
	p.number = self.(*unix.SockaddrInet4).Port
	return func(l *net.TCPListener) *net.TCPConn {
		t.Helper()
		must.Do(t, unix.Connect(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: int(portOf(l.Addr()))}))
		nc, err := net.FileConn(file) // duplicates the socket
		must.Do(t, errors.Join(err, file.Close()))
		return nc.(*net.TCPConn)
	}
}

// A new connection with the same ports has no times of the earlier one.
func TestPortUsedAgain(t *testing.T) {
	l := listen(t, "127.0.0.1")
	p := pair{tap: open(t, Config{Ports: []uint16{portOf(l.Addr())}})}
	var local port
	one, other := local.socket(t), local.socket(t)
	p.connect(t, l, one(l))
	p.receives(t, 1000)
	first := p.seen
	_, was, ok := first.In.At(1000)
	if !ok {
		t.Fatal("the first connection was not seen")
	}
	_ = p.client.SetLinger(0) // leaves no port in TIME_WAIT
	_ = p.client.Close()
	_, _ = p.server.Read(make([]byte, 1)) // waits until the server sees the close
	_ = p.server.Close()
	second := pair{tap: p.tap}
	second.connect(t, l, other(l))
	if end, _, _ := second.seen.In.At(1); end != 0 {
		t.Errorf("the new connection begins with %d bytes", end)
	}
	checkTimes(t, &second.seen.In, second.receives(t, 10))
	if end, _, _ := second.seen.In.At(10); end != 10 {
		t.Errorf("it has %d bytes", end)
	}
	first.Release()
	if _, at, _ := first.In.At(1000); at != was {
		t.Errorf("the time of the first connection changed from %d to %d", was, at)
	}
	second.receives(t, 10)
	if end, _, _ := second.seen.In.At(20); end != 20 {
		t.Error("the second is not followed after the first was released")
	}
}

// A ring that is too small loses segments. Bytes that depend on them have no time, and
// later bytes are exact again.
func TestLostSegments(t *testing.T) {
	p := newPair(t, "127.0.0.1", Config{Frames: 1})
	p.tap.mu.Lock() // keeps the ring from being drained
	for range 2000 {
		_, err := p.server.Write(make([]byte, 10))
		_, readErr := io.ReadFull(p.client, make([]byte, 10))
		if err := errors.Join(err, readErr); err != nil {
			t.Error(err)
		}
	}
	p.in = 20_000
	p.tap.mu.Unlock()
	if s := p.tap.Stats(); s.Lost == 0 || s.Segments+s.Lost < 2000+2 { // the kernel may have retransmitted some
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
		t.Errorf("the lost range ends at %d, %v; want 20000", end, ok)
	}
	checkTimes(t, &p.seen.In, p.receives(t, 10))
	if end, _, ok := p.seen.In.At(20_010); !ok || end != 20_010 {
		t.Errorf("the range after the loss ends at %d, %v", end, ok)
	}
}

// Only tracked connections are remembered, and connections to other ports are ignored.
func TestStrangers(t *testing.T) {
	l, other := listen(t, "127.0.0.1"), listen(t, "127.0.0.1")
	tap := open(t, Config{Ports: []uint16{portOf(l.Addr())}})
	nc := must.Get(net.Dial("tcp", other.Addr().String()))(t)
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
	for i := range 5 * maxUntracked {
		tap.begin(nil, stranger(i+1))
	}
	if n := len(tap.conns); n > maxUntracked+1 {
		t.Errorf("%d connections of others are remembered", n)
	}
	if tap.conns[ours.tuple] != ours || tap.conns[stranger(5*maxUntracked).tuple] == nil {
		t.Error("ours or the latest is forgotten")
	}
}

// The ring stays open while a connection is tracked, and no longer.
func TestCloseWaitsForTheLastConnection(t *testing.T) {
	p := newPair(t, "127.0.0.1", Config{})
	p.tap.Close()
	p.receives(t, 10)
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

// After Release, the times of earlier bytes are available, even if the ring was not
// drained before.
func TestReleasedWithSomethingInTheRing(t *testing.T) {
	p := newPair(t, "127.0.0.1", Config{})
	p.tap.mu.Lock() // keeps the ring from being drained
	p.receives(t, 10)
	if _, err := io.ReadFull(p.client, make([]byte, 10)); err != nil {
		t.Error(err)
	}
	released := make(chan struct{})
	go func() { p.seen.Release(); close(released) }()
	p.tap.mu.Unlock()
	<-released
	if _, _, ok := p.seen.In.At(10); !ok {
		t.Error("a time from before Release is missing")
	}
}

// The error for a process without the capability names the capability.
func TestWithoutTheCapability(t *testing.T) {
	type result struct {
		tap *Tap
		err error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // never unlocked, so the thread without the capability ends
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

// The filter accepts the last of many ports.
func TestManyPorts(t *testing.T) {
	ports := make([]uint16, maxPorts-1)
	for i := range ports {
		ports[i] = uint16(i + 1)
	}
	p := newPair(t, "::1", Config{Ports: ports})
	p.receives(t, 10)
	if _, _, ok := p.seen.In.At(10); !ok {
		t.Error("not seen")
	}
}

// BenchmarkSegment measures the user-space cost of a segment: draining the ring and
// looking up the time.
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
