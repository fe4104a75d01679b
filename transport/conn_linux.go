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
)

// spareMaxAge is how long an unused spare is kept. Here alive tells whether
// the peer has closed it, so it only bounds what a middlebox may forget.
const spareMaxAge = 30 * time.Second

// A kernelReceiver receives from a TCP socket, each time together with the
// time at which the kernel got the last of the bytes. It allocates nothing per
// receive, which is why the arguments of the system call are fields.
type kernelReceiver struct {
	raw     syscall.RawConn
	attempt func(fd uintptr) bool // receiver.try, bound once

	buf []byte
	n   int
	err error

	iov     unix.Iovec
	msg     unix.Msghdr
	control [128]byte
}

// newKernelReceiver turns on receive times for nc, and returns nil if nc
// cannot give them.
func newKernelReceiver(nc net.Conn) *kernelReceiver {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	var optErr error
	err = raw.Control(func(fd uintptr) { optErr = stampReceives(int(fd)) })
	if err != nil || optErr != nil {
		return nil
	}
	k := &kernelReceiver{raw: raw}
	k.attempt = k.try
	return k
}

// holdKernelClock keeps the kernel stamping packets for as long as the socket
// it returns is open. Linux begins to stamp some time after the first socket
// asks for it, and stops after the last is closed, so that without this the
// first answers of a run come without a time. It returns nil if the kernel
// does not have it.
func holdKernelClock() io.Closer {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	held := os.NewFile(uintptr(fd), "kernel clock")
	if err := stampReceives(fd); err != nil {
		_ = held.Close()
		return nil
	}
	return held
}

func stampReceives(fd int) error {
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING,
		unix.SOF_TIMESTAMPING_RX_SOFTWARE|unix.SOF_TIMESTAMPING_SOFTWARE)
}

// receive is one recvmsg. at is 0 if the kernel gave no time.
func (k *kernelReceiver) receive(p []byte) (n int, at int64, err error) {
	if len(p) == 0 {
		return 0, 0, nil
	}
	k.buf = p
	err = k.raw.Read(k.attempt)
	k.buf, k.iov.Base = nil, nil
	switch {
	case err != nil:
		return 0, 0, err
	case k.err != nil:
		return 0, 0, &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("recvmsg", k.err)}
	case k.n == 0:
		return 0, 0, io.EOF
	}
	return k.n, receiveTime(k.control[:min(int(k.msg.Controllen), len(k.control))]), nil
}

// try receives once; false asks to be called again when there is something.
func (k *kernelReceiver) try(fd uintptr) bool {
	for {
		k.iov.Base = &k.buf[0]
		k.iov.SetLen(len(k.buf))
		k.msg.Iov = &k.iov
		k.msg.SetIovlen(1)
		k.msg.Control = &k.control[0]
		k.msg.SetControllen(len(k.control))
		n, _, errno := unix.Syscall(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&k.msg)), unix.MSG_DONTWAIT)
		switch errno {
		case 0:
			k.n, k.err = int(n), nil
			return true
		case unix.EINTR:
		case unix.EAGAIN:
			return false
		default:
			k.n, k.err = 0, errno
			return true
		}
	}
}

// receiveTime finds the software receive time among control messages: the
// first of the three timespecs of SCM_TIMESTAMPING. Lengths and times are of
// the machine's word size.
func receiveTime(control []byte) int64 {
	const word = bits.UintSize / 8
	for len(control) >= unix.SizeofCmsghdr {
		size := int(nativeWord(control))
		if size < unix.SizeofCmsghdr || size > len(control) {
			return 0
		}
		level := int32(binary.NativeEndian.Uint32(control[word:]))
		kind := int32(binary.NativeEndian.Uint32(control[word+4:]))
		data := control[unix.SizeofCmsghdr:size]
		if level == unix.SOL_SOCKET && kind == unix.SO_TIMESTAMPING && len(data) >= 2*word {
			return int64(nativeWord(data))*int64(time.Second) + int64(nativeWord(data[word:]))
		}
		next := unix.CmsgSpace(len(data))
		if next > len(control) {
			return 0
		}
		control = control[next:]
	}
	return 0
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
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return true
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return false
	}
	established := true
	err = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		established = err != nil || info.State == tcpEstablished
	})
	return err == nil && established
}
