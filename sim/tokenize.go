package sim

import (
	"net/http"

	"github.com/tacho-bench/tacho/internal/wire"
	"github.com/tacho-bench/tacho/sim/words"
)

// tokenize answers like vLLM to {"prompt"} or {"messages"}, like TGI to {"inputs"}
// and like llama.cpp to {"content"}.
func (s *Server) tokenize(w http.ResponseWriter, r *http.Request) {
	var q struct {
		wire.OpenAITokenizeRequest
		Inputs  *string `json:"inputs"`
		Content *string `json:"content"`
	}
	if !readJSON(w, r, &q) {
		return
	}
	switch {
	case q.Inputs != nil:
		writeJSON(w, tgiTokens(*q.Inputs))
		return
	case q.Content != nil:
		writeJSON(w, map[string][]int32{"tokens": words.Encode(*q.Content)})
		return
	case q.Prompt == nil && q.Messages == nil:
		badRequest(w, "nothing to tokenize: give a prompt, messages, inputs or content")
		return
	}
	ids := []int32{}
	if q.Prompt != nil {
		ids = append(ids, words.Encode(*q.Prompt)...)
	}
	for _, m := range q.Messages {
		ids = append(ids, words.Encode(m.Content.Text)...)
		for _, part := range m.Content.Parts {
			ids = append(ids, words.Encode(part.Text)...)
		}
	}
	writeJSON(w, wire.OpenAITokenizeResponse{Count: len(ids), MaxModelLen: s.opt.MaxModelLen, Tokens: ids})
}

func tgiTokens(text string) []tgiSimpleToken {
	tokens := []tgiSimpleToken{}
	end := 0
	for w := range words.Each(text) { // a token includes the white space before its word
		tokens = append(tokens, tgiSimpleToken{ID: words.ID(text[w.Start:w.Stop]), Text: text[end:w.Stop], Start: end, Stop: w.Stop})
		end = w.Stop
	}
	return tokens
}

func (s *Server) detokenize(w http.ResponseWriter, r *http.Request) {
	var q openaiDetokenizeRequest
	if readJSON(w, r, &q) {
		writeJSON(w, openaiDetokenizeResponse{Prompt: words.Decode(q.Tokens)})
	}
}
