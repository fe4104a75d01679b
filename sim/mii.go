package sim

import "tacho/wire/mii"

// miiGenerate shares its path with others, see generate. The server has no
// words for what goes wrong inside a stream.
var miiGenerate = &dialect{
	mime: "text/event-stream; charset=utf-8",
	read: readMII,
	refusal: func(_ *pose, c *complaint) []byte {
		return appendJSON(nil, mii.ErrorResponse{Error: c.message})
	},
	broken: func(*pose, *complaint) []byte { return nil },
}

func readMII(in *incoming) (*ask, error) {
	var q mii.Request
	if err := parse(in.body, &q); err != nil {
		return nil, err
	}
	p := in.newPrompt()
	p.addText(q.Prompt)
	if q.MaxTokens == 0 {
		q.MaxTokens = 128 // the protocol's default
	}
	a, err := in.ask(p, wish{limit: q.MaxTokens, min: q.MinTokens, stream: q.Stream})
	if err != nil {
		return nil, err
	}
	a.voice = &miiVoice{a}
	return a, nil
}

// miiVoice says texts and nothing else.
type miiVoice struct{ *ask }

func (v *miiVoice) early(b []byte) []byte { return b }

func (v *miiVoice) tokens(b []byte, from, to int) []byte {
	return append(v.answer(append(b, "data: "...), from, to), "\n\n"...)
}

func (v *miiVoice) answer(b []byte, from, to int) []byte {
	return append(v.text(append(b, `{"text": ["`...), from, to), `"]}`...)
}

func (v *miiVoice) last(b []byte) []byte { return append(b, doneEvent...) }

func (v *miiVoice) whole(b []byte) []byte { return v.answer(b, 0, v.output) }

// miiPages are what the server has instead of what others have.
var miiPages = map[string]page{
	"GET /openapi.json": openAPI("CompletionRequest"),
	"GET /v1/models":    missing,
}
