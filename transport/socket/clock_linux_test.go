package socket

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tacho-bench/tacho/internal/must"
)

// message builds a control message in the kernel's layout.
func message(kind int, words ...uint64) []byte {
	data := make([]byte, 8*len(words))
	for i, w := range words {
		binary.NativeEndian.PutUint64(data[8*i:], w)
	}
	b := make([]byte, unix.CmsgSpace(len(data)))
	binary.NativeEndian.PutUint64(b, uint64(unix.CmsgLen(len(data))))
	binary.NativeEndian.PutUint32(b[8:], unix.SOL_SOCKET)
	binary.NativeEndian.PutUint32(b[12:], uint32(kind))
	copy(b[unix.SizeofCmsghdr:], data)
	return b
}

func TestStampIn(t *testing.T) {
	if unix.SizeofPtr != 8 {
		t.Skip("message lays out 64-bit control messages")
	}
	stamp := message(unix.SO_TIMESTAMPING, 12, 34, 0, 0, 0, 0)
	for _, tt := range []struct {
		name    string
		control []byte
		want    int64
	}{
		{"none", nil, 0},
		{"alone", stamp, 12_000_000_034},
		{"after another", append(message(unix.SCM_RIGHTS, 7), stamp...), 12_000_000_034},
		{"another only", message(unix.SCM_RIGHTS, 7), 0},
		{"cut", stamp[:len(stamp)-1], 0},
		{"no data", message(unix.SO_TIMESTAMPING), 0},
	} {
		if got, _ := stampIn(tt.control); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

func FuzzStampIn(f *testing.F) {
	f.Add(message(unix.SO_TIMESTAMPING, 1, 2, 0, 0, 0, 0))
	f.Fuzz(func(_ *testing.T, control []byte) { stampIn(control) })
}

// Counters counts each retransmit and each segment out of order once.
func TestCounters(t *testing.T) {
	c, _ := pair(t, false)
	c.retransmits-- // as if the kernel had counted one more since the last call
	c.outOfOrder -= 3
	again, more := c.Counters()
	info := must.Get(unix.GetsockoptTCPInfo(c.fd, unix.IPPROTO_TCP, unix.TCP_INFO))(t)
	// If the machine stalls, the kernel may retransmit.
	if n := again - 1; n < 0 || n > int(info.Total_retrans) {
		t.Errorf("%d segments were sent again, want 1, and the kernel counted %d", again, info.Total_retrans)
	}
	if n := more - 3; n < 0 || n > int(info.Rcv_ooopack) {
		t.Errorf("%d segments came out of order, want 3, and the kernel counted %d", more, info.Rcv_ooopack)
	}
	truly := int(info.Total_retrans)
	if again, more := c.Counters(); again > truly || more > int(info.Rcv_ooopack) {
		t.Errorf("%d segments sent again and %d out of order were counted twice", again, more)
	}
}
