package exposition

import (
	"fmt"
	"math"
	"testing"
)

// The examples of Protobuf's documentation, and every other type of value.
func TestMessage(t *testing.T) {
	for _, c := range []struct {
		value       any
		proto, json string
	}{
		{int64(150), "08 96 01", `{"f":"150"}`},
		{int64(-1), "08 ff ff ff ff ff ff ff ff ff 01", `{"f":"-1"}`},
		{"testing", "0a 07 74 65 73 74 69 6e 67", `{"f":"testing"}`},
		{"a\xff\"\n", "0a 06 61 ef bf bd 22 0a", "{\"f\":\"a\ufffd\\\"\\n\"}"},
		{Message{{1, "g", int64(150)}}, "0a 03 08 96 01", `{"f":{"g":"150"}}`},
		{[]Message{{}, {{2, "g", true}}}, "0a 00 0a 02 10 01", `{"f":[{},{"g":true}]}`},
		{sint(-2), "08 03", `{"f":-2}`},
		{enum(2), "08 02", `{"f":2}`},
		{fixed64(1), "09 01 00 00 00 00 00 00 00", `{"f":"1"}`},
		{1.5, "09 00 00 00 00 00 00 f8 3f", `{"f":1.5}`},
		{math.Inf(1), "09 00 00 00 00 00 00 f0 7f", `{"f":"Infinity"}`},
		{hexBytes{0xab, 1}, "0a 02 ab 01", `{"f":"ab01"}`},
		{[]uint64{3, 270}, "0a 03 03 8e 02", `{"f":["3","270"]}`},
		{[]fixed64{2}, "0a 08 02 00 00 00 00 00 00 00", `{"f":["2"]}`},
		{[]float64{1.5}, "0a 08 00 00 00 00 00 00 f8 3f", `{"f":[1.5]}`},
	} {
		m := Message{{1, "f", c.value}}
		if got := fmt.Sprintf("% x", m.Proto(nil)); got != c.proto {
			t.Errorf("%v: %s, want %s", c.value, got, c.proto)
		}
		if got := string(m.JSON(nil)); got != c.json {
			t.Errorf("%v: %s, want %s", c.value, got, c.json)
		}
	}
}
