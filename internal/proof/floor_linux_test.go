package proof

import (
	"bytes"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// floorClient is as little as a client can do and still have every byte and
// its time: one thread, epoll, recvmsg. Nothing is parsed but the end.
func floorClient(l load) error {
	ep, err := unix.EpollCreate1(0)
	if err != nil {
		return err
	}
	defer unix.Close(ep)
	addr, err := net.ResolveTCPAddr("tcp4", l.addr)
	if err != nil {
		return err
	}
	to := &unix.SockaddrInet4{Port: addr.Port, Addr: [4]byte(addr.IP.To4())}
	body := requestBody(l.tokens)
	request := fmt.Appendf(nil, "POST /v1/completions HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", l.addr, len(body), body)
	buf, control := make([]byte, 1<<16), make([]byte, 128)
	events := make([]unix.EpollEvent, 256)
	begin := time.Now()
	for opened, open := 0, 0; opened < l.streams || open > 0; {
		for ; opened < l.streams && time.Since(begin) >= l.at(opened); opened++ {
			if err := openStream(ep, to, request); err != nil {
				return err
			}
			open++
		}
		n, err := unix.EpollWait(ep, events, 1)
		if err != nil && err != unix.EINTR {
			return err
		}
		for i := range max(n, 0) {
			fd := int(events[i].Fd)
			k, _, _, _, err := unix.Recvmsg(fd, buf, control, unix.MSG_DONTWAIT)
			if err == unix.EAGAIN {
				continue
			}
			if err != nil || k == 0 {
				return fmt.Errorf("a stream broke: %w", err)
			}
			if bytes.HasSuffix(buf[:k], []byte("0\r\n\r\n")) {
				_ = unix.Close(fd)
				open--
			}
		}
	}
	return nil
}

func openStream(ep int, to unix.Sockaddr, request []byte) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	if err := unix.Connect(fd, to); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING, unix.SOF_TIMESTAMPING_RX_SOFTWARE|unix.SOF_TIMESTAMPING_SOFTWARE); err != nil {
		return err
	}
	if _, err := unix.Write(fd, request); err != nil {
		return err
	}
	return unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
}
