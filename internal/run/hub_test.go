package run_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/tacho-bench/tacho/internal/fakehub"
	"github.com/tacho-bench/tacho/internal/hub"
	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/workload"
)

// questions returns a Parquet file with n rows.
func questions(t *testing.T, prefix string, n int) string {
	t.Helper()
	type row struct {
		Question string `parquet:"question"`
		Answer   string `parquet:"answer"`
	}
	rows := make([]row, n)
	for i := range rows {
		rows[i] = row{fmt.Sprintf("%s %d?", prefix, i), "yes"}
	}
	var b bytes.Buffer
	must.Do(t, parquet.Write(&b, rows))
	return b.String()
}

// asked creates the workload of a plan and returns its prompts.
func asked(t *testing.T, env run.Env, change func(*plan.Plan)) (prompts, said []string, err error) {
	t.Helper()
	p := planFor("http://127.0.0.1:1", func(p *plan.Plan) {
		p.DatasetName, p.DatasetPath, p.DisableShuffle, p.NoOversample = "hf", "org/data", true, true
		change(p)
	})
	env.Observer = live.Messages{To: func(line string) { said = append(said, line) }}
	work, _, err := run.Workload(t.Context(), &p, 1, env)
	if err != nil {
		return nil, said, err
	}
	for i := uint64(0); ; i++ {
		s, err := work.Session(i)
		if errors.Is(err, io.EOF) {
			return prompts, said, nil
		} else if err != nil {
			t.Fatal(err)
		}
		prompts = append(prompts, s.Turns[0].Request.Input.Text)
	}
}

// Only the needed files of a hub dataset are downloaded, by subset and split.
// Later runs need no network.
func TestDatasetOfTheHub(t *testing.T) {
	server := fakehub.New(t)
	server.Token = "secret"
	server.Files["org/data@refs/convert/parquet"] = map[string]string{
		"main/train/0000.parquet": questions(t, "train", 10), "main/train/0001.parquet": questions(t, "more", 10),
		"main/test/0000.parquet": questions(t, "test", 5), "other/train/0000.parquet": questions(t, "other", 3),
	}
	server.Files["org/data@main"] = map[string]string{"q.jsonl": `{"question":"plain?"}` + "\n"}
	home := t.TempDir()
	env := run.Env{Tokenizers: run.Tokenizers{Home: home, Online: true, Endpoint: server.URL, Token: "secret"}}
	number := func(n int) int { return n }

	if _, _, err := asked(t, env, func(p *plan.Plan) { p.NumPrompts = number(4) }); err == nil || !strings.Contains(err.Error(), "choose one of main, other with --hf-subset") {
		t.Errorf("%v", err)
	}
	got, said, err := asked(t, env, func(p *plan.Plan) { p.NumPrompts, p.HFSubset = number(8), "main" })
	if err != nil || len(got) != 8 || got[0] != "train 0?" {
		t.Fatalf("%q, %v", got, err)
	}
	if len(said) != 1 || !strings.Contains(said[0], "main/train/0000.parquet of dataset org/data (file 1 of 2)") {
		t.Errorf("said %q", said)
	}
	got, said, err = asked(t, env, func(p *plan.Plan) { p.NumPrompts, p.HFSubset = number(15), "main" })
	if err != nil || len(got) != 15 || got[14] != "more 4?" || len(said) != 1 {
		t.Errorf("%q, %q, %v", got, said, err)
	}
	got, _, err = asked(t, env, func(p *plan.Plan) { p.NumPrompts, p.HFSubset, p.HFSplit = number(9), "main", "test" })
	if err != nil || len(got) != 5 || got[0] != "test 0?" {
		t.Errorf("%q, %v", got, err)
	}
	if _, _, err := asked(t, env, func(p *plan.Plan) { p.HFSubset, p.HFSplit = "main", "dev" }); err == nil || !strings.Contains(err.Error(), "dev") {
		t.Errorf("%v", err)
	}

	// Cached files are used without requests to the hub.
	before := len(server.Requests())
	env.Tokenizers.Online = false
	got, said, err = asked(t, env, func(p *plan.Plan) { p.NumPrompts, p.HFSubset = number(15), "main" })
	if err != nil || len(got) != 15 || len(said) != 0 || len(server.Requests()) != before {
		t.Errorf("%d prompts, %q, %v, asked %q", len(got), said, err, server.Requests()[before:])
	}
	_, _, err = asked(t, env, func(p *plan.Plan) { p.HFSubset = "other" })
	if !errors.Is(err, hub.ErrOffline) || !strings.Contains(err.Error(), "HF_HUB_OFFLINE") {
		t.Errorf("%v", err)
	}
	env.Tokenizers.Home = t.TempDir()
	if _, _, err = asked(t, env, func(*plan.Plan) {}); !errors.Is(err, hub.ErrOffline) || !strings.Contains(err.Error(), "is not in the cache") {
		t.Errorf("%v", err)
	}
}

// If the hub has no Parquet copy, the original files are used. Other dataset
// kinds read one file of the hub.
func TestFilesOfTheHub(t *testing.T) {
	server := fakehub.New(t)
	server.Files["org/data@main"] = map[string]string{
		"data/train-0.jsonl": `{"prompt":"a train"}` + "\n", "data/test-0.jsonl": `{"prompt":"a test"}` + "\n", "talks.json": `[]`,
	}
	env := run.Env{Tokenizers: run.Tokenizers{Home: t.TempDir(), Online: true, Endpoint: server.URL}}
	for want, change := range map[string]func(*plan.Plan){
		"a train": func(*plan.Plan) {},
		"a test":  func(p *plan.Plan) { p.HFSplit = "test" },
		" a test ": func(p *plan.Plan) {
			p.DatasetName, p.DatasetPath = "custom", "hf://datasets/org/data/data/test-0.jsonl"
		},
	} {
		got, _, err := asked(t, env, change)
		if err != nil || len(got) != 1 || got[0] != strings.TrimSpace(want) {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	for want, change := range map[string]func(*plan.Plan){
		"no such dataset or file":                func(p *plan.Plan) { p.DatasetPath = "org/none" },
		"sharegpt reads one file":                func(p *plan.Plan) { p.DatasetName, p.DatasetPath = "sharegpt", "hf://datasets/org/data" },
		"no such file":                           func(p *plan.Plan) { p.DatasetName, p.DatasetPath = "sharegpt", "org/data" },
		"no data; set --dataset-path ShareGPT_V": func(p *plan.Plan) { p.DatasetName, p.DatasetPath = "sharegpt", "" },
		"is not a valid dataset name":            func(p *plan.Plan) { p.DatasetPath = "or g/data" },
	} {
		if _, _, err := asked(t, env, change); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Datasets known to vLLM by name produce the same prompts as in vLLM.
func TestNamedSetsOfTheHub(t *testing.T) {
	server := fakehub.New(t)
	const coder, functions = "likaixin/InstructCoder", "gorilla-llm/Berkeley-Function-Calling-Leaderboard"
	server.Files[coder+"@main"] = map[string]string{"train.jsonl": `{"instruction":"sort it","input":"def f(): pass","output":"x"}` + "\n"}
	call := func(question string) string {
		return fmt.Sprintf(`{"question":[[{"role":"user","content":%q}]],"function":[{"name":"f"}]}`, question) + "\n"
	}
	server.Files[functions+"@main"] = map[string]string{
		"BFCL_v3_simple.json": `{"id":"1","question":[[{"role":"user","content":"area?"}]],"function":[{"name":"geo.area","parameters":{"type":"dict","properties":{"h":{"type":"float"}}}}]}` + "\n",
		"BFCL_v3_rest.json":   "{}",
		"BFCL_v3_a.json":      call("a1") + call("a2") + call("a3"),
		"BFCL_v3_b.json":      call("b1"),
	}
	env := run.Env{Tokenizers: run.Tokenizers{Home: t.TempDir(), Online: true, Endpoint: server.URL}}
	make1 := func(change func(*plan.Plan)) workload.Workload {
		t.Helper()
		p := planFor("http://127.0.0.1:1", func(p *plan.Plan) { p.DatasetName, p.Backend = "hf", "openai-chat"; change(p) })
		work, _, err := run.Workload(t.Context(), &p, 1, env)
		must.Do(t, err)
		return work
	}
	s, err := make1(func(p *plan.Plan) { p.DatasetPath = coder }).Session(0)
	if q := s.Turns[0].Request; err != nil || q.Input.Text != "def f(): pass\n\nsort it Just output the code, do not include any explanation." || q.MaxTokens != 200 {
		t.Errorf("%+v, %v", q, err)
	}
	s, err = make1(func(p *plan.Plan) { p.DatasetPath, p.BFCLCategories = functions, "simple" }).Session(0)
	q := s.Turns[0].Request
	tools := fmt.Sprintf("%s", q.Extra["tools"])
	want := `[{"type":"function","function":{"name":"geo.area","parameters":{"properties":{"h":{"type":"number"}},"type":"object"}}}]`
	if err != nil || q.Input.Messages[0].Content != "area?" || q.MaxTokens != 512 || tools != want {
		t.Errorf("%+v, %s, %v", q, tools, err)
	}
	// Categories alternate, and a category with enough rows does not replace
	// the others.
	work := make1(func(p *plan.Plan) {
		p.DatasetPath, p.BFCLCategories, p.DisableShuffle, p.NumPrompts = functions, "a,b", true, 3
	})
	var order []string
	for i := range uint64(3) {
		s := must.Get(work.Session(i))(t)
		order = append(order, s.Turns[0].Request.Input.Messages[0].Content)
	}
	if got := strings.Join(order, " "); got != "a1 b1 a2" {
		t.Errorf("asked %s", got)
	}
}
