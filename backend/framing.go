package backend

import (
	"bytes"
	"encoding/json"

	"github.com/tacho-bench/tacho/internal/limit"
	"github.com/tacho-bench/tacho/internal/wire"
)

// framing is the encoding of the events in a response.
type framing int

const (
	serverSent  framing = iota // server-sent events
	jsonLines                  // one JSON document per line
	oneDocument                // the response is one JSON document
)

func (f framing) String() string {
	return [...]string{"a stream of server-sent events", "a stream of JSON lines", "a JSON document"}[f]
}

// accept returns the value of the Accept header.
func (f framing) accept() string {
	return [...]string{"text/event-stream", "application/x-ndjson", "application/json"}[f]
}

func (f framing) splitter() splitter {
	switch f {
	case jsonLines:
		return new(wire.NDJSONSplitter)
	case oneDocument:
		return new(documentSplitter)
	default:
		return new(wire.SSESplitter)
	}
}

// A splitter splits a response into events, each with the offset of the byte that completed it. See
// wire.SSESplitter.
type splitter interface {
	Feed(piece []byte, emit func(wire.SSEEvent)) error
	Close(emit func(wire.SSEEvent))
	Pending() (end int64, ok bool)
	Partial() bool
}

// A documentSplitter is the splitter for a response in one document.
type documentSplitter struct {
	doc    limit.Buffer
	offset int64
	broken bool // the response ended before the document was complete
}

// Feed implements splitter.
func (g *documentSplitter) Feed(piece []byte, _ func(wire.SSEEvent)) error {
	g.offset += int64(len(piece))
	if g.offset > limit.Event {
		g.doc.Drop()
		return limit.Bytes("a document", limit.Event)
	}
	g.doc.Add(piece)
	return nil
}

// Close implements splitter.
func (g *documentSplitter) Close(emit func(wire.SSEEvent)) {
	g.broken = g.Partial()
	if doc := bytes.TrimSpace(g.doc.Take()); json.Valid(doc) {
		g.broken = false
		emit(wire.SSEEvent{Data: doc, End: g.offset - 1})
	}
}

// Pending implements splitter.
func (g *documentSplitter) Pending() (end int64, ok bool) { return g.offset - 1, g.Partial() }

// Partial implements splitter.
func (g *documentSplitter) Partial() bool { return g.broken || g.doc.Len() > 0 }
