package workload_test

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/bounded"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/workload"
)

// trace returns a trace and its arrivals.
func trace(t *testing.T, kind string, o workload.Options) (workload.Workload, []time.Duration) {
	t.Helper()
	w := make1(t, kind, o)
	p, ok := w.(tacho.Pacer)
	if !ok {
		t.Fatalf("%s has no arrivals", kind)
	}
	return w, slices.Collect(p.Arrivals())
}

func ms(list ...float64) []time.Duration {
	var out []time.Duration
	for _, v := range list {
		out = append(out, time.Duration(math.Round(v*1e6)))
	}
	return out
}

const mooncakeLines = `{"timestamp": 27482, "input_length": 1500, "output_length": 52, "hash_ids": [46, 47, 48]}
{"timestamp": 30535, "input_length": 1024, "output_length": 26, "hash_ids": [46, 47]}
{"timestamp": 30535, "input_length": 600, "output_length": 3, "hash_ids": [46, 2353]}
{"timestamp": 33000, "input_length": 700, "output_length": 1, "hash_ids": [90]}
`

// TestTraceFormats checks counts, lengths and times of the published traces in their own
// formats and units.
func TestTraceFormats(t *testing.T) {
	for _, c := range []struct {
		kind, file, text string
		o                workload.Options
		arrivals         []time.Duration
		lengths          [][2]int
	}{
		{kind: "mooncake", file: "m.jsonl", text: mooncakeLines, arrivals: ms(0, 3053, 3053, 5518), lengths: [][2]int{{1500, 52}, {1024, 26}, {600, 3}, {700, 1}}},
		{
			kind: "azure", file: "a2023.csv", text: "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,4808,10\r\n2023-11-16 18:17:04.0319569,3180,8\r\n",
			arrivals: ms(0, 51.9969), lengths: [][2]int{{4808, 10}, {3180, 8}},
		},
		{
			kind: "azure", file: "a2024.csv", text: "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.009930+00:00,2162,5\n2024-05-10 00:00:00.017335+00:00,2399,6\n2024-05-12 00:00:00.017335+00:00,1,1\n",
			arrivals: ms(0, 7.405, 48*3600e3+7.405), lengths: [][2]int{{2162, 5}, {2399, 6}, {1, 1}},
		},
		{kind: "burstgpt_trace", file: "b.csv", text: burstCSV, arrivals: ms(0, 40_000, 114_000), lengths: [][2]int{{472, 18}, {1087, 230}, {12, 8}}},
		{
			kind: "bailian", file: "q.jsonl", text: `{"chat_id": 159, "parent_chat_id": -1, "timestamp": 61.114, "input_length": 17, "output_length": 2, "type": "text", "turn": 1, "hash_ids": [1, 2]}
{"chat_id": 160, "parent_chat_id": 159, "timestamp": 61.5, "input_length": 40, "output_length": 9, "type": "search", "turn": 2, "hash_ids": [1, 2, 3]}
`,
			arrivals: ms(0, 386), lengths: [][2]int{{17, 2}, {40, 9}},
		},
		{
			kind: "timed_trace", file: "t.jsonl", text: `{"ts": 100, "in": 20, "out": 2, "h": [1, 2]}` + "\n" + `{"ts": 250, "in": 33, "out": 3}` + "\n",
			o: workload.Options{Trace: workload.TraceOptions{UnitS: 0.001, Block: 16, Fields: map[string]string{
				"timestamp": "ts", "input_length": "in", "output_length": "out", "hash_ids": "h",
			}}},
			arrivals: ms(0, 150), lengths: [][2]int{{20, 2}, {33, 3}},
		},
	} {
		for _, ids := range []bool{true, false} {
			c.o.Path, c.o.IDs = write(t, c.file, c.text), ids
			w, arrivals := trace(t, c.kind, c.o)
			if !slices.Equal(arrivals, c.arrivals) {
				t.Errorf("%s: arrivals %v, want %v", c.kind, arrivals, c.arrivals)
			}
			for i, q := range requests(t, w, len(c.lengths)) {
				n := len(q.Input.IDs)
				if !ids {
					n = len(strings.Fields(q.Input.Text))
				}
				if n != c.lengths[i][0] || q.InputTokens != n || q.MaxTokens != c.lengths[i][1] {
					t.Errorf("%s: request %d has %d tokens (says %d) and asks for %d, want %v", c.kind, i, n, q.InputTokens, q.MaxTokens, c.lengths[i])
				}
			}
			if _, err := w.Session(uint64(len(c.lengths))); !errors.Is(err, io.EOF) {
				t.Errorf("%s: past the end: %v", c.kind, err)
			}
		}
	}
}

// TestHashIDsAreSharedPrefixes checks that requests share exactly the tokens of their
// common hash ids, in any order and when repeated.
func TestHashIDsAreSharedPrefixes(t *testing.T) {
	o := workload.Options{Path: write(t, "m.jsonl", mooncakeLines), IDs: true, Seed: 3}
	w := make1(t, "mooncake", o)
	q := requests(t, w, 4)
	common := func(a, b []int32) int {
		n := 0
		for n < min(len(a), len(b)) && a[n] == b[n] {
			n++
		}
		return n
	}
	for _, c := range []struct{ a, b, want int }{{0, 1, 1024}, {0, 2, 512}, {1, 2, 512}, {0, 3, 0}} {
		if got := common(q[c.a].Input.IDs, q[c.b].Input.IDs); got != c.want {
			t.Errorf("requests %d and %d have %d tokens in common, want %d", c.a, c.b, got, c.want)
		}
	}
	for i := 3; i >= 0; i-- {
		s, err := w.Session(uint64(i))
		if err != nil || !slices.Equal(s.Turns[0].Request.Input.IDs, q[i].Input.IDs) {
			t.Errorf("request %d is another when it is made again", i)
		}
	}
	o.Seed = 4
	if other := requests(t, make1(t, "mooncake", o), 1); common(other[0].Input.IDs, q[0].Input.IDs) > 2 {
		t.Error("another seed gave the same tokens")
	}
	warm, err := w.Warmup(0)
	if err != nil || common(warm.Turns[0].Request.Input.IDs, q[0].Input.IDs) > 2 || len(warm.Turns[0].Request.Input.IDs) != 1500 {
		t.Errorf("the warm-up is like the run: %v", err)
	}
}

func TestTraceSpeedupWindowLimit(t *testing.T) {
	path := write(t, "m.jsonl", mooncakeLines)
	for _, c := range []struct {
		o    workload.TraceOptions
		want []time.Duration
	}{
		{workload.TraceOptions{Speedup: 10}, ms(0, 305.3, 305.3, 551.8)},
		{workload.TraceOptions{Window: workload.Window{From: 2 * time.Second, To: 5 * time.Second}}, ms(1053, 1053)},
		{workload.TraceOptions{Window: workload.Window{From: 2 * time.Second}, Speedup: 2}, ms(526.5, 526.5, 1759)},
		{workload.TraceOptions{Limit: 2}, ms(0, 3053)},
		{workload.TraceOptions{Limit: 2, Speedup: 1e-12}, []time.Duration{0, math.MaxInt64}},
	} {
		w, got := trace(t, "mooncake", workload.Options{Path: path, IDs: true, Trace: c.o})
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v, want %v", c.o, got, c.want)
		}
		requests(t, w, len(c.want))
		if _, err := w.Session(uint64(len(c.want))); !errors.Is(err, io.EOF) {
			t.Errorf("%+v: past the end: %v", c.o, err)
		}
	}
	for text, want := range map[string]workload.Window{
		"60-120": {From: time.Minute, To: 2 * time.Minute}, "10m-20m": {From: 10 * time.Minute, To: 20 * time.Minute}, "1.5-": {From: 1500 * time.Millisecond}, "-5": {To: 5 * time.Second},
	} {
		var w workload.Window
		if err := w.UnmarshalText([]byte(text)); err != nil || w != want {
			t.Errorf("%q is %v, %v", text, w, err)
		}
	}
	for _, text := range []string{"", "5", "9-3", "a-b", "-1s--1s"} {
		if err := new(workload.Window).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is a window", text)
		}
	}
}

// TestBadLines checks that a bad line stops the replay with its position and reason, or
// is counted.
func TestBadLines(t *testing.T) {
	good := `{"timestamp": %d, "input_length": 5, "output_length": 2}` + "\n"
	for bad, reason := range map[string]string{
		`{"timestamp": 7`:                      "not a JSON object",
		`{"timestamp": 7, "output_length": 2}`: `no "input_length"`,
		`{"timestamp": 7, "input_length": 600, "output_length": 2, "hash_ids": [1,2,3]}`: "3 hash ids of 512 tokens each do not match a prompt of 600",
		`{"timestamp": 1, "input_length": 5, "output_length": 2}`:                        "sort the trace",
		`{"timestamp": 7, "input_length": -5, "output_length": 2}`:                       "-5 prompt tokens",
		`{"timestamp": -7, "input_length": 5, "output_length": 2}`:                       "-7 is not a valid time",
	} {
		path := write(t, "m.jsonl", fmt.Sprintf(good, 5)+bad+"\n"+fmt.Sprintf(good, 9)+bad+"\n")
		w, arrivals := trace(t, "mooncake", workload.Options{Path: path, IDs: true})
		requests(t, w, 1)
		_, err := w.Session(1)
		if err == nil || !strings.Contains(err.Error(), "m.jsonl:2: ") || !strings.Contains(err.Error(), reason) {
			t.Errorf("error %v, want m.jsonl:2: %s", err, reason)
		}
		if len(arrivals) != 2 { // the second arrival makes the runner ask for the bad line
			t.Errorf("%d arrivals before a bad line", len(arrivals))
		}
		w, arrivals = trace(t, "mooncake", workload.Options{Path: path, IDs: true, Trace: workload.TraceOptions{SkipBad: true}})
		if !slices.Equal(arrivals, ms(0, 4)) {
			t.Errorf("arrivals %v", arrivals)
		}
		requests(t, w, 2)
		if n := w.Notes(); len(n) != 1 || !strings.HasPrefix(n[0], "skipped 2 bad lines; the first: ") || !strings.Contains(n[0], "m.jsonl:2: ") {
			t.Errorf("notes %q", n)
		}
	}
	unsorted := write(t, "u.jsonl", fmt.Sprintf(good, 0)+fmt.Sprintf(good, 9)+fmt.Sprintf(good, 7))
	if _, err := make1(t, "mooncake", workload.Options{Path: unsorted}).Session(2); err == nil || !strings.Contains(err.Error(), "u.jsonl:3: its time, 7ms after the first line, is before the time of an earlier line, 9ms; sort") {
		t.Errorf("%v", err)
	}
	for kind, text := range map[string]string{"azure": "Time,Tokens\n1,2\n", "burstgpt_trace": burstCSV[:80] + "\n1,2\n", "mooncake": "\n"} {
		k, _ := workload.Find(kind)
		if _, err := k.New(t.Context(), workload.Options{Path: write(t, "x.csv", text)}); err == nil {
			t.Errorf("%s takes %q", kind, text)
		}
	}
}

// TestEmptyRequestsAreReported checks that requests without tokens are left out and reported.
func TestEmptyRequestsAreReported(t *testing.T) {
	w, arrivals := trace(t, "burstgpt_trace", workload.Options{Path: write(t, "b.csv", burstCSV), IDs: true})
	if len(arrivals) != 3 {
		t.Errorf("%v", arrivals)
	}
	if n := w.Notes(); len(n) != 1 || !strings.Contains(n[0], "1 requests of the trace without prompt or output tokens") {
		t.Errorf("%q", n)
	}
}

// TestTraceSessions checks that conversations of a trace keep their times and their
// order.
func TestTraceSessions(t *testing.T) {
	text := `{"chat_id": 1, "parent_chat_id": -1, "timestamp": 0, "input_length": 16, "output_length": 2, "hash_ids": [1]}
{"chat_id": 2, "parent_chat_id": -1, "timestamp": 1, "input_length": 16, "output_length": 2, "hash_ids": [9]}
{"chat_id": 3, "parent_chat_id": 1, "timestamp": 4, "input_length": 32, "output_length": 2, "hash_ids": [1,2]}
{"chat_id": 4, "parent_chat_id": 3, "timestamp": 9, "input_length": 48, "output_length": 2, "hash_ids": [1,2,3]}
`
	w, arrivals := trace(t, "bailian", workload.Options{Path: write(t, "q.jsonl", text), IDs: true, Trace: workload.TraceOptions{Sessions: true, Speedup: 2}})
	if !slices.Equal(arrivals, ms(0, 500)) {
		t.Errorf("arrivals %v", arrivals)
	}
	s, err := w.Session(0)
	if err != nil || len(s.Turns) != 3 || s.Turns[1].At != 2*time.Second || s.Turns[2].At != 4500*time.Millisecond || !slices.Equal(s.Turns[2].Request.Input.IDs[:32], s.Turns[1].Request.Input.IDs) {
		t.Errorf("%v %+v", err, s)
	}
}

const wekaText = `{"id":"c1","block_size":4,"hash_id_scope":"local","requests":[
 {"t":0,"type":"n","in":8,"out":3,"hash_ids":[1,2],"api_time":2},
 {"type":"subagent","t":2.5,"requests":[{"t":2.5,"type":"s","in":4,"out":1,"hash_ids":[7],"api_time":1},{"t":4,"type":"s","in":8,"out":1,"hash_ids":[7,8],"api_time":1,"think_time":0.25}]},
 {"type":"subagent","t":3,"requests":[{"t":3,"type":"s","in":4,"out":1,"hash_ids":[9],"api_time":1}]},
 {"t":9,"type":"n","in":12,"out":3,"hash_ids":[1,2,3],"api_time":2},
 {"t":12,"type":"n","in":16,"out":3,"hash_ids":[1,2,3,4],"api_time":2}]}
`

// TestWeka checks a conversation with parallel sub-agents followed by the main thread.
func TestWeka(t *testing.T) {
	for name, text := range map[string]string{"w.jsonl": strings.ReplaceAll(wekaText, "\n ", "") + strings.ReplaceAll(wekaText, "\n ", ""), "w.json": "[" + wekaText + "," + wekaText + "]"} {
		w := make1(t, "weka", workload.Options{Path: write(t, name, text), IDs: true, Trace: workload.TraceOptions{Speedup: 2}})
		s := must.Get(w.Session(0))(t)
		var got []string
		for _, turn := range s.Turns {
			got = append(got, fmt.Sprintf("%d/%d %v %v", turn.Request.InputTokens, turn.Request.MaxTokens, turn.After, turn.Think))
		}
		want := []string{"8/3 [] 0s", "4/1 [0] 250ms", "8/1 [1] 125ms", "4/1 [0] 500ms", "12/3 [0 2 3] 3.5s", "16/3 [4] 500ms"}
		if !slices.Equal(got, want) {
			t.Errorf("%q\nwant %q", got, want)
		}
		if !slices.Equal(s.Turns[4].Request.Input.IDs[:8], s.Turns[0].Request.Input.IDs) {
			t.Error("the history is not shared")
		}
		other, err := w.Session(1)
		if err != nil || slices.Equal(other.Turns[0].Request.Input.IDs, s.Turns[0].Request.Input.IDs) {
			t.Error("hash ids of one conversation mean the same in another, though their scope is local")
		}
	}
}

const otelSpans = `{"resourceSpans":[{"scopeSpans":[{"spans":[
{"traceId":"t1","startTimeUnixNano":"1000000000","endTimeUnixNano":"3000000000","attributes":[{"key":"gen_ai.usage.input_tokens","value":{"intValue":"7"}},{"key":"gen_ai.usage.output_tokens","value":{"intValue":"2"}},{"key":"gen_ai.input.messages","value":{"stringValue":"[{\"role\":\"user\",\"content\":\"plan\"}]"}},{"key":"gen_ai.output.text","value":{"stringValue":"do it"}}]},
{"traceId":"t1","startTimeUnixNano":"4000000000","endTimeUnixNano":"6000000000","attributes":[{"key":"gen_ai.usage.input_tokens","value":{"intValue":"9"}},{"key":"gen_ai.usage.output_tokens","value":{"intValue":"1"}}]},
{"traceId":"t1","startTimeUnixNano":"3500000000","endTimeUnixNano":"5000000000","attributes":[{"key":"gen_ai.usage.input_tokens","value":{"intValue":"9"}},{"key":"gen_ai.usage.output_tokens","value":{"intValue":"1"}}]},
{"traceId":"t1","startTimeUnixNano":"7000000000","endTimeUnixNano":"8000000000","attributes":[{"key":"gen_ai.usage.input_tokens","value":{"intValue":"9"}},{"key":"gen_ai.usage.output_tokens","value":{"intValue":"1"}},{"key":"gen_ai.input.messages","value":{"stringValue":"[{\"role\":\"assistant\",\"content\":\"welcome\"},{\"role\":\"user\",\"content\":\"plan\"},{\"role\":\"assistant\",\"content\":\"do it\"},{\"role\":\"user\",\"content\":\"go\"}]"}}]},
{"traceId":"t2","startTimeUnixNano":"2500000000","endTimeUnixNano":"2600000000","attributes":[{"key":"http.method","value":{"stringValue":"GET"}}]},
{"traceId":"t2","startTimeUnixNano":"2000000000","endTimeUnixNano":"2600000000","attributes":[{"key":"gen_ai.usage.prompt_tokens","value":{"intValue":"5"}},{"key":"gen_ai.usage.completion_tokens","value":{"intValue":"4"}}]}
]}]}]}`

func TestOTelSpans(t *testing.T) {
	w, arrivals := trace(t, "otel", workload.Options{Path: write(t, "s.json", otelSpans), Messages: true})
	if !slices.Equal(arrivals, ms(0, 1000)) {
		t.Errorf("arrivals %v", arrivals)
	}
	s := must.Get(w.Session(0))(t)
	var got []string
	for _, turn := range s.Turns {
		got = append(got, fmt.Sprintf("%v %v", turn.After, turn.Think))
	}
	if want := []string{"[] 0s", "[0] 500ms", "[0] 1s", "[1 2] 1s"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if m := s.Turns[3].Request.Input.Messages; len(m) != 4 || m[0].Content != "welcome" || m[0].Answer != 0 || m[2].Answer != 1 || m[3].Content != "go" {
		t.Errorf("the answer of the trace is not the server's: %+v", m)
	}
	if n := w.Notes(); len(n) != 1 || !strings.Contains(n[0], "1 spans without gen_ai.usage tokens were left out") {
		t.Errorf("%q", n)
	}
	if one, err := w.Session(1); err != nil || one.Turns[0].Request.MaxTokens != 4 {
		t.Errorf("%v %+v", err, one)
	}
}

// TestServeGen checks that clients send at the rates of their windows, in order of time,
// with the lengths of their windows.
func TestServeGen(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"chunk-0-trace.csv":    "0,0,0,,0,0\n600,4,1,Gamma,0.5,0.5\n1200,0,0,,0,0\n",
		"chunk-0-dataset.json": `{"0": {"input_tokens": "{10: 1.0}", "output_tokens": "{3: 1.0}"}, "300": {"input_tokens": "{20: 0.5, 30: 0.5}", "output_tokens": "{7: 1.0}"}}`,
		"chunk-1-trace.csv":    "0,1,1,Weibull,0.7,0.6\n600,1,1,Exponential,1,1\n1200,1,2,Gamma,1,1\n",
		"chunk-1-dataset.json": `{"0": {"input_tokens": "{5: 1.0}", "output_tokens": "{1: 1.0}"}}`,
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	w, arrivals := trace(t, "servegen", workload.Options{Path: dir, IDs: true, Trace: workload.TraceOptions{Window: workload.Window{To: 20 * time.Minute}}})
	if !slices.IsSorted(arrivals) || len(arrivals) < 3200 || len(arrivals) > 4000 { // 600*4 + 1200*1
		t.Errorf("%d arrivals, sorted %v", len(arrivals), slices.IsSorted(arrivals))
	}
	for i, q := range requests(t, w, len(arrivals)) {
		client := q.Labels[0].Value
		bursty := client == "chunk-0" && (q.InputTokens == 20 || q.InputTokens == 30) && q.MaxTokens == 7 && arrivals[i] >= 10*time.Minute
		if !bursty && (client != "chunk-1" || q.InputTokens != 5) {
			t.Fatalf("%d at %v: %s %d %d", i, arrivals[i], client, q.InputTokens, q.MaxTokens)
		}
	}
}

// TestTraceMemory checks that memory does not grow with the length of a trace.
func TestTraceMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "long.jsonl")
	f := must.Get(os.Create(path))(t)
	const lines = 100_000
	for i := range lines {
		must.Get(fmt.Fprintf(f, `{"timestamp": %d, "input_length": 20, "output_length": 2, "hash_ids": [%d]}`+"\n", i, i))(t)
	}
	must.Do(t, f.Close())
	w := make1(t, "mooncake", workload.Options{Path: path, IDs: true})
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	requests(t, w, 10)
	before, n := heap(), 0
	for range w.(tacho.Pacer).Arrivals() {
		must.Get(w.Session(uint64(n)))(t)
		n++
	}
	if grown := int64(heap()) - int64(before); n != lines || grown > 1<<20 {
		t.Errorf("%d requests, %d bytes more in memory", n, grown)
	}
}

func FuzzTraceLine(f *testing.F) {
	// The kinds that read files, with file names they accept.
	kinds := []struct{ kind, name string }{
		{"mooncake", "x.jsonl"},
		{"azure", "x.csv"},
		{"burstgpt_trace", "x.csv"},
		{"bailian", "x.jsonl"},
		{"timed_trace", "x.jsonl"},
		{"weka", "x.json"},
		{"weka", "x.jsonl"},
		{"otel", "x.json"},
		{"custom", "x.jsonl"},
		{"conversation", "x.jsonl"},
		{"sharegpt", "x.json"},
		{"hf", "x.csv"},
		{"hf", "x.jsonl"},
		{"spec_bench", "x.jsonl"},
		{"burstgpt", "x.csv"},
		{"servegen", "chunk-0-trace.csv"},
		{"servegen", "chunk-0-dataset.json"},
	}
	for _, s := range []string{
		mooncakeLines, burstCSV, "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00,1,1\n", wekaText, otelSpans,
		`{"0":{"input_tokens":"{5: 0.5}","output_tokens":"{3: 1}"}}`, "0,2.0,1,Gamma,0.5,1\n600,0,0,,0,0\n", "01\n600\"\x00mma,0.,,,2.0,,0\n",
		`{"trace_id":"t","start_time":1,"end_time":2,"attributes":{"gen_ai.usage.input_tokens":9,"gen_ai.usage.output_tokens":3,"gen_ai.input.messages":[{"role":"assistant","parts":[{"type":"tool_call","id":"1","name":"f","arguments":{}}]}]}}`,
		`{"question":[[{"role":"user","content":"a"}]],"function":[{"name":"f","parameters":{"type":"dict"}}],"images":[{"bytes":"/9j/"}],"code":"x","change_request":"y"}`,
	} {
		for k := range kinds {
			f.Add(uint8(k), s)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, s string) {
		k := kinds[int(which)%len(kinds)]
		dir := t.TempDir()
		files := map[string]string{k.name: s}
		path := filepath.Join(dir, k.name)
		if k.kind == "servegen" { // servegen reads two files
			path = dir
			for name, text := range map[string]string{"chunk-0-trace.csv": "0,2.0,1,Gamma,0.5,1\n600,0,0,,0,0\n", "chunk-0-dataset.json": `{"0":{"input_tokens":"{5: 1}","output_tokens":"{3: 1}"}}`} {
				if name != k.name {
					files[name] = text
				}
			}
		}
		for name, text := range files {
			must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
		}
		for _, o := range []workload.TraceOptions{{SkipBad: true, Limit: 3}, {Sessions: true, Limit: 3}} {
			// A length of a trace is at most 16 Mi tokens, and its prompt has some bytes for each.
			bounded.Run(t, 3<<30, func() {
				tryWorkload(t, k.kind, workload.Options{Path: path, Counter: &byWord{}, Trace: o, Count: 3, Output: workload.Fixed(2), Hub: "AI-MO/NuminaMath-CoT"})
			})
		}
	})
}

// tryWorkload makes a workload from arbitrary file contents. It must not panic, and an error names the file.
func tryWorkload(t *testing.T, kind string, o workload.Options) {
	t.Helper()
	k := must.Get(workload.Find(kind))(t)
	w, err := k.New(t.Context(), o)
	if err != nil {
		if !strings.Contains(err.Error(), o.Path) {
			t.Errorf("%s: the error does not name the file: %v", kind, err)
		}
		return
	}
	for i := range uint64(3) {
		if _, err := w.Session(i); err != nil {
			break
		}
	}
}
