package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tacho-bench/tacho/internal/must"
)

// TestReadmeCommands runs every command after a $ in the documents, in a directory
// with the mentioned files: a server, a run, a report. Commands that need the
// kernel clock are run by TestRealReadmeCommands, the README's by TestRealReadme.
func TestReadmeCommands(t *testing.T) {
	params := readme(t, false)
	params.Cmds = map[string]func(*testscript.TestScript, bool, []string){"tacho": tachoInside, "measure": judged("bench"), "viewing": viewing}
	params.Setup = inBubble(params.Setup)
	testscript.RunT(bubbles{t}, params)
}

// readme creates a script from documented commands: those that need their own
// process, or the others.
func readme(t *testing.T, process bool) testscript.Params {
	t.Helper()
	pages := must.Get(filepath.Glob("../../docs/*.md"))(t)
	var script strings.Builder
	script.WriteString("cd work\n")
	n := 0
	for _, doc := range pages {
		b := must.Get(os.ReadFile(doc))(t)
		for _, command := range consoleBlocks(string(b)) {
			if strings.HasPrefix(command, "tacho fit --check") && testing.Short() {
				continue // simulates 130 million tokens
			}
			if strings.HasPrefix(command, "check") == process {
				fmt.Fprintf(&script, "# %s\n%s\n", filepath.Base(doc), command)
				n++
			}
		}
	}
	if n == 0 || !process && n < 6 {
		t.Fatalf("only %d commands found: has the notation changed?", n)
	}
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "readme.txtar"), []byte(script.String()), 0o644))
	return testscript.Params{Dir: dir, Setup: func(e *testscript.Env) error { return furnish(filepath.Join(e.WorkDir, "work")) }}
}

// TestTutorialBeginsValid runs the first command of the tutorial: its load
// reaches a steady state, and its verdict is VALID.
func TestTutorialBeginsValid(t *testing.T) {
	b := must.Get(os.ReadFile("../../docs/tutorial.md"))(t)
	first := consoleLine.FindSubmatch(b)
	t.Chdir(t.TempDir())
	synctest.Test(t, func(t *testing.T) {
		args := strings.Fields(strings.TrimPrefix(string(first[1]), "tacho "))
		code, stdout, stderr := inside(nil, args...)
		if code != 0 || !regexp.MustCompile(`(?m)^Verdict: +VALID, SIMULATED$`).MatchString(stdout) {
			t.Errorf("%s: exit code %d\n%s%s", first[1], code, stdout, stderr)
		}
	})
}

var consoleLine = regexp.MustCompile(`(?m)^\$ (tacho .*)$`)

// consoleBlocks returns the commands of a document, adapted to the test: it
// uses the test's server.
func consoleBlocks(text string) []string {
	var out []string
	for _, m := range consoleLine.FindAllStringSubmatch(text, -1) {
		command := strings.ReplaceAll(m[1], "http://127.0.0.1:8000", "$SERVER")
		if strings.Contains(command, "--backend openai-audio") {
			command = strings.ReplaceAll(command, "$SERVER", "$AUDIO")
		}
		switch {
		case strings.HasPrefix(command, "tacho bench"):
			command = strings.Replace(command, "tacho bench", "measure", 1)
		case strings.HasPrefix(command, "tacho ui"):
			command = strings.Replace(command, "tacho ui", "viewing", 1)
		case strings.HasPrefix(command, "tacho selfcheck"):
			command = strings.Replace(command, "tacho selfcheck", "check", 1)
		}
		out = append(out, command)
	}
	return out
}

var (
	fenced     = regexp.MustCompile("(?s)```[a-z]*\n(.*?)```")
	unprompted = regexp.MustCompile(`(?m)^[ -]*(?:run: )?tacho (bench|find|predict|sweep) (.*)$`)
)

// TestShownCommandsAreTaken checks documented commands that take too long or
// need a GPU or a CI service, with --dry-run.
func TestShownCommandsAreTaken(t *testing.T) {
	pages := must.Get(filepath.Glob("../../docs/*.md"))(t)
	dir := t.TempDir()
	must.Do(t, furnish(dir))
	var script strings.Builder
	for _, doc := range append(pages, "../../README.md") {
		b := must.Get(os.ReadFile(doc))(t)
		for _, block := range fenced.FindAllStringSubmatch(string(b), -1) {
			for _, m := range unprompted.FindAllStringSubmatch(strings.ReplaceAll(block[1], "\\\n", " "), -1) {
				words, _, _ := strings.Cut(m[2], " >")
				before, after, ofBench := strings.Cut(words, " -- ")
				fmt.Fprintf(&script, "# %s\ntacho %s --dry-run %s", filepath.Base(doc), m[1], strings.ReplaceAll(before, `"`, "'"))
				if ofBench {
					script.WriteString(" -- " + after)
				}
				script.WriteString("\n")
			}
		}
	}
	if n := strings.Count(script.String(), "--dry-run"); n < 6 {
		t.Fatalf("only %d commands found: has the notation changed?", n)
	}
	scripts := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(scripts, "shown.txtar"), []byte(script.String()), 0o644))
	testscript.RunT(bubbles{t}, testscript.Params{
		Dir: scripts, Setup: func(e *testscript.Env) error { e.Cd = dir; return nil },
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"tacho": tachoInside},
	})
}

// furnish creates the files that the documents mention.
func furnish(dir string) error {
	run := filepath.Join(dir, "runs", "20260301-120000-vllm")
	if err := os.MkdirAll(run, 0o755); err != nil {
		return err
	}
	report, err := os.ReadFile(filepath.Join(docs, "../testdata/seeds/003_659e43dd1329acd2.txt"))
	if err != nil {
		return err
	}
	page, err := os.ReadFile(filepath.Join(docs, "workloads.md"))
	if err != nil {
		return err
	}
	_, yaml, _ := strings.Cut(string(page), "```yaml\n")
	yaml, _, _ = strings.Cut(yaml, "```")
	files := map[string]string{
		filepath.Join(dir, "report.txt"):    string(report),
		filepath.Join(run, "manifest.json"): `{"schema":1,"tool":"tacho","plan":{}}`,
		filepath.Join(run, "stages.jsonl"):  `{"index":0,"config":{"percentiles":[99],"metrics":["ttft","tpot","itl"]}}` + "\n",
		filepath.Join(run, "records.jsonl"): `{"stage":0,"sent_ns":1000,"end_ns":9000000,"events":{"at_ns":[5000000,1000000]},"output_tokens":2}` + "\n",
		filepath.Join(dir, "book.txt"):      "It was the best of times, it was the worst of times.\n",
		filepath.Join(dir, "trace.jsonl"): `{"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [1, 2]}` + "\n" +
			`{"timestamp": 500, "input_length": 700, "output_length": 5, "hash_ids": [1, 3]}` + "\n",
		filepath.Join(dir, "plan.yaml"):     yaml,
		filepath.Join(dir, "bench.yaml"):    yaml,
		filepath.Join(dir, "prompts.jsonl"): `{"prompt":"one two three"}` + "\n",
		filepath.Join(dir, "chats.json"):    `[{"id": "a", "conversations": [{"from": "human", "value": "Why is the sky blue?"}, {"from": "gpt", "value": "Because of Rayleigh scattering."}]}]`,
		filepath.Join(dir, "prompts.csv"):   "text\nWhy is the sky blue?\n",
		filepath.Join(dir, "inference-perf.yml"): `server: {type: vllm, model_name: M, base_url: "http://127.0.0.1:8000"}
load: {type: poisson, stages: [{rate: 1, duration: 60}, {rate: 2, duration: 60}]}
report: {request_lifecycle: {summary: true}}
`,
	}
	for _, side := range []string{"before", "after"} {
		if err := os.MkdirAll(filepath.Join(dir, side), 0o755); err != nil {
			return err
		}
		files[filepath.Join(dir, side, "manifest.json")] = files[filepath.Join(run, "manifest.json")]
		files[filepath.Join(dir, side, "stages.jsonl")] = `{"index":0,"request_rate_per_s":50,"config":{"request_rate":50,"percentiles":[99],"metrics":["ttft","tpot","itl"]}}` + "\n"
		for i := range 400 {
			sent, ttft := i*20e6, (20+i*37%11)*1e6
			files[filepath.Join(dir, side, "records.jsonl")] += fmt.Sprintf(`{"stage":0,"session":%d,"due_ns":%d,"slot_ns":%[2]d,"start_ns":%[2]d,"conn_ns":%[2]d,"sent_ns":%[2]d,"wrote_ns":%[2]d,"head_ns":%[2]d,"end_ns":%d,"events":{"at_ns":[%d,1000000]},"output_tokens":2}`+"\n",
				i, sent, sent+ttft+1e6, sent+ttft)
		}
	}
	for path, text := range files {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
