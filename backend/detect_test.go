package backend_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tacho/backend"
	"tacho/transport"
)

// What real servers show, each with no more than it has.
func TestDetectBySigns(t *testing.T) {
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
		"triton":            {map[string]string{"/v2": `{"name":"triton","version":"2.60.0","extensions":[]}`}, "triton", "/v2"},
		"llama.cpp":         {map[string]string{"/v1/models": `{"models":[],"object":"list","data":[{"id":"m","owned_by":"llamacpp"}]}`}, "llamacpp", "owned_by"},
		"ollama":            {map[string]string{"/": "Ollama is running", "/v1/models": `{"object":"list","data":[{"id":"m","owned_by":"library"}]}`}, "ollama", "running"},
		"anthropic":         {map[string]string{"/v1/models": `{"data":[{"type":"model","id":"m","display_name":"M"}],"has_more":false}`}, "anthropic", "model"},
		"gemini":            {map[string]string{"/v1beta/models": `{"models":[{"name":"models/gemini","inputTokenLimit":1}]}`}, "gemini", "models/"},
		"something openai":  {map[string]string{"/v1/models": `{"object":"list","data":[{"id":"m","owned_by":"me"}]}`}, "openai", "list"},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			page, ok := tc.pages[r.URL.Path]
			if !ok {
				http.NotFound(w, r)
				return
			}
			_, _ = io.WriteString(w, page)
		}))
		client, err := transport.New(transport.Options{BaseURL: srv.URL})
		if err != nil {
			t.Fatal(err)
		}
		kind, evidence, err := backend.Detect(t.Context(), client, nil)
		if err != nil || kind.Name != tc.want || !strings.Contains(evidence, tc.says) {
			t.Errorf("%s: found %q by %q, %v", name, kind.Name, evidence, err)
		}
		client.Close()
		srv.Close()
	}
}

func TestDetectFails(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	client, err := transport.New(transport.Options{BaseURL: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, _, err := backend.Detect(t.Context(), client, nil); err == nil || !strings.Contains(err.Error(), "--backend") || !strings.Contains(err.Error(), "GET /v1/models: status 404") {
		t.Errorf("a server of nothing: %v", err)
	}
	srv.Close()
	if _, _, err := backend.Detect(t.Context(), client, nil); err == nil {
		t.Error("nobody listens, and something was found")
	}
}
