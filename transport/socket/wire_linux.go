package socket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/tacho-bench/tacho/transport/socket/tap"
)

// OpenTap also timestamps the connections to these ports at the network device.
func (k *Clock) OpenTap(ports []uint16) (err error) {
	if k == nil {
		return fmt.Errorf("%w: the kernel does not timestamp received data", tap.ErrUnavailable)
	}
	k.tap, err = tap.Open(tap.Config{Ports: ports})
	return err
}

// Stats returns the number of segments seen at the network device.
func (k *Clock) Stats() Stats {
	if k == nil || k.tap == nil {
		return Stats{}
	}
	return k.tap.Stats()
}

// CheckWire tests the wire clock on a loopback connection. It returns an error if the
// clock is not available, or if a byte's time is not between its write and its read.
func CheckWire(ctx context.Context) error {
	err := tryWire(ctx)
	if err != nil && !errors.Is(err, ErrNoWire) {
		err = fmt.Errorf("%w: %w", ErrNoWire, err)
	}
	return err
}

func tryWire(ctx context.Context) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close() //nolint:errcheck // nothing was written to it
	k := NewClock()
	if k != nil {
		defer k.Close()
	}
	if err := k.OpenTap([]uint16{addrPort(l.Addr()).Port()}); err != nil {
		return err
	}
	near, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		return err
	}
	c, err := k.take(near.(*net.TCPConn), false)
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // all of it was read
	far, err := l.Accept()
	if err != nil {
		return err
	}
	defer far.Close() //nolint:errcheck // all of it was written
	return compareWire(c, far)
}

func compareWire(c Conn, far net.Conn) error {
	var wrote [8]int64 // the kernel sends this many segments before the first is acknowledged
	for i := range wrote {
		wrote[i] = now()
		if _, err := far.Write([]byte{0}); err != nil {
			return err
		}
	}
	_ = c.SetReadDeadline(time.Now().Add(time.Second)) // setting a deadline on an open connection does not fail
	for got := 0; got < len(wrote); {
		n, s, err := c.Receive(make([]byte, len(wrote)))
		if err != nil {
			return err
		}
		got += n
		if late := time.Duration(s.At - wrote[got-1]); !s.Wire || late < 0 || s.At > now() {
			return fmt.Errorf("in the self-test, byte %d arrived %v after its write; seen at the network device: %v", got, late, s.Wire)
		}
	}
	return nil
}

// track returns the tap's view of a connection, or nil if the tap did not see its
// handshake.
func (k *Clock) track(local, remote net.Addr) *wire {
	if k.tap == nil {
		return nil
	}
	c := k.tap.Track(addrPort(local), addrPort(remote))
	if c == nil {
		return nil
	}
	return &wire{conn: c}
}

func addrPort(a net.Addr) netip.AddrPort {
	ap := a.(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

// Left implements Conn.
func (c *conn) Left(before, end uint64) (first, last int64, ok bool) {
	if c.wire == nil || end <= before {
		return 0, 0, false
	}
	out := &c.wire.conn.Out
	_, first, ok = out.At(before + 1)
	if ok {
		_, last, ok = out.At(end)
	}
	if !ok {
		out.Skip(end)
	}
	out.Forget(end)
	return first, last, ok
}
