package cli_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/internal/archive"
	"github.com/tacho-bench/tacho/internal/cli"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report"
	"github.com/tacho-bench/tacho/store"
)

// A sort is a kind of run whose report must be the same during the run and
// afterwards.
type sort struct {
	args  []string
	files map[string]string
	stop  bool     // interrupt in the middle
	again []string // flags for the same report
	limit bool     // reject every third request
}

func sorts(server, other string) map[string]sort {
	base := []string{"--base-url", server, "--random-input-len", "10", "--random-output-len", "4", "--seed", "1"}
	flags := func(more ...string) []string { return append(slices.Clone(base), more...) }
	talk := `{"messages":[{"role":"user","content":"hi"}],"turns":[{"messages":[{"role":"user","content":"one"}]},{"messages":[{"role":"user","content":"two"}]}]}` + "\n"
	trace := `{"timestamp":0,"input_length":20,"output_length":3,"hash_ids":[1]}` + "\n" + `{"timestamp":40,"input_length":600,"output_length":3,"hash_ids":[1,2]}` + "\n"
	return map[string]sort{
		"one level":       {args: flags("--num-prompts", "5")},
		"prompts":         {args: flags("--num-prompts", "1,2,4")},
		"rates":           {args: flags("--num-prompts", "6", "--request-rate", "50,100")},
		"limits":          {args: flags("--num-prompts", "6", "--max-concurrency", "1,3")},
		"grid":            {args: flags("--num-prompts", "2,3", "--request-rate", "100,inf", "--max-concurrency", "2")},
		"by time":         {args: flags("--max-seconds", "1", "--max-concurrency", "2")},
		"ramp":            {args: flags("--num-prompts", "12", "--ramp-up-strategy", "linear", "--ramp-up-start-rps", "5", "--ramp-up-end-rps", "20")},
		"goodput":         {args: flags("--num-prompts", "5", "--goodput", "ttft:6", "e2el:1000")},
		"percentiles":     {args: flags("--num-prompts", "5", "--percentile-metrics", "ttft,tpot,itl,e2el", "--metric-percentiles", "50,90,99.9")},
		"old style":       {args: flags("--num-prompts", "5", "--report-style", "old"), again: []string{"--report-style", "old"}},
		"probes":          {args: flags("--num-prompts", "30", "--max-concurrency", "1", "--probe-request-rate", "50")},
		"chat":            {args: flags("--backend", "openai-chat", "--num-prompts", "5", "--label", "mine", "--metadata", "gpu=none", "--gpus", "2xL4")},
		"embeddings":      {args: flags("--backend", "openai-embeddings", "--num-prompts", "5")},
		"labels":          {args: flags("--num-prompts", "12", "--mix", "label=chat weight=2", "label=batch weight=1 random-input-len=20")},
		"sessions":        {args: flags("--backend", "openai-chat", "--dataset-name", "custom", "--dataset-path", "talk.jsonl", "--num-prompts", "3"), files: map[string]string{"talk.jsonl": talk}},
		"trace":           {args: flags("--dataset-name", "mooncake", "--dataset-path", "trace.jsonl"), files: map[string]string{"trace.jsonl": trace}},
		"two servers":     {args: flags("--base-url", other, "--num-prompts", "8")},
		"failures":        {args: flags("--num-prompts", "9", "--no-trial"), limit: true},
		"retries":         {args: flags("--num-prompts", "9", "--retries", "3", "--no-trial"), limit: true},
		"all fail":        {args: flags("--num-prompts", "4", "--no-trial", "--model", "tiny", "--endpoint", "/nothing/here")},
		"warm-ups":        {args: flags("--num-prompts", "5", "--num-warmups", "2", "--max-concurrency", "2", "--request-rate", "100")},
		"stopped":         {args: flags("--num-prompts", "100000", "--max-concurrency", "2"), stop: true},
		"stopped, levels": {args: flags("--num-prompts", "3,100000", "--max-concurrency", "2"), stop: true},
		"metrics page":    {args: flags("--backend", "vllm", "--num-prompts", "40", "--max-concurrency", "1", "--metrics-interval", "0.1")},
	}
}

// bench prints and stores the same bytes as report prints for the stored run,
// in every format.
func TestReplayedIsLive(t *testing.T) {
	for name := range sorts("", "") {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			synctest.Test(t, func(t *testing.T) {
				var count atomic.Int64
				var refuse bool
				server, _ := site(t, func(w http.ResponseWriter, r *http.Request) bool {
					if refuse && strings.HasSuffix(r.URL.Path, "completions") && count.Add(1)%3 == 0 {
						http.Error(w, `{"error":{"message":"not now"}}`, http.StatusServiceUnavailable)
						return true
					}
					return false
				})
				other, _ := site(t, nil)
				s := sorts(server, other)[name]
				refuse = s.limit
				for file, text := range s.files {
					writeText(t, file, text)
				}
				replay(t, s)
			})
		})
	}
}

func replay(t *testing.T, s sort) {
	t.Helper()
	interrupt := make(chan os.Signal, 1)
	if s.stop {
		go func() {
			time.Sleep(time.Second) // virtual time: the middle of the run
			interrupt <- os.Interrupt
		}()
	}
	var live *outcome.Run
	out, errs := inProcess(t, interrupt, func(r *outcome.Run) { live = r }, append([]string{"bench", "--disable-tqdm", "--save-result", "--save-detailed", "--plot-timeline", "--result-dir", "files"}, s.args...))
	dirs, _ := filepath.Glob("runs/*")
	if len(dirs) != 1 || live == nil {
		t.Fatalf("%d runs: %s", len(dirs), errs)
	}
	again, errs := inProcess(t, nil, nil, append([]string{"report", dirs[0], "--verbose"}, s.again...))
	kept := must.Get(os.ReadFile(filepath.Join(dirs[0], store.TextFile)))(t)
	if diff := cmp.Diff(string(kept), again); diff != "" {
		t.Errorf("-bench +report (%s)\n%s", errs, diff)
	}
	if shown, _ := inProcess(t, nil, nil, append([]string{"report", dirs[0]}, s.again...)); !strings.HasPrefix(out, shown) {
		t.Errorf("bench prints\n%s\nand report\n%s", out, shown)
	}
	read := must.Get(archive.Open(dirs[0], nil))(t)
	for _, f := range report.Formats {
		kinds := report.RowKinds[:1]
		if slices.Contains([]string{"csv", "parquet"}, f.Name) {
			kinds = report.RowKinds
		}
		for _, rows := range kinds {
			compareFormat(t, f, rows.Name, live, read)
		}
	}
	compareFiles(t, dirs[0], len(live.Levels), s.stop)
}

// compareFormat renders both runs in one format.
func compareFormat(t *testing.T, f report.Format, rows string, live, read *outcome.Run) {
	t.Helper()
	var a, b bytes.Buffer
	errA := f.Render(&a, &report.Report{Runs: []outcome.Run{*live}, Rows: rows, Detailed: true})
	errB := f.Render(&b, &report.Report{Runs: []outcome.Run{*read}, Rows: rows, Detailed: true})
	if errA != nil || errB != nil || a.Len() == 0 {
		t.Errorf("%s of %ss: %v, %v, %d bytes", f.Name, rows, errA, errB, a.Len())
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Errorf("%s of %ss: -live +read\n%s", f.Name, rows, cmp.Diff(a.String(), b.String()))
	}
}

// compareFiles compares the files of bench with those of report.
func compareFiles(t *testing.T, dir string, levels int, stopped bool) {
	t.Helper()
	for kind, format := range map[string][]string{"*.json": {"vllm", "--save-detailed"}} {
		paths, _ := filepath.Glob("files/" + kind)
		if len(paths) != levels {
			t.Errorf("%d files %s of %d levels", len(paths), kind, levels)
		}
		var wrote, made []string
		for i := range levels {
			out, errs := inProcess(t, nil, nil, append([]string{"report", dir, "--level", string(rune('1' + i)), "--format"}, format...))
			if errs != "" {
				t.Error(errs)
			}
			made = append(made, out)
		}
		for _, path := range paths {
			b := must.Get(os.ReadFile(path))(t)
			wrote = append(wrote, string(b))
		}
		slices.Sort(wrote)
		slices.Sort(made)
		if diff := cmp.Diff(wrote, made); diff != "" {
			t.Errorf("%s: -bench +report\n%s", kind, diff)
		}
	}
	if plots, _ := filepath.Glob("files/*.timeline.html"); len(plots) != levels {
		t.Errorf("%d timelines of %d levels", len(plots), levels)
	}
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if out, _ := inProcess(t, nil, nil, []string{"report", dir, "--format", "html"}); err != nil || out != string(page) {
		t.Errorf("report.html: %v, -kept +report\n%s", err, cmp.Diff(string(page), out))
	}
	if stopped {
		return
	}
	kept := must.Get(os.ReadFile(filepath.Join(dir, "summary.json")))(t)
	if out, _ := inProcess(t, nil, nil, []string{"report", dir, "--format", "json"}); out != string(kept) {
		t.Errorf("summary.json: -kept +report\n%s", cmp.Diff(string(kept), out))
	}
}

// inProcess runs the program in this process.
func inProcess(t *testing.T, interrupt chan os.Signal, seen func(*outcome.Run), args []string) (stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	env := &cli.Env{
		Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Network: &network, Width: func() int { return 80 },
		Getenv: func(string) string { return "" }, Interrupt: interrupt, Kill: func(int) { t.Error("killed") },
	}
	cli.Main(env.Seen(seen))
	return out.String(), errs.String()
}
