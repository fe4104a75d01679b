package tap

import "golang.org/x/sys/unix"

const (
	// snapLen is how much of a packet is kept: the longest headers of IPv4 and
	// TCP are 120 bytes.
	snapLen = 128
	// maxPorts keeps the jumps of the filter within their 8 bits.
	maxPorts = 64

	outgoing  = 4 // PACKET_OUTGOING: the packet leaves this host
	ipv4Proto = 0x0800
	ipv6Proto = 0x86dd
	ipv6Size  = 40
	tcpProto  = 6
	synFlag   = 2
	ackFlag   = 16
)

// Where the kernel shows a filter what is not in the packet itself.
const (
	skbProtocol = 0xfffff000 // of the network
	skbKind     = 0xfffff004 // whether the packet comes or leaves
)

// Instructions of the classic packet filter, which has an accumulator A and an
// index X.
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
	toAccept     = 254 // stands for the way to the end, which is not known yet
	toDrop       = 255
	lengthMemory = 0
)

// filter passes TCP segments that go out to one of ports or come in from one,
// and carry bytes or a SYN. On the loopback a packet is seen leaving and coming:
// this takes the one at the client's end. Packets begin with their network
// header. It does not look into fragments, nor behind extension headers of IPv6.
func filter(ports []uint16) []unix.SockFilter {
	program := []unix.SockFilter{
		{Code: loadWord, K: skbProtocol},
		{Code: ifEqual, K: ipv6Proto, Jt: 6},
		{Code: ifEqual, K: ipv4Proto, Jf: toDrop},
		{Code: loadHalf, K: 6},
		{Code: ifAnyBit, K: 0x1fff, Jt: toDrop}, // a fragment that is not the first
		{Code: ipv4SizeToX, K: 0},
		{Code: loadByte, K: 9},
		{Code: jump, K: 2},
		{Code: setX, K: ipv6Size},
		{Code: loadByte, K: 6},
		{Code: ifEqual, K: tcpProto, Jf: toDrop},
		{Code: loadWord, K: skbKind},
		{Code: ifEqual, K: outgoing, Jf: 2},
		{Code: loadHalfAtX, K: 2}, // the port it goes to
		{Code: jump, K: 1},
		{Code: loadHalfAtX, K: 0}, // the port it comes from
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
		{Code: copyToX}, // the length of the TCP header
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
