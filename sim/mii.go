package sim

import "tacho/wire"

// miiGenerate shares its path with others, see generate. The server has no
// words for what goes wrong inside a stream.
var miiGenerate = &dialect{
	mime: sseMime,
	read: readMII,
	refusal: func(_ *pose, c *complaint) []byte {
		return appendJSON(nil, miiErrorResponse{Error: c.message})
	},
	broken: func(*pose, *complaint) []byte { return nil },
}

func readMII(in *incoming) (*ask, error) {
	var q wire.MIIRequest
	if err := parse(in.body, &q); err != nil {
		return nil, err
	}
	p := in.newPrompt()
	p.AddText(q.Prompt)
	if q.MaxTokens == 0 {
		q.MaxTokens = 128 // the protocol's default
	}
	a, err := in.ask(p, wish{limit: q.MaxTokens, min: q.MinTokens, stream: q.Stream})
	if err != nil {
		return nil, err
	}
	// It tells texts and nothing else.
	words := func(b []byte, from, to int) []byte {
		return append(a.text(append(b, `{"text": ["`...), from, to), `"]}`...)
	}
	a.voice = &eventVoice{ask: a, frame: sseFrame, words: words, after: doneEvent}
	return a, nil
}

// miiPages are what the server has instead of what others have.
var miiPages = map[string]page{
	"GET /openapi.json": openAPI("CompletionRequest"),
	"GET /v1/models":    missing,
}
