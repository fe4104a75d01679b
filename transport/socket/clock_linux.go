package socket

import (
	"encoding/binary"
	"io"
	"math/bits"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tacho-bench/tacho/transport/socket/tap"
)

// SeesClose is true: Alive detects that the peer closed a connection.
const SeesClose = true

// A stampReader reads the kernel's timestamps of received or sent data, and ignores the
// data. The arguments of the system call are fields, so that a call allocates nothing.
type stampReader struct {
	said    byte
	iov     unix.Iovec
	msg     unix.Msghdr
	control [128]byte
}

func newStampReader() *stampReader {
	r := &stampReader{}
	r.iov.Base = &r.said
	r.iov.SetLen(1)
	r.msg.Iov = &r.iov
	r.msg.SetIovlen(1)
	r.msg.Control = &r.control[0]
	return r
}

// next is one recvmsg. at is 0 if there was no timestamp; number is as in stampIn. The
// call does not block, so it is raw: in a known system call the runtime would take the P
// whenever the kernel lets another thread run.
func (r *stampReader) next(fd, flags int) (at int64, number uint32, ok bool) {
	r.msg.SetControllen(len(r.control))
	_, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&r.msg)), uintptr(flags|unix.MSG_DONTWAIT))
	if errno != 0 {
		return 0, 0, false
	}
	at, number = stampIn(r.control[:min(int(r.msg.Controllen), len(r.control))])
	return at, number, true
}

// Clock makes connections with kernel timestamps.
type Clock struct {
	pollers *pollers
	// held keeps kernel timestamping on. Linux begins to timestamp some time after the
	// first socket asks for it, and stops when the last such socket is closed. Without
	// held, the first responses of a run would have no kernel times.
	held io.Closer
	tap  *tap.Tap // nil without the wire clock
}

// NewClock returns a Clock, or nil if the kernel does not timestamp received data.
func NewClock() *Clock {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	k := &Clock{held: os.NewFile(uintptr(fd), "kernel clock")}
	if err := stampReceives(fd); err != nil {
		_ = k.held.Close()
		return nil
	}
	awaitStamps(fd)
	k.pollers = sharePollers()
	return k
}

const (
	stampTries = 1000
	stampAgain = time.Millisecond
)

// awaitStamps waits until the kernel timestamps received data, and reports whether it
// does. A kernel thread turns timestamping on, which can take seconds on a busy machine.
// The socket sends to itself to find out. If that fails, awaitStamps does not wait. After
// one second it gives up; the run then uses the read clock and reports it.
func awaitStamps(fd int) bool {
	if unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}) != nil {
		return false
	}
	self, err := unix.Getsockname(fd)
	if err != nil {
		return false
	}
	r := newStampReader()
	for range stampTries {
		if unix.Sendto(fd, []byte{0}, 0, self) != nil {
			return false
		}
		for at, _, ok := r.next(fd, 0); ok; at, _, ok = r.next(fd, 0) {
			if at != 0 {
				return true
			}
		}
		time.Sleep(stampAgain)
	}
	return false
}

// Take turns nc into a Conn, or returns nil if nc is not a TCP connection. The caller must
// not use nc afterwards, even after an error. plainEvents reports whether the connection
// carries streams of events without TLS.
func (k *Clock) Take(nc net.Conn, plainEvents bool) (Conn, error) {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return nil, nil
	}
	c, err := k.take(tcp, plainEvents)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (k *Clock) take(tcp *net.TCPConn, plainEvents bool) (*conn, error) {
	p, err := k.pollers.leastLoaded()
	if err != nil {
		return nil, err
	}
	c, err := p.poll(tcp, plainEvents)
	if err != nil {
		return nil, err
	}
	if c.wire = k.track(c.local, c.remote); c.wire == nil {
		c.onSocket(stampSends)
	}
	return c, nil
}

// Close releases the clock. Its threads end when its last connection is closed.
func (k *Clock) Close() {
	_ = k.held.Close() // nothing was written to it
	k.pollers.release()
	if k.tap != nil {
		k.tap.Close()
	}
}

func stampReceives(fd int) error {
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING,
		unix.SOF_TIMESTAMPING_RX_SOFTWARE|unix.SOF_TIMESTAMPING_SOFTWARE)
}

// stampSends turns on transmit timestamps for writes that ask for them. The kernel reports
// the number of the last byte written and the time it left.
func stampSends(fd int) {
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING, unix.SOF_TIMESTAMPING_RX_SOFTWARE|
		unix.SOF_TIMESTAMPING_SOFTWARE|unix.SOF_TIMESTAMPING_OPT_ID|unix.SOF_TIMESTAMPING_OPT_TSONLY)
}

// stampIn finds the software timestamp in control messages: the first of the three
// timespecs of SCM_TIMESTAMPING. For a transmit timestamp it also returns the number of
// the last byte, counted from 0: the last word of the extended error. Lengths and times
// have the word size of the machine.
func stampIn(control []byte) (at int64, number uint32) {
	const word, info = bits.UintSize / 8, 12
	for len(control) >= unix.SizeofCmsghdr {
		size := int(nativeWord(control))
		if size < unix.SizeofCmsghdr || size > len(control) {
			break
		}
		level := int32(binary.NativeEndian.Uint32(control[word:]))
		kind := int32(binary.NativeEndian.Uint32(control[word+4:]))
		data := control[unix.SizeofCmsghdr:size]
		switch {
		case level == unix.SOL_SOCKET && kind == unix.SO_TIMESTAMPING && len(data) >= 2*word:
			at = int64(nativeWord(data))*int64(time.Second) + int64(nativeWord(data[word:]))
		case (level == unix.SOL_IP || level == unix.SOL_IPV6) && len(data) >= info+4:
			number = binary.NativeEndian.Uint32(data[info:])
		}
		next := unix.CmsgSpace(len(data))
		if next > len(control) {
			break
		}
		control = control[next:]
	}
	return at, number
}

func nativeWord(b []byte) uint64 {
	if bits.UintSize == 32 {
		return uint64(binary.NativeEndian.Uint32(b))
	}
	return binary.NativeEndian.Uint64(b)
}

// tcpEstablished is TCP_ESTABLISHED of the kernel.
const tcpEstablished = 1

// Alive reports whether the peer holds the connection open. A fresh TLS connection may
// have unread session tickets, so Alive checks the state of the socket, not for readable
// bytes.
func Alive(nc net.Conn) bool {
	if c, ok := nc.(*conn); ok {
		return c.alive()
	}
	if _, ok := nc.(*net.TCPConn); !ok {
		return true
	}
	alive := false
	onSocket(nc, func(fd int) { alive = established(fd) })
	return alive
}

// onSocket calls do with the file descriptor of nc, unless nc is closed.
func onSocket(nc net.Conn, do func(fd int)) {
	if c, ok := nc.(syscall.Conn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { do(int(fd)) }) // Control fails if the connection is closed
		}
	}
}

// Delivered returns the number of bytes the peer's kernel acknowledged, or -1 if
// unknown, and whether the peer closed the connection. A peer that closes with unread
// bytes resets the connection, and a peer that read the bytes acknowledges them with
// its FIN at the latest. So bytes not acknowledged by then have not reached the server.
func Delivered(nc net.Conn) (bytes int64, closed bool) {
	bytes = -1
	onSocket(nc, func(fd int) {
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return
		}
		bytes = int64(info.Bytes_acked) - 1 // the handshake counts as one byte
		var b [1]byte
		n, _, err := unix.Recvfrom(fd, b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		closed = n == 0 && err == nil
	})
	return bytes, closed
}

func established(fd int) bool {
	// The state is the first byte of tcp_info, so four bytes are enough.
	var first [4]byte
	info, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	binary.NativeEndian.PutUint32(first[:], uint32(info))
	return err != nil || first[0] == tcpEstablished
}
