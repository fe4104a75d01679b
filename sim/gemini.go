package sim

import (
	"net/http"
	"strings"

	"github.com/tacho-bench/tacho/internal/wire"
)

// geminiStream's path contains the model and the method in one segment.
var geminiStream = &dialect{
	mime:      "text/event-stream",
	frame:     geminiFrame,
	read:      readGemini,
	errorBody: geminiErrorBody,
	lateHead:  true,
}

// geminiFrame uses lines that end in CRLF.
var geminiFrame = frame{wire.SSEBegin, "\r\n\r\n"}

func geminiErrorBody(_ *emulatedServer, c *apiError) []byte {
	word := strings.ToUpper(strings.ReplaceAll(http.StatusText(c.status), " ", "_"))
	return appendJSON(nil, geminiErrorResponse{Error: geminiError{Code: c.status, Message: c.message, Status: word}})
}

// geminiPages exist only on this server, which has no other models page.
var geminiPages = map[string]page{
	"GET /v1/models": notFound,
	"GET " + wire.GeminiModelsPath: func(s *Server, w http.ResponseWriter, _ *http.Request) {
		output := s.opt.MaxModelLen / 4
		writeJSON(w, wire.GeminiModelList{Models: []wire.GeminiModel{{
			Name: "models/" + s.opt.Model, InputTokenLimit: s.opt.MaxModelLen - output, OutputTokenLimit: output,
		}}})
	},
	"POST " + wire.GeminiModelsPath + "/{call}": func(s *Server, w http.ResponseWriter, r *http.Request) {
		switch _, verb, _ := strings.Cut(r.PathValue("call"), ":"); verb {
		case "streamGenerateContent", "generateContent":
			s.generate(geminiStream)(w, r)
		case "countTokens":
			var q wire.GeminiCountTokensRequest
			if readJSON(w, r, &q) {
				var p prompt
				p.addContents(q.Contents)
				writeJSON(w, wire.GeminiCountTokensResponse{TotalTokens: p.Tokens})
			}
		default:
			http.NotFound(w, r)
		}
	},
}

func (p *prompt) addContents(contents []wire.GeminiContent) {
	for _, c := range contents {
		for _, part := range c.Parts {
			p.AddText(part.Text)
		}
	}
}

func readGemini(in *incoming) (*generation, error) {
	var q wire.GeminiRequest
	if err := parse(in.body, &q); err != nil {
		return nil, err
	}
	p := in.newPrompt()
	if q.SystemInstruction != nil {
		p.addContents([]wire.GeminiContent{*q.SystemInstruction})
	}
	p.addContents(q.Contents)
	model, verb, _ := strings.Cut(in.r.PathValue("call"), ":")
	stream, events := verb == "streamGenerateContent", in.r.URL.Query().Get("alt") == "sse"
	a, err := in.generation(p, params{model: model, limit: q.GenerationConfig.MaxOutputTokens, stream: stream && events})
	if err != nil {
		return nil, err
	}
	a.stopAtFirst(stops{strings: q.GenerationConfig.StopSequences})
	v := &eventEncoder{generation: a, frame: geminiFrame, appendJSON: a.geminiJSON}
	if stream && !events { // the answer is one list
		v.appendJSON = func(b []byte, from, to int) []byte { return append(a.geminiJSON(append(b, '['), from, to), ']') }
	}
	a.encoder = v
	return a, nil
}

// geminiJSON appends an event. All events contain counts, and the last contains the
// finish reason.
func (a *generation) geminiJSON(b []byte, from, to int) []byte {
	c := geminiCandidate{Content: &wire.GeminiContent{Role: "model", Parts: []wire.GeminiPart{{Text: textHole}}}}
	if a.isLast(to) {
		c.FinishReason = "MAX_TOKENS"
		if a.finish == finishStop {
			c.FinishReason = "STOP"
		}
	}
	res := geminiResponse{Candidates: []geminiCandidate{c}, ModelVersion: a.model}
	if !a.fx.noUsage {
		n := a.counted(to)
		res.UsageMetadata = &geminiUsageMetadata{
			PromptTokenCount: a.Tokens, CandidatesTokenCount: n, TotalTokenCount: a.Tokens + n, CachedContentTokenCount: a.cached,
		}
	}
	return a.fillHoles(b, appendJSON(nil, res), from, to)
}
