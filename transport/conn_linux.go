package transport

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

	"tacho/transport/tap"
)

// spareMaxAge is how long an unused spare is kept. Here alive tells whether
// the peer has closed it, so it only bounds what a middlebox may forget.
const spareMaxAge = 30 * time.Second

// A receiver asks for the kernel's times of what came or left, and not for what was
// said. It allocates nothing each time, which is why the arguments of the system call
// are fields.
type receiver struct {
	said    byte
	iov     unix.Iovec
	msg     unix.Msghdr
	control [128]byte
}

func newReceiver() *receiver {
	r := &receiver{}
	r.iov.Base = &r.said
	r.iov.SetLen(1)
	r.msg.Iov = &r.iov
	r.msg.SetIovlen(1)
	r.msg.Control = &r.control[0]
	return r
}

// next is one recvmsg. at is 0 if the kernel gave no time; number is as in stampIn.
// The call does not block, so the runtime is not told of it: it would give the
// thread's turn away whenever the kernel lets others run meanwhile.
func (r *receiver) next(fd, flags int) (at int64, number uint32, ok bool) {
	r.msg.SetControllen(len(r.control))
	_, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&r.msg)), uintptr(flags|unix.MSG_DONTWAIT))
	if errno != 0 {
		return 0, 0, false
	}
	at, number = stampIn(r.control[:min(int(r.msg.Controllen), len(r.control))])
	return at, number, true
}

// A kernelClock makes connections that know when the kernel received what
// they read.
type kernelClock struct {
	pollers *pollers
	// held keeps the kernel stamping packets. Linux begins to stamp some time
	// after the first socket asks for it, and stops after the last is closed, so
	// that without this the first answers of a run come without a time.
	held io.Closer
	tap  *tap.Tap // nil where only sockets stamp
}

// newKernelClock returns nil if the kernel does not have it.
func newKernelClock() *kernelClock {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	k := &kernelClock{held: os.NewFile(uintptr(fd), "kernel clock")}
	if err := stampReceives(fd); err != nil {
		_ = k.held.Close()
		return nil
	}
	awaitStamps(fd)
	k.pollers = join()
	return k
}

const (
	stampTries = 1000
	stampAgain = time.Millisecond
)

// awaitStamps waits until the kernel stamps what it receives: a thread of its
// own turns that on, which a busy machine may keep waiting for seconds. The
// socket sends to itself to find out. Where it cannot, nobody waits; and after
// a second the run begins on the clock of the read, and says so. It returns whether
// a stamp was seen.
func awaitStamps(fd int) bool {
	if unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}) != nil {
		return false
	}
	self, err := unix.Getsockname(fd)
	if err != nil {
		return false
	}
	r := newReceiver()
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

// take makes a connection with times of nc, or returns nil if nc cannot have
// them. nc is not to be used any more, even after an error.
func (k *kernelClock) take(nc net.Conn, mayBeHeld bool) (*polled, error) {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return nil, nil
	}
	p, err := k.pollers.least()
	if err != nil {
		return nil, err
	}
	c, err := p.poll(tcp, mayBeHeld)
	if c == nil {
		return nil, err
	}
	if c.wire = k.track(c.local, c.remote); c.wire == nil {
		c.onSocket(stampSends)
	}
	return c, err
}

// close lets go of the clock when the last connection is closed.
func (k *kernelClock) close() {
	_ = k.held.Close() // nothing was written to it
	k.pollers.leave()
	if k.tap != nil {
		k.tap.Close()
	}
}

func stampReceives(fd int) error {
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING,
		unix.SOF_TIMESTAMPING_RX_SOFTWARE|unix.SOF_TIMESTAMPING_SOFTWARE)
}

// stampSends has a write that asks for it stamped, too, where the kernel can: it
// then leaves the number of its last byte, and when that left.
func stampSends(fd int) {
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING, unix.SOF_TIMESTAMPING_RX_SOFTWARE|
		unix.SOF_TIMESTAMPING_SOFTWARE|unix.SOF_TIMESTAMPING_OPT_ID|unix.SOF_TIMESTAMPING_OPT_TSONLY)
}

// stampIn finds the software time among control messages, the first of the three
// timespecs of SCM_TIMESTAMPING; and of a segment that was sent the number of its
// last byte, counted from 0, the last word of the error that tells of it. Lengths and times are of the machine's
// word size.
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

// tcpEstablished is the kernel's number for the state.
const tcpEstablished = 1

// alive says whether the peer still holds the connection open. TLS leaves
// session tickets to be read on a fresh connection, so looking for readable
// bytes would not tell; the state of the socket does.
func alive(nc net.Conn) bool {
	if p, ok := nc.(*polled); ok {
		return p.alive()
	}
	if _, ok := nc.(*net.TCPConn); !ok {
		return true
	}
	alive := false
	onSocket(nc, func(fd int) { alive = established(fd) })
	return alive
}

// onSocket does something with the socket of a TCP connection that is not
// closed yet.
func onSocket(nc net.Conn, do func(fd int)) {
	switch c := nc.(type) {
	case *polled:
		c.onSocket(do)
	case syscall.Conn:
		if raw, err := c.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { do(int(fd)) }) // it fails if the connection is closed
		}
	}
}

// delivered is how many bytes the peer's kernel has said that it got, and
// whether the peer has closed the connection; -1 if that cannot be told. A peer
// that closes with our bytes unread resets the connection, and one that had
// read them said so with its close at the latest: what is not acknowledged by
// then has not reached the server.
func delivered(nc net.Conn) (bytes int64, closed bool) {
	bytes = -1
	onSocket(nc, func(fd int) {
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return
		}
		bytes = int64(info.Bytes_acked) - 1 // the handshake counts as one
		var b [1]byte
		n, _, err := unix.Recvfrom(fd, b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		closed = n == 0 && err == nil
	})
	return bytes, closed
}

func established(fd int) bool {
	// The state is the first byte of what there is to know, and the only one that is asked for.
	var first [4]byte
	info, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	binary.NativeEndian.PutUint32(first[:], uint32(info))
	return err != nil || first[0] == tcpEstablished
}
