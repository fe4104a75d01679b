package tap

import "golang.org/x/sys/unix"

const (
	// snapLen is the number of bytes kept of a packet. The longest IPv4 and TCP headers
	// have 120 bytes.
	snapLen = 128
	// maxPorts keeps the jumps of the filter within 8 bits.
	maxPorts = 64

	outgoing  = 4 // PACKET_OUTGOING: the packet leaves this host
	ipv4Proto = 0x0800
	ipv6Proto = 0x86dd
	ipv6Size  = 40
	tcpProto  = 6
	synFlag   = 2
	ackFlag   = 16
)

// Offsets at which a filter reads metadata of the packet.
const (
	skbProtocol = 0xfffff000 // network protocol
	skbKind     = 0xfffff004 // packet type: incoming or outgoing
)

// Instructions of the classic packet filter, which has an accumulator A and an index X.
const (
	loadWord     = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	loadHalf     = unix.BPF_LD | unix.BPF_H | unix.BPF_ABS
	loadByte     = unix.BPF_LD | unix.BPF_B | unix.BPF_ABS
	loadHalfAtX  = unix.BPF_LD | unix.BPF_H | unix.BPF_IND
	loadByteAtX  = unix.BPF_LD | unix.BPF_B | unix.BPF_IND
	loadLength   = unix.BPF_LD | unix.BPF_W | unix.BPF_LEN
	loadMemory   = unix.BPF_LD | unix.BPF_MEM
	store        = unix.BPF_ST
	setX         = unix.BPF_LDX | unix.BPF_IMM
	ipv4SizeToX  = unix.BPF_LDX | unix.BPF_B | unix.BPF_MSH
	copyToX      = unix.BPF_MISC | unix.BPF_TAX
	subtractX    = unix.BPF_ALU | unix.BPF_SUB | unix.BPF_X
	shiftRight   = unix.BPF_ALU | unix.BPF_RSH | unix.BPF_K
	and          = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
	jump         = unix.BPF_JMP | unix.BPF_JA
	ifEqual      = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	ifAnyBit     = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	ifGreaterX   = unix.BPF_JMP | unix.BPF_JGT | unix.BPF_X
	answer       = unix.BPF_RET | unix.BPF_K
	toAccept     = 254 // placeholder for a jump to the accept at the end
	toDrop       = 255
	lengthMemory = 0
)

// filter accepts TCP segments to or from one of ports that carry bytes or a SYN. The
// loopback device shows each packet twice, outgoing and incoming; the filter accepts the
// one at the client's end. Packets begin with their network header. The filter drops later
// fragments and packets with IPv6 extension headers.
func filter(ports []uint16) []unix.SockFilter {
	program := []unix.SockFilter{
		{Code: loadWord, K: skbProtocol},
		{Code: ifEqual, K: ipv6Proto, Jt: 6},
		{Code: ifEqual, K: ipv4Proto, Jf: toDrop},
		{Code: loadHalf, K: 6},
		{Code: ifAnyBit, K: 0x1fff, Jt: toDrop}, // not the first fragment
		{Code: ipv4SizeToX, K: 0},
		{Code: loadByte, K: 9},
		{Code: jump, K: 2},
		{Code: setX, K: ipv6Size},
		{Code: loadByte, K: 6},
		{Code: ifEqual, K: tcpProto, Jf: toDrop},
		{Code: loadWord, K: skbKind},
		{Code: ifEqual, K: outgoing, Jf: 2},
		{Code: loadHalfAtX, K: 2}, // destination port
		{Code: jump, K: 1},
		{Code: loadHalfAtX, K: 0}, // source port
	}
	for i, p := range ports {
		program = append(program, unix.SockFilter{Code: ifEqual, K: uint32(p), Jt: uint8(len(ports) - i)})
	}
	program = append(program, []unix.SockFilter{
		{Code: jump, K: 12}, // to the drop at the end
		{Code: loadByteAtX, K: 13},
		{Code: ifAnyBit, K: synFlag, Jt: toAccept},
		{Code: loadLength},
		{Code: subtractX},
		{Code: store, K: lengthMemory},
		{Code: loadByteAtX, K: 12},
		{Code: shiftRight, K: 2},
		{Code: and, K: 0x3c},
		{Code: copyToX}, // length of the TCP header
		{Code: loadMemory, K: lengthMemory},
		{Code: ifGreaterX, Jf: toDrop},
		{Code: answer, K: snapLen},
		{Code: answer, K: 0},
	}...)
	for i := range program {
		left := uint8(len(program) - i - 2)
		for _, j := range []*uint8{&program[i].Jt, &program[i].Jf} {
			switch *j {
			case toDrop:
				*j = left
			case toAccept:
				*j = left - 1
			}
		}
	}
	return program
}
