//go:build oracle

package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/internal/migrate"
	"github.com/tacho-bench/tacho/internal/must"
)

// parsers are the tools of moving.md: the folder of each below PARSERS, and the
// flags that its parser requires, which a row may set to other values.
var parsers = []struct{ tool, folder, required string }{
	{"SGLang", "sglang", ""},
	{"GuideLLM 0.3", "guidellm-0.3", "--target http://127.0.0.1:8000 --data prompt_tokens=1,output_tokens=1 --rate-type synchronous"},
	{"GuideLLM 0.8", "guidellm", "--backend kind=openai_http,target=http://127.0.0.1:8000 --data kind=synthetic_text,prompt_tokens=1,output_tokens=1 --profile kind=synchronous"},
	{"AIPerf", "aiperf", "--model M"},
	{"genai-bench", "genai-bench", "--api-backend vllm --api-base http://127.0.0.1:8000 --api-model-name M --api-key K --task text-to-text --model-tokenizer gpt2 --max-time-per-run 1 --max-requests-per-run 1"},
	{"inference-perf", "inference-perf", ""},
}

// TestOracleMoving gives the left side of each row of moving.md to the tool's
// own parser, and compares the list of flags with the parser's.
func TestOracleMoving(t *testing.T) {
	root := os.Getenv("PARSERS")
	if root == "" {
		t.Fatal("PARSERS is not set: use make test-moving")
	}
	script := must.Get(filepath.Abs("testdata/parsers.py"))(t)
	dir := t.TempDir()
	must.Do(t, furnish(dir))
	list := "# Flags that the command lines of these packages define. make test-moving compares them with the packages (ARGS=-update writes them).\n"
	rows := movingRows(t)
	for _, p := range parsers {
		var lines [][]string
		var tried []string
		for _, r := range rows {
			if r.tool == p.tool {
				tried = append(tried, r.theirs)
				lines = append(lines, completeLine(shellWords(r.theirs), shellWords(p.required)))
			}
		}
		lines = append(lines, []string{"--no-such-flag"})
		answer := askParser(t, filepath.Join(root, p.folder, "bin/python"), script, dir, p.tool, lines)
		rejected := 0
		for i, theirs := range tried {
			if answer.Errors[i] != "" {
				rejected++
				t.Errorf("%s rejects %s: %s", p.tool, theirs, answer.Errors[i])
			}
		}
		if answer.Errors[len(tried)] == "" || len(tried) == 0 {
			t.Errorf("%s: %d rows, and the parser accepts --no-such-flag", p.tool, len(tried))
		}
		t.Logf("%s: %d rows tried, %d rejected", p.tool, len(tried), rejected)
		t.Logf("%s: tacho does not know %s", p.tool, strings.Join(unknownTo(t, answer.Options), " "))
		list += p.tool + ": " + strings.Join(answer.Options, " ") + "\n"
	}
	if *update {
		must.Do(t, os.WriteFile(foreignList, []byte(list), 0o644))
	}
	stored := must.Get(os.ReadFile(foreignList))(t)
	if diff := cmp.Diff(string(stored), list); diff != "" {
		t.Errorf("%s: -stored +parsers'\n%s", foreignList, diff)
	}
}

// A parserAnswer is the output of parsers.py.
type parserAnswer struct{ Options, Errors []string }

func askParser(t *testing.T, python, script, dir, tool string, lines [][]string) (answer parserAnswer) {
	t.Helper()
	input := must.Get(json.Marshal(lines))(t)
	cmd := exec.CommandContext(t.Context(), python, script, tool)
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Dir, cmd.Stderr = bytes.NewReader(input), dir, &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", tool, err, stderr.String())
	}
	if err := json.Unmarshal(out, &answer); err != nil || len(answer.Errors) != len(lines) {
		t.Fatalf("%s: %v in %s", tool, err, out)
	}
	return answer
}

// completeLine adds the required flags that a line does not set. Flags keep the
// order of required, because genai-bench reads them in order.
func completeLine(line, required []string) (out []string) {
	for i := 0; i < len(required); i += 2 {
		at := slices.Index(line, required[i])
		if at < 0 {
			out = append(out, required[i:i+2]...)
			continue
		}
		out = append(out, line[at:at+2]...)
		line = slices.Delete(line, at, at+2)
	}
	return append(out, line...)
}

// unknownTo returns the flags that tacho neither has nor translates nor explains.
func unknownTo(t *testing.T, options []string) (out []string) {
	t.Helper()
	known := []string{"config-file", "help"}
	for _, r := range migrate.Table {
		known = append(known, strings.Fields(r.Theirs)...)
	}
	for _, flag := range flagsOf(helpOf(t, 80, "bench", "--help-all")) {
		known = append(known, strings.TrimPrefix(flag, "--"))
	}
	for _, option := range options {
		name, long := strings.CutPrefix(option, "--")
		name = strings.ReplaceAll(name, "_", "-")
		if long && !slices.Contains(known, name) {
			if advice, _ := migrate.Advice(name); advice == "" {
				out = append(out, option)
			}
		}
	}
	return out
}
