package archive_test

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/archive"
	"github.com/tacho-bench/tacho/internal/bounded"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report"
	"github.com/tacho-bench/tacho/store"
)

// testdata contains results of other tools for runs against tacho sim, as described in its README. The
// figures here are from those files.
var results = []struct {
	path, tool, model string
	levels            []level
}{
	{"vllm/detailed.json", "vllm bench serve", "sim", []level{{prompts: 6, rate: 5, limit: 2, ok: 6, perS: 4.493282918351252, ttft: 65.94701766637934, p99: 78.25169072878816}}},
	{"vllm/appended.jsonl", "vllm bench serve", "sim", []level{
		{prompts: 6, rate: 5, limit: 1, ok: 6, perS: 4.483204929459434, ttft: 63.714, p99: 67.24},
		{prompts: 6, rate: 5, limit: 2, ok: 6, perS: 4.482, ttft: 63.92, p99: 67.38},
	}},
	{"sglang/details.jsonl", "sglang.bench_serving", "sim", []level{{prompts: 6, rate: 5, limit: 2, ok: 6, perS: 2.7191674255950904, ttft: 71.30390116678124, p99: 82.58502379903803}}},
	{"guidellm/benchmarks.json", "guidellm", "sim", []level{
		{prompts: 3, limit: 1, ok: 3, perS: 10.23, ttft: 64.56, p99: 68.94},
		{prompts: 3, limit: 2, ok: 3, perS: 14.79, ttft: 68.95, p99: 79.99},
	}},
	{"aiperf/profile_export_aiperf.json", "aiperf", "sim", []level{{prompts: 6, limit: 2, ok: 6, perS: 11.322363347094408, ttft: 81.7308175, p99: 106.44979045}}},
	{"aiperf/profile_export_aiperf.csv", "aiperf", "", []level{{prompts: 6, ok: 6, perS: 11.32, ttft: 81.73, p99: 106.45}}},
	{"aiperf", "aiperf", "sim", []level{{prompts: 6, limit: 2, ok: 6, perS: 11.322363347094408, ttft: 81.7308175, p99: 106.44979045}}},
	{"aiperf/profile_export.jsonl", "aiperf", "", []level{{prompts: 6, ok: 6, perS: 6 / 0.48813644800000006, ttft: 81.7308175, p99: 106.44979045}}},
	{"inference-perf", "inference-perf", "sim", []level{
		{prompts: 8, rate: 4, ok: 8, perS: 4.20, ttft: 68.82, p99: 82.39},
		{prompts: 16, rate: 8, ok: 16, perS: 7.49, ttft: 85.95, p99: 203.47},
	}},
	{"inference-perf/summary_lifecycle_metrics.json", "inference-perf", "sim", []level{{prompts: 24, ok: 24, perS: 3.330646689847809, ttft: 80.24, p99: 202.60}}},
	{"genai-bench", "genai-bench", "sim", []level{
		{prompts: 11, limit: 1, ok: 11, perS: 5.290138952505872, ttft: 114.06347663565115, p99: 310.1913210983185},
		{prompts: 10, limit: 2, ok: 10, perS: 8.77, ttft: 95.09, p99: 189.47},
	}},
	{"llmperf", "llmperf", "sim", []level{{prompts: 20, limit: 2, ok: 19, failed: 1, perS: 3.8, ttft: 257.8769952757604, p99: 294.9890516749525}}},
}

// A level holds the expected values of one level.
type level struct {
	prompts, limit, ok, failed int
	rate, perS, ttft, p99      float64
}

// near allows for rounded figures.
func near(got, want float64) bool { return math.Abs(got-want) <= 0.005+1e-4*math.Abs(want) }

func open(t *testing.T, path string) *outcome.Run {
	t.Helper()
	return must.Get(archive.Open(filepath.Join("testdata", path), nil))(t)
}

func TestResults(t *testing.T) {
	for _, want := range results {
		run := open(t, want.path)
		if run.Tool != want.tool || run.Model != want.model || len(run.Levels) != len(want.levels) {
			t.Errorf("%s: %s of model %q with %d levels, want %s of %q with %d", want.path, run.Tool, run.Model, len(run.Levels), want.tool, want.model, len(want.levels))
			continue
		}
		for i, l := range want.levels {
			got, s := &run.Levels[i], &run.Levels[i].Summary
			ttft := s.Classic(metric.TTFT)
			if got.Prompts != l.prompts || got.Rate != l.rate || got.Concurrency != l.limit || s.Completed != l.ok || s.Failed != l.failed {
				t.Errorf("%s %d: prompts %d, rate %v, limit %d, ok %d, failed %d; want %+v", want.path, i, got.Prompts, got.Rate, got.Concurrency, s.Completed, s.Failed, l)
			}
			if !near(s.Throughput.RequestsPerS, l.perS) || !near(ttft.Mean, l.ttft) || !near(ttft.Percentile(99), l.p99) {
				t.Errorf("%s %d: %v req/s, TTFT %v, P99 %v; want %+v", want.path, i, s.Throughput.RequestsPerS, ttft.Mean, ttft.Percentile(99), l)
			}
			if s.Verdict.Severity != metric.Unjudged {
				t.Errorf("%s: verdict %s on what somebody else measured", want.path, s.Verdict.Severity)
			}
		}
	}
}

// The sums of requests by our formulas equal the tool's figures.
func TestRequestsAddUp(t *testing.T) {
	for path, metrics := range map[string][]*metric.Metric{
		"vllm/detailed.json":                {metric.TTFT, metric.TPOT, metric.ITL, metric.E2EL},
		"sglang/details.jsonl":              {metric.TTFT, metric.ITL},
		"aiperf/profile_export_aiperf.json": {metric.TTFT, metric.TPOT, metric.ITL, metric.E2EL},
		"aiperf/profile_export.jsonl":       {metric.TTFT, metric.TPOT, metric.ITL, metric.E2EL},
		"genai-bench":                       {metric.TTFT, metric.TPOT, metric.E2EL},
	} {
		run := open(t, path)
		for _, l := range run.Levels {
			if l.Records == nil {
				t.Fatalf("%s: no requests", path)
			}
			var sum metric.Accumulator
			for r := range l.Records() {
				_ = sum.Add(r)
			}
			summed := sum.Summary(l.Summary.Config)
			for _, m := range metrics {
				got, want := summed.Classic(m), l.Summary.Classic(m)
				if !near(got.Mean, want.Mean) || !near(got.Percentile(99), want.Percentile(99)) || !near(got.Median, want.Median) {
					t.Errorf("%s: %s of the requests: mean %v, median %v, P99 %v; said: %v, %v, %v", path, m.Name,
						got.Mean, got.Median, got.Percentile(99), want.Mean, want.Median, want.Percentile(99))
				}
			}
		}
	}
}

// GuideLLM stores only the first and the last token, so there are no gaps.
func TestGapsThatAreNotTold(t *testing.T) {
	s := &open(t, "guidellm/benchmarks.json").Levels[0].Summary
	if d := s.Dist(metric.ITL); d.Stats != nil {
		t.Errorf("ITL %+v", d.Stats)
	}
	if d := s.Dist(metric.TPOT); d.Stats == nil || !near(d.Stats.Mean, 9.97) {
		t.Errorf("TPOT %+v", d.Stats)
	}
}

func TestSeedsAreTwoServers(t *testing.T) {
	runs := must.Get(archive.All("../../testdata/seeds", nil))(t)
	if len(runs) != 4 {
		t.Fatalf("%d runs, want 4", len(runs))
	}
	for i, want := range []struct {
		backend, model, first, last string
		levels                      int
	}{
		{"vllm", "", "--num-prompts 1 --input-len 80", "--num-prompts 1 --input-len 16000", 23},
		{"tgi", "meta-llama/Llama-3.1-405B-Instruct", "--num-prompts 1", "--num-prompts 2537", 13},
	} {
		r := runs[i]
		if r.Backend != want.backend || r.Model != want.model || len(r.Levels) != want.levels || r.Levels[0].Name != want.first || r.Levels[want.levels-1].Name != want.last {
			t.Errorf("%s %q: %d levels from %q to %q; want %+v", r.Backend, r.Model, len(r.Levels), r.Levels[0].Name, r.Levels[len(r.Levels)-1].Name, want)
		}
	}
}

// Levels of a sweep have coordinates, so that they can be plotted.
func TestSweepsHaveCoordinates(t *testing.T) {
	run := open(t, "inference-perf")
	if v, ok := run.Levels[1].Coordinates.Of("request-rate"); run.Varies != "request-rate" || !ok || v != "8" {
		t.Errorf("%q by %q", run.Levels[1].Coordinates, run.Varies)
	}
}

func TestWhatIsNoResult(t *testing.T) {
	for name, text := range map[string]string{
		"empty.json": "", "other.json": `{"a": 1}`, "list.json": `[1, 2]`, "prose.txt": "good morning\n", "server.log": "[2026-11-16 08:00:00] INFO ready\n", "zeros.json": strings.Repeat("\x00", 100),
	} {
		path := filepath.Join(t.TempDir(), name)
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		if _, err := archive.Open(path, nil); err == nil || !strings.Contains(err.Error(), "no result that is known here") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A table of GuideLLM is not supported. Its error names the file to use, and the table is skipped
// beside that file.
func TestWhatToGiveInstead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "benchmarks.csv")
	must.Do(t, os.WriteFile(path, []byte("Run Info,Run Info,Benchmark\nRun ID,Run Index,Type\n,,\na,0,generative_benchmark\n"), 0o600))
	if _, err := archive.Open(path, nil); err == nil || !strings.Contains(err.Error(), "this file of guidellm is not read: give benchmarks.json") {
		t.Error(err)
	}
	b := must.Get(os.ReadFile("testdata/guidellm/benchmarks.json"))(t)
	must.Do(t, os.WriteFile(filepath.Join(dir, "benchmarks.json"), b, 0o600))
	if run, err := archive.Open(dir, nil); err != nil || len(run.Levels) != 2 {
		t.Errorf("%+v, %v", run, err)
	}
}

func TestDamagedResults(t *testing.T) {
	whole := must.Get(os.ReadFile("testdata/vllm/detailed.json"))(t)
	for name, c := range map[string]struct{ text, want string }{
		"cut.json":   {string(whole[:len(whole)/2]), "incomplete JSON"},
		"short.json": {strings.Replace(string(whole), `"ttfts": [`, `"ttfts": [0.1, `, 1), "the file is damaged"},
	} {
		dir := t.TempDir()
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(c.text), 0o600))
		for _, path := range []string{dir, filepath.Join(dir, name)} {
			if _, err := archive.Open(path, nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
		}
	}
}

// Python writes NaN and Infinity, which are not JSON. Inside texts they are words.
func TestNumbersOfPython(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.json")
	text := `{"model_id": "NaN and Infinity \" m", "request_throughput": 2.5, "burstiness": Infinity, "mean_ttft_ms": 7.0, "std_ttft_ms": NaN, "low": -Infinity}`
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	run := must.Get(archive.Open(path, nil))(t)
	if s := run.Levels[0].Summary.Classic(metric.TTFT); run.Model != `NaN and Infinity " m` || s.Mean != 7 || !math.IsNaN(s.Std) {
		t.Errorf("%q, %+v", run.Model, s)
	}
}

// A percentile missing in the file is never shown as 0.
func TestPercentilesThatAreNotTold(t *testing.T) {
	ask := func(c *metric.Config) error { c.Percentiles = []float64{95}; return nil }
	if _, err := archive.Open("testdata/vllm/appended.jsonl", ask); err == nil || !strings.Contains(err.Error(), "ttft has no P95 in the result, only P50, P99") {
		t.Error(err)
	}
}

// Failures found only in the details are counted.
func TestFailuresInDetails(t *testing.T) {
	b := must.Get(os.ReadFile("testdata/sglang/details.jsonl"))(t)
	path := filepath.Join(t.TempDir(), "s.jsonl")
	text := strings.Replace(string(b), `"errors": ["", `, `"errors": ["Connection reset", `, 1)
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	run := must.Get(archive.Open(path, nil))(t)
	if s := &run.Levels[0].Summary; s.Failed != 1 || len(s.Failures) != 1 || s.Failures[0].Example != "Connection reset" {
		t.Errorf("%d failed, %+v", s.Failed, s.Failures)
	}
	var first *tacho.Record
	for r := range run.Levels[0].Records() {
		first = r
		break
	}
	if first.OK() {
		t.Error("a failed request is a success")
	}
}

// A file with more values than fit into memory is an error that names the file.
func TestManyValuesAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "result.json")
	for text, want := range map[string]string{
		`{"duration":1,"completed":1,"ttfts":[` + strings.Repeat("[],", 16<<20) + `[]]}`:          "more than 16 million JSON values",
		strings.Repeat(`{"metadata":{"benchmark_phase":"profiling"},"metrics":{}}`+"\n", 1<<20+1): "more than 3 million JSON objects",
	} {
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		if _, err := archive.All(path, nil); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error that names the file and %q", err, want)
		}
	}
}

// JSON of tacho with more levels or values than any run is an error that names the file.
func TestDocumentIsBounded(t *testing.T) {
	for text, want := range map[string]string{
		`{"runs":[{"tool":"tacho","levels":[` + strings.Repeat("{},", 10_000) + `{}]}]}`:          "more than 10000 levels",
		`{"runs":[` + strings.Repeat("{},", 10_001) + `{}]}`:                                      "more than 10000 levels",
		`{"runs":[{"tool":"tacho","notes":[` + strings.Repeat("null,", 4<<20) + `null]}]}`:        "more than 4 million JSON values",
		`{"runs":[{"tool":"tacho","levels":[{"summary":{"dists":[` + strings.Repeat("[],", 4<<20): "more than 4 million JSON values",
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, store.SummaryFile)
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		bounded.Run(t, 512<<20, func() {
			_, err := archive.All(path, nil)
			_, err2 := archive.Summary(dir)
			for _, err := range []error{err, err2} {
				if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want the file and %q", err, want)
				}
			}
		})
	}
}

// Times of requests that are not numbers of this world do not overflow.
func TestTimesOfRequestsAreBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.json")
	text := `{"model_id":"m","request_throughput":1,"duration":1e300,"completed":2,"ttfts":[1e308,1],"itls":[[1e308,1e308],[-1e308]],"input_lens":[1,1],"output_lens":[3,2],"start_times":[-1e308,1e308]}`
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	run := must.Get(archive.Open(path, nil))(t)
	for r := range run.Levels[0].Records() {
		for _, at := range []time.Duration{r.Due, r.First(), r.End} {
			if at < -2e18 || at > 2e18 {
				t.Errorf("%v", at)
			}
		}
	}
	for _, f := range report.Formats {
		if err := f.Render(io.Discard, &report.Report{Runs: []outcome.Run{*run}}); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
}

// The file of requests beside an export of AIPerf has the same limits.
func TestRequestsBesideAreBounded(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "profile_export.jsonl")
	export := must.Get(os.ReadFile("testdata/aiperf/profile_export_aiperf.json"))(t)
	must.Do(t, os.WriteFile(filepath.Join(dir, "profile_export_aiperf.json"), export, 0o600))
	must.Do(t, os.WriteFile(path, []byte(strings.Repeat("{}\n", 3<<20+1)), 0o600))
	if _, err := archive.All(filepath.Join(dir, "profile_export_aiperf.json"), nil); err == nil || !strings.Contains(err.Error(), path+": more than 3 million JSON objects") {
		t.Errorf("%v", err)
	}
}

// A level with too many coordinates is refused when it is read, because reports compare them in quadratic time.
func TestCoordinatesAreBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.json")
	var all strings.Builder
	for i := range 500_000 {
		fmt.Fprintf(&all, `{"name":"c%d","value":1},`, i)
	}
	text := `{"schema":1,"runs":[{"tool":"tacho","levels":[{"coordinates":[` + strings.TrimSuffix(all.String(), ",") + `]}]}]}`
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	if runs, err := archive.All(path, nil); err == nil || !strings.Contains(err.Error(), "r.json") {
		t.Errorf("%d runs, %v, want an error", len(runs), err)
	}
}
