package tap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// frameSize is enough for the kernel's header and snapLen bytes.
	frameSize     = 256
	blockSize     = 64 << 10
	defaultFrames = 1 << 15

	headerSize = int(unsafe.Sizeof(unix.Tpacket2Hdr{})) // the link-layer address follows the header
)

// A ring is the packet ring of the kernel. The kernel adds a packet before TCP handles it,
// so the packets of all bytes read from a socket are in the ring.
type ring struct {
	fd     int
	mem    []byte
	at     int // index of the next frame
	frames int
	lost   int64
}

// openRing opens a ring for all interfaces.
func openRing(c Config) (_ *ring, err error) {
	if len(c.Ports) == 0 || len(c.Ports) > maxPorts {
		return nil, fmt.Errorf("tap: %d ports, want 1 to %d", len(c.Ports), maxPorts)
	}
	// Without a protocol, the socket receives nothing until bind.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return nil, fmt.Errorf("%w without CAP_NET_RAW; run sudo setcap cap_net_raw+ep %s", ErrUnavailable, executable())
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, os.NewSyscallError("socket", err))
	}
	r := &ring{fd: fd}
	if err := r.fill(c); err != nil {
		r.close()
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return r, nil
}

// executable returns the path of this program for use in a command line.
func executable() string {
	if path, err := os.Executable(); err == nil {
		return path
	}
	return "$(which tacho)"
}

// fill sets up the ring before the first packet can arrive.
func (r *ring) fill(c Config) error {
	frames := c.Frames
	if frames == 0 {
		frames = defaultFrames
	}
	const perBlock = blockSize / frameSize
	blocks := (frames + perBlock - 1) / perBlock
	r.frames = blocks * perBlock
	program := filter(c.Ports)
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"filter", func() error {
			return unix.SetsockoptSockFprog(r.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
				&unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
		}},
		{"version", func() error { return unix.SetsockoptInt(r.fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V2) }},
		{"ring", func() error {
			return unix.SetsockoptTpacketReq(r.fd, unix.SOL_PACKET, unix.PACKET_RX_RING,
				&unix.TpacketReq{Block_size: blockSize, Block_nr: uint32(blocks), Frame_size: frameSize, Frame_nr: uint32(r.frames)})
		}},
		{"map", func() (err error) {
			r.mem, err = unix.Mmap(r.fd, 0, blocks*blockSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
			return err
		}},
		{"bind", func() error {
			var all [2]byte
			binary.BigEndian.PutUint16(all[:], unix.ETH_P_ALL)
			return unix.Bind(r.fd, &unix.SockaddrLinklayer{Protocol: binary.NativeEndian.Uint16(all[:])})
		}},
	} {
		if err := step.do(); err != nil {
			return os.NewSyscallError("packet "+step.name, err)
		}
	}
	return nil
}

// drain calls take for each packet in the ring.
func (r *ring) drain(take func(packet []byte, length int, out bool, at int64)) {
	for range r.frames {
		frame := r.mem[r.at*frameSize:][:frameSize]
		h := (*unix.Tpacket2Hdr)(unsafe.Pointer(&frame[0]))
		if atomic.LoadUint32(&h.Status)&unix.TP_STATUS_USER == 0 {
			return
		}
		addr := (*unix.RawSockaddrLinklayer)(unsafe.Pointer(&frame[headerSize]))
		end := min(int(h.Net)+int(h.Snaplen), frameSize)
		at := int64(h.Sec)*int64(time.Second) + int64(h.Nsec)
		take(frame[h.Net:end], int(h.Len), addr.Pkttype == outgoing, at)
		atomic.StoreUint32(&h.Status, unix.TP_STATUS_KERNEL)
		r.at = (r.at + 1) % r.frames
	}
}

// countLost adds the kernel's count, which restarts with every call.
func (r *ring) countLost() int64 {
	if s, err := unix.GetsockoptTpacketStats(r.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
		r.lost += int64(s.Drops)
	}
	return r.lost
}

func (r *ring) close() {
	if r.mem != nil {
		_ = unix.Munmap(r.mem) // unmapping a mapped range does not fail
		r.mem = nil
	}
	_ = unix.Close(r.fd) // nothing was written to it
}
