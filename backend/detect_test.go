package backend_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/backend"
	"github.com/tacho-bench/tacho/internal/memnet"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/transport"
)

const tritonServer = `{"name":"triton","version":"2.60.0","extensions":[]}`

// Detect recognises the pages of real servers, each reduced to the minimum.
func TestDetectBySignatures(t *testing.T) {
	for name, tc := range map[string]struct {
		pages map[string]string
		want  string
		says  string
	}{
		"vllm":              {map[string]string{"/v1/models": `{"object": "list", "data": [{"id": "m", "owned_by": "vllm"}]}`}, "vllm", "owned_by"},
		"vllm behind proxy": {map[string]string{"/metrics": "# TYPE vllm:num_requests_running gauge\n", "/v1/models": `{"object":"list","data":[]}`}, "vllm", "vllm:"},
		"tgi":               {map[string]string{"/info": `{"model_id":"m","router":"text-generation-router"}`, "/v1/models": `{"object":"list","data":[{"id":"m","owned_by":"m"}]}`}, "tgi", "router"},
		"sglang":            {map[string]string{"/v1/models": `{"object":"list","data":[{"id":"m","owned_by":"sglang"}]}`}, "sglang", "owned_by"},
		"trtllm":            {map[string]string{"/v1/models": `{"object":"list","data":[{"id":"m","owned_by":"tensorrt_llm"}]}`}, "trtllm", "owned_by"},
		"triton":            {map[string]string{"/v2": tritonServer}, "triton", "/v2"},
		"triton, trt-llm": {map[string]string{
			"/v2": tritonServer, "/v2/repository/index": `[{"name":"tensorrt_llm","state":"READY"},{"name":"ensemble","state":"READY"}]`,
			"/v2/models/ensemble/config": `{"name":"ensemble","platform":"ensemble","backend":"","input":[{"name":"text_input","data_type":"TYPE_STRING"},{"name":"max_tokens"}]}`,
		}, "triton", "/v2"},
		"triton, vllm": {map[string]string{
			"/v2": tritonServer, "/v2/repository/index": `[{"name":"llama","state":"READY"}]`,
			"/v2/models/llama/config": `{"name":"llama","platform":"","backend":"vllm","input":[{"name":"text_input"}]}`,
		}, "triton-vllm", `"backend":"vllm"`},
		"triton, older vllm, not the first model": {map[string]string{
			"/v2": tritonServer, "/v2/repository/index": `[{"name":"resnet","state":"READY"},{"name":"llama","state":"READY"}]`,
			"/v2/models/resnet/config": `{"name":"resnet","platform":"onnxruntime_onnx","backend":"onnxruntime","input":[{"name":"image"}]}`,
			"/v2/models/llama/config":  `{"name":"llama","backend":"python","input":[{"name":"text_input"},{"name":"sampling_parameters"}]}`,
		}, "triton-vllm", "sampling_parameters"},
		"lmdeploy":     {map[string]string{"/v1/models": `{"object":"list","data":[{"id":"m","owned_by":"lmdeploy"}]}`, "/openapi.json": `{"paths":{"/generate":{}},"components":{"schemas":{"GenerateReqInput":{}}}}`}, "lmdeploy-generate", "GenerateReqInput"},
		"old lmdeploy": {map[string]string{"/v1/models": `{"object":"list","data":[{"id":"m","owned_by":"lmdeploy"}]}`, "/openapi.json": `{"components":{"schemas":{"GenerateRequest":{}}}}`}, "lmdeploy", "owned_by"},
		"mii":          {map[string]string{"/v1/models": `{"object":"list","data":[{"id":"m","owned_by":"deepspeed-mii"}]}`}, "deepspeed-mii", "owned_by"},
		"mii's own": {map[string]string{"/openapi.json": `{"paths": {"/generate": {"post": {"summary": "Generate", "operationId": "generate_generate_post",
			"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/CompletionRequest"}}}, "required": true}}}}}`}, "deepspeed-mii-generate", "CompletionRequest"},
		"llama.cpp":        {map[string]string{"/v1/models": `{"models":[],"object":"list","data":[{"id":"m","owned_by":"llamacpp"}]}`}, "llamacpp", "owned_by"},
		"ollama":           {map[string]string{"/": "Ollama is running", "/v1/models": `{"object":"list","data":[{"id":"m","owned_by":"library"}]}`}, "ollama", "running"},
		"anthropic":        {map[string]string{"/v1/models": `{"data":[{"type":"model","id":"m","display_name":"M"}],"has_more":false}`}, "anthropic", "model"},
		"gemini":           {map[string]string{"/v1beta/models": `{"models":[{"name":"models/gemini","inputTokenLimit":1}]}`}, "gemini", "models/"},
		"something openai": {map[string]string{"/v1/models": `{"object":"list","data":[{"id":"m","owned_by":"me"}]}`}, "openai", "list"},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			page, ok := tc.pages[r.URL.Path]
			if !ok {
				http.NotFound(w, r)
				return
			}
			_, _ = io.WriteString(w, page)
		}))
		client := must.Get(transport.New(transport.Options{BaseURL: srv.URL}))(t)
		kind, evidence, err := backend.Detect(t.Context(), backend.Options{Client: client})
		if err != nil || kind.Name != tc.want || !strings.Contains(evidence, tc.says) {
			t.Errorf("%s: found %q by %q, %v", name, kind.Name, evidence, err)
		}
		client.Close()
		srv.Close()
	}
}

// Each protocol sends the API key in its own header, and some servers answer nothing without a key.
func TestDetectSendsTheKey(t *testing.T) {
	for want, tc := range map[string]struct{ header, value, path, page string }{
		"vllm":      {"Authorization", "Bearer sk-1", "/v1/models", `{"object":"list","data":[{"id":"m","owned_by":"vllm"}]}`},
		"anthropic": {"X-Api-Key", "sk-1", "/v1/models", `{"data":[{"type":"model","id":"m"}]}`},
		"gemini":    {"X-Goog-Api-Key", "sk-1", "/v1beta/models", `{"models":[{"name":"models/m"}]}`},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Header.Get(tc.header) != tc.value:
				w.WriteHeader(http.StatusUnauthorized)
			case r.URL.Path != tc.path:
				http.NotFound(w, r)
			default:
				_, _ = io.WriteString(w, tc.page)
			}
		}))
		client := must.Get(transport.New(transport.Options{BaseURL: srv.URL}))(t)
		if kind, evidence, err := backend.Detect(t.Context(), backend.Options{Client: client, APIKey: "sk-1"}); err != nil || kind.Name != want {
			t.Errorf("%s: found %q by %q, %v", want, kind.Name, evidence, err)
		}
		client.Close()
		srv.Close()
	}
}

// A proxy that answers each client in the client's protocol is detected as OpenAI, the protocol it supports best.
func TestDetectProxy(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/v1/models":
			http.NotFound(w, r)
		case r.Header.Get("Anthropic-Version") != "":
			_, _ = io.WriteString(w, `{"data":[{"type":"model","id":"m","display_name":"m"}],"has_more":false}`)
		default:
			_, _ = io.WriteString(w, `{"data":[{"id":"m","object":"model","owned_by":"openai"}],"object":"list"}`)
		}
	}))
	defer srv.Close()
	client := must.Get(transport.New(transport.Options{BaseURL: srv.URL}))(t)
	defer client.Close()
	if kind, evidence, err := backend.Detect(t.Context(), backend.Options{Client: client}); err != nil || kind.Name != "openai" {
		t.Errorf("found %q by %q, %v", kind.Name, evidence, err)
	}
}

// unreachable returns a client for an address without a listener.
func unreachable(t *testing.T) *transport.Client {
	t.Helper()
	network := &memnet.Network{}
	client := must.Get(transport.New(transport.Options{BaseURL: "http://127.0.0.1:8000", Dial: network.Dial}))(t)
	t.Cleanup(client.Close)
	return client
}

func TestDetectFails(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	client := must.Get(transport.New(transport.Options{BaseURL: srv.URL}))(t)
	defer client.Close()
	if _, _, err := backend.Detect(t.Context(), backend.Options{Client: client}); err == nil || !strings.Contains(err.Error(), "--backend") || !strings.Contains(err.Error(), "GET /v1/models: status 404") {
		t.Errorf("a server of nothing: %v", err)
	}
	if _, _, err := backend.Detect(t.Context(), backend.Options{Client: unreachable(t)}); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("unreachable server: %v", err)
	}
}
