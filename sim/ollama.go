package sim

import (
	"io"
	"net/http"
	"time"

	"tacho/wire"
)

const ndjsonMime = "application/x-ndjson"

var ollamaGenerate = &dialect{
	paths:   []string{wire.OllamaGeneratePath},
	mime:    ndjsonMime,
	frame:   lineFrame,
	read:    readOllamaGenerate,
	refusal: ollamaRefusal,
}

var ollamaChat = &dialect{
	paths:   []string{wire.OllamaChatPath},
	mime:    ndjsonMime,
	frame:   lineFrame,
	read:    readOllamaChat,
	refusal: ollamaRefusal,
}

// ollamaPages are what only this server has.
var ollamaPages = map[string]page{
	"GET /{$}": func(_ *Server, w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "Ollama is running") // it fails only if the client has gone
	},
}

func ollamaRefusal(_ *pose, c *complaint) []byte {
	return appendJSON(nil, ollamaErrorResponse{Error: c.message})
}

func readOllamaGenerate(in *incoming) (*ask, error) {
	var q ollamaGenerateRequest
	if err := parse(in.body, &q); err != nil {
		return nil, err
	}
	p := in.newPrompt()
	p.AddText(q.System)
	p.AddText(q.Prompt)
	return in.askOllama(p, q.Model, &q.Options, q.Stream, func(model string, at time.Time, f ollamaFinal, text string) any {
		return ollamaGenerateResponse{Model: model, CreatedAt: at, Response: text, Done: f.DoneReason != "", ollamaFinal: f}
	})
}

func readOllamaChat(in *incoming) (*ask, error) {
	var q ollamaChatRequest
	if err := parse(in.body, &q); err != nil {
		return nil, err
	}
	p := in.newPrompt()
	for _, m := range q.Messages {
		p.AddText(m.Content)
	}
	return in.askOllama(p, q.Model, &q.Options, q.Stream, func(model string, at time.Time, f ollamaFinal, text string) any {
		return ollamaChatResponse{
			Model: model, CreatedAt: at, Done: f.DoneReason != "", ollamaFinal: f,
			Message: wire.OllamaMessage{Role: "assistant", Content: text},
		}
	})
}

func (in *incoming) askOllama(p prompt, model string, o *wire.OllamaOptions, stream *bool, line ollamaLine) (*ask, error) {
	a, err := in.ask(p, wish{model: model, limit: max(0, o.NumPredict), stream: stream == nil || *stream})
	if err != nil {
		return nil, err
	}
	a.stopAtFirst(stops{strings: o.Stop})
	v := &ollamaVoice{ask: a, line: line}
	v.token = newTemplate(string(appendJSON(nil, line(a.model, holeTime, ollamaFinal{}, textHole)))+"\n", holeTimeText, textHole)
	a.voice = v
	return a, nil
}

// holeTime is where a line's time goes.
var (
	holeTime     = time.Date(1234, 5, 6, 7, 8, 9, 101112131, time.UTC)
	holeTimeText = holeTime.Format(time.RFC3339Nano)
)

// An ollamaLine is a line of the stream at a time; it is the last if the final
// part has a reason.
type ollamaLine func(model string, at time.Time, f ollamaFinal, text string) any

// ollamaVoice writes lines of JSON, each with the time at which it was made.
type ollamaVoice struct {
	*ask
	line  ollamaLine
	token template
}

func (v *ollamaVoice) early(b []byte) []byte { return b }

func (v *ollamaVoice) tokens(b []byte, from, to int) []byte {
	if v.onlyEnds(from, to) || v.unheard(from, to) {
		return b
	}
	b = time.Now().UTC().AppendFormat(append(b, v.token[0]...), time.RFC3339Nano)
	b = v.text(append(b, v.token[1]...), from, to)
	return append(b, v.token[2]...)
}

func (v *ollamaVoice) final() ollamaFinal {
	f := ollamaFinal{
		DoneReason: v.finish, TotalDuration: v.took(v.arrivedAt, v.lastAt), LoadDuration: time.Millisecond,
	}
	if !v.fx.noUsage {
		f.PromptEvalCount, f.EvalCount = v.Tokens-v.cached, v.counted(v.output) // cached tokens are not evaluated, and a count of 0 is left out
		f.PromptEvalDuration, f.EvalDuration = v.took(v.admittedAt, v.firstAt), v.took(v.firstAt, v.lastAt)
	}
	return f
}

func (v *ollamaVoice) last(b []byte) []byte {
	return append(appendJSON(b, v.line(v.model, time.Now().UTC(), v.final(), "")), '\n')
}

func (v *ollamaVoice) whole(b []byte) []byte {
	return v.retell(b, appendJSON(nil, v.line(v.model, time.Now().UTC(), v.final(), textHole)), 0, v.output)
}
