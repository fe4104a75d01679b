package run_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/fakehub"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/workload"
)

// tinyTokenizer writes a tokenizer with one token per byte, a start token and a
// chat template.
func tinyTokenizer(t *testing.T, dir string) string {
	t.Helper()
	vocab := map[string]int{"<s>": 0}
	for b := range 256 {
		r := rune(b)
		// Byte-level tokenizers map these bytes to other characters.
		if b <= ' ' || b >= 0x7f && b <= 0xa0 || b == 0xad {
			continue
		}
		vocab[string(r)] = len(vocab)
	}
	for r := rune(0x100); r < 0x144; r++ {
		vocab[string(r)] = len(vocab)
	}
	files := map[string]any{
		"tokenizer.json": map[string]any{
			"version":       "1.0",
			"added_tokens":  []any{map[string]any{"id": 0, "content": "<s>", "special": true}},
			"pre_tokenizer": map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
			"decoder":       map[string]any{"type": "ByteLevel"},
			"model":         map[string]any{"type": "BPE", "vocab": vocab, "merges": []any{}},
			"post_processor": map[string]any{
				"type":           "TemplateProcessing",
				"single":         []any{map[string]any{"SpecialToken": map[string]any{"id": "<s>", "type_id": 0}}, map[string]any{"Sequence": map[string]any{"id": "A", "type_id": 0}}},
				"pair":           []any{map[string]any{"Sequence": map[string]any{"id": "A", "type_id": 0}}, map[string]any{"Sequence": map[string]any{"id": "B", "type_id": 1}}},
				"special_tokens": map[string]any{"<s>": map[string]any{"id": "<s>", "ids": []int{0}, "tokens": []string{"<s>"}}},
			},
		},
		"tokenizer_config.json": map[string]any{"chat_template": "{{ '<s>' }}{% for m in messages %}[{{ m.content }}]{% endfor %}"},
	}
	must.Do(t, os.MkdirAll(dir, 0o755))
	for name, v := range files {
		b := must.Get(json.Marshal(v))(t)
		must.Do(t, os.WriteFile(filepath.Join(dir, name), b, 0o644))
	}
	return dir
}

// An available tokenizer counts prompts, including the tokens the server adds.
func TestTokenizerCountsPrompts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := tinyTokenizer(t, t.TempDir())
		for backend, around := range map[string]int{"tgi": 1, "openai-chat": 3} {
			url, _ := serve(t, nil)
			out := do(t, planFor(url, func(p *plan.Plan) {
				p.Backend, p.Tokenizer, p.RandomInputLen = backend, dir, workload.Fixed(200)
			}))
			if !out.runner.Counter().Exact() || !strings.Contains(out.runner.Counter().Name(), "tokenizer.json") {
				t.Errorf("%s: counted by %s", backend, out.runner.Counter().Name())
			}
			for _, r := range out.records {
				if r.Input != 200 {
					t.Errorf("%s: a prompt of %d tokens (%d around it)", backend, r.Input, around)
				}
			}
		}
	})
}

// The tokenizer is found in the local Hugging Face cache by the model's name.
func TestTokenizerFromCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		home := t.TempDir()
		model := filepath.Join(home, "hub", "models--tiny--model")
		tinyTokenizer(t, filepath.Join(model, "snapshots", "abc123"))
		must.Do(t, os.MkdirAll(filepath.Join(model, "refs"), 0o755))
		must.Do(t, os.WriteFile(filepath.Join(model, "refs", "main"), []byte("abc123"), 0o644))
		url, _ := serve(t, nil)
		p := planFor(url, func(p *plan.Plan) { p.Backend, p.Model = "tgi", "tiny/model" })
		out := execute(t.Context(), p, run.Env{Random: 1, Tokenizers: run.Tokenizers{Home: home}})
		if out.err != nil || !strings.Contains(out.runner.Counter().Name(), "tiny/model") {
			t.Fatalf("counted by %v, %v", out.runner.Counter(), out.err)
		}
		for revision, want := range map[string]bool{"abc123": true, "main": true, "v2": false} {
			p := planFor(url, func(p *plan.Plan) { p.Backend, p.Tokenizer = "tgi", "tiny/model@"+revision })
			out := execute(t.Context(), p, run.Env{Random: 1, Tokenizers: run.Tokenizers{Home: home}})
			if (out.err == nil) != want || !want && !strings.Contains(out.err.Error(), "not at revision v2") {
				t.Errorf("at %s: %v", revision, out.err)
			}
		}
	})
}

// A missing tokenizer is downloaded from the hub, with its chat template. Later
// runs need no network.
func TestTokenizerFromHub(t *testing.T) {
	dir := tinyTokenizer(t, t.TempDir())
	server := fakehub.New(t)
	server.Token = "secret"
	files := map[string]string{"weights.bin": "many"}
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json"} {
		b := must.Get(os.ReadFile(filepath.Join(dir, name)))(t)
		files[name] = string(b)
	}
	server.Files["tiny/model@main"], server.Files["tiny/none@main"] = files, map[string]string{"weights.bin": "many"}
	url, _ := serve(t, nil)
	env := run.Env{Random: 1, Tokenizers: run.Tokenizers{Home: t.TempDir(), Online: true, Endpoint: server.URL, Token: "secret"}}
	ask := func(name string) result {
		return execute(t.Context(), planFor(url, func(p *plan.Plan) { p.Backend, p.Tokenizer = "openai-chat", name }), env)
	}
	if out := ask("tiny/model"); out.err != nil || out.runner.Counter().Name() != "tokenizer.json of tiny/model under its chat template" {
		t.Fatalf("counted by %v, %v", out.runner.Counter(), out.err)
	}
	if asked := strings.Join(server.Requests(), " "); strings.Contains(asked, "weights") {
		t.Errorf("asked for more than it takes: %s", asked)
	}
	before := len(server.Requests())
	if out := ask("tiny/model"); out.err != nil || len(server.Requests()) != before {
		t.Errorf("again: %v, asked %q", out.err, server.Requests()[before:])
	}
	if out := ask("tiny/none"); out.err == nil || !strings.Contains(out.err.Error(), "contains none of") {
		t.Errorf("no tokenizer: %v", out.err)
	}
	env.Tokenizers.Home, env.Tokenizers.Token = t.TempDir(), ""
	if out := ask("tiny/model"); out.err == nil || !strings.Contains(out.err.Error(), "HF_TOKEN") {
		t.Errorf("no token: %v", out.err)
	}
}

// The tokenizer counts output if the server does not.
func TestTokenizerCountsOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := tinyTokenizer(t, t.TempDir())
		url, _ := serve(t, func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = w.Write([]byte("data: {\"choices\":[{\"text\":\"three\"}]}\n\ndata: {\"choices\":[{\"text\":\" more\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"))
			})
		})
		out := do(t, planFor(url, func(p *plan.Plan) { p.Model, p.Tokenizer, p.Backend = "m", dir, "vllm" }))
		for _, r := range out.records {
			if r.Output != len("three more") || r.OutputFrom != tacho.FromTokenizer || r.Text != "" {
				t.Errorf("%d tokens by %s, text %q", r.Output, r.OutputFrom, r.Text)
			}
		}
	})
}

func TestTokenizerThatIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		url, _ := serve(t, nil)
		out := execute(t.Context(), planFor(url, func(p *plan.Plan) { p.Tokenizer = "no/such-model" }), run.Env{})
		if out.err == nil || !strings.Contains(out.err.Error(), "--tokenizer no/such-model") || !strings.Contains(out.err.Error(), "o200k_base") {
			t.Errorf("error %v", out.err)
		}
	})
}

// The encodings of OpenAI's models are built in.
func TestBuiltinTokenizer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, want := range map[string]string{"cl100k_base": "built-in cl100k_base", "gpt-4o-mini": "built-in o200k_base of gpt-4o-mini"} {
			url, _ := serve(t, nil)
			out := do(t, planFor(url, func(p *plan.Plan) { p.Backend, p.Tokenizer, p.RandomInputLen = "tgi", name, workload.Fixed(200) }))
			if c := out.runner.Counter(); !c.Exact() || c.Name() != want {
				t.Errorf("%s: counted by %s (exact: %v), want %s", name, c.Name(), c.Exact(), want)
			}
		}
	})
}

// The built-in tokenizer for an OpenAI model name is used only if the server
// cannot count tokens.
func TestBuiltinTokenizerByModelName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mute := func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.URL.Path, "tokenize") {
					http.NotFound(w, r)
					return
				}
				h.ServeHTTP(w, r)
			})
		}
		for _, test := range []struct {
			backend, model, want string
			wrap                 func(http.Handler) http.Handler
			exact                bool
		}{
			{"openai-chat", "gpt-4o", "built-in o200k_base of gpt-4o without a chat template", mute, false},
			{"tgi", "gpt-3.5-turbo", "built-in cl100k_base of gpt-3.5-turbo", mute, true},
			{"openai-chat", "gpt-4o", "server /tokenize", nil, true},
			{"openai-chat", "tiny", "estimate", mute, false},
		} {
			url, _ := serve(t, test.wrap)
			out := execute(t.Context(), planFor(url, func(p *plan.Plan) {
				p.Backend, p.Model, p.RandomInputLen = test.backend, test.model, workload.Fixed(50)
			}), run.Env{Random: 1})
			if out.runner == nil {
				t.Fatal(out.err)
			}
			if c := out.runner.Counter(); c.Exact() != test.exact || c.Name() != test.want {
				t.Errorf("%s, %s: counted by %s (exact: %v), want %s", test.backend, test.model, c.Name(), c.Exact(), test.want)
			}
		}
	})
}

// Questions to a completions endpoint get the chat template with exactly one
// start token, also in conversations and mixes. The template is skipped on
// request, and for hub datasets that the reference sends without it.
func TestTemplatedPrompts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := tinyTokenizer(t, t.TempDir())
		for _, c := range []struct {
			set, hub, row string
			skip, mixed   bool
			want          string
			tokens        int
		}{
			{set: "custom", row: `{"prompt":"why"}`, want: "[why]", tokens: 6},
			{set: "custom", row: `{"prompt":"why"}`, mixed: true, want: "[why]", tokens: 6},
			{set: "custom", row: `{"prompt":"why"}`, skip: true, want: "why", tokens: 4},
			{set: "custom", row: `{"messages":[{"role":"system","content":"so"},{"role":"user","content":"why"}]}`, want: "[so][why]", tokens: 10},
			{set: "hf", row: `{"system":"so","question":"why"}`, want: "[so][why]", tokens: 10},
			{set: "hf", hub: "philschmid/mt-bench", row: `{"turns":["why","how"]}`, want: "[why]", tokens: 6},
			{set: "hf", hub: "AI-MO/NuminaMath-CoT", row: `{"problem":"why","solution":"because"}`, want: "why", tokens: 4},
		} {
			data := filepath.Join(t.TempDir(), "q.jsonl")
			must.Do(t, os.WriteFile(data, []byte(c.row+"\n"), 0o644))
			url, got := serve(t, nil)
			out := do(t, planFor(url, func(p *plan.Plan) {
				p.Backend, p.Tokenizer, p.DatasetName, p.DatasetPath, p.SkipChatTemplate, p.HFName = "vllm", dir, c.set, data, c.skip, c.hub
				if c.mixed {
					p.DatasetName, p.Mix = "random", []string{"dataset-name=" + c.set}
				}
				p.NumPrompts = 1
			}))
			bodies, _ := got.generated()
			if want := fmt.Sprintf(`"prompt":%q`, c.want); len(bodies) != 1 || !strings.Contains(bodies[0], want) || out.records[0].Input != c.tokens {
				t.Errorf("%s %s: %q, %d tokens, want %s, %d tokens", c.row, c.hub, bodies, out.records[0].Input, want, c.tokens)
			}
		}
	})
}
