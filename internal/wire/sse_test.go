package wire_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/internal/limit"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/wire"
)

type event struct {
	Name, Data string
	End        int64
}

// split feeds the pieces and closes the stream.
func split(pieces ...[]byte) []event {
	var s wire.SSESplitter
	var out []event
	emit := func(e wire.SSEEvent) { out = append(out, event{string(e.Name), string(e.Data), e.End}) }
	for _, p := range pieces {
		p = bytes.Clone(p)
		s.Feed(p, emit)
		for i := range p {
			p[i] = '#' // the caller may overwrite the piece after Feed
		}
	}
	s.Close(emit)
	return out
}

func TestSSESplitter(t *testing.T) {
	for _, tc := range []struct {
		name, stream string
		want         []event
	}{
		{"nothing", "", nil},
		{"one", "data: a\n\n", []event{{"", "a", 7}}},
		{"no space", "data:a\n\n", []event{{"", "a", 6}}},
		{"two spaces", "data:  a\n\n", []event{{"", " a", 8}}},
		{"crlf", "data: a\r\n\r\ndata: b\r\n\r\n", []event{{"", "a", 7}, {"", "b", 18}}},
		{"cr", "data: a\r\rdata: b\rdata: c\r\r", []event{{"", "a", 7}, {"", "b\nc", 24}}},
		{"mixed", "data: a\n\rdata: b\r\n\ndata: c\r\r\n", []event{{"", "a", 7}, {"", "b", 16}, {"", "c", 26}}},
		{"end behind a cr", "data: a\r", []event{{"", "a", 7}}},
		{"several lines end at the last", "data: a\ndata: b\n\n", []event{{"", "a\nb", 15}}},
		{"a line behind the data does not move its end", "data: a\nid: 1\n\n", []event{{"", "a", 7}}},
		{"blanks before the newline", "data: {} \t\n\n", []event{{"", "{}", 10}}},
		{"comments", ": ping\n\n:\n\ndata: a\n: in between\n\n", []event{{"", "a", 18}}},
		{"event name", "event: error\ndata: a\n\ndata: b\n\n", []event{{"error", "a", 20}, {"", "b", 29}}},
		{"name without data", "event: ping\n\ndata: b\n\n", []event{{"", "b", 20}}},
		{"id and retry", "id: 7\nretry: 10\ndata: a\n\n", []event{{"", "a", 23}}},
		{"byte order mark", "\xef\xbb\xbfdata: a\n\n", []event{{"", "a", 10}}},
		{"empty data", "data:\n\ndata\n\n", []event{{"", "", 5}, {"", "", 11}}},
		{"unknown field", "datum: a\ndata : b\n\n", nil},
		{"end behind a data line", "data: a\n\ndata: [DONE]\n", []event{{"", "a", 7}, {"", "[DONE]", 21}}},
		{"end inside a data line", "data: a\n\ndata: b", []event{{"", "a", 7}}},
		{"many blank lines", "\n\n\ndata: a\n\n\n\n", []event{{"", "a", 10}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, split([]byte(tc.stream))); diff != "" {
				t.Errorf("whole (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, split(slices.Collect(slices.Chunk([]byte(tc.stream), 1))...)); diff != "" {
				t.Errorf("byte by byte (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPending(t *testing.T) {
	var s wire.SSESplitter
	none := func(e wire.SSEEvent) { t.Errorf("event %q before its blank line", e.Data) }
	s.Feed([]byte("data: a"), none)
	if end, ok := s.Pending(); ok {
		t.Errorf("pending at %d inside a line", end)
	}
	s.Feed([]byte("\n: x\n"), none)
	if end, ok := s.Pending(); !ok || end != 7 {
		t.Errorf("pending %v at %d, want at 7", ok, end)
	}
	n := 0
	s.Feed([]byte("\n"), func(wire.SSEEvent) { n++ })
	if _, ok := s.Pending(); ok || n != 1 {
		t.Errorf("%d events, still pending: %v", n, ok)
	}
}

// The events do not depend on how the stream is cut into pieces.
func FuzzSSEIgnoresCuts(f *testing.F) {
	f.Add([]byte("\xef\xbb\xbfdata: a\n\ndata: b\r\n\r\n: ping\n\nevent: x\ndata: c\ndata: d \n\n"), uint16(3), uint16(9))
	f.Add([]byte("data: [DONE]\n"), uint16(6), uint16(13))
	f.Add([]byte("data: a\r\rdata: b\r\n\rdata: c\n\r\n"), uint16(8), uint16(18))
	f.Add([]byte("0\ndata:00\n0000001"), uint16(6), uint16(9)) // a line in two pieces, and a part of the next line
	f.Add([]byte("data: cut"), uint16(1), uint16(1))
	f.Fuzz(func(t *testing.T, b []byte, i, j uint16) {
		x, y := int(i)%(len(b)+1), int(j)%(len(b)+1)
		x, y = min(x, y), max(x, y)
		whole := split(b)
		if cut := split(b[:x], b[x:y], b[y:]); !slices.Equal(whole, cut) {
			t.Errorf("whole %v, cut at %d and %d %v", whole, x, y, cut)
		}
		if cut := split(slices.Collect(slices.Chunk(b, 1))...); !slices.Equal(whole, cut) {
			t.Errorf("whole %v, byte by byte %v", whole, cut)
		}
		for _, e := range whole {
			if e.End < 0 || e.End >= int64(len(b)) || b[e.End] != '\n' && b[e.End] != '\r' {
				t.Errorf("event %q ends at %d, which does not end a line", e.Data, e.End)
			}
		}
	})
}

// An SSESplitter reads back the events written by a server.
func FuzzSSEWrite(f *testing.F) {
	f.Add("", `{"a":1}`)
	f.Add("error", "two\nlines")
	f.Fuzz(func(t *testing.T, name, data string) {
		lines := strings.Split(data, "\n")
		for i := range lines {
			lines[i] = strings.TrimRight(lines[i], " \t\r") // trailing white space is not preserved
		}
		if strings.ContainsAny(name, "\r\n") {
			t.Skip("no such event name")
		}
		var b bytes.Buffer
		if name != "" {
			fmt.Fprintf(&b, "event: %s\n", name)
		}
		fmt.Fprintf(&b, "data: %s\n\n", strings.ReplaceAll(data, "\n", "\ndata: "))
		want := []event{{name, strings.Join(lines, "\n"), int64(b.Len() - 2)}}
		if diff := cmp.Diff(want, split(b.Bytes())); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestWholeEventsDoNotAllocate(t *testing.T) {
	stream := bytes.Repeat([]byte("data: {\"choices\":[]}\n\n"), 100)
	var s wire.SSESplitter
	n := 0
	emit := func(wire.SSEEvent) { n++ }
	if allocs := testing.AllocsPerRun(10, func() { s.Feed(stream, emit) }); allocs != 0 {
		t.Errorf("%v allocations for 100 events, want 0", allocs)
	}
	if n == 0 {
		t.Error("no events")
	}
}

func BenchmarkFeed(b *testing.B) {
	stream := bytes.Repeat([]byte(`data: {"id":"cmpl-1","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":" the","logprobs":null,"finish_reason":null}]}`+"\n\n"), 100)
	var s wire.SSESplitter
	emit := func(wire.SSEEvent) {}
	b.ReportAllocs()
	b.SetBytes(int64(len(stream)))
	for b.Loop() {
		s.Feed(stream, emit)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*100), "ns/event")
}

// A server that never ends an event or a line cannot exhaust the client's memory.
func TestBoundOnAnEvent(t *testing.T) {
	for name, piece := range map[string]string{
		"one line":        strings.Repeat("x", 1<<20),
		"lines of data":   strings.Repeat("data: "+strings.Repeat("x", 1<<10)+"\n", 1<<10),
		"an event's name": "event: " + strings.Repeat("x", 1<<20),
	} {
		var s wire.SSESplitter
		var bound *limit.Error
		var err error
		fed := 0
		for ; err == nil && fed < 8*limit.Event; fed += len(piece) {
			err = s.Feed([]byte(piece), func(wire.SSEEvent) { t.Errorf("%s: an event", name) })
		}
		if !errors.As(err, &bound) {
			t.Errorf("%s: %v after %d MiB, want an error that names the bound", name, err, fed>>20)
		}
	}
}

// A long event is emitted if it ends within the limit.
func TestLongEvent(t *testing.T) {
	var s wire.SSESplitter
	got := 0
	for _, piece := range []string{"data: ", strings.Repeat("x", limit.Event-100), "\n\n"} {
		must.Do(t, s.Feed([]byte(piece), func(e wire.SSEEvent) { got = len(e.Data) }))
	}
	if got != limit.Event-100 {
		t.Errorf("%d bytes of data, want %d", got, limit.Event-100)
	}
}

// An SSESplitter reads back the events written by AppendSSE.
func TestAppendSSE(t *testing.T) {
	stream := wire.AppendSSE(nil, "", []byte(`{"a": 1}`))
	stream = wire.AppendSSE(stream, "error", []byte(`{}`))
	stream = append(stream, wire.SSEBegin+"[DONE]"+wire.SSEEnd...)
	got := split(stream)
	for i := range got {
		got[i].End = 0
	}
	want := []event{{Data: `{"a": 1}`}, {Name: "error", Data: `{}`}, {Data: "[DONE]"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
