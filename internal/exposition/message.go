package exposition

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// A Message is a Protobuf message. The same fields encode as Protobuf and as the JSON of OTLP.
type Message []field

// A field is one field of a message. The type of its value decides how it is encoded: string, bool, float64, int64,
// uint64, sint, enum, fixed64, hexBytes, one message, or a list of the last types below.
type field struct {
	number int
	name   string // in JSON
	value  any
}

type (
	fixed64  uint64 // eight bytes; a string in JSON
	sint     int64  // zigzag encoding
	enum     int32  // a number in JSON
	hexBytes []byte // hexadecimal in OTLP's JSON, unlike in the usual JSON of Protobuf
)

// Wire types of Protobuf.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
)

// Proto appends the message in Protobuf.
func (m Message) Proto(out []byte) []byte {
	for _, f := range m {
		out = f.proto(out)
	}
	return out
}

func (f field) proto(out []byte) []byte {
	tag := func(wire int) []byte { return binary.AppendUvarint(out, uint64(f.number)<<3|uint64(wire)) }
	bytes := func(b []byte) []byte {
		return append(binary.AppendUvarint(tag(wireBytes), uint64(len(b))), b...)
	}
	varint := func(v uint64) []byte { return binary.AppendUvarint(tag(wireVarint), v) }
	switch v := f.value.(type) {
	case string:
		return bytes([]byte(valid(v)))
	case hexBytes:
		return bytes(v)
	case bool:
		return varint(uint64(btoi(v)))
	case int64:
		return varint(uint64(v))
	case uint64:
		return varint(v)
	case enum:
		return varint(uint64(v))
	case sint:
		return varint(zigzag(v))
	case fixed64:
		return binary.LittleEndian.AppendUint64(tag(wireFixed64), uint64(v))
	case float64:
		return binary.LittleEndian.AppendUint64(tag(wireFixed64), math.Float64bits(v))
	case Message:
		return bytes(v.Proto(nil))
	case []Message:
		for _, each := range v {
			out = field{f.number, "", each}.proto(out)
		}
		return out
	}
	return bytes(packed(f.value))
}

// packed returns the values of a list of numbers in Protobuf.
func packed(list any) (out []byte) {
	switch list := list.(type) {
	case []fixed64:
		for _, v := range list {
			out = binary.LittleEndian.AppendUint64(out, uint64(v))
		}
	case []float64:
		for _, v := range list {
			out = binary.LittleEndian.AppendUint64(out, math.Float64bits(v))
		}
	case []uint64:
		for _, v := range list {
			out = binary.AppendUvarint(out, v)
		}
	case []sint:
		for _, v := range list {
			out = binary.AppendUvarint(out, zigzag(v))
		}
	default:
		panic("exposition: a field of an unknown type")
	}
	return out
}

func zigzag(v sint) uint64 { return uint64(v)<<1 ^ uint64(v>>63) }

// valid replaces invalid UTF-8, because one invalid byte would make the whole message invalid.
func valid(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

// JSON appends the message in JSON.
func (m Message) JSON(out []byte) []byte {
	out = append(out, '{')
	for i, f := range m {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(strconv.AppendQuote(out, f.name), ':')
		out = jsonValue(out, f.value)
	}
	return append(out, '}')
}

func jsonValue(out []byte, value any) []byte {
	switch v := value.(type) {
	case string:
		quoted, _ := json.Marshal(valid(v)) // a string cannot fail
		return append(out, quoted...)
	case hexBytes:
		return strconv.AppendQuote(out, hex.EncodeToString(v))
	case bool:
		return strconv.AppendBool(out, v)
	case int64:
		return strconv.AppendQuote(out, strconv.FormatInt(v, 10))
	case uint64:
		return strconv.AppendQuote(out, strconv.FormatUint(v, 10))
	case fixed64:
		return strconv.AppendQuote(out, strconv.FormatUint(uint64(v), 10))
	case enum:
		return strconv.AppendInt(out, int64(v), 10)
	case sint:
		return strconv.AppendInt(out, int64(v), 10)
	case float64:
		return jsonFloat(out, v)
	case Message:
		return v.JSON(out)
	case []Message:
		return jsonList(out, v, func(out []byte, m Message) []byte { return m.JSON(out) })
	case []fixed64:
		return jsonList(out, v, func(out []byte, n fixed64) []byte { return jsonValue(out, n) })
	case []uint64:
		return jsonList(out, v, func(out []byte, n uint64) []byte { return jsonValue(out, n) })
	case []float64:
		return jsonList(out, v, jsonFloat)
	}
	panic("exposition: a field of an unknown type")
}

func jsonList[T any](out []byte, list []T, each func([]byte, T) []byte) []byte {
	out = append(out, '[')
	for i, v := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = each(out, v)
	}
	return append(out, ']')
}

// jsonFloat appends a number. Protobuf's JSON has strings for values that JSON cannot represent.
func jsonFloat(out []byte, v float64) []byte {
	switch {
	case math.IsInf(v, 1):
		return append(out, `"Infinity"`...)
	case math.IsInf(v, -1):
		return append(out, `"-Infinity"`...)
	case math.IsNaN(v):
		return append(out, `"NaN"`...)
	}
	return strconv.AppendFloat(out, v, 'g', -1, 64)
}
