package token

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// A tokenizeDialect is one way in which servers offer to count tokens.
type tokenizeDialect struct {
	name string
	body func(model, text string) map[string]any
	// count reads the answer.
	count func(answer []byte) (int, error)
}

// tokenizeDialects are those known, in the order they are tried.
var tokenizeDialects = []tokenizeDialect{
	{"vLLM", func(model, text string) map[string]any {
		return map[string]any{"model": model, "prompt": text, "add_special_tokens": false}
	}, countField},
	{"llama.cpp", func(_, text string) map[string]any {
		return map[string]any{"content": text, "add_special": false}
	}, countTokens},
	{"TGI", func(_, text string) map[string]any {
		return map[string]any{"inputs": text}
	}, countSpans},
}

// countField reads {"count": 3, ...}.
func countField(answer []byte) (int, error) {
	var a struct {
		Count *int `json:"count"`
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return 0, err
	}
	if a.Count == nil {
		return 0, errors.New("the answer has no count")
	}
	return *a.Count, nil
}

// countTokens reads {"tokens": [1, 2, 3]}.
func countTokens(answer []byte) (int, error) {
	var a struct {
		Tokens *[]json.RawMessage `json:"tokens"`
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return 0, err
	}
	if a.Tokens == nil {
		return 0, errors.New("the answer has no tokens")
	}
	return len(*a.Tokens), nil
}

// countSpans reads [{"id": 1, "start": 0, "stop": 3}, ...]. Special tokens,
// which cannot be left out of the request, stand for no text.
func countSpans(answer []byte) (int, error) {
	var spans []struct {
		ID    *int `json:"id"`
		Start int  `json:"start"`
		Stop  int  `json:"stop"`
	}
	if err := json.Unmarshal(answer, &spans); err != nil {
		return 0, err
	}
	n := 0
	for _, s := range spans {
		if s.ID == nil {
			return 0, errors.New("the answer has no ids")
		}
		if s.Stop > s.Start {
			n++
		}
	}
	return n, nil
}

// A Server counts with the server's own /tokenize. It is safe for concurrent use.
type Server struct {
	client  *http.Client
	url     string
	model   string
	dialect *tokenizeDialect
}

// NewServer finds out how the server at base ("http://host:8000") counts. A nil
// client is http.DefaultClient.
func NewServer(ctx context.Context, client *http.Client, base, model string) (*Server, error) {
	if client == nil {
		client = http.DefaultClient
	}
	s := &Server{client: client, url: strings.TrimRight(base, "/") + "/tokenize", model: model}
	var failures []error
	for i := range tokenizeDialects {
		s.dialect = &tokenizeDialects[i]
		n, err := s.Count(ctx, "hello")
		if err == nil && n > 0 {
			return s, nil
		}
		failures = append(failures, fmt.Errorf("as %s: %d tokens, %w", s.dialect.name, n, err))
	}
	return nil, fmt.Errorf("count with the server: %w", errors.Join(failures...))
}

// maxTokenizeAnswer bounds the answer to one count, in bytes.
const maxTokenizeAnswer = 1 << 28

// Count implements Counter.
func (s *Server) Count(ctx context.Context, text string) (int, error) {
	body, err := json.Marshal(s.dialect.body(s.model, text))
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close() //nolint:errcheck // read to its end or given up
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxTokenizeAnswer))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", s.url, err)
	}
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: %s", s.url, response.Status)
	}
	n, err := s.dialect.count(answer)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", s.url, err)
	}
	return n, nil
}

// Name implements Counter.
func (s *Server) Name() string { return "server /tokenize" }

// Exact implements Counter.
func (s *Server) Exact() bool { return true }
