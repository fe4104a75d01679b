package token

import (
	"encoding/binary"
	"errors"
	"math"
)

// protoField is one undecoded field of a protocol buffer message.
type protoField struct {
	number int
	varint uint64 // value of a varint or fixed-width field
	bytes  []byte // value of a length-delimited field
}

var errProto = errors.New("not a protocol buffer message")

// protoFields calls field for each field of a message.
func protoFields(b []byte, field func(protoField) error) error {
	for len(b) > 0 {
		key, n := binary.Uvarint(b)
		if n <= 0 || key>>3 == 0 || key>>3 > math.MaxInt32 {
			return errProto
		}
		f := protoField{number: int(key >> 3)}
		m := f.read(b[n:], int(key&7))
		if m < 0 {
			return errProto
		}
		b = b[n+m:]
		if err := field(f); err != nil {
			return err
		}
	}
	return nil
}

// read reads a value with the given wire type and returns its length, or -1.
func (f *protoField) read(b []byte, wireType int) int {
	n := -1
	switch wireType {
	case 0:
		if f.varint, n = binary.Uvarint(b); n <= 0 {
			return -1
		}
	case 1:
		if len(b) >= 8 {
			f.varint, n = binary.LittleEndian.Uint64(b), 8
		}
	case 2:
		if size, m := binary.Uvarint(b); m > 0 && size <= uint64(len(b)-m) {
			n = m + int(size)
			f.bytes = b[m:n]
		}
	case 5:
		if len(b) >= 4 {
			f.varint, n = uint64(binary.LittleEndian.Uint32(b)), 4
		}
	}
	return n
}
