package framing

import (
	"fmt"
	"testing"
)

func chunk(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

const chunkedHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

func TestSeveralEvents(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "x": false,
		chunk("data: x\n\n"):                        false,
		chunk("data: x\n\n") + chunk("data: y\n\n"): true,
		chunk("data: x\n\n") + "0\r\n\r\n":          false,
		chunk("{}\n") + chunk("{}\n"):               true,
		chunk("data: x\n\ndata: y\n\n"):             true,
		chunk("a: xy\n\ndata: y\n\n"):               true,
		chunk("event: x\ndata: y\n\n"):              false,
		chunk("data: x\r\n\r\n"):                    false,
		chunkedHead + chunk("data: x\n\n"):          false,
		"\x17\x03\x03\x00\x02ab":                    false,
		"\x17\x03\x03\x00\x02ab\x17":                true,
	} {
		if got := Several([]byte(text)); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
