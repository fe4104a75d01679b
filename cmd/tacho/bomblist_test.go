//go:build bombs && linux

package main

import (
	"fmt"
	"slices"
	"strings"
)

func bombs() []bomb {
	return slices.Concat(templates(), tokenizers(), plans(), datasets(), results(), runs())
}

const million = 1_000_000

// templates are chat templates of a model from a hub.
func templates() (out []bomb) {
	const loops = "{% for a in range(99999) %}{% for b in range(99999) %}"
	for _, t := range []struct{ name, source string }{
		{"join", "{{ (['x' * 60000000] * 1000) | join('') }}"},
		{"replace", "{{ ('a' * 10000000) | replace('a', 'b' * 10000000) }}"},
		{"doubling list", "{% set ns = namespace(l=[1]) %}{% for i in range(99) %}{% set ns.l = ns.l + ns.l %}{% endfor %}"},
		{"nested loops", loops + "{% endfor %}{% endfor %}"},
		{"comparisons in loops", loops + "{% if 1" + strings.Repeat(" == 1", 100_000) + " %}{% endif %}{% endfor %}{% endfor %}"},
		{"macro that doubles", "{% macro a(x) %}{{ x }}{{ x }}{% endmacro %}{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = a(ns.s) %}{% endfor %}"},
		{"list that contains itself 60 times", "{% set ns = namespace(a=['x']) %}{% for i in range(60) %}{% set ns.a = [ns.a, ns.a] %}{% endfor %}{{ ns.a | tojson }}"},
	} {
		out = append(out, bomb{
			name:  "template: " + t.name,
			files: map[string]content{"m/tokenizer.json": tokenizer(nil), "m/tokenizer_config.json": ofJSON(map[string]any{"chat_template": t.source}), "p.jsonl": prompts},
			args:  withTokenizer, want: "tokenizer_config.json: render template: ",
		})
	}
	return out
}

// prompts is a file of two texts.
var prompts = repeated("", `{"prompt":"`+strings.Repeat("the end of the text ", 500)+`","output_tokens":3}`+"\n", 2, "")

const withTokenizer = "data --tokenizer m --backend openai --dataset-name custom --dataset-path p.jsonl --num-prompts 2"

// tokenizer is a tokenizer.json of characters, with other parts.
func tokenizer(parts map[string]any) content {
	vocab := map[string]int{}
	for c := rune(' '); c < 127; c++ {
		vocab[string(c)] = int(c - ' ')
	}
	file := map[string]any{"model": map[string]any{"type": "BPE", "vocab": vocab, "merges": []string{}}, "added_tokens": []any{}}
	for name, v := range parts {
		file[name] = v
	}
	return ofJSON(file)
}

// tokenizers are tokenizer.json files of a model from a hub.
func tokenizers() (out []bomb) {
	sequence := func(key string, parts ...any) any { return map[string]any{"type": "Sequence", key: parts} }
	split := func(expr string) any {
		return map[string]any{"type": "Split", "pattern": map[string]any{"Regex": expr}, "behavior": "Isolated"}
	}
	double := map[string]any{"type": "Replace", "pattern": map[string]any{"String": "e"}, "content": "ee"}
	nested := any(map[string]any{"type": "NFC"})
	for range 200 {
		nested = sequence("normalizers", nested)
	}
	for _, b := range []struct {
		name  string
		parts map[string]any
	}{
		{"regular expression that backtracks", map[string]any{"pre_tokenizer": split(`([a-z ]+)+\1[0-9]`)}},
		{"regular expression of many stars", map[string]any{"pre_tokenizer": split(strings.Repeat("[a-z ]*", 12) + "[0-9]")}},
		{"replacements that double", map[string]any{"normalizer": sequence("normalizers", slices.Repeat([]any{double}, 30)...)}},
		{"nested normalizers", map[string]any{"normalizer": nested}},
		{"3 million added tokens", map[string]any{"added_tokens": slices.Repeat([]any{map[string]any{}}, 3<<20)}},
	} {
		out = append(out, bomb{
			name: "tokenizer: " + b.name, files: map[string]content{"m/tokenizer.json": tokenizer(b.parts), "p.jsonl": prompts}, args: withTokenizer, want: "tokenizer.json",
		})
	}
	return out
}

// aliases is YAML with a list that doubles 40 times.
func aliases(before string) content {
	var b strings.Builder
	b.WriteString(before + "\na0: &a0 [x, x]\n")
	for i := range 40 {
		fmt.Fprintf(&b, "a%d: &a%d [*a%d, *a%d]\n", i+1, i+1, i, i)
	}
	return text(b.String())
}

func plans() []bomb {
	const plan, engine = "bench --plan p.yaml --base-url http://127.0.0.1:1", "predict --engine ./p.yaml --num-prompts 5 --request-rate 1"
	return []bomb{
		{name: "plan: 100,000 brackets", files: map[string]content{"p.yaml": repeated("a: ", "[", 100_000, "")}, args: plan, want: "deeper than 100"},
		{name: "plan: aliases that double", files: map[string]content{"p.yaml": aliases("num_prompts: 5")}, args: plan, want: "p.yaml"},
		{name: "plan: 2 MiB", files: map[string]content{"p.yaml": repeated("label: ", "x", 2<<20, "\n")}, args: plan, want: "more than 1048576 bytes"},
		{name: "profile: 100,000 brackets", files: map[string]content{"p.yaml": repeated("a: ", "[", 100_000, "")}, args: engine, want: "deeper than 100"},
		{name: "profile: aliases that double", files: map[string]content{"p.yaml": aliases("policy: chunked")}, args: engine, want: "p.yaml"},
		{name: "profile: 2 MiB", files: map[string]content{"p.yaml": repeated("name: ", "x", 2<<20, "\n")}, args: engine, want: "larger than 1 MiB"},
		{name: "profile: 1e18 sequences", files: map[string]content{"p.yaml": text("policy: chunked\nmax_sequences: 1000000000000000000\nstep_tokens: 1\nkv: {block_tokens: 16}\ncost: {step: [{tokens: 1, ms: 1}]}\n")}, args: engine, want: "max_sequences"},
	}
}

func datasets() []bomb {
	data := func(kind, file string, more ...string) string {
		return "data --backend openai --dataset-name " + kind + " --dataset-path " + file + " --num-prompts 2 " + strings.Join(more, " ")
	}
	one := func(name string, c content) map[string]content { return map[string]content{name: c} }
	return []bomb{
		{name: "dataset: 80 million lines, gzip, shuffled", files: one("p.jsonl.gz", zipped("", `{"prompt":"a","output_tokens":1}`+"\n", 80*million)), args: data("custom", "p.jsonl.gz"), want: "p.jsonl.gz: more than 1024 MiB"},
		{name: "dataset: the same, in order", files: one("p.jsonl.gz", zipped("", `{"prompt":"a","output_tokens":1}`+"\n", 80*million)), args: data("custom", "p.jsonl.gz", "--disable-shuffle"), ends: true},
		{name: "dataset: 80 million lines, zstd", files: one("p.jsonl.zst", zstandard("", `{"prompt":"a","output_tokens":1}`+"\n", 80*million)), args: data("custom", "p.jsonl.zst"), want: "p.jsonl.zst: more than 1024 MiB"},
		{name: "dataset: conversations", files: one("p.jsonl.gz", zipped("", `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}`+"\n", 80*million)), args: data("conversation", "p.jsonl.gz"), want: "p.jsonl.gz"},
		{name: "dataset: BurstGPT", files: one("b.csv.gz", zipped("Timestamp,Model,Request tokens,Response tokens\n", "1,GPT-4,5,6\n", 80*million)), args: data("burstgpt", "b.csv.gz"), want: "b.csv.gz"},
		{name: "dataset: list of prompts in one line", files: one("p.json.gz", zipped(`[{"prompt":"`, "x", 1<<30)), args: data("hf", "p.json.gz"), want: "longer than 64 MiB"},
		{name: "dataset: a line of 1 GiB", files: one("p.jsonl.gz", zipped(`{"prompt":"`, "x", 1<<30)), args: data("custom", "p.jsonl.gz"), want: "longer than 64 MiB"},
		{name: "dataset: a CSV field of 1 GiB", files: one("p.csv.gz", zipped("prompt\n\"", "x", 1<<30)), args: data("hf", "p.csv.gz"), want: "longer than 64 MiB"},
		{name: "dataset: a book of 8 GB", files: one("b.txt.gz", zipped("", "some words of a book that does not end ", 8000*million/39)), args: data("book", "b.txt.gz"), ends: true},
		{name: "dataset: Parquet list of 100 million values", files: one("p.parquet", table(1, "hello", 100*million)), args: data("hf", "p.parquet"), want: "a page has more than 16777216 values"},
		{name: "dataset: 10 million equal Parquet rows", files: one("p.parquet", table(10*million, "hello", 0)), args: data("hf", "p.parquet"), want: "p.parquet: more than 1024 MiB"},
	}
}

func results() []bomb {
	const report = "report r.json"
	one := func(c content) map[string]content { return map[string]content{"r.json": c} }
	return []bomb{
		{name: "result: 300 MiB", files: one(sparse(`{"model_id":"m"`, 300<<20)), args: report, want: "r.json is larger than 256 MiB"},
		{name: "result: 128 million values", files: one(repeated(`{"request_throughput":1,"model_id":"m","ttfts":[`, "1,", 120<<20, "1]}")), args: report, want: "more than 16 million JSON values"},
		{name: "result: 16 million values", files: one(repeated(`{"request_throughput":1,"model_id":"m","x":[`, "1,", 16<<20-100, "1]}")), args: report, ends: true},
		{name: "result: 10 million brackets", files: one(repeated(`{"x":`, "[", 10*million, "")), args: report, want: "r.json"},
		{name: "result: numbers beyond time", files: one(text(`{"model_id":"m","request_throughput":1e308,"duration":1e308,"completed":1e18,"ttfts":[1e308,1],"itls":[[1e308],[-1e308]],"input_lens":[1e18,1],"output_lens":[3,2],"start_times":[-1e308,1e308]}`)), args: report + " --report html=r.html", ends: true},
		{name: "result: 4 million levels", files: one(repeated(`{"runs":[{"tool":"tacho","levels":[`, "{},", 4*million, "{}]}]}")), args: report, want: "r.json: "},
		{name: "result: 4 million requests of AIPerf", files: map[string]content{"r.jsonl": repeated("", `{"metadata":{"benchmark_phase":"profiling"},"metrics":{}}`+"\n", 4*million, "")}, args: "report r.jsonl", want: "r.jsonl: more than 3 million JSON objects"},
	}
}

func runs() []bomb {
	const manifest, stage = `{"schema":1,"tool":"tacho"}`, `{"index":0,"config":{"percentiles":[99],"metrics":["ttft"]}}` + "\n"
	const record = `{"stage":0,"due_ns":0,"sent_ns":1000,"end_ns":3000000,"output_tokens":1,"events":{"at_ns":[2000000]}}` + "\n"
	run := func(more map[string]content) map[string]content {
		out := map[string]content{"r/manifest.json": text(manifest), "r/stages.jsonl": text(stage), "r/records.jsonl": text(record)}
		for name, c := range more {
			out["r/"+name] = c
		}
		return out
	}
	one := func(name string, c content) map[string]content { return run(map[string]content{name: c}) }
	const report = "report r"
	return []bomb{
		{name: "run: a million levels", files: one("stages.jsonl", levels(million)), args: report, want: "stages.jsonl: more than 10000 levels"},
		{name: "run: a record of 8 GB", files: one("records.jsonl", sparse(`{"stage":0`, 8<<30)), args: report, want: "records.jsonl: a line is longer than 128 MiB"},
		{name: "run: 60 million events in a record", files: one("records.jsonl", repeated(`{"stage":0,"events":{"at_ns":[`, "1,", 60*million, "1]}}\n")), args: report, want: "records.jsonl:1: events: more than 6291456 numbers"},
		{name: "run: a pipe as records", files: one("records.jsonl", pipe), args: report, want: "records.jsonl is a pipe"},
		{name: "run: manifest of 200 MiB", files: one("manifest.json", repeated(`{"schema":1,"target":{"servers":[`, "{},", 70*million, "{}]}}")), args: report, want: "manifest.json is larger than 16 MiB"},
		{name: "run: 20 million samples", files: one("instruments.jsonl", repeated("", "{}\n", 20*million, "")), args: report, want: "instruments.jsonl: more than 1048576 samples"},
		{name: "run: times at the end of int64", files: one("records.jsonl", text(`{"stage":0,"sent_ns":9223372036854775807,"end_ns":-9223372036854775808,"events":{"at_ns":[1]}}`+"\n")), args: report, want: "records.jsonl:1: "},
	}
}

// levels is a stages file.
func levels(n int) content {
	return func(path string) error {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "{\"index\":%d}\n", i)
		}
		return text(b.String())(path)
	}
}
