package instrument

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Settings come from vLLM's page and GPUs from the page of a DCGM exporter. Each is
// counted once, even if it has many lines.
func TestDescribe(t *testing.T) {
	pages := map[string]string{
		"/metrics": "vllm:cache_config_info{block_size=\"16\",gpu_memory_utilization=\"0.9\"} 1.0\nvllm:num_requests_running 3\n",
		"/dcgm": "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\",modelName=\"NVIDIA H200\"} 5\nDCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-a\",modelName=\"NVIDIA H200\"} 300\n" +
			"DCGM_FI_DEV_GPU_UTIL{gpu=\"1\",UUID=\"GPU-b\",modelName=\"NVIDIA H200\"} 5\n",
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, pages[r.URL.Path]) }))
	defer srv.Close()
	own, dcgm := srv.URL+"/metrics", srv.URL+"/dcgm"
	settings, gpus := Describe(t.Context(), srv.Client(), []Target{{URL: own}, {URL: dcgm}})
	if d := cmp.Diff(map[string]map[string]string{own: {"block_size": "16", "gpu_memory_utilization": "0.9"}, dcgm: {}}, settings); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff(map[string]int{"NVIDIA H200": 2}, gpus); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
