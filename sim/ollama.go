package sim

import (
	"io"
	"net/http"
	"time"

	"github.com/tacho-bench/tacho/internal/wire"
)

const ndjsonMime = "application/x-ndjson"

var ollamaGenerate = &dialect{
	paths:     []string{wire.OllamaGeneratePath},
	mime:      ndjsonMime,
	frame:     lineFrame,
	read:      readOllamaGenerate,
	errorBody: ollamaErrorBody,
}

var ollamaChat = &dialect{
	paths:     []string{wire.OllamaChatPath},
	mime:      ndjsonMime,
	frame:     lineFrame,
	read:      readOllamaChat,
	errorBody: ollamaErrorBody,
}

// ollamaPages exist only on this server.
var ollamaPages = map[string]page{
	"GET /{$}": func(_ *Server, w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "Ollama is running") // it fails only if the client disconnected
	},
}

func ollamaErrorBody(_ *emulatedServer, c *apiError) []byte {
	return appendJSON(nil, ollamaErrorResponse{Error: c.message})
}

func readOllamaGenerate(in *incoming) (*generation, error) {
	var q ollamaGenerateRequest
	if err := parse(in.body, &q); err != nil {
		return nil, err
	}
	p := in.newPrompt()
	p.AddText(q.System)
	p.AddText(q.Prompt)
	return in.ollamaGeneration(p, q.Model, &q.Options, q.Stream, func(model string, at time.Time, f ollamaFinal, text string) any {
		return ollamaGenerateResponse{Model: model, CreatedAt: at, Response: text, Done: f.DoneReason != "", ollamaFinal: f}
	})
}

func readOllamaChat(in *incoming) (*generation, error) {
	var q ollamaChatRequest
	if err := parse(in.body, &q); err != nil {
		return nil, err
	}
	p := in.newPrompt()
	for _, m := range q.Messages {
		p.AddText(m.Content)
	}
	return in.ollamaGeneration(p, q.Model, &q.Options, q.Stream, func(model string, at time.Time, f ollamaFinal, text string) any {
		return ollamaChatResponse{
			Model: model, CreatedAt: at, Done: f.DoneReason != "", ollamaFinal: f,
			Message: wire.OllamaMessage{Role: "assistant", Content: text},
		}
	})
}

func (in *incoming) ollamaGeneration(p prompt, model string, o *wire.OllamaOptions, stream *bool, line ollamaLine) (*generation, error) {
	a, err := in.generation(p, params{model: model, limit: max(0, o.NumPredict), stream: stream == nil || *stream})
	if err != nil {
		return nil, err
	}
	a.stopAtFirst(stops{strings: o.Stop})
	v := &ollamaEncoder{generation: a, line: line}
	v.token = newTemplate(string(appendJSON(nil, line(a.model, holeTime, ollamaFinal{}, textHole)))+"\n", holeTimeText, textHole)
	a.encoder = v
	return a, nil
}

// holeTime is the placeholder for the time of a line.
var (
	holeTime     = time.Date(1234, 5, 6, 7, 8, 9, 101112131, time.UTC)
	holeTimeText = holeTime.Format(time.RFC3339Nano)
)

// An ollamaLine returns a line of the stream. The line is the last if f contains a
// reason.
type ollamaLine func(model string, at time.Time, f ollamaFinal, text string) any

// ollamaEncoder writes lines of JSON, each with its creation time.
type ollamaEncoder struct {
	*generation
	line  ollamaLine
	token template
}

func (v *ollamaEncoder) early(b []byte) []byte { return b }

func (v *ollamaEncoder) tokens(b []byte, from, to int) []byte {
	if v.onlyEnds(from, to) || v.noVisibleText(from, to) {
		return b
	}
	b = time.Now().UTC().AppendFormat(append(b, v.token[0]...), time.RFC3339Nano)
	b = v.text(append(b, v.token[1]...), from, to)
	return append(b, v.token[2]...)
}

func (v *ollamaEncoder) final() ollamaFinal {
	f := ollamaFinal{
		DoneReason: v.finish, TotalDuration: v.took(v.arrivedAt, v.lastAt), LoadDuration: time.Millisecond,
	}
	if !v.fx.noUsage {
		f.PromptEvalCount, f.EvalCount = v.Tokens-v.cached, v.counted(v.output) // cached tokens are not evaluated, and a count of 0 is omitted
		f.PromptEvalDuration, f.EvalDuration = v.took(v.admittedAt, v.firstAt), v.took(v.firstAt, v.lastAt)
	}
	return f
}

func (v *ollamaEncoder) last(b []byte) []byte {
	return append(appendJSON(b, v.line(v.model, time.Now().UTC(), v.final(), "")), '\n')
}

func (v *ollamaEncoder) whole(b []byte) []byte {
	return v.fillHoles(b, appendJSON(nil, v.line(v.model, time.Now().UTC(), v.final(), textHole)))
}
