package transport

import (
	"io"
	"net"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/transport/socket"
)

// keepStamping keeps kernel timestamping on during the test. A client waits only one
// second for it, which is too short on a machine that stalls.
func keepStamping(t testing.TB) {
	t.Helper()
	fd := udpSocket(t, unix.SOF_TIMESTAMPING_RX_SOFTWARE|unix.SOF_TIMESTAMPING_SOFTWARE)
	t.Cleanup(func() { _ = unix.Close(fd) })
	waitUntil(t, "the kernel stamps", func() bool { return stamped(t, fd) })
}

// udpSocket returns a socket that can send to itself, with an option of SO_TIMESTAMPING.
func udpSocket(t testing.TB, option int) (fd int) {
	t.Helper()
	fd = must.Get(unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0))(t)
	must.Do(t, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING, option))
	must.Do(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	return fd
}

// stamped reports whether the kernel timestamps a byte that the socket sends to itself.
func stamped(t testing.TB, fd int) bool {
	t.Helper()
	self := must.Get(unix.Getsockname(fd))(t)
	must.Do(t, unix.Sendto(fd, []byte{0}, 0, self))
	control := make([]byte, 128)
	_, n, _, _, err := unix.Recvmsg(fd, make([]byte, 1), control, unix.MSG_DONTWAIT)
	return err == nil && n > 0
}

// preparedConn makes the next request use a connection known to the test.
func preparedConn(t *testing.T, c *Client) *conn {
	t.Helper()
	nc := must.Get(c.dialer.dialTarget(t.Context(), hostPort(c.base)))(t)
	c.spares.want = 1
	c.spares.put(nc)
	return connUnder(nc)
}

// onSocket calls do with the file descriptor of a connection.
func onSocket(c net.Conn, do func(fd int)) {
	raw, err := c.(syscall.Conn).SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) { do(int(fd)) })
	}
}

// queued returns the number of unread bytes in the socket.
func queued(c net.Conn) (n int) {
	n = -1
	onSocket(c, func(fd int) {
		if got, err := unix.IoctlGetInt(fd, unix.TIOCINQ); err == nil {
			n = got
		}
	})
	return n
}

// arrived returns the number of bytes the kernel received on a connection.
func arrived(t testing.TB, c net.Conn) (n uint64) {
	t.Helper()
	onSocket(c, func(fd int) {
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			t.Error(err)
			return
		}
		n = info.Bytes_received
	})
	return n
}

// deliver writes text to the peer of a stalled connection, and waits until the socket
// holds all of it.
func deliver(t testing.TB, to io.Writer, c socket.Conn, text string) {
	t.Helper()
	want := queued(c) + len(text)
	if _, err := io.WriteString(to, text); err != nil {
		t.Error(err)
		return
	}
	waitUntil(t, "the bytes have arrived", func() bool { return queued(c) >= want })
}
