package sim

import (
	"net/http"
	"strings"

	"tacho/wire/gemini"
)

// geminiStream's path names the model and what to do with it in one word.
var geminiStream = &dialect{
	mime:    "text/event-stream",
	read:    readGemini,
	refusal: geminiRefusal,
	broken: func(p *pose, c *complaint) []byte {
		return append(append([]byte("data: "), geminiRefusal(p, c)...), geminiEnd...)
	},
	lateHead: true,
}

// geminiEnd ends an event: the server writes the lines of another system.
const geminiEnd = "\r\n\r\n"

func geminiRefusal(_ *pose, c *complaint) []byte {
	word := strings.ToUpper(strings.ReplaceAll(http.StatusText(c.status), " ", "_"))
	return appendJSON(nil, gemini.ErrorResponse{Error: gemini.Error{Code: c.status, Message: c.message, Status: word}})
}

// geminiPages are what only this server has, and it has no other models page.
var geminiPages = map[string]page{
	"GET /v1/models": missing,
	"GET " + gemini.ModelsPath: func(s *Server, w http.ResponseWriter, _ *http.Request) {
		output := s.opt.MaxModelLen / 4
		writeJSON(w, gemini.ModelList{Models: []gemini.Model{{
			Name: "models/" + s.opt.Model, InputTokenLimit: s.opt.MaxModelLen - output, OutputTokenLimit: output,
		}}})
	},
	"POST " + gemini.ModelsPath + "/{call}": func(s *Server, w http.ResponseWriter, r *http.Request) {
		switch _, verb, _ := strings.Cut(r.PathValue("call"), ":"); verb {
		case "streamGenerateContent", "generateContent":
			s.generate(geminiStream)(w, r)
		case "countTokens":
			var q gemini.CountTokensRequest
			if readJSON(w, r, &q) {
				var p prompt
				p.addContents(q.Contents)
				writeJSON(w, gemini.CountTokensResponse{TotalTokens: p.input})
			}
		default:
			http.NotFound(w, r)
		}
	},
}

func (p *prompt) addContents(contents []gemini.Content) {
	for _, c := range contents {
		for _, part := range c.Parts {
			p.addText(part.Text)
		}
	}
}

func readGemini(in *incoming) (*ask, error) {
	var q gemini.Request
	if err := parse(in.body, &q); err != nil {
		return nil, err
	}
	p := in.newPrompt()
	if q.SystemInstruction != nil {
		p.addContents([]gemini.Content{*q.SystemInstruction})
	}
	p.addContents(q.Contents)
	model, verb, _ := strings.Cut(in.r.PathValue("call"), ":")
	if err := in.knows(model); err != nil {
		return nil, err
	}
	stream, events := verb == "streamGenerateContent", in.r.URL.Query().Get("alt") == "sse"
	a, err := in.ask(p, wish{limit: q.GenerationConfig.MaxOutputTokens, stream: stream && events})
	if err != nil {
		return nil, err
	}
	a.voice = &geminiVoice{ask: a, model: in.modelName(model), list: stream}
	return a, nil
}

type geminiVoice struct {
	*ask
	model string
	list  bool // a stream that was not asked for as events is one list
}

func (v *geminiVoice) early(b []byte) []byte { return b }

func (v *geminiVoice) tokens(b []byte, from, to int) []byte {
	return append(v.answer(append(b, "data: "...), from, to), geminiEnd...)
}

// answer is an event with tokens. The last has the reason, and all have counts.
func (v *geminiVoice) answer(b []byte, from, to int) []byte {
	c := gemini.Candidate{Content: &gemini.Content{Role: "model", Parts: []gemini.Part{{Text: textHole}}}}
	if v.isLast(to) {
		c.FinishReason = "MAX_TOKENS"
		if v.finish == finishStop {
			c.FinishReason = "STOP"
		}
	}
	res := gemini.Response{Candidates: []gemini.Candidate{c}, ModelVersion: v.model}
	if !v.fx.noUsage {
		n := v.counted(to)
		res.UsageMetadata = &gemini.UsageMetadata{
			PromptTokenCount: v.input, CandidatesTokenCount: n, TotalTokenCount: v.input + n, CachedContentTokenCount: v.cached,
		}
	}
	t := newTemplate(string(appendJSON(nil, res)), textHole)
	b = v.text(append(b, t[0]...), from, to)
	return append(b, t[1]...)
}

func (v *geminiVoice) last(b []byte) []byte { return b }

func (v *geminiVoice) whole(b []byte) []byte {
	if !v.list {
		return v.answer(b, 0, v.output)
	}
	return append(v.answer(append(b, '['), 0, v.output), ']')
}
