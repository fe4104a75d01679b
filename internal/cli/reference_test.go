//go:build vllm

package cli_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

// TestReference compares tacho with vLLM's benchmark, run by its own Python:
// flags, reports, result files, requests and the interpretation of answers. The
// server is the simulator.
func TestReference(t *testing.T) {
	ref := startReference(t)
	t.Run("flags", ref.flags)
	t.Run("reports", ref.reports)
	t.Run("bodies", ref.bodies)
	t.Run("streams", ref.streams)
}

// A reference is an installed vLLM benchmark.
type reference struct {
	in        io.Writer
	out       *bufio.Reader
	dir       string // output directory
	tokenizer string // directory of a tokenizer with one token per word, like the simulator
}

// again repeats a comparison until no value is late, because clients and server
// are sometimes late on a busy machine.
func again(t *testing.T, try func() (late []string)) {
	t.Helper()
	const tries = 5
	var late []string
	for range tries {
		if late = try(); len(late) == 0 || t.Failed() {
			break
		}
	}
	for _, complaint := range late {
		t.Errorf("%d times: %s", tries, complaint)
	}
}

// apiKey is the API key of both clients.
const apiKey = "sk-reference"

func startReference(t *testing.T) *reference {
	t.Helper()
	python := os.Getenv("VLLM")
	if python == "" {
		t.Fatal("the variable VLLM does not say where its Python is: run make test-reference")
	}
	script := must.Get(filepath.Abs("testdata/reference.py"))(t)
	ref := &reference{dir: t.TempDir(), tokenizer: wordTokenizer(t)}
	cmd := exec.Command(python, script)
	cmd.Dir = ref.dir
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "HF_HUB_OFFLINE=1", "VLLM_NO_USAGE_STATS=1", "VLLM_LOGGING_LEVEL=ERROR", "OPENAI_API_KEY="+apiKey)
	var said bytes.Buffer
	cmd.Stderr = &said
	stdin := must.Get(cmd.StdinPipe())(t)
	stdout := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		_ = stdin.Close() // makes it exit
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v\n%s", err, said.String())
		}
	})
	ref.in, ref.out = stdin, bufio.NewReader(stdout)
	if line, err := ref.out.ReadString('\n'); line != "ready\n" {
		t.Fatalf("the reference says %q, %v", line, err)
	}
	return ref
}

// wordTokenizer writes a tokenizer with one token per word.
func wordTokenizer(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	vocab := map[string]int{"<unk>": 0}
	for i := 1; i < 4000; i++ {
		vocab[fmt.Sprintf("w%d", i)] = i
	}
	for name, value := range map[string]any{
		"tokenizer.json": map[string]any{
			"version": "1.0", "added_tokens": []any{}, "pre_tokenizer": map[string]any{"type": "WhitespaceSplit"},
			"model": map[string]any{"type": "WordLevel", "unk_token": "<unk>", "vocab": vocab},
		},
		"tokenizer_config.json": map[string]any{"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>", "model_max_length": 100_000},
		"config.json":           map[string]any{"model_type": "llama"},
	} {
		text := must.Get(json.Marshal(value))(t)
		writeFile(t, filepath.Join(dir, name), string(text))
	}
	return dir
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(path, []byte(text), 0o644))
}

// ask sends one question to the reference.
func (ref *reference) ask(t *testing.T, question map[string]any, answer any) {
	t.Helper()
	line := must.Get(json.Marshal(question))(t)
	must.Get(ref.in.Write(append(line, '\n')))(t)
	text, err := ref.out.ReadBytes('\n')
	if err != nil {
		t.Fatalf("the reference says no more: %v", err)
	}
	if err := json.Unmarshal(text, answer); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

// bench runs the reference and returns its output.
func (ref *reference) bench(t *testing.T, args ...string) string {
	t.Helper()
	var said struct{ Text, Error string }
	ref.ask(t, map[string]any{"op": "bench", "args": append(args, "--tokenizer", ref.tokenizer, "--disable-tqdm")}, &said)
	if said.Error != "" {
		t.Fatalf("the reference failed: %s\n%s", said.Error, said.Text)
	}
	return said.Text
}

// tacho runs tacho bench in the same way, without the test request, which the
// reference does not send. The verdict INVALID is accepted, because it depends
// on the load of this machine.
func (ref *reference) tacho(t *testing.T, args ...string) string {
	t.Helper()
	args = append([]string{"bench"}, append(args, "--tokenizer", ref.tokenizer, "--disable-tqdm", "--no-trial", "--runs-dir", t.TempDir())...)
	cmd := exec.Command("tacho", args...)
	cmd.Dir = ref.dir
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "HF_HUB_OFFLINE=1", "OPENAI_API_KEY="+apiKey)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 4) {
		t.Fatalf("tacho %s: %v\n%s", strings.Join(args, " "), err, said.String())
	}
	return out.String()
}
