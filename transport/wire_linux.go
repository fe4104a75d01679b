package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"tacho"
	"tacho/transport/tap"
)

// openTap has connections to some ports stamped at the network device, too.
func (k *kernelClock) openTap(ports []uint16) (err error) {
	if k == nil {
		return fmt.Errorf("%w: the kernel does not stamp what sockets receive", tap.ErrUnavailable)
	}
	k.tap, err = tap.Open(tap.Config{Ports: ports})
	return err
}

func (k *kernelClock) stats() tap.Stats {
	if k.tap == nil {
		return tap.Stats{}
	}
	return k.tap.Stats()
}

// CheckWire says why there is no wire clock to be had, or why it is not sound:
// bytes that we send to ourselves must have come after they were written and
// before they were read.
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
	k := newKernelClock()
	if k != nil {
		defer k.close()
	}
	if err := k.openTap([]uint16{addrPort(l.Addr()).Port()}); err != nil {
		return err
	}
	near, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		return err
	}
	c, err := newConn(near, k, false)
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

func compareWire(c *conn, far net.Conn) error {
	var wrote [8]int64 // so many segments leave before the first is acknowledged
	for i := range wrote {
		wrote[i] = now()
		if _, err := far.Write([]byte{0}); err != nil {
			return err
		}
	}
	_ = c.SetReadDeadline(time.Now().Add(time.Second)) // it does not fail on an open connection
	for got := 0; got < len(wrote); {
		n, s, err := c.kernel.receive(make([]byte, len(wrote)))
		if err != nil {
			return err
		}
		got += n
		if late := time.Duration(s.at - wrote[got-1]); !s.wire || late < 0 || s.at > now() {
			return fmt.Errorf("byte %d of a trial is said to have come %v after it was written; seen at the network device: %v", got, late, s.wire)
		}
	}
	return nil
}

// track looks for a connection at the network device. It is nil if its beginning
// was not seen there.
func (k *kernelClock) track(local, remote net.Addr) *wire {
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

// A wire is a connection as it is seen at the network device. It belongs to the
// reader.
type wire struct {
	conn *tap.Conn
	read uint64 // bytes that the reader has
}

// first looks at n bytes that were received in one piece with one stamp. It
// says how many of them came with their first segment, and when. Where that was
// not seen the piece stays whole and keeps its stamp.
func (w *wire) first(n int, s stamp) (int, stamp) {
	end, at, ok := w.conn.In.At(w.read + 1)
	had := s.at + int64(s.lag)
	if !ok || at > s.at { // or it was not seen until it was sent again: the socket had all of it by its own stamp
		w.conn.In.Skip(w.read + uint64(n))
		return n, s
	}
	if end-w.read >= uint64(n) {
		w.conn.In.Forget(w.read)
	}
	return int(min(uint64(n), end-w.read)), stamp{at: at, lag: tacho.SaturatedNanos(time.Duration(had - at)), kernel: true, wire: true}
}

// left says when the first of some bytes that were sent left, and when the last.
// They are those after the first before.
func (p *polled) left(before, end uint64) (first, last int64, ok bool) {
	if p.wire == nil || end <= before {
		return 0, 0, false
	}
	out := &p.wire.conn.Out
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
