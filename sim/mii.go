package sim

import "github.com/tacho-bench/tacho/internal/wire"

// miiGenerate shares its path with other dialects, see generate. The server has no
// format for errors inside a stream.
var miiGenerate = &dialect{
	mime: sseMime,
	read: readMII,
	errorBody: func(_ *emulatedServer, c *apiError) []byte {
		return appendJSON(nil, miiErrorResponse{Error: c.message})
	},
	streamError: func(*emulatedServer, *apiError) []byte { return nil },
}

func readMII(in *incoming) (*generation, error) {
	var q wire.MIIRequest
	if err := parse(in.body, &q); err != nil {
		return nil, err
	}
	p := in.newPrompt()
	p.AddText(q.Prompt)
	if q.MaxTokens == 0 {
		q.MaxTokens = 128 // the protocol's default
	}
	a, err := in.generation(p, params{limit: q.MaxTokens, min: q.MinTokens, stream: q.Stream})
	if err != nil {
		return nil, err
	}
	// MII sends only texts.
	words := func(b []byte, from, to int) []byte {
		return append(a.text(append(b, `{"text": ["`...), from, to), `"]}`...)
	}
	a.encoder = &eventEncoder{generation: a, frame: sseFrame, appendJSON: words, after: doneEvent}
	return a, nil
}

// miiPages replace the common pages.
var miiPages = map[string]page{
	"GET /openapi.json": openAPI("CompletionRequest"),
	"GET /v1/models":    notFound,
}
