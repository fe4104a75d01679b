//go:build oracle

package report_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/compare"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report"
)

// python runs a script. The variable PYTHON selects the interpreter.
func python(t *testing.T, script, input string) string {
	t.Helper()
	name := os.Getenv("PYTHON")
	if name == "" {
		name = "python3"
	}
	cmd := exec.CommandContext(t.Context(), name, "-c", script)
	cmd.Stdin, cmd.Stderr = strings.NewReader(input), os.Stderr
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return string(output)
}

// Python reads a result and writes it again with the same bytes: key order, separators,
// escapes and the digits of every float.
func TestOracleVLLMResult(t *testing.T) {
	const script = `import json, sys; sys.stdout.write(json.dumps(json.loads(sys.stdin.read())))`
	rng := rand.New(rand.NewPCG(5, 6))
	v := vllmResult()
	list := records(200)
	for _, r := range list {
		text := make([]rune, 50)
		for i := range text {
			text[i] = rune(rng.IntN(0xd800)) // all planes below the surrogates, and some above
			if rng.IntN(4) == 0 {
				text[i] = 0x10000 + rune(rng.IntN(0x100000))
			}
		}
		r.Text = string(text)
		for i := range r.Events {
			r.Events[i].At += time.Duration(rng.Int64N(int64(1) << rng.IntN(50)))
		}
	}
	v.Records = func() iter.Seq2[*tacho.Record, error] { return each(list) }
	v.Monotonic = 1e5 * rng.Float64()
	for _, result := range []*report.VLLMResult{vllmResult(), v} {
		text := writeResult(t, result)
		if diff := cmp.Diff(text, python(t, script, text)); diff != "" {
			t.Errorf("-ours +Python's\n%s", diff)
		}
	}
}

// Value lines equal the output of Python's format for the same numbers.
func TestOracleValueLines(t *testing.T) {
	const script = `
import json, sys
for label, value in json.load(sys.stdin):
    print("{:<40} {:<10.2f}".format(label, value))`
	rng := rand.New(rand.NewPCG(7, 8))
	var pairs [][2]any
	var ours []string
	for range 5000 {
		value := math.Exp(40*rng.Float64() - 15)
		switch rng.IntN(3) {
		case 0:
			value = math.Round(value*1000) / 1000 // halves of the last digit
		case 1:
			value = math.Round(value*8) / 8
		}
		s := metric.Summary{Counts: metric.Counts{DurationS: value}}
		for line := range strings.Lines(render(t, "classic", of(outcome.Level{Summary: s}))) {
			if strings.HasPrefix(line, "Benchmark duration") {
				ours = append(ours, line)
			}
		}
		pairs = append(pairs, [2]any{"Benchmark duration (s):", value})
	}
	input := must.Get(json.Marshal(pairs))(t)
	if diff := cmp.Diff(strings.Join(ours, ""), python(t, script, string(input))); diff != "" || len(ours) != 5000 {
		t.Errorf("%d lines, -ours +Python's\n%s", len(ours), diff)
	}
}

// The numbers of a result file follow from its detailed arrays: the reference's
// formulas, applied in Python, give the same values.
func TestOracleResultFollowsFromItsDetails(t *testing.T) {
	const script = `
import json, math, statistics, sys
def percentile(x, p):
    x, v = sorted(x), (len(x) - 1) * p / 100
    low = math.floor(v)
    return x[low] + (x[min(low + 1, len(x) - 1)] - x[low]) * (v - low)
r = json.load(sys.stdin)
ok = [i for i, e in enumerate(r["errors"]) if e == ""]
start, ttft, itl, out = r["start_times"], r["ttfts"], r["itls"], r["output_lens"]
e2el = {i: ttft[i] + sum(itl[i]) for i in ok}
values = {
    "ttft": [ttft[i] for i in ok],
    "tpot": [(e2el[i] - ttft[i]) / (out[i] - 1) for i in ok if out[i] > 1],
    "itl": [x for i in ok for x in itl[i]],
    "e2el": [e2el[i] for i in ok],
}
got = {}
for name, x in values.items():
    got["mean_%s_ms" % name] = statistics.fmean(x) * 1000
    got["median_%s_ms" % name] = statistics.median(x) * 1000
    got["std_%s_ms" % name] = statistics.pstdev(x) * 1000
    for p in ("99.9", "50"):
        got["p%s_%s_ms" % (p, name)] = percentile(x, float(p)) * 1000
d = r["duration"]
got["completed"] = len(ok)
got["failed"] = len(out) - len(ok)
got["total_input_tokens"] = sum(r["input_lens"][i] for i in ok)
got["total_output_tokens"] = sum(out)
got["request_throughput"] = len(ok) / d
got["output_throughput"] = sum(out) / d
got["total_token_throughput"] = (got["total_input_tokens"] + sum(out)) / d
got["request_goodput"] = len([i for i in ok if ttft[i] <= 0.028]) / d
first = min(start[i] for i in ok)
seconds = int(math.ceil(max(start[i] + e2el[i] for i in ok) - first)) + 1
tokens, running = [0] * seconds, [0] * seconds
for i in ok:
    at = start[i] + ttft[i]
    tokens[int(at - first)] += 1
    for gap in itl[i]:
        at += gap
        tokens[int(at - first)] += 1
    for s in range(int(start[i] - first), int(start[i] + e2el[i] - first) + 1):
        running[s] += 1
got["max_output_tokens_per_s"] = max(tokens)
got["max_concurrent_requests"] = max(running)
json.dump({k: float(v) for k, v in got.items()}, sys.stdout)`
	rng := rand.New(rand.NewPCG(9, 10))
	list := records(600)
	for i, r := range list {
		for j := range r.Events {
			r.Events[j].At += time.Duration(j+1)*time.Duration(rng.Int64N(int64(300*ms))) + time.Duration(j)*400*ms
		}
		r.Events = sortedEvents(r.Events)
		r.End = r.Last() + ms
		if i%17 == 3 {
			r.Failure = &tacho.Failure{Cause: tacho.Reset, Message: "broken"}
		}
	}
	summary := summarize(fullStage().Summary.Config, list)
	v := report.NewVLLMResult(&outcome.Run{}, &outcome.Level{Summary: summary, Records: func() iter.Seq2[*tacho.Record, error] { return each(list) }}, true)
	text := writeResult(t, v)
	var ours, pythons map[string]any
	must.Do(t, json.Unmarshal([]byte(text), &ours))
	must.Do(t, json.Unmarshal([]byte(python(t, script, text)), &pythons))
	for key, want := range pythons {
		got, ok := ours[key].(float64)
		if w := want.(float64); !ok || math.Abs(got-w) > 1e-9*(1+math.Abs(w)) {
			t.Errorf("%s: got %v, Python %v", key, ours[key], want)
		}
	}
	if len(pythons) != 4*5+10 {
		t.Errorf("%d numbers compared, want %d", len(pythons), 4*5+10)
	}
}

func sortedEvents(events tacho.Events) tacho.Events {
	for i := 1; i < len(events); i++ {
		events[i].At = max(events[i].At, events[i-1].At)
	}
	return events
}

// benchstat is Go's tool that reads benchmarks.
const benchstat = "golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da"

// benchstat reads a comparison: a side is a column, a level is a row, and the median
// over the runs agrees.
func TestOracleBenchstat(t *testing.T) {
	level := func(rate, ttft float64) outcome.Level {
		l := outcome.Level{Setting: outcome.Setting{Name: fmt.Sprintf("--request-rate %v", rate), Rate: rate, Coordinates: outcome.Coordinates{{Name: "request-rate", Value: fmt.Sprint(rate)}}}}
		l.Summary.Completed = 100
		l.Summary.Dists = metric.Dists{{Name: "ttft", Unit: metric.Millis, N: 100, Stats: &metric.Stats{Mean: ttft, Median: ttft}}}
		return l
	}
	side := func(name string, ttft float64) compare.Side {
		s := compare.Side{Name: name}
		for i := range 7 {
			off := float64(i-3) / 10
			s.Runs = append(s.Runs, outcome.Run{Levels: []outcome.Level{level(4, ttft+off), level(8, 2*ttft+off)}})
		}
		return s
	}
	q := must.Get(metric.ParseQuantity("ttft.mean"))(t)
	c := must.Get(compare.Compare([]compare.Side{side("vllm 0.9", 100), side("tgi", 150)}, compare.Options{Quantities: []metric.Quantity{q}}))(t)
	f := must.Get(report.ComparisonFormatNamed("benchstat"))(t)
	file := filepath.Join(t.TempDir(), "bench.txt")
	out := must.Get(os.Create(file))(t)
	must.Do(t, errors.Join(f.Render(out, c), out.Close()))
	cmd := exec.CommandContext(t.Context(), "go", "run", benchstat, "-format", "csv", "-col", "side", file)
	cmd.Stderr = os.Stderr
	text := must.Get(cmd.Output())(t)
	for _, want := range []string{"vllm-0.9", "tgi", "ttft.mean-ms", "Serve/request-rate=4,100,", ",150,", "Serve/request-rate=8,200,", ",300,", "+50.00%"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("benchstat prints:\n%s\nwant %q", text, want)
		}
	}
}

// Mermaid reads the chart of the Markdown report, and refuses a changed one.
func TestOracleMermaid(t *testing.T) {
	const script = `import { JSDOM } from 'jsdom';
globalThis.window = new JSDOM('').window;
globalThis.document = window.document;
const mermaid = (await import('mermaid')).default;
let text = '';
for await (const piece of process.stdin) text += piece;
console.log((await mermaid.parse(text)).diagramType);
`
	dir := filepath.Join("..", ".cache", "mermaid")
	must.Do(t, errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "parse.mjs"), []byte(script), 0o644)))
	// Mermaid needs the document of a browser.
	install := exec.CommandContext(t.Context(), "sh", "-c", "test -d node_modules/mermaid || npm install --no-audit --no-fund --ignore-scripts mermaid@11.17.2 jsdom@29.1.1")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	parse := func(chart string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "node", "parse.mjs")
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(chart)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	_, text, _ := strings.Cut(render(t, "markdown", loads()), "```mermaid\n")
	chart, _, _ := strings.Cut(text, "```")
	if out, err := parse(chart); err != nil || strings.TrimSpace(out) != "xychart" {
		t.Errorf("%v\n%s\n%s", err, out, chart)
	}
	if out, err := parse(strings.Replace(chart, "line [", "line (", 1)); err == nil {
		t.Errorf("a damaged chart is %s", out)
	}
}
