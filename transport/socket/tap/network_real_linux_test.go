//go:build real

package tap

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tacho-bench/tacho/internal/must"
)

// inNamespace is set in a child process with its own network namespace.
const inNamespace = "TACHO_TAP_IN_NAMESPACE"

// On a network with loss, retransmits and reordering, the time of a byte is the time of
// the segment that completed the stream up to that byte.
func TestRealLossAndReordering(t *testing.T) {
	if os.Getenv(inNamespace) == "" {
		child(t)
		return
	}
	m := newMirror(t)
	for _, ends := range [][2]string{{"10.9.0.1", "10.9.0.2"}, {"fd09::1", "fd09::2"}} {
		t.Run(ends[0], func(t *testing.T) {
			const size, count = 100, 800
			l := listen(t, ends[0])
			m.begin(portOf(l.Addr()))
			p := pair{tap: open(t, Config{Ports: []uint16{portOf(l.Addr())}})}
			nc := must.Get(net.Dial("tcp", netip.AddrPortFrom(netip.MustParseAddr(ends[1]), portOf(l.Addr())).String()))(t)
			p.connect(t, l, nc.(*net.TCPConn))
			go func() {
				for range count {
					if _, err := p.server.Write(make([]byte, size)); err != nil {
						t.Error(err)
						return
					}
					time.Sleep(500 * time.Microsecond) // each write becomes a segment, and some overtake others
				}
			}()
			must.Get(io.ReadFull(p.client, make([]byte, size*count)))(t)
			earliest, latest := m.whole(size * count)
			for n := 1; n <= size*count; n++ {
				_, at, ok := p.seen.In.At(uint64(n))
				if !ok || at < earliest[n] || at > latest[n] {
					t.Fatalf("the first %d bytes came from %d to %d (%v later), and have a time %v later, %v", n,
						earliest[n], latest[n], time.Duration(latest[n]-earliest[n]), time.Duration(at-earliest[n]), ok)
				}
			}
			checkCounted(t, p.client)
			if s := p.tap.Stats(); s.Repeated == 0 || s.Reordered == 0 || s.Lost != 0 {
				t.Errorf("%+v: some should be repeated, some reordered, and none lost", s)
			}
		})
	}
}

// checkCounted checks that the kernel counted the segments out of order, as the report
// shows them.
func checkCounted(t *testing.T, c *net.TCPConn) {
	t.Helper()
	raw := must.Get(c.SyscallConn())(t)
	_ = raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err != nil || info.Rcv_ooopack == 0 {
			t.Errorf("%v: the kernel counted nothing out of order", err)
		}
	})
}

// child runs the test in a network namespace.
func child(t *testing.T) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), inNamespace+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		t.Skipf("no network namespace: %v", err)
	}
	switch {
	case err != nil:
		t.Errorf("%v: %s", err, out)
	case bytes.Contains(out, []byte("--- SKIP")):
		t.Skipf("%s", out)
	default:
		t.Logf("%s", out)
	}
}

// A mirror is a network device on which each address ending in 2 is our own address ending
// in 1. It returns packets with their addresses exchanged, which keeps the checksums
// valid. It loses, repeats and delays the packets of servers.
type mirror struct {
	device *os.File

	mu   sync.Mutex
	rand *rand.Rand
	port uint16 // of the server
	syn  uint32 // of the server's stream
	came []sentBack
}

// A sentBack is a segment and the interval in which our end received it.
type sentBack struct {
	segment
	before, after int64
}

func newMirror(t *testing.T) *mirror {
	t.Helper()
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("no tunnel device: %v", err)
	}
	request := must.Get(unix.NewIfreq("mirror0"))(t)
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		t.Skipf("no tunnel device: %v", err)
	}
	for _, args := range [][]string{
		{"link", "set", "mirror0", "up"},
		{"addr", "add", "10.9.0.1/24", "dev", "mirror0"},
		{"addr", "add", "fd09::1/64", "dev", "mirror0", "nodad"},
	} {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Skipf("ip %v: %v: %s", args, err, out)
		}
	}
	m := &mirror{device: os.NewFile(uintptr(fd), "mirror0"), rand: rand.New(rand.NewPCG(1, 2))}
	go m.run()
	t.Cleanup(func() { _ = m.device.Close() })
	return m
}

// begin clears the record and selects another server.
func (m *mirror) begin(port uint16) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.port, m.came = port, nil
}

func (m *mirror) run() {
	for {
		p := make([]byte, 2048)
		n, err := m.device.Read(p)
		if err != nil {
			return
		}
		p = p[:n]
		from, length := 12, 4
		if p[0]>>4 == 6 {
			from, length = 8, 16
		}
		for i := from; i < from+length; i++ {
			p[i], p[i+length] = p[i+length], p[i]
		}
		m.send(p)
	}
}

// send returns a packet, with the faults of a bad network.
func (m *mirror) send(p []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := parse(p, len(p), false)
	if !ok || s.tuple.remotePort != m.port || s.bytes == 0 {
		if ok && s.tuple.remotePort == m.port && s.flags&synFlag != 0 {
			m.syn = s.seq
		}
		_, _ = m.device.Write(p)
		return
	}
	if m.rand.IntN(25) == 0 {
		return
	}
	for range 1 + m.rand.IntN(30)/29 {
		delay := 2 * time.Millisecond
		if m.rand.IntN(5) == 0 {
			delay = time.Duration(m.rand.IntN(6000)) * time.Microsecond
		}
		time.AfterFunc(delay, func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			b := sentBack{segment: s, before: time.Now().UnixNano()}
			_, _ = m.device.Write(p)
			b.after = time.Now().UnixNano()
			m.came = append(m.came, b)
		})
	}
}

// whole returns, for each n, the interval in which the first n bytes were complete.
func (m *mirror) whole(size int) (earliest, latest []int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	type times struct{ before, after int64 }
	first := make([]times, size)
	for _, b := range m.came {
		from := int(int32(b.seq - m.syn - 1))
		for i := max(0, from); i < min(size, from+b.bytes); i++ {
			if first[i].before == 0 {
				first[i] = times{b.before, b.after}
			}
		}
	}
	earliest, latest = make([]int64, size+1), make([]int64, size+1)
	for i, f := range first {
		earliest[i+1], latest[i+1] = max(earliest[i], f.before), max(latest[i], f.after)
	}
	return earliest, latest
}
