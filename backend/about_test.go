package backend_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/backend"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/transport"
)

// About returns the version and the settings from the page of the server's kind, even if the user named only the
// protocol. Secrets and values other than settings are omitted.
func TestAbout(t *testing.T) {
	const info = `{"version":"0.5","tp_size":8,"max_total_tokens":4096,"enable_x":true,"api_key":"sk-1","hf_token":"hf_1","internal_states":[{"a":1}],"none":null}`
	for name, tc := range map[string]struct {
		kind  string
		pages map[string]string
		want  backend.About
	}{
		"by its owner": {"openai-chat", map[string]string{
			"/v1/models":       `{"object":"list","data":[{"id":"m","owned_by":"sglang","max_model_len":8192}]}`,
			"/get_server_info": info,
		}, backend.About{Name: "sglang", Version: "0.5", MaxLen: 8192, Settings: map[string]any{"tp_size": 8.0, "max_total_tokens": 4096.0, "enable_x": true}}},
		"another name": {"openai", map[string]string{
			"/v1/models": `{"object":"list","data":[{"id":"m","owned_by":"tensorrt_llm"}]}`, "/version": `{"version":"1.2"}`,
		}, backend.About{Name: "trtllm", Version: "1.2"}},
		"by its page": {
			"tgi",
			map[string]string{"/info": `{"model_id":"m","version":"3.0","max_total_tokens":100}`},
			backend.About{Name: "tgi", Version: "3.0", MaxLen: 100, Settings: map[string]any{"model_id": "m", "max_total_tokens": 100.0}},
		},
		"says nothing": {"vllm", nil, backend.About{}},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if page, ok := tc.pages[r.URL.Path]; ok {
				_, _ = w.Write([]byte(page))
				return
			}
			http.NotFound(w, r)
		}))
		client := must.Get(transport.New(transport.Options{BaseURL: srv.URL}))(t)
		kind := must.Get(backend.Find(tc.kind))(t)
		b := must.Get(kind.New(backend.Options{Client: client, Model: "m"}))(t)
		if d := cmp.Diff([]backend.About{tc.want}, b.(backend.Server).About(t.Context())); d != "" {
			t.Errorf("%s: (-want +got):\n%s", name, d)
		}
		client.Close()
		srv.Close()
	}
}
