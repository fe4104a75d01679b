package sim

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// timestamped returns c with receive timestamps if c is a TCP connection whose
// socket supports them.
func timestamped(c net.Conn) net.Conn {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return c
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return c
	}
	var setErr error
	err = raw.Control(func(fd uintptr) {
		setErr = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPING,
			unix.SOF_TIMESTAMPING_RX_SOFTWARE|unix.SOF_TIMESTAMPING_SOFTWARE)
	})
	if err != nil || setErr != nil {
		return c
	}
	s := &timestampedConn{TCPConn: tcp, raw: raw}
	s.receive = s.recvmsg
	return s
}

// timestampedConn reads with recvmsg and keeps the kernel timestamp of the first
// read of each request.
type timestampedConn struct {
	*net.TCPConn
	raw   syscall.RawConn
	first atomic.Int64

	// Arguments and results of receive. The closure is created once, so a read
	// allocates nothing. net/http never reads from two goroutines at the same time.
	receive func(fd uintptr) bool
	buf     []byte
	n, oobn int
	err     error
	oob     [64]byte
}

func (c *timestampedConn) recvmsg(fd uintptr) bool {
	for {
		c.n, c.oobn, _, _, c.err = unix.Recvmsg(int(fd), c.buf, c.oob[:], unix.MSG_DONTWAIT)
		if !errors.Is(c.err, unix.EINTR) {
			return !errors.Is(c.err, unix.EAGAIN)
		}
	}
}

// Read implements net.Conn.
func (c *timestampedConn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	c.buf = p
	err := c.raw.Read(c.receive)
	c.buf = nil
	switch {
	case err != nil:
		return 0, err
	case c.err != nil:
		return 0, os.NewSyscallError("recvmsg", c.err)
	case c.n == 0:
		return 0, io.EOF
	}
	if c.first.Load() == 0 {
		c.first.Store(receiveTime(c.oob[:c.oobn]))
	}
	return c.n, nil
}

func (c *timestampedConn) firstByte() int64 { return c.first.Load() }

func (c *timestampedConn) nextRequest() { c.first.Store(0) }

// receiveTime returns the software receive timestamp in the control messages, or 0.
func receiveTime(oob []byte) int64 {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return 0
	}
	for _, m := range msgs {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPING && len(m.Data) >= 16 {
			sec := int64(binary.NativeEndian.Uint64(m.Data))
			nsec := int64(binary.NativeEndian.Uint64(m.Data[8:]))
			return sec*1e9 + nsec
		}
	}
	return 0
}
