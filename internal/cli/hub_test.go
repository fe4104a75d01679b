package cli_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/cli"
	"github.com/tacho-bench/tacho/internal/fakehub"
)

// A download shows its progress and uses the environment variables of Hugging
// Face's tools.
func TestDatasetDownload(t *testing.T) {
	hub := fakehub.New(t)
	hub.Token = "secret"
	hub.Files["org/data@main"] = map[string]string{"train.jsonl": strings.Repeat(`{"prompt":"what is it?"}`+"\n", 50_000)}
	vars := map[string]string{"HF_ENDPOINT": hub.URL, "HF_HOME": t.TempDir(), "HF_TOKEN": "secret", "TERM": "xterm"}
	data := func() (code int, out, errs string) {
		var stdout, stderr bytes.Buffer
		code = cli.Main(&cli.Env{
			Args: strings.Fields("data --dataset-name hf --dataset-path org/data --num-prompts 3"), Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr,
			Getenv: func(name string) string { return vars[name] }, Terminal: true, Width: func() int { return 200 },
		})
		return code, stdout.String(), stderr.String()
	}
	code, out, errs := data()
	if code != 0 || !strings.Contains(out, "dataset hf: 3 sessions") {
		t.Fatalf("exit %d\n%s\n%s", code, out, errs)
	}
	for _, want := range []string{"Downloading train.jsonl of dataset org/data (file 1 of 1).", "Downloading train.jsonl [--------------------] 0.0/1.2 MB"} {
		if !strings.Contains(errs, want) {
			t.Errorf("%q does not say %q", errs, want)
		}
	}
	before := len(hub.Requests())
	vars["HF_HUB_OFFLINE"] = "1"
	if code, _, errs := data(); code != 0 || strings.Contains(errs, "Downloading") || len(hub.Requests()) != before {
		t.Errorf("exit %d, %s", code, errs)
	}
	vars["HF_HOME"] = t.TempDir()
	if code, _, errs := data(); code != 1 || !strings.Contains(errs, "HF_HUB_OFFLINE") {
		t.Errorf("exit %d, %s", code, errs)
	}
	vars["HF_HUB_OFFLINE"], vars["HF_TOKEN"] = "0", ""
	if code, _, errs := data(); code != 1 || !strings.Contains(errs, "HF_TOKEN") {
		t.Errorf("exit %d, %s", code, errs)
	}
}
