package backend

import (
	"bytes"
	"encoding/json"

	"tacho/internal/limit"
	"tacho/wire"
)

// framing is how the events of an answer are told apart.
type framing int

const (
	serverSent  framing = iota // server-sent events
	jsonLines                  // a JSON document a line
	oneDocument                // the answer is one JSON document
)

func (f framing) String() string {
	return [...]string{"a stream of server-sent events", "a stream of JSON lines", "a JSON document"}[f]
}

// accept is what to ask the server for.
func (f framing) accept() string {
	return [...]string{"text/event-stream", "application/x-ndjson", "application/json"}[f]
}

func (f framing) splitter() splitter {
	switch f {
	case jsonLines:
		return new(wire.NDJSONSplitter)
	case oneDocument:
		return new(gatherer)
	default:
		return new(wire.SSESplitter)
	}
}

// A splitter cuts an answer into events, each with the offset of the byte that
// completed it; sse.Splitter has the details.
type splitter interface {
	Feed(piece []byte, emit func(wire.SSEEvent)) error
	Close(emit func(wire.SSEEvent))
	Pending() (end int64, ok bool)
	Partial() bool
}

// A gatherer is the splitter of an answer in one document.
type gatherer struct {
	doc    limit.Buffer
	offset int64
	broken bool // it is over, and no document
}

// Feed implements splitter.
func (g *gatherer) Feed(piece []byte, _ func(wire.SSEEvent)) error {
	g.offset += int64(len(piece))
	if g.offset > limit.Event {
		g.doc.Drop()
		return limit.Bytes("a document", limit.Event)
	}
	g.doc.Add(piece)
	return nil
}

// Close implements splitter.
func (g *gatherer) Close(emit func(wire.SSEEvent)) {
	g.broken = g.Partial()
	if doc := bytes.TrimSpace(g.doc.Take()); json.Valid(doc) {
		g.broken = false
		emit(wire.SSEEvent{Data: doc, End: g.offset - 1})
	}
}

// Pending implements splitter.
func (g *gatherer) Pending() (end int64, ok bool) { return g.offset - 1, g.Partial() }

// Partial implements splitter.
func (g *gatherer) Partial() bool { return g.broken || g.doc.Len() > 0 }
