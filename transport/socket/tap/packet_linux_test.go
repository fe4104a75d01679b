package tap

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// timespec reads the first timespec of SCM_TIMESTAMPING.
func timespec(b []byte) int64 {
	if len(b) < int(unsafe.Sizeof(unix.Timespec{})) {
		return 0
	}
	ts := (*unix.Timespec)(unsafe.Pointer(&b[0]))
	return ts.Nano()
}

// packet4 returns the headers of an IPv4 packet, both IP and TCP with options.
func packet4(total, options, tcpOptions int) []byte {
	p := make([]byte, 20+options+20+tcpOptions)
	p[0] = 4<<4 | byte(20+options)/4
	binary.BigEndian.PutUint16(p[2:], uint16(total))
	copy(p[12:], []byte{10, 0, 0, 1, 10, 0, 0, 2})
	tcp(p[20+options:], tcpOptions)
	return p
}

func packet6(payload, tcpOptions int) []byte {
	p := make([]byte, 40+20+tcpOptions)
	p[0] = 6 << 4
	binary.BigEndian.PutUint16(p[4:], uint16(payload))
	copy(p[8:], netip.MustParseAddr("fd00::1").AsSlice())
	copy(p[24:], netip.MustParseAddr("fd00::2").AsSlice())
	tcp(p[40:], tcpOptions)
	return p
}

func tcp(p []byte, options int) {
	binary.BigEndian.PutUint16(p, 1111)
	binary.BigEndian.PutUint16(p[2:], 2222)
	binary.BigEndian.PutUint32(p[4:], 0xfffffff0)
	p[12] = byte(20+options) / 4 << 4
	p[13] = ackFlag
}

func TestParse(t *testing.T) {
	four := []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:1111"), netip.MustParseAddrPort("10.0.0.2:2222")}
	six := []netip.AddrPort{netip.MustParseAddrPort("[fd00::1]:1111"), netip.MustParseAddrPort("[fd00::2]:2222")}
	for _, c := range []struct {
		name   string
		packet []byte
		length int
		ends   []netip.AddrPort
		bytes  int
	}{
		{"plain", packet4(140, 0, 0), 140, four, 100},
		{"padded to the shortest frame", packet4(41, 0, 0), 46, four, 1},
		{"options", packet4(140, 8, 12), 140, four, 80},
		{"merged beyond 64 KiB", packet4(0, 0, 12), 100_052, four, 100_000},
		{"IPv6", packet6(132, 12), 172, six, 100},
		{"IPv6 merged beyond 64 KiB", packet6(0, 12), 100_072, six, 100_000},
	} {
		out, ok := parse(c.packet, c.length, true)
		if want := newTuple(c.ends[0], c.ends[1]); !ok || out.tuple != want || out.bytes != c.bytes || out.seq != 0xfffffff0 || out.flags != ackFlag {
			t.Errorf("%s, sent: %+v, %v", c.name, out, ok)
		}
		in, ok := parse(c.packet, c.length, false)
		if want := newTuple(c.ends[1], c.ends[0]); !ok || in.tuple != want || in.bytes != c.bytes {
			t.Errorf("%s, received: %+v, %v", c.name, in, ok)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(packet4(140, 8, 12), 140)
	f.Add(packet6(132, 12), 172)
	f.Fuzz(func(t *testing.T, p []byte, length int) {
		if s, ok := parse(p, length, true); ok && s.bytes < 0 {
			t.Errorf("%d bytes", s.bytes)
		}
	})
}
