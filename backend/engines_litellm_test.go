//go:build engines

package backend_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

// litellmPackage is a gateway used in front of many servers.
const litellmPackage = "litellm[proxy]==1.106.2"

// Streams rewritten by a gateway are decoded correctly. For example, LiteLLM ends streams of the responses endpoint
// with [DONE], as in OpenAI's chat protocol.
func TestEngineLiteLLM(t *testing.T) {
	python := installed(t, "litellm", litellmPackage)
	config := filepath.Join(t.TempDir(), "config.yaml")
	text := fmt.Sprintf("model_list:\n- model_name: tiny\n  litellm_params: {model: hosted_vllm/tiny, api_base: '%s/v1', api_key: none}\nlitellm_settings: {drop_params: true}\n", startLlama(t))
	must.Do(t, os.WriteFile(config, []byte(text), 0o644))
	cmd := exec.Command(filepath.Join(filepath.Dir(python), "litellm"), "--config", config, "--host", "127.0.0.1", "--port", freePort(t))
	cmd.Env = append(os.Environ(), "LITELLM_LOCAL_MODEL_COST_MAP=True", "LITELLM_MASTER_KEY="+engineKey, "HOME="+t.TempDir())
	server := startServer(t, cmd, "Uvicorn running on ")
	for _, name := range []string{"openai-chat", "openai-responses"} {
		t.Run(name, func(t *testing.T) {
			got := recordStream(t, "litellm", server, find(t, name))
			t.Logf("%d tokens in %d events, finish %q", got.Output, len(got.Events), got.Finish)
		})
	}
}
