package workload_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/workload"
)

// samples contains small options for every kind of dataset, in all its forms. The tests
// below fail if a kind is missing.
func samples(t *testing.T) map[string][]workload.Options {
	t.Helper()
	in, out := length(t, "uniform(5,40)"), length(t, "uniform(1,9)")
	lines := func(n int, line func(i int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(line(i) + "\n")
		}
		return b.String()
	}
	prompts := write(t, "prompts.jsonl", lines(30, func(i int) string {
		return fmt.Sprintf(`{"prompt":"question number %d of all","output_tokens":%d,"labels":{"part":"%d"},"headers":{"x-a":"%d"}}`, i, i+1, i%3, i)
	}))
	talks := write(t, "talks.jsonl", lines(20, func(i int) string {
		return fmt.Sprintf(`{"messages":[{"role":"system","content":"be"},{"role":"user","content":"one %d"},{"role":"assistant","content":"a b"},{"role":"user","content":"two"},{"role":"assistant","content":"c"}]}`, i)
	}))
	turns := write(t, "turns.jsonl", lines(10, func(i int) string {
		return fmt.Sprintf(`{"turns":[{"messages":[{"role":"user","content":"t%d"}],"output_tokens":2},{"messages":[{"role":"user","content":"t%d"},{"role":"assistant","answer":1,"content":""},{"role":"user","content":"more"}],"output_tokens":3,"think_s":1.5,"tools":[{"type":"function"}],"extra_body":{"top_k":3}}]}`, i, i)
	}))
	hashed := lines(30, func(i int) string {
		return fmt.Sprintf(`{"timestamp":%d,"input_length":%d,"output_length":%d,"hash_ids":[1,%d],"type":"text","chat_id":%d,"parent_chat_id":%d}`, i, 17+i%10, 1+i%5, i, i, i-3)
	})
	csv := func(header, row string) string {
		return header + "\n" + lines(30, func(i int) string { return fmt.Sprintf(row, i, 3+i, 1+i%7) })
	}
	speed := filepath.Dir(write(t, "qualitative.jsonl", lines(20, func(i int) string {
		return fmt.Sprintf(`{"category":"c%d","messages":[{"role":"user","content":"speed %d"}]}`, i%2, i)
	})))
	tone := must.Get(filepath.Abs(filepath.Join("testdata", "tone.wav")))(t)
	pictures := write(t, "pictures.jsonl", lines(10, func(i int) string {
		return fmt.Sprintf(`{"prompt":"what is on picture %d?","image_files":["data:image/png;base64,iVBORw0KGgo="],"output_tokens":%d}`, i, i+1)
	}))
	sounds := write(t, "sounds.jsonl", lines(10, func(i int) string {
		return fmt.Sprintf(`{"prompt":"what is said, %d?","audio":%q,"output_tokens":%d}`, i, tone, i+1)
	}))
	poem := write(t, "poem.txt", lines(50, func(i int) string { return fmt.Sprintf("line %d of a poem that is long", i) }))
	var buckets workload.Buckets
	must.Do(t, buckets.UnmarshalText([]byte("{(16,24,1):0.5,(8,8,1):0.5}")))
	clients := t.TempDir()
	for name, text := range map[string]string{
		"chunk-0-trace.csv": "0,2.0,1,Gamma,0.5,1\n600,0,0,,0,0\n", "chunk-0-dataset.json": `{"0":{"input_tokens":"{5: 0.5, 9: 0.5}","output_tokens":"{3: 1}"}}`,
		"chunk-1-trace.csv": "0,1.0,1,Weibull,0.8,1\n600,0,0,,0,0\n", "chunk-1-dataset.json": `{"0":{"input_tokens":"{6: 1}","output_tokens":"{2: 1}"}}`,
	} {
		must.Do(t, os.WriteFile(filepath.Join(clients, name), []byte(text), 0o600))
	}
	return map[string][]workload.Options{
		"random": {
			{IDs: true, Input: in, Output: out},
			{Input: in, Output: out},
			{Input: workload.Fixed(20), Output: out, InRatio: 0.5, Prefix: 5, Prefixes: 3, Zipf: 1},
			{IDs: true, Input: in, Output: out, Batch: 3},
			{Input: in, Output: out, Batch: 3},
			{Input: in, Output: out, IgnoreEOS: true, Count: 40},
		},
		"book":              {{Input: in, Output: out, Path: write(t, "book.txt", prose(3000))}},
		"custom":            {{Path: prompts, Output: workload.Fixed(-1)}, {Path: prompts, Output: out, Shuffle: true, Repeat: true, Count: 60}, {Path: turns, Output: workload.Fixed(-1), Messages: true}},
		"custom_image":      {{Path: pictures, Output: out, Messages: true, Media: true, SendFiles: true}},
		"custom_audio":      {{Path: sounds, Output: out, Messages: true, Media: true}, {Path: sounds, Output: out, Audio: true}},
		"sharegpt":          {{Path: write(t, "s.json", "["+share(9, 9)+","+share(12, 30)+","+share(100, 4)+"]"), Shuffle: true, Repeat: true, Count: 40}},
		"sonnet":            {{Input: workload.Fixed(120), Output: out, Prefix: 40, Path: poem}, {Input: workload.Fixed(200), Output: out, Prefix: 40}},
		"prefix_repetition": {{Shuffle: true, IDs: true, Input: in, Output: out, Prefix: 9, Prefixes: 4, Count: 40}, {Input: in, Output: out, Prefix: 9, Prefixes: 4, Count: 40}},
		"burstgpt":          {{IDs: true, Path: write(t, "b.csv", csv("Timestamp,Model,Request tokens,Response tokens", "%d,GPT-4,%d,%d")), Count: 40, Repeat: true}},
		"spec_bench":        {{Output: out, Shuffle: true, Path: write(t, "q.jsonl", lines(20, func(i int) string { return fmt.Sprintf(`{"category":"c","turns":["spec %d","x"]}`, i) }))}},
		"speed_bench":       {{Output: out, Path: speed, Subset: "qualitative"}},
		"hf":                {{Output: out, Path: talks, Messages: true}, {Output: out, Path: prompts, Shuffle: true}},
		"random_mm":         {{Input: in, Output: out, Messages: true, Media: true, Images: workload.ImageOptions{Base: 2, Ratio: 0.5, Images: 3, Buckets: buckets, AudioMS: workload.Fixed(20)}}},
		"random_rerank":     {{Input: workload.Fixed(20), Batch: 3, Messages: true, InRatio: 0.5}, {Input: workload.Fixed(20), Batch: 3, NoRank: true, Count: 20}},
		"conversation": {
			{Messages: true, Input: in, Output: out, Conversation: workload.ConversationOptions{Turns: length(t, "uniform(1,4)"), ThinkMS: length(t, "uniform(1,900)"), System: 9, Systems: 3, Tools: 0.5, SubAgents: 2}},
			{Messages: true, Path: talks, Output: workload.Fixed(-1), Shuffle: true},
			{Input: in, Output: out, Conversation: workload.ConversationOptions{Turns: workload.Fixed(2)}},
		},
		"mooncake":       {{IDs: true, Path: write(t, "m.jsonl", hashed), Trace: workload.TraceOptions{Block: 16}}, {Path: write(t, "m.jsonl", hashed), Trace: workload.TraceOptions{Block: 16}}},
		"bailian":        {{IDs: true, Path: write(t, "b.jsonl", hashed)}, {IDs: true, Path: write(t, "b.jsonl", hashed), Trace: workload.TraceOptions{Sessions: true, Speedup: 2}}},
		"timed_trace":    {{IDs: true, Path: write(t, "t.jsonl", hashed)}},
		"azure":          {{IDs: true, Path: write(t, "a.csv", csv("TIMESTAMP,ContextTokens,GeneratedTokens", "2023-11-16 18:17:%02d.5,%d,%d"))}},
		"burstgpt_trace": {{IDs: true, Path: write(t, "b.csv", csv("Timestamp,Model,Request tokens,Response tokens", "%d,GPT-4,%d,%d"))}},
		"weka":           {{IDs: true, Path: write(t, "w.json", "["+wekaText+","+wekaText+"]"), Repeat: true, Count: 30}, {Path: write(t, "w.json", wekaText)}},
		"otel":           {{Path: write(t, "o.json", otelSpans), Messages: true}},
		"gsm8k": {{Output: out, Path: write(t, "gsm8k.jsonl", lines(20, func(i int) string {
			return fmt.Sprintf(`{"question":"How much is %d and 1?","answer":"One more.\n#### %d"}`, i, i+1)
		}))}},
		"arithmetic": {{Output: out}, {Output: out, Count: 40}},
		"bfcl":       {{Output: out, Messages: true, Path: functionCalls(t)}},
		"servegen":   {{IDs: true, Path: clients, Count: 200}},
	}
}

// sessions returns all sessions of a workload, at most 40.
func sessions(t *testing.T, w workload.Workload) []tacho.Session {
	t.Helper()
	var out []tacho.Session
	for i := range uint64(40) {
		s, err := w.Session(i)
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	if len(out) == 0 {
		t.Fatal("no sessions")
	}
	return out
}

// TestEveryKindIsAFunctionOfI checks that session i depends only on the seed and i: made
// alone, in reverse order or concurrently, it is the same. Warm-up sessions are
// different.
func TestEveryKindIsAFunctionOfI(t *testing.T) {
	all := samples(t)
	for _, kind := range workload.Kinds {
		if len(all[kind.Name]) == 0 {
			t.Errorf("%s: no sample of it to test", kind.Name)
		}
		for n, o := range all[kind.Name] {
			t.Run(fmt.Sprint(kind.Name, n), func(t *testing.T) {
				o.Seed = 5
				want := sessions(t, make1(t, kind.Name, o))
				same := func(how string, i int, got tacho.Session, err error) {
					if err != nil || !reflect.DeepEqual(want[i], got) {
						t.Errorf("session %d %s is another: %v (-in order +so):\n%s", i, how, err, cmp.Diff(want[i], got))
					}
				}
				last := len(want) - 1
				s, err := make1(t, kind.Name, o).Session(uint64(last))
				same("alone", last, s, err)
				w := make1(t, kind.Name, o)
				for i := last; i >= 0; i-- {
					s, err := w.Session(uint64(i))
					same("backwards", i, s, err)
				}
				w = make1(t, kind.Name, o)
				var group sync.WaitGroup
				for g := range 4 {
					group.Go(func() {
						for k := range want {
							i := (k*7 + g*5) % len(want)
							s, err := w.Session(uint64(i))
							same("by several at once", i, s, err)
						}
					})
				}
				group.Wait()
				warm, err := w.Warmup(1)
				if err != nil || len(warm.Turns) != 1 {
					t.Fatalf("a warm-up of %d turns: %v", len(warm.Turns), err)
				}
				for i := range want {
					// Audio sent without words cannot differ.
					if warm.Turns[0].Request.Input.Audio == nil && reflect.DeepEqual(want[i].Turns[0].Request.Input, warm.Turns[0].Request.Input) {
						t.Errorf("a warm-up asks what session %d asks", i)
					}
				}
			})
		}
	}
}

// TestSeedMatters checks that another seed gives other sessions if anything is random.
// The order of a file is not random.
func TestSeedMatters(t *testing.T) {
	for name, list := range samples(t) {
		for n, o := range list {
			if o.Path != "" && !o.Shuffle && !o.IDs {
				continue
			}
			o.Seed = 5
			a := sessions(t, make1(t, name, o))
			o.Seed = 6
			if b := sessions(t, make1(t, name, o)); reflect.DeepEqual(a, b) {
				t.Errorf("%s %d is the same with another seed", name, n)
			}
		}
	}
}

// plainRequest returns a request without the fields that depend on the reader.
func plainRequest(t *testing.T, q tacho.Request) tacho.Request {
	t.Helper()
	q.InputTokens = 0 // counted again by the reader
	if a := q.Input.Audio; a != nil {
		q.Input.Audio = &tacho.Audio{Name: filepath.Ext(a.Name), Data: a.Data} // a data URL contains only the type
	}
	if q.Extra != nil {
		b := must.Get(json.Marshal(q.Extra))(t)
		q.Extra = map[string]any{"json": string(b)}
	}
	slices.SortFunc(q.Labels, func(a, b tacho.Label) int { return strings.Compare(a.Key, b.Key) })
	return q
}

// TestEveryKindIsReadBack checks that the custom dataset reads back the sessions of any
// dataset.
func TestEveryKindIsReadBack(t *testing.T) {
	all := samples(t)
	for _, kind := range workload.Kinds {
		for n, o := range all[kind.Name] {
			var file bytes.Buffer
			want := sessions(t, make1(t, kind.Name, o))
			for i := range want {
				must.Do(t, workload.WriteLine(&file, &want[i]))
			}
			read := workload.Options{Path: write(t, "w.jsonl", file.String()), Output: workload.Fixed(-1), Messages: o.Messages, Media: o.Media, Audio: o.Audio}
			if want[0].Turns[0].Request.MaxTokens == 0 {
				read.Output = workload.Fixed(0) // no output
			}
			got := sessions(t, make1(t, "custom", read))
			for _, list := range [][]tacho.Session{want, got} {
				for i := range list {
					for k := range list[i].Turns {
						list[i].Turns[k].Request = plainRequest(t, list[i].Turns[k].Request)
					}
				}
			}
			if !reflect.DeepEqual(want, got) {
				t.Errorf("%s %d (-written +read):\n%s", kind.Name, n, cmp.Diff(want, got))
			}
		}
	}
}

// functionCalls writes a file of questions with its answer key and returns its path.
func functionCalls(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "possible_answer"), 0o700); err != nil {
		t.Fatal(err)
	}
	var questions, keys strings.Builder
	for i := range 10 {
		fmt.Fprintf(&questions, `{"id":"simple_%d","question":[[{"role":"user","content":"the factorial of %d"}]],"function":[{"name":"math.factorial","parameters":{"type":"dict","properties":{"n":{"type":"integer"}},"required":["n"]}}]}`+"\n", i, i)
		fmt.Fprintf(&keys, `{"id":"simple_%d","ground_truth":[{"math.factorial":{"n":[%d]}}]}`+"\n", i, i)
	}
	path := filepath.Join(dir, "BFCL_v4_simple_python.json")
	for name, text := range map[string]string{path: questions.String(), filepath.Join(dir, "possible_answer", filepath.Base(path)): keys.String()} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}
