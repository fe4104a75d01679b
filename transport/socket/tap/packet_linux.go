package tap

import (
	"encoding/binary"
	"net/netip"
)

// A tuple identifies a connection from our end. IPv4 addresses are mapped to IPv6, without
// zones.
type tuple struct {
	local, remote         [16]byte
	localPort, remotePort uint16
}

func newTuple(local, remote netip.AddrPort) tuple {
	return tuple{local.Addr().As16(), remote.Addr().As16(), local.Port(), remote.Port()}
}

// A segment is the parsed headers of a packet.
type segment struct {
	tuple tuple
	out   bool
	flags byte
	seq   uint32
	bytes int // payload bytes
}

// parse reads the headers of a packet that passed the filter. length is the length of the
// whole packet. Short frames are padded, so parse uses the length in the network header,
// unless the length is 0: then the kernel merged more packets than the field can count.
func parse(p []byte, length int, out bool) (s segment, ok bool) {
	var src, dst [16]byte
	var t []byte
	switch {
	case len(p) >= 20 && p[0]>>4 == 4:
		size := int(p[0]&15) * 4
		if size < 20 || size > len(p) {
			return s, false
		}
		src, dst = netip.AddrFrom4([4]byte(p[12:16])).As16(), netip.AddrFrom4([4]byte(p[16:20])).As16()
		if n := int(binary.BigEndian.Uint16(p[2:])); n > 0 {
			length = n
		}
		t, length = p[size:], length-size
	case len(p) >= ipv6Size && p[0]>>4 == 6:
		src, dst = [16]byte(p[8:24]), [16]byte(p[24:40])
		if n := int(binary.BigEndian.Uint16(p[4:])); n > 0 {
			length = n + ipv6Size
		}
		t, length = p[ipv6Size:], length-ipv6Size
	}
	if len(t) < 14 {
		return s, false
	}
	srcPort, dstPort := binary.BigEndian.Uint16(t), binary.BigEndian.Uint16(t[2:])
	s = segment{out: out, seq: binary.BigEndian.Uint32(t[4:]), flags: t[13], bytes: length - int(t[12]>>4)*4}
	if out {
		s.tuple = tuple{src, dst, srcPort, dstPort}
	} else {
		s.tuple = tuple{dst, src, dstPort, srcPort}
	}
	return s, s.bytes >= 0
}
