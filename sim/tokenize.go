package sim

import (
	"net/http"

	"tacho/wire/openai"
	"tacho/wire/tgi"
)

// tokenize answers in vLLM's way to {"prompt"} or {"messages"}, in TGI's to
// {"inputs"} and in llama.cpp's to {"content"}.
func (s *Server) tokenize(w http.ResponseWriter, r *http.Request) {
	var q struct {
		openai.TokenizeRequest
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
		writeJSON(w, map[string][]int32{"tokens": encode(*q.Content)})
		return
	case q.Prompt == nil && q.Messages == nil:
		badRequest(w, "nothing to tokenize: give a prompt, messages, inputs or content")
		return
	}
	ids := []int32{}
	if q.Prompt != nil {
		ids = append(ids, encode(*q.Prompt)...)
	}
	for _, m := range q.Messages {
		ids = append(ids, encode(m.Content.Text)...)
		for _, part := range m.Content.Parts {
			ids = append(ids, encode(part.Text)...)
		}
	}
	writeJSON(w, openai.TokenizeResponse{Count: len(ids), MaxModelLen: s.opt.MaxModelLen, Tokens: ids})
}

func tgiTokens(text string) []tgi.SimpleToken {
	tokens := []tgi.SimpleToken{}
	end := 0
	for w := range words(text) { // a token owns the white space before its word
		tokens = append(tokens, tgi.SimpleToken{ID: tokenID(text[w.start:w.stop]), Text: text[end:w.stop], Start: end, Stop: w.stop})
		end = w.stop
	}
	return tokens
}

func (s *Server) detokenize(w http.ResponseWriter, r *http.Request) {
	var q openai.DetokenizeRequest
	if readJSON(w, r, &q) {
		writeJSON(w, openai.DetokenizeResponse{Prompt: decode(q.Tokens)})
	}
}
