package run_test

import (
	"testing"

	"github.com/tacho-bench/tacho/internal/run"
)

// A coordinator clears options that agents do not need, so an empty option names no file.
func TestClearedOptionsNameNoFile(t *testing.T) {
	task := run.Task{Plan: []byte(`{"api_key_file": "", "dataset_path": "prompts.jsonl"}`)}
	files, err := task.Files()
	if err != nil || len(files) != 1 || files[0] != "prompts.jsonl" {
		t.Errorf("%q, %v, want only prompts.jsonl", files, err)
	}
}
