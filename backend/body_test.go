package backend_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/backend"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/transport"
)

// sent returns the request received by a server.
func sent(t *testing.T, name string, o backend.Options, r *tacho.Request) (body string, req *http.Request) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, got *http.Request) {
		b, _ := io.ReadAll(got.Body)
		body, req = string(b), got
	}))
	defer srv.Close()
	b := newBackend(t, name, srv.URL, o)
	send(t.Context(), t, b, r)
	return body, req
}

func newBackend(t *testing.T, name, url string, o backend.Options) tacho.Backend {
	t.Helper()
	kind := must.Get(backend.Find(name))(t)
	o.Client = must.Get(transport.New(transport.Options{BaseURL: url}))(t)
	t.Cleanup(o.Client.Close)
	return must.Get(kind.New(o))(t)
}

func TestBodies(t *testing.T) {
	zero, half, one, k, n := 0.0, 0.5, 1.0, 40, 2
	text := tacho.Input{Text: "a <b> & \"c\""}
	all := backend.Sampling{Temperature: &half, TopP: &half, TopK: &k, MinP: &half, FrequencyPenalty: &half, PresencePenalty: &half, RepetitionPenalty: &half}
	for _, tc := range []struct {
		name, kind string
		options    backend.Options
		request    tacho.Request
		want       string
	}{
		{
			"text", "vllm",
			backend.Options{Model: "m"},
			tacho.Request{Input: text, MaxTokens: 5},
			`{"model":"m","prompt":"a <b> & \"c\"","repetition_penalty":1,"max_tokens":5,"logprobs":null,"stream":true,"stream_options":{"include_usage":true}}`,
		},
		{
			"ids", "openai",
			backend.Options{Model: "m"},
			tacho.Request{Model: "adapter", Input: tacho.Input{IDs: []int32{1, 20, 300}}, MaxTokens: 5, IgnoreEOS: true},
			`{"model":"adapter","prompt":[1,20,300],"max_tokens":5,"logprobs":null,"stream":true,"stream_options":{"include_usage":true},"ignore_eos":true}`,
		},
		{
			"sampling", "vllm",
			backend.Options{Model: "m", Sampling: all, Logprobs: &n},
			tacho.Request{Input: text, MaxTokens: 5},
			`{"model":"m","prompt":"a <b> & \"c\"","repetition_penalty":0.5,"max_tokens":5,"logprobs":2,"stream":true,"stream_options":{"include_usage":true},"temperature":0.5,"top_p":0.5,"top_k":40,"min_p":0.5,"frequency_penalty":0.5,"presence_penalty":0.5}`,
		},
		{
			"extra fields", "vllm",
			backend.Options{Model: "m", Sampling: backend.Sampling{Temperature: &half}, Extra: map[string]any{"temperature": 0, "seed": 1, "stream_options": map[string]any{"include_usage": true, "continuous_usage_stats": true}}},
			tacho.Request{Input: text, MaxTokens: 5, Extra: map[string]any{"seed": 2, "cache_salt": "x"}},
			`{"model":"m","prompt":"a <b> & \"c\"","repetition_penalty":1,"max_tokens":5,"logprobs":null,"stream":true,"stream_options":{"continuous_usage_stats":true,"include_usage":true},"temperature":0,"cache_salt":"x","seed":2}`,
		},
		{
			"chat text", "openai-chat",
			backend.Options{Model: "m"},
			tacho.Request{Input: text, MaxTokens: 5, IgnoreEOS: true},
			`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a <b> & \"c\""}]}],"max_completion_tokens":5,"max_tokens":5,"stream":true,"stream_options":{"include_usage":true},"ignore_eos":true}`,
		},
		{
			"chat messages", "openai-chat",
			backend.Options{Model: "m", Sampling: backend.Sampling{RepetitionPenalty: &half, Temperature: &zero}, Logprobs: &n},
			tacho.Request{Input: tacho.Input{Messages: []tacho.Message{{Role: "system", Content: "be"}, {Role: "user", Content: "hi"}}}, MaxTokens: 5},
			`{"model":"m","messages":[{"role":"system","content":"be"},{"role":"user","content":"hi"}],"max_completion_tokens":5,"max_tokens":5,"logprobs":true,"top_logprobs":2,"stream":true,"stream_options":{"include_usage":true},"repetition_penalty":0.5,"temperature":0}`,
		},
		{
			"tgi", "tgi",
			backend.Options{Model: "m"},
			tacho.Request{Input: text, MaxTokens: 5, IgnoreEOS: true},
			`{"inputs":"a <b> & \"c\"","parameters":{"max_new_tokens":5,"details":true,"do_sample":false}}`,
		},
		{
			"tgi samples", "tgi",
			backend.Options{Sampling: backend.Sampling{Temperature: &half, TopP: &half, TopK: &k}, Extra: map[string]any{"seed": 3}},
			tacho.Request{Input: text, MaxTokens: 5},
			`{"inputs":"a <b> & \"c\"","parameters":{"max_new_tokens":5,"details":true,"do_sample":true,"temperature":0.5,"top_p":0.5,"top_k":40,"seed":3}}`,
		},
		{
			"vllm extras", "vllm",
			backend.Options{Model: "m", Extras: backend.Extras{CacheSalt: "unique", Priority: &n, ContinuousUsage: true, ReturnTokenIDs: true}},
			tacho.Request{ID: "r1", Session: 4, Turn: 1, Input: text, MaxTokens: 5},
			`{"model":"m","prompt":"a <b> & \"c\"","repetition_penalty":1,"max_tokens":5,"logprobs":null,"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true},"return_token_ids":true,"cache_salt":"r1/4.1","priority":2}`,
		},
		{
			"chat extras", "openai-chat",
			backend.Options{Model: "m", Extras: backend.Extras{CacheSalt: "mine", Priority: &n}},
			tacho.Request{Input: text, MaxTokens: 5},
			`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a <b> & \"c\""}]}],"max_completion_tokens":5,"max_tokens":5,"stream":true,"stream_options":{"include_usage":true},"cache_salt":"mine","priority":2}`,
		},
		{
			"responses", "openai-responses",
			backend.Options{Model: "m", Sampling: backend.Sampling{TopK: &k, RepetitionPenalty: &half}},
			tacho.Request{Input: tacho.Input{Messages: []tacho.Message{{Role: "user", Content: "hi"}}}, MaxTokens: 5, IgnoreEOS: true},
			`{"model":"m","input":[{"role":"user","content":"hi"}],"max_output_tokens":5,"stream":true,"store":false,"ignore_eos":true,"top_k":40,"repetition_penalty":0.5}`,
		},
		{
			"sglang", "sglang",
			backend.Options{Model: "m", Sampling: backend.Sampling{Temperature: &zero, MinP: &half}, Extra: map[string]any{"stream_interval": 2}},
			tacho.Request{ID: "r1", Model: "adapter", Input: tacho.Input{IDs: []int32{1, 2}}, MaxTokens: 5, IgnoreEOS: true},
			`{"input_ids":[1,2],"lora_path":"adapter","rid":"r1","sampling_params":{"max_new_tokens":5,"ignore_eos":true,"temperature":0,"min_p":0.5,"stream_interval":2},"stream":true}`,
		},
		{
			"trtllm", "trtllm",
			backend.Options{Model: "m", Sampling: backend.Sampling{RepetitionPenalty: &half}},
			tacho.Request{Input: text, MaxTokens: 5, IgnoreEOS: true},
			`{"model":"m","prompt":"a <b> & \"c\"","max_tokens":5,"stream":true,"stream_options":{"include_usage":true},"ignore_eos":true,"min_tokens":5,"repetition_penalty":0.5}`,
		},
		{
			"triton", "triton",
			backend.Options{Model: "m"},
			tacho.Request{Input: text, MaxTokens: 5, IgnoreEOS: true},
			`{"text_input":"a <b> & \"c\"","max_tokens":5,"min_tokens":5,"bad_words":"","stop_words":"","end_id":1048576,"stream":true}`,
		},
		{
			"triton-vllm", "triton-vllm",
			backend.Options{Model: "m", Sampling: backend.Sampling{TopK: &k}},
			tacho.Request{Input: text, MaxTokens: 5, IgnoreEOS: true},
			`{"text_input":"a <b> & \"c\"","parameters":{"stream":true,"max_tokens":5,"ignore_eos":true,"top_k":40},"exclude_input_in_output":true,"return_num_input_tokens":true,"return_num_output_tokens":true,"return_finish_reason":true}`,
		},
		{
			"llama.cpp", "llama.cpp",
			backend.Options{Model: "m", Sampling: backend.Sampling{Temperature: &zero, RepetitionPenalty: &half}},
			tacho.Request{Input: text, MaxTokens: 5, IgnoreEOS: true, Extra: map[string]any{"cache_prompt": true}},
			`{"prompt":"a <b> & \"c\"","n_predict":5,"temperature":0,"ignore_eos":true,"stream":true,"cache_prompt":true,"return_tokens":true,"repeat_penalty":0.5}`,
		},
		{
			"ollama", "ollama",
			backend.Options{Model: "m", Sampling: backend.Sampling{Temperature: &zero}, Extra: map[string]any{"keep_alive": "10m", "num_ctx": 8192, "options": map[string]any{"seed": 1}}},
			tacho.Request{Input: text, MaxTokens: 5},
			`{"model":"m","prompt":"a <b> & \"c\"","raw":true,"stream":true,"options":{"num_predict":5,"temperature":0,"num_ctx":8192,"seed":1},"keep_alive":"10m"}`,
		},
		{
			"ollama chat", "ollama-chat",
			backend.Options{Model: "m"},
			tacho.Request{Input: text, MaxTokens: 5},
			`{"model":"m","messages":[{"role":"user","content":"a <b> & \"c\""}],"stream":true,"options":{"num_predict":5}}`,
		},
		{
			"lmdeploy", "lmdeploy",
			backend.Options{Model: "m"},
			tacho.Request{Input: text, MaxTokens: 5, IgnoreEOS: true},
			`{"model":"m","prompt":"a <b> & \"c\"","max_tokens":5,"logprobs":null,"stream":true,"stream_options":{"include_usage":true},"ignore_eos":true}`,
		},
		{
			"lmdeploy's own", "lmdeploy-generate",
			backend.Options{Model: "m", Sampling: backend.Sampling{Temperature: &zero, TopP: &half, TopK: &k, MinP: &half, RepetitionPenalty: &half}, Extra: map[string]any{"session_id": 3}},
			tacho.Request{Input: tacho.Input{IDs: []int32{1, 2}}, MaxTokens: 5, IgnoreEOS: true},
			`{"input_ids":[1,2],"max_tokens":5,"stream":true,"ignore_eos":true,"temperature":0,"top_p":0.5,"top_k":40,"min_p":0.5,"repetition_penalty":0.5,"session_id":3}`,
		},
		{
			"mii's own", "deepspeed-mii-generate",
			backend.Options{Model: "m", Sampling: backend.Sampling{Temperature: &half, TopK: &k}},
			tacho.Request{Input: text, MaxTokens: 5, IgnoreEOS: true},
			`{"prompt":"a <b> & \"c\"","max_tokens":5,"min_tokens":5,"stream":true,"temperature":0.5,"top_k":40}`,
		},
		{
			"mii", "deepspeed-mii",
			backend.Options{Model: "m"},
			tacho.Request{Input: text, MaxTokens: 5, IgnoreEOS: true},
			`{"model":"m","prompt":"a <b> & \"c\"","max_tokens":5,"stream":true,"min_tokens":5}`,
		},
		{
			"transformers", "transformers",
			backend.Options{Model: "m", Sampling: backend.Sampling{Temperature: &zero}},
			tacho.Request{Input: text, MaxTokens: 5, IgnoreEOS: true},
			`{"model":"m","prompt":"a <b> & \"c\"","max_tokens":5,"stream":true,"temperature":0}`,
		},
		{
			"anthropic", "anthropic",
			backend.Options{Model: "m", Sampling: backend.Sampling{TopK: &k}},
			tacho.Request{Input: tacho.Input{Messages: []tacho.Message{{Role: "system", Content: "be"}, {Role: "user", Content: "a <b>"}}}, MaxTokens: 5},
			`{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"a <b>"}],"system":"be","stream":true,"top_k":40}`,
		},
		{
			"gemini", "gemini",
			backend.Options{Model: "m", Sampling: backend.Sampling{Temperature: &zero}},
			tacho.Request{Input: tacho.Input{Messages: []tacho.Message{{Role: "system", Content: "be"}, {Role: "user", Content: "a"}, {Role: "assistant", Content: "b"}}}, MaxTokens: 5},
			`{"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"text":"b"}]}],"systemInstruction":{"parts":[{"text":"be"}]},"generationConfig":{"maxOutputTokens":5,"temperature":0}}`,
		},
		{
			"embeddings", "openai-embeddings",
			backend.Options{Model: "m"},
			tacho.Request{Input: tacho.Input{IDs: []int32{1, 2}}},
			`{"model":"m","input":[1,2],"truncate_prompt_tokens":-1,"encoding_format":"base64"}`,
		},
		{
			"embeddings of a message", "openai-embeddings-chat",
			backend.Options{Model: "m", Extra: map[string]any{"dimensions": 3}},
			tacho.Request{Input: text},
			`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a <b> & \"c\""}]}],"truncate_prompt_tokens":-1,"dimensions":3}`,
		},
		{
			"embeddings of a picture", "openai-embeddings-chat",
			backend.Options{Model: "m"},
			tacho.Request{Input: tacho.Input{Messages: []tacho.Message{picture}}},
			`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"what is <it>?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}],"truncate_prompt_tokens":-1}`,
		},
		{
			"clip of a picture", "openai-embeddings-clip",
			backend.Options{Model: "m"},
			tacho.Request{Input: tacho.Input{Messages: []tacho.Message{picture}}},
			`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":""},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}],"truncate_prompt_tokens":-1}`,
		},
		{
			"clip of a text", "openai-embeddings-clip",
			backend.Options{Model: "m"},
			tacho.Request{Input: text},
			`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a <b> & \"c\""}]}],"truncate_prompt_tokens":-1}`,
		},
		{
			"vlm2vec of a picture", "openai-embeddings-vlm2vec",
			backend.Options{Model: "m"},
			tacho.Request{Session: 2, Input: tacho.Input{Messages: []tacho.Message{picture}}},
			`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},{"type":"text","text":"Represent the given image."}]}],"truncate_prompt_tokens":-1}`,
		},
		{
			"vlm2vec of a picture and a text", "openai-embeddings-vlm2vec",
			backend.Options{Model: "m"},
			tacho.Request{Session: 3, Input: tacho.Input{Messages: []tacho.Message{picture}}},
			`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},{"type":"text","text":"Represent the given image with the following question: what is <it>?"}]}],"truncate_prompt_tokens":-1}`,
		},
		{
			"infinity", "infinity-embeddings",
			backend.Options{Model: "m"},
			tacho.Request{Input: text},
			`{"model":"m","input":"a <b> & \"c\""}`,
		},
		{
			"infinity, several", "infinity-embeddings",
			backend.Options{Model: "m"},
			tacho.Request{Input: text, Extra: map[string]any{"input": []any{"a", "b"}}},
			`{"model":"m","input":["a","b"]}`,
		},
		{
			"infinity, a picture", "infinity-embeddings-clip",
			backend.Options{Model: "m"},
			tacho.Request{Input: tacho.Input{Messages: []tacho.Message{picture}}},
			`{"model":"m","input":"data:image/png;base64,AAAA","modality":"image"}`,
		},
		{
			"pooling", "vllm-pooling",
			backend.Options{Model: "m"},
			tacho.Request{Input: text},
			`{"model":"m","truncate_prompt_tokens":-1,"input":"a <b> & \"c\""}`,
		},
		{
			"rerank", "vllm-rerank",
			backend.Options{Model: "m"},
			tacho.Request{Input: tacho.Input{Text: "query\none\ntwo\n"}},
			`{"model":"m","query":"query","documents":["one","two"],"truncate_prompt_tokens":-1}`,
		},
		{
			"tgi is greedy at temperature 0", "tgi",
			backend.Options{Sampling: backend.Sampling{Temperature: &zero, TopP: &one}},
			tacho.Request{Input: text, MaxTokens: 5},
			`{"inputs":"a <b> & \"c\"","parameters":{"max_new_tokens":5,"details":true,"do_sample":false}}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, _ := sent(t, tc.kind, tc.options, &tc.request)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !json.Valid([]byte(got)) {
				t.Error("not JSON")
			}
		})
	}
}

func TestHeaderAndPath(t *testing.T) {
	r := textRequest("hi")
	_, req := sent(t, "vllm", backend.Options{Header: http.Header{"authorization": {"Bearer k"}, "X-Mine": {"1", "2"}}}, r)
	for name, want := range map[string]string{
		"Content-Type": "application/json", "Accept": "text/event-stream", "Authorization": "Bearer k", "X-Request-Id": "r1", "X-Mine": "1", "Accept-Encoding": "",
	} {
		if got := req.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if req.Method != http.MethodPost || req.URL.Path != "/v1/completions" {
		t.Errorf("%s %s", req.Method, req.URL)
	}
	r.Header = []tacho.Label{{Key: "x-mine", Value: "3"}}
	_, req = sent(t, "vllm", backend.Options{Header: http.Header{"X-Mine": {"1"}}}, r)
	if got := req.Header["X-Mine"]; len(got) != 1 || got[0] != "3" {
		t.Errorf("the request's own header is %v, want 3", got)
	}
	_, req = sent(t, "gemini", backend.Options{Model: "a/b", APIKey: "k1"}, r)
	if got := req.URL.String(); got != "/v1beta/models/a%2Fb:streamGenerateContent?alt=sse" || req.Header.Get("X-Goog-Api-Key") != "k1" {
		t.Errorf("gemini is asked at %s with the key %q", got, req.Header.Get("X-Goog-Api-Key"))
	}
	_, req = sent(t, "anthropic", backend.Options{APIKey: "k1"}, r)
	if h := req.Header; h.Get("X-Api-Key") != "k1" || h.Get("Anthropic-Version") == "" || h.Get("Authorization") != "" {
		t.Errorf("anthropic is asked with %v", h)
	}
	_, req = sent(t, "ollama", backend.Options{APIKey: "k1"}, r)
	if h := req.Header; h.Get("Authorization") != "Bearer k1" || h.Get("Accept") != "application/x-ndjson" {
		t.Errorf("ollama is asked with %v", h)
	}
	r.ID = ""
	_, req = sent(t, "tgi", backend.Options{Endpoint: "/proxy/generate_stream?x=1"}, r)
	if _, ok := req.Header["X-Request-Id"]; ok {
		t.Error("an empty request id was sent")
	}
	if req.URL.String() != "/proxy/generate_stream?x=1" {
		t.Errorf("sent to %s", req.URL)
	}
}

func TestInputForms(t *testing.T) {
	inputs := map[string]tacho.Input{
		"text": {Text: "a\nb"}, "ids": {IDs: []int32{1}}, "messages": {Messages: []tacho.Message{{Role: "user", Content: "a"}, {Role: "user", Content: "b"}}},
		"media": {Messages: []tacho.Message{picture}}, "audio": {Audio: &tacho.Audio{Name: "a.wav", Data: []byte("x")}},
	}
	for _, kind := range backend.Kinds {
		b := newBackend(t, kind.Name, "http://127.0.0.1:1", backend.Options{Model: "m"})
		takes := map[string]bool{"text": kind.Takes.Text, "ids": kind.Takes.IDs, "messages": kind.Takes.Messages, "media": kind.Takes.Media, "audio": kind.Takes.Audio}
		for form, in := range inputs {
			_, err := b.Prepare(&tacho.Request{Input: in, MaxTokens: 1})
			if (err == nil) != takes[form] {
				t.Errorf("%s takes %s: %v, but Prepare says %v", kind.Name, form, takes[form], err)
			}
			if err != nil && !strings.Contains(err.Error(), "use a backend that can (") {
				t.Errorf("%s, %s: the error does not say what to do: %v", kind.Name, form, err)
			}
		}
		for _, in := range []tacho.Input{{}, {Text: "a", IDs: []int32{1}}, {Text: "a", Audio: inputs["audio"].Audio}} {
			if _, err := b.Prepare(&tacho.Request{Input: in}); err == nil {
				t.Errorf("%s took the input %+v", kind.Name, in)
			}
		}
		if _, err := b.Prepare(fitting(kind, &tacho.Request{Input: inputs["text"], Extra: map[string]any{"f": func() {}}})); err == nil || !strings.Contains(err.Error(), `"f"`) {
			t.Errorf("%s: an extra field that is not JSON: %v", kind.Name, err)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	client := must.Get(transport.New(transport.Options{BaseURL: "http://127.0.0.1:1"}))(t)
	half := 0.5
	for name, tc := range map[string]struct {
		kind    string
		options backend.Options
		says    string
	}{
		"no transport":     {"vllm", backend.Options{}, "transport"},
		"absolute path":    {"vllm", backend.Options{Client: client, Endpoint: "http://127.0.0.1/x"}, "path"},
		"cache_salt":       {"tgi", backend.Options{Client: client, Extras: backend.Extras{CacheSalt: "x"}}, "cache_salt"},
		"logprobs":         {"ollama", backend.Options{Client: client, Logprobs: new(int)}, "logprobs"},
		"min_p":            {"tgi", backend.Options{Client: client, Sampling: backend.Sampling{MinP: &half}}, "min_p"},
		"presence_penalty": {"tgi", backend.Options{Client: client, Sampling: backend.Sampling{PresencePenalty: &half}}, "presence_penalty"},
	} {
		kind := must.Get(backend.Find(tc.kind))(t)
		if _, err := kind.New(tc.options); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: error %v, want one about %s", name, err, tc.says)
		}
	}
}

func TestFind(t *testing.T) {
	for name, want := range map[string]string{
		"vllm": "vllm", "openai": "openai", " OpenAI-Chat ": "openai-chat", "sglang": "sglang", "llama.cpp": "llamacpp", "sglang-oai": "openai", "tensorrt-llm": "triton", "text-generation-inference": "tgi",
	} {
		if k, err := backend.Find(name); err != nil || k.Name != want {
			t.Errorf("%q: found %q, %v, want %q", name, k.Name, err, want)
		}
	}
	for name, says := range map[string]string{"vlm": `"vllm"`, "openai_chat": `"openai-chat"`, "tig": `"tgi"`, "something else": "vllm, openai, openai-chat"} {
		if _, err := backend.Find(name); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want an error with %s", name, err, says)
		}
	}
	names := map[string]bool{}
	for _, k := range backend.Kinds {
		for _, n := range append([]string{k.Name}, k.Aliases...) {
			if names[n] {
				t.Errorf("two kinds are called %q", n)
			}
			names[n] = true
		}
		if k.Doc == "" || !strings.HasPrefix(k.Endpoint, "/") || k.Takes == (backend.Forms{}) {
			t.Errorf("%s is not described: %+v", k.Name, k)
		}
	}
}
