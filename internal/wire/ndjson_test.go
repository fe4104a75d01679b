package wire

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/internal/limit"
)

// split returns the events of a stream fed in pieces of the given size.
func split(stream string, size int) (events []string, partial bool) {
	var s NDJSONSplitter
	emit := func(e SSEEvent) { events = append(events, fmt.Sprintf("%s@%d", e.Data, e.End)) }
	for piece := range slices.Chunk([]byte(stream), size) {
		s.Feed(piece, emit)
	}
	s.Close(emit)
	return events, s.Partial()
}

func TestNDJSONSplitter(t *testing.T) {
	for stream, want := range map[string][]string{
		"{\"a\":1}\n{\"b\":2}\n":           {`{"a":1}@7`, `{"b":2}@15`},
		"\r\n {\"a\":1} \r\n\n{\"b\":2}":   {`{"a":1}@12`, `{"b":2}@20`},
		"{\"a\":1}\n{\"b\":":               {`{"a":1}@7`},
		"":                                 nil,
		"no JSON\n":                        {"no JSON@7"},
		"{\"a\":\"\\n\"}\n{\"b\":\"é\"}\n": {`{"a":"\n"}@10`, `{"b":"é"}@21`},
	} {
		for _, size := range []int{1, 3, 1000} {
			got, _ := split(stream, size)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%q in pieces of %d (-want +got):\n%s", stream, size, diff)
			}
		}
	}
	if _, partial := split("{\"a\":", 2); !partial {
		t.Error("a stream that breaks off inside a line passes for whole")
	}
	if _, partial := split("{}", 2); partial {
		t.Error("a last line without its newline passes for broken")
	}
}

func FuzzNDJSONIgnoresCuts(f *testing.F) {
	f.Add("{\"a\":1}\n{\"b\":2}", uint8(3))
	f.Add("\n\r\n \n[]\n", uint8(1))
	f.Fuzz(func(t *testing.T, stream string, size uint8) {
		whole, partial := split(stream, len(stream)+1)
		cut, cutPartial := split(stream, int(size)+1)
		if diff := cmp.Diff(whole, cut); diff != "" || partial != cutPartial {
			t.Errorf("(-whole +cut):\n%s", diff)
		}
	})
}

// A server that never ends a line cannot exhaust the client's memory.
func TestBoundOnALine(t *testing.T) {
	var s NDJSONSplitter
	var bound *limit.Error
	var err error
	piece := bytes.Repeat([]byte("x"), 1<<20)
	fed := 0
	for ; err == nil && fed < 8*limit.Event; fed += len(piece) {
		err = s.Feed(piece, func(SSEEvent) { t.Error("a line") })
	}
	if !errors.As(err, &bound) || fed < limit.Event {
		t.Errorf("%v after %d MiB, want an error that names the bound", err, fed>>20)
	}
}
