package sim

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/sim/step"
	"github.com/tacho-bench/tacho/sim/words"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden transcripts anew")

// A conversation is a request in one dialect, and how to parse the answer.
type conversation struct {
	name, engine, path, body string
	fault                    string
	whole                    bool // not a stream
	cumulative               bool // each event repeats the text before it
	noDone                   bool // the end marker is not [DONE]
}

var conversations = []conversation{
	{name: "completions", path: "/v1/completions", body: `{"model":"sim","prompt":"a b c","max_tokens":4,"stream":true,"stream_options":{"include_usage":true}}`},
	{name: "completions-continuous", path: "/v1/completions", body: `{"prompt":[1,2,3],"max_tokens":4,"stream":true,"return_token_ids":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}`},
	{name: "completions-whole", path: "/v1/completions", body: `{"prompt":"a b c","max_tokens":4}`, whole: true},
	{name: "completions-tgi", engine: "tgi", path: "/v1/completions", body: `{"prompt":"a b c","max_tokens":4,"stream":true}`},
	{name: "completions-llamacpp", engine: "llamacpp", path: "/v1/completions", body: `{"prompt":"a b c","max_tokens":4,"stream":true}`},
	{name: "completions-ollama", engine: "ollama", path: "/v1/completions", body: `{"prompt":"a b c","max_tokens":4,"stream":true,"stream_options":{"include_usage":true}}`},
	{name: "completions-trtllm", engine: "trtllm", path: "/v1/completions", body: `{"prompt":"a b c","max_tokens":4,"stream":true,"stream_options":{}}`},
	{name: "chat", path: "/v1/chat/completions", body: `{"messages":[{"role":"user","content":"a b c"}],"max_tokens":4,"stream":true,"stream_options":{"include_usage":true}}`},
	{name: "chat-continuous", path: "/v1/chat/completions", body: `{"messages":[{"role":"user","content":"a b c"}],"max_tokens":4,"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}`},
	{name: "chat-whole", path: "/v1/chat/completions", body: `{"messages":[{"role":"user","content":[{"type":"text","text":"a b c"}]}],"max_completion_tokens":4}`, whole: true},
	{name: "chat-sglang", engine: "sglang", path: "/v1/chat/completions", body: `{"messages":[{"role":"user","content":"a b c"}],"max_tokens":4,"stream":true}`},
	{name: "chat-tgi", engine: "tgi", path: "/v1/chat/completions", body: `{"messages":[{"role":"user","content":"a b c"}],"max_tokens":4,"stream":true}`},
	{name: "chat-llamacpp", engine: "llamacpp", path: "/v1/chat/completions", body: `{"messages":[{"role":"user","content":"a b c"}],"max_tokens":4,"stream":true}`},
	{name: "chat-ollama", engine: "ollama", path: "/v1/chat/completions", body: `{"messages":[{"role":"user","content":"a b c"}],"max_tokens":4,"stream":true,"stream_options":{"include_usage":true}}`},
	{name: "chat-trtllm", engine: "trtllm", path: "/v1/chat/completions", body: `{"messages":[{"role":"user","content":"a b c"}],"max_tokens":4,"stream":true}`},
	{name: "chat-reasoning", fault: "reasoning", path: "/v1/chat/completions", body: `{"messages":[{"role":"user","content":"a b c"}],"max_tokens":4,"stream":true,"stream_options":{"include_usage":true}}`},
	{name: "chat-reasoning-sglang", fault: "reasoning:1", engine: "sglang", path: "/v1/chat/completions", body: `{"messages":[{"role":"user","content":"a b c"}],"max_tokens":4,"stream":true,"stream_options":{"include_usage":true}}`},
	{name: "responses", path: "/v1/responses", body: `{"input":"a b c","max_output_tokens":4,"stream":true}`, noDone: true},
	{name: "responses-whole", path: "/v1/responses", body: `{"input":[{"role":"user","content":"a b c"}],"max_output_tokens":4}`, whole: true},
	{name: "tgi-stream", engine: "tgi", path: "/generate_stream", body: `{"inputs":"a b c","parameters":{"max_new_tokens":4,"details":true}}`, noDone: true},
	{name: "tgi-truncate", path: "/generate_stream", body: `{"inputs":"x y a b c","parameters":{"max_new_tokens":4,"truncate":3}}`, noDone: true},
	{name: "tgi-whole", engine: "tgi", path: "/generate", body: `{"inputs":"a b c","parameters":{"max_new_tokens":4,"details":true}}`, whole: true},
	{name: "sglang", engine: "sglang", path: "/generate", body: `{"text":"a b c","sampling_params":{"max_new_tokens":4},"stream":true}`, cumulative: true},
	{name: "sglang-interval", engine: "sglang", path: "/generate", body: `{"text":"a b c","sampling_params":{"max_new_tokens":4,"stream_interval":2},"stream":true}`, cumulative: true},
	{name: "sglang-whole", engine: "sglang", path: "/generate", body: `{"input_ids":[1,2,3],"sampling_params":{"max_new_tokens":4}}`, whole: true},
	{name: "llamacpp", engine: "llamacpp", path: "/completion", body: `{"prompt":"a b c","n_predict":4,"stream":true,"return_tokens":true}`, noDone: true},
	{name: "llamacpp-whole", engine: "llamacpp", path: "/completion", body: `{"prompt":"a b c","n_predict":4}`, whole: true},
	{name: "ollama-generate", engine: "ollama", path: "/api/generate", body: `{"model":"sim","prompt":"a b c","options":{"num_predict":4}}`, noDone: true},
	{name: "ollama-chat", engine: "ollama", path: "/api/chat", body: `{"model":"sim","messages":[{"role":"user","content":"a b c"}],"options":{"num_predict":4}}`, noDone: true},
	{name: "ollama-whole", engine: "ollama", path: "/api/chat", body: `{"model":"sim","stream":false,"messages":[{"role":"user","content":"a b c"}],"options":{"num_predict":4}}`, whole: true},
	{name: "anthropic", path: "/v1/messages", body: `{"model":"sim","max_tokens":4,"stream":true,"messages":[{"role":"user","content":"a b c"}]}`, noDone: true},
	{name: "anthropic-whole", path: "/v1/messages", body: `{"model":"sim","max_tokens":4,"system":"a","messages":[{"role":"user","content":[{"type":"text","text":"b c"}]}]}`, whole: true},
}

// testSound is a WAV file of 30 milliseconds, which are 3 tokens.
var testSound = func() []byte {
	const rate, samples = 16_000, 480
	b := []byte("RIFF")
	b = binary.LittleEndian.AppendUint32(b, 36+2*samples)
	b = append(b, "WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00"...)
	b = binary.LittleEndian.AppendUint32(b, rate)
	b = binary.LittleEndian.AppendUint32(b, 2*rate)
	b = append(b, "\x02\x00\x10\x00data"...)
	b = binary.LittleEndian.AppendUint32(b, 2*samples)
	return append(b, make([]byte, 2*samples)...)
}()

// testProfile is an engine with round durations: a prefill takes 100 ms, a decode
// 10 ms.
func testProfile() *step.Profile {
	return &step.Profile{
		Policy: "chunked", MaxSequences: 8, StepTokens: 1024,
		KV:     step.KV{BlockTokens: 4, Blocks: 1000, PrefixCache: true},
		Output: step.Lengths{Mean: 2, Max: 64},
		Cost:   step.Cost{Step: []step.Knot{{Tokens: 1, Ms: 10}}, Prefill: []step.Knot{{Tokens: 1, Ms: 100}}},
	}
}

// Every dialect matches its golden transcript, for an answer that reaches its limit
// and for one that the model ends.
func TestTranscripts(t *testing.T) {
	for _, c := range conversations {
		for _, model := range []struct {
			name string
			opt  Options
			text int // tokens with text
		}{
			{"", Options{TTFT: 100 * time.Millisecond, ITL: 10 * time.Millisecond}, 4},
			{"-eos", Options{Profile: testProfile()}, 2},
		} {
			t.Run(c.name+model.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					opt := model.opt
					opt.Engine = c.engine
					_, client := start(t, opt)
					header := []string{"X-Request-Id", "r1", "X-Sim-Fault", c.fault}
					res := post(t, client, c.path, c.body, header...)
					body, err := io.ReadAll(res.Body)
					if err != nil || res.StatusCode != http.StatusOK {
						t.Fatalf("status %d, error %v: %s", res.StatusCode, err, body)
					}
					checkText(t, &c, body, model.text)
					golden(t, filepath.Join("testdata", "transcripts", c.name+model.name+".txt"), body)
				})
			})
		}
	}
}

// checkText parses an answer as a client would and compares the text with the
// generated tokens.
func checkText(t *testing.T, c *conversation, body []byte, tokens int) {
	t.Helper()
	var p prompt
	if strings.Contains(c.body, "[1,2,3]") {
		p.AddIDs([]int32{1, 2, 3})
	} else {
		p.AddText("a b c")
	}
	want := (&generation{prompt: p}).text(nil, 0, tokens)
	got, done := readText(t, c, body)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("text (-want +got):\n%s\nin %s", diff, body)
	}
	if n := words.Count(got); n != tokens {
		t.Errorf("%d tokens, want %d", n, tokens)
	}
	if done == (c.whole || c.noDone) {
		t.Errorf("[DONE] seen: %v", done)
	}
}

// readText returns the text of an answer and whether the answer ended with [DONE].
func readText(t *testing.T, c *conversation, body []byte) (text string, done bool) {
	t.Helper()
	for data := range payloads(body, c.whole) {
		if string(data) == "[DONE]" {
			done = true
			continue
		}
		var v any
		if err := json.Unmarshal(data, &v); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		piece := textOf(v)
		if c.cumulative {
			piece = strings.TrimPrefix(piece, text)
		}
		text += piece
	}
	return text, done
}

// payloads yields the JSON documents of an answer: the whole, the data of events,
// or lines.
func payloads(body []byte, whole bool) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		if whole {
			yield(body)
			return
		}
		in := bufio.NewScanner(bytes.NewReader(body))
		for in.Scan() {
			line := in.Bytes()
			if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
				line = bytes.TrimSpace(data)
			} else if len(line) == 0 || line[0] != '{' {
				continue
			}
			if !yield(line) {
				return
			}
		}
	}
}

// textOf returns the text of an event in any dialect.
func textOf(v any) string {
	at := func(path ...any) string {
		x := v
		for _, p := range path {
			switch p := p.(type) {
			case string:
				m, _ := x.(map[string]any)
				x = m[p]
			case int:
				l, _ := x.([]any)
				if p >= len(l) {
					return ""
				}
				x = l[p]
			}
		}
		s, _ := x.(string)
		return s
	}
	if at("type") != "" && at("type") != "response.output_text.delta" && at("type") != "content_block_delta" && at("type") != "message" {
		return "" // other events repeat the text
	}
	if tok := at("token", "text"); strings.HasPrefix(tok, "<|") {
		return ""
	}
	for _, path := range [][]any{
		{"choices", 0, "text"},
		{"choices", 0, "delta", "content"},
		{"choices", 0, "delta", "reasoning"},
		{"choices", 0, "delta", "reasoning_content"},
		{"choices", 0, "message", "content"},
		{"token", "text"},
		{"generated_text"},
		{"text"},
		{"response"},
		{"message", "content"},
		{"content", 0, "text"},
		{"content"},
		{"delta", "text"},
		{"delta"},
		{"text_output"},
		{"output", 0, "content", 0, "text"},
	} {
		if s := at(path...); s != "" {
			return s
		}
	}
	return ""
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, got, 0o644))
		return
	}
	want := must.Get(os.ReadFile(path))(t)
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("transcript (-want +got):\n%s", diff)
	}
}

// Every dialect has a conversation, so all are tested.
func TestEveryDialectHasATranscript(t *testing.T) {
	s := must.Get(New(Options{}))(t)
	defer s.Close()
	for _, d := range dialects {
		if d == embedding {
			continue // these dialects send no tokens
		}
		for _, pattern := range d.paths {
			found := false
			for _, c := range conversations {
				req, _ := http.NewRequest(http.MethodPost, c.path, nil)
				_, matched := s.mux.Handler(req)
				found = found || matched == "POST "+pattern
			}
			if !found && !strings.Contains(pattern, "versions") {
				t.Errorf("no conversation for %s", pattern)
			}
		}
	}
}
